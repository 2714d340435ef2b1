//! Access to Redis: users with passwords, and servers that speak TLS.

use super::{certificates, redis::Redis, support::*};
use oversell::lab::Port;
use oversell_lock::{
    Lock, LockError,
    redis::{RedisClient, RedisOptions},
};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::process::{Child, Command};

/// A user that the server knows, until the test has ended.
async fn acl(redis: &Redis, words: &[&str]) -> Result<()> {
    redis.run(&[&[&["ACL"], words].concat()]).await
}

#[apply(test!)]
async fn a_user_with_a_password_is_let_in_and_nobody_else(redis: &Redis) -> Result<()> {
    let (name, host) = (name(), redis.host());
    let user = format!("user-{}", name.replace('/', ""));
    let all = ["on", ">secret", "~*", "&*", "+@all"];
    acl(redis, &[&["SETUSER", user.as_str()], &all[..]].concat()).await?;

    let client = RedisClient::connect(format!("redis://{user}:secret@{host}")).await?;
    let guard = take(&client.lock(&name)).await?;
    let clients: String = redis.ask(&["CLIENT", "LIST"]).await?;
    ensure!(
        clients.contains(&format!("user={user} ")),
        "{user} is not there: {clients}"
    );
    guard.release().await?;

    let wrong = format!("redis://{user}:wrong@{host}");
    let connected = RedisClient::connect(&wrong).await;
    refused("connected with a wrong password", connected)?;
    let late = RedisClient::new(RedisOptions::new(wrong)).context("a client")?;
    let tried = late.lock(&name).acquire(SOON).await;
    refused("a lock with a wrong password", tried)?;

    acl(redis, &["SETUSER", &user, "-evalsha"]).await?;
    let tried = client.lock(&name).acquire(SOON).await;
    refused("a lock without the right to it", tried)?;
    acl(redis, &["DELUSER", &user]).await
}

#[apply(test!)]
async fn options_that_break_a_rule_are_refused_and_no_password_is_shown(
    redis: &Redis,
) -> Result<()> {
    let address = format!("redis://user:secret@{}", redis.host());
    let options = || RedisOptions::new(&address);
    let shown = format!("{:?}", options());
    ensure!(!shown.contains("secret"), "{}", shown.clone());
    RedisClient::new(options()).context("the defaults")?;
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
        ensure!(
            named && !format!("{made:?}").contains("secret"),
            "{option} of {options:?}: {made:?}"
        );
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
    async fn start(folder: &Path) -> Result<Self> {
        let port = Port::free()?;
        let server = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", "0", "--save", ""])
            .args(["--tls-port", &port.number().to_string()])
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
            .spawn()?;
        let authority = std::fs::read(folder.join("ca.pem"))?;
        Ok(Self {
            server,
            port,
            authority,
        })
    }

    /// A client that trusts this authority; without one, the system's.
    fn client(&self, authority: Option<&[u8]>) -> Result<RedisClient> {
        let options = RedisOptions::new(format!("rediss://127.0.0.1:{}", self.port.number()))
            .timeout(Duration::from_secs(5));
        let options = if let Some(pem) = authority {
            options.authorities(pem)
        } else {
            options
        };
        RedisClient::new(options).context("a client")
    }
}

#[apply(test!)]
async fn a_server_is_reached_by_tls_and_only_one_that_is_vouched_for(_: &Redis) -> Result<()> {
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
    let guard = take(&clients[0].lock(&name)).await?;
    // The wake-ups come by a connection of their own.
    let next = tokio::spawn({
        let lock = clients[1].lock(&name);
        async move { lock.acquire(SOON).await }
    });
    guard.release().await?;
    next.await?.context("the next")?.release().await?;

    let stranger = tls.client(None)?.lock(&name).try_acquire().await;
    unavailable("by nobody's word", stranger)?;
    let plain = RedisClient::connect(format!("redis://127.0.0.1:{}", tls.port.number())).await;
    unavailable("without TLS", plain)?;
    tls.server.kill().await?;
    Ok(std::fs::remove_dir_all(folder)?)
}
