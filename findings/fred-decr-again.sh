#!/usr/bin/env bash
# fred 10.1.0 with a reconnect policy and its default of three attempts: a relay hands one DECR to Redis, throws the answer away and closes the connection. fred
# sends it again and says Ok(98) of 100; SET NX says that it has set nothing, while the key holds the caller's own token. Without a policy it is an error, and
# the command is carried out once. Needs cargo and redis-server. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
cd "$folder"
redis-server --port 0 --unixsocket "$folder/redis.sock" --save '' >redis.log 2>&1 &
redis=$!
trap 'kill $redis; rm -rf "$folder"' EXIT
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"
[dependencies]
fred = "=10.1.0"
tokio = { version = "1", features = ["full"] }
[workspace]
TOML
cat >src/main.rs <<'RUST'
use fred::prelude::*;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixStream},
};

/// Loses the answer to the next command that names this key.
async fn relay(listener: TcpListener, armed: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        let armed = armed.clone();
        tokio::spawn(async move {
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_redis, mut to_redis) = UnixStream::connect("redis.sock").await.unwrap().into_split();
            let loses = Arc::new(AtomicBool::new(false));
            let noted = loses.clone();
            let requests = tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = from_client.read(&mut bytes).await {
                    if bytes[..n].windows(5).any(|word| word == b"piece") && armed.swap(false, SeqCst) {
                        noted.store(true, SeqCst);
                    }
                    to_redis.write_all(&bytes[..n]).await.unwrap();
                }
            });
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = from_redis.read(&mut bytes).await {
                if loses.load(SeqCst) || to_client.write_all(&bytes[..n]).await.is_err() {
                    break;
                }
            }
            requests.abort();
        });
    }
}

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let armed = Arc::new(AtomicBool::new(false));
    tokio::spawn(relay(listener, armed.clone()));
    for policy in [None, Some(ReconnectPolicy::new_constant(0, 50))] {
        let name = if policy.is_some() { "with a policy" } else { "without a policy" };
        let client = async |policy: Option<ReconnectPolicy>| {
            let mut builder = Builder::from_config(Config::from_url(&url).unwrap());
            policy.map(|policy| builder.set_policy(policy));
            let client = builder.build().unwrap();
            client.init().await.unwrap();
            client
        };
        let looks = client(None).await;
        looks.set::<(), _, _>("piece", 100, None, None, false).await.unwrap();
        looks.del::<(), _>("piece-lock").await.unwrap();
        let buyer = client(policy.clone()).await;
        armed.store(true, SeqCst);
        let told = buyer.decr::<i64, _>("piece").await.map_err(|error| error.details().to_owned());
        let left: i64 = looks.get("piece").await.unwrap();
        println!("fred 10.1.0 {name}: DECR of 100 {told:?}, {left} left");
        let buyer = client(policy).await;
        armed.store(true, SeqCst);
        let set = buyer.set("piece-lock", "mine", Some(Expiration::PX(60_000)), Some(SetOptions::NX), false).await;
        let set: Result<Option<String>, _> = set.map_err(|error: Error| error.details().to_owned());
        let holds: Option<String> = looks.get("piece-lock").await.unwrap();
        println!("fred 10.1.0 {name}: SET NX {set:?}, the key holds {holds:?}");
    }
}
RUST
cargo build --quiet 2>build.log || { tail build.log; exit 2; }
"${CARGO_TARGET_DIR:-target}/debug/finding" | tee seen
diff seen - <<'SEEN'
fred 10.1.0 without a policy: DECR of 100 Err("Connection closed."), 99 left
fred 10.1.0 without a policy: SET NX Err("Connection closed."), the key holds Some("mine")
fred 10.1.0 with a policy: DECR of 100 Ok(98), 98 left
fred 10.1.0 with a policy: SET NX Ok(None), the key holds Some("mine")
SEEN
