//! Who may come in: users with passwords, and servers that speak TLS.

use super::{
    Verdict, certificates,
    clauses::{SOON, ensure, says},
    family::{name, until},
    port::Port,
    redis::Redis,
};
use oversell_lock::{
    Lock, LockError,
    redis::{RedisClient, RedisOptions},
};
use std::{path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::process::{Child, Command};

/// A user that the server knows, until the test has ended.
async fn acl(redis: &Redis, words: &[&str]) -> Verdict {
    redis::cmd("ACL")
        .arg(words)
        .exec_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())
}

fn refused<T: std::fmt::Debug>(what: &str, result: Result<T, LockError>) -> Verdict {
    ensure(matches!(result, Err(LockError::Refused { .. })), || {
        format!("{what}: {result:?}")
    })
}

pub(crate) async fn a_user_with_a_password_is_let_in_and_nobody_else(redis: Arc<Redis>) -> Verdict {
    let (name, host) = (name(), redis.host());
    let user = format!("user-{}", name.replace('/', ""));
    acl(
        &redis,
        &["SETUSER", &user, "on", ">secret", "~*", "&*", "+@all"],
    )
    .await?;

    let client = says(
        "connect",
        RedisClient::connect(format!("redis://{user}:secret@{host}")).await,
    )?;
    let guard = says("its lock", client.lock(&name).acquire(SOON).await)?;
    let clients: String = redis::cmd("CLIENT")
        .arg("LIST")
        .query_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())?;
    ensure(clients.contains(&format!("user={user} ")), || {
        format!("{user} is not there: {clients}")
    })?;
    says("release", guard.release().await)?;

    let wrong = format!("redis://{user}:wrong@{host}");
    refused(
        "connected with a wrong password",
        RedisClient::connect(&wrong).await,
    )?;
    let late = says("a client", RedisClient::new(RedisOptions::new(wrong)))?;
    refused(
        "a lock with a wrong password",
        late.lock(&name).acquire(SOON).await.map(drop),
    )?;

    acl(&redis, &["SETUSER", &user, "-evalsha"]).await?;
    refused(
        "a lock without the right to it",
        client.lock(&name).acquire(SOON).await.map(drop),
    )?;
    acl(&redis, &["DELUSER", &user]).await
}

pub(crate) async fn options_that_break_a_rule_are_refused_and_no_password_is_shown(
    redis: Arc<Redis>,
) -> Verdict {
    let address = format!("redis://user:secret@{}", redis.host());
    let options = || RedisOptions::new(&address);
    let shown = format!("{:?}", options());
    ensure(!shown.contains("secret"), || shown.clone())?;
    says("the defaults", RedisClient::new(options()))?;
    let (short, long) = (Duration::from_micros(999), Duration::MAX);
    let wrong = [
        ("lease", options().lease(Duration::from_millis(99))),
        ("lease", options().lease(long)),
        ("timeout", options().timeout(short)),
        ("timeout", options().timeout(long)),
        ("url", RedisOptions::new("http://user:secret@127.0.0.1")),
        (
            "url",
            RedisOptions::new("redis://user:secret@127.0.0.1:port"),
        ),
    ];
    for (option, options) in wrong {
        let made = RedisClient::new(options.clone()).map(drop);
        let named = matches!(&made, Err(LockError::Invalid { name, .. }) if name == option);
        ensure(named && !format!("{made:?}").contains("secret"), || {
            format!("{option} of {options:?}: {made:?}")
        })?;
    }
    Ok(())
}

/// A Redis of this test's that speaks TLS and nothing else, and the authority that has signed its certificate.
struct Tls {
    server: Child,
    port: Port,
    authority: Vec<u8>,
}

impl Tls {
    async fn start(folder: &Path) -> Result<Self, String> {
        let port = Port::free();
        let server = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", "0", "--save", ""])
            .args(["--tls-port", &port.address().port().to_string()])
            .args([
                "--tls-cert-file",
                "server.pem",
                "--tls-key-file",
                "server.key",
                "--tls-ca-cert-file",
                "ca.pem",
            ])
            .args(["--tls-auth-clients", "no"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| e.to_string())?;
        let authority = std::fs::read(folder.join("ca.pem")).map_err(|e| e.to_string())?;
        Ok(Self {
            server,
            port,
            authority,
        })
    }

    /// A client that trusts this authority; without one, the system's.
    fn client(&self, authority: Option<&[u8]>) -> Result<RedisClient, String> {
        let options = RedisOptions::new(format!("rediss://{}", self.port.address()))
            .timeout(Duration::from_secs(5));
        let options = if let Some(pem) = authority {
            options.authorities(pem)
        } else {
            options
        };
        says("a client", RedisClient::new(options))
    }
}

pub(crate) async fn a_server_is_reached_by_tls_and_only_one_that_is_vouched_for(
    _: Arc<Redis>,
) -> Verdict {
    let (name, folder) = (name(), certificates::folder("redis-tls").await?);
    let mut tls = Tls::start(&folder).await?;
    let clients = [
        tls.client(Some(&tls.authority))?,
        tls.client(Some(&tls.authority))?,
    ];
    until("it answers", || async {
        clients[0].lock(&name).holder().await.is_ok()
    })
    .await?;
    let guard = says("the lock", clients[0].lock(&name).acquire(SOON).await)?;
    // The wake-ups come by a connection of their own.
    let next = tokio::spawn({
        let lock = clients[1].lock(&name);
        async move { lock.acquire(SOON).await }
    });
    says("release", guard.release().await)?;
    says("the next", next.await.map_err(|e| e.to_string())?)?
        .release()
        .await
        .map_err(|e| e.to_string())?;

    let stranger = tls.client(None)?.lock(&name).try_acquire().await;
    ensure(
        matches!(stranger, Err(LockError::Unavailable { .. })),
        || format!("by nobody's word: {stranger:?}"),
    )?;
    let plain = RedisClient::connect(format!("redis://{}", tls.port.address())).await;
    ensure(matches!(plain, Err(LockError::Unavailable { .. })), || {
        format!("without TLS: {plain:?}")
    })?;
    tls.server.kill().await.map_err(|e| e.to_string())?;
    std::fs::remove_dir_all(folder).map_err(|e| e.to_string())
}
