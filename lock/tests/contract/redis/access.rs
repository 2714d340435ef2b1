//! Access to Redis: users with passwords, and servers that speak TLS.

use crate::{
    certificates,
    redis::own,
    redis::{self, with_lease},
    support::*,
};
use oversell_lab::lab::Port;
use oversell_lock::redis::{RedisClient, RedisOptions};
use std::{num::NonZeroU32, path::PathBuf};
use tokio::process::Child;

/// A user of the server, until the test ends.
async fn acl(redis: &Redis, words: &[&str]) -> Result {
    redis.run(&[&[&["ACL"], words].concat()]).await
}

#[apply(test!)]
async fn a_user_with_a_password_is_let_in_and_nobody_else(redis: &Redis) -> Result {
    let (name, host) = (name(), redis.host());
    let user = format!("user-{}", name.replace('/', ""));
    let all = ["on", ">secret", "~*", "&*", "+@all"];
    acl(redis, &[&["SETUSER", user.as_str()], &all[..]].concat()).await?;

    let client = RedisClient::connect(format!("redis://{user}:secret@{host}")).await?;
    let guard = take(&client.lock(&name)).await?;
    let clients: String = redis.ask(&["CLIENT", "LIST"]).await?;
    let there = clients.contains(&format!("user={user} "));
    ensure!(there, "{user} is not there: {clients}");
    guard.release().await?;

    let wrong = format!("redis://{user}:wrong@{host}");
    let connected = RedisClient::connect(&wrong).await;
    ensure_refused("connected with a wrong password", connected)?;
    let late = RedisClient::new(RedisOptions::new(wrong)).context("a client")?;
    let tried = late.lock(&name).acquire(SOON).await;
    ensure_refused("a lock with a wrong password", tried)?;

    acl(redis, &["SETUSER", &user, "-evalsha"]).await?;
    let tried = client.lock(&name).acquire(SOON).await;
    ensure_refused("a lock without the right to it", tried)?;
    acl(redis, &["DELUSER", &user]).await
}

#[apply(test!)]
async fn bad_options_are_refused_and_no_password_is_shown(redis: &Redis) -> Result {
    let address = format!("redis://user:secret@{}", redis.host());
    let options = || RedisOptions::new(&address);
    let shown = format!("{:?}", options());
    ensure!(!shown.contains("secret"), "{shown}");
    RedisClient::new(options()).context("the defaults")?;
    let (short, long) = (Duration::from_micros(999), Duration::MAX);
    let at = |url: &str| RedisOptions::new(url);
    let wrong = [
        ("lease", options().lease(Duration::from_millis(99))),
        ("lease", options().lease(long)),
        ("timeout", options().timeout(short)),
        ("timeout", options().timeout(long)),
        ("url", at("http://user:secret@127.0.0.1")),
        ("url", at("redis://user:secret@127.0.0.1:port")),
    ];
    for (option, options) in wrong {
        let made = RedisClient::new(options.clone()).map(drop);
        let named = matches!(&made, Err(LockError::Invalid { name, .. }) if name == option);
        let as_it_must = named && !format!("{made:?}").contains("secret");
        ensure!(as_it_must, "{option} of {options:?}: {made:?}");
    }
    Ok(())
}

struct Tls {
    folder: PathBuf,
    server: Child,
    port: Port,
}

impl Tls {
    async fn start(asks_for_certificates: &str) -> Result<Self> {
        let folder = certificates::folder(&format!("redis-tls-{asks_for_certificates}")).await?;
        let options = "--tls-cert-file server.pem --tls-key-file server.key --tls-ca-cert-file ca.pem --port 0";
        let options = format!("{options} --tls-auth-clients {asks_for_certificates} --tls-port");
        let (server, port) = own::server(&folder, &options)?;
        Ok(Self { folder, server, port })
    }

    fn file(&self, name: &str) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.folder.join(name))?)
    }

    /// A client that trusts the system's authorities.
    fn options(&self) -> RedisOptions {
        let options = RedisOptions::new(format!("rediss://127.0.0.1:{}", self.port.number()));
        options.timeout(Duration::from_secs(5))
    }

    /// A client that trusts the authority that signed the certificate.
    fn trusting(&self) -> Result<RedisOptions> {
        Ok(self.options().authorities(self.file("ca.pem")?))
    }

    async fn end(mut self) -> Result {
        self.server.kill().await?;
        Ok(std::fs::remove_dir_all(self.folder)?)
    }
}

async fn answered(options: RedisOptions) -> Result<RedisClient> {
    let client = RedisClient::new(options)?;
    let answers = async || client.lock("/answers").holder().await.is_ok();
    until("it answers", answers).await?;
    Ok(client)
}

#[apply(test!)]
async fn a_server_is_reached_by_tls_and_only_one_that_is_vouched_for(_: &Redis) -> Result {
    let (name, tls) = (name(), Tls::start("no").await?);
    let (one, other) = (answered(tls.trusting()?), answered(tls.trusting()?));
    let guard = take(&one.await?.lock(&name)).await?;
    // Wake-ups use a connection of their own.
    let next = spawn_acquire(other.await?.lock(&name));
    guard.release().await?;
    next.await?.context("the next")?.release().await?;
    let stranger = RedisClient::new(tls.options())?.lock(&name);
    ensure_unavailable("by nobody's word", stranger.try_acquire().await)?;
    let plain = RedisClient::connect(format!("redis://127.0.0.1:{}", tls.port.number())).await;
    ensure_unavailable("without TLS", plain)?;
    tls.end().await
}

#[apply(test!)]
async fn a_server_that_asks_for_certificates_lets_in_who_shows_one(_: &Redis) -> Result {
    let (name, tls) = (name(), Tls::start("yes").await?);
    let (authority, key) = (tls.file("ca.pem")?, tls.file("server.key")?);
    let shown = tls.trusting()?.certificate(tls.file("server.pem")?, &key[..]);
    pass(&answered(shown).await?.lock(&name)).await?;
    let nameless = RedisClient::new(tls.trusting()?)?.lock(&name);
    ensure_unavailable("without a certificate", nameless.try_acquire().await)?;
    for (what, broken) in [
        ("certificate", tls.trusting()?.certificate(&b"no PEM"[..], &key[..])),
        ("key", tls.trusting()?.certificate(&authority[..], &b"no PEM"[..])),
        ("authorities", tls.options().authorities("no PEM")),
    ] {
        ensure_invalid(what, RedisClient::new(broken).map(drop))?;
    }
    tls.end().await
}

/// The rights that the documentation of the options names.
const RIGHTS: &str = "~* &* +@read +@write +@scripting +@pubsub +@connection +time +role";

/// A client whose user has these rights.
async fn with_rights(redis: &Redis, rights: &str) -> Result<RedisClient> {
    let user = format!("user-{}", name().replace('/', ""));
    let words: Vec<_> = ["SETUSER", &user, "on", ">secret"].into_iter().chain(rights.split(' ')).collect();
    acl(redis, &words).await?;
    let address = format!("redis://{user}:secret@{}", redis.host());
    RedisClient::connect(address).await.context("it connects")
}

/// A user that may not publish can do everything that ends with a message, and the waiters still get in.
#[apply(test!)]
async fn a_user_without_channels_is_told_what_was_done(redis: &'static Redis) -> Result {
    let silent = RIGHTS.replace("&*", "resetchannels");
    for rights in [RIGHTS, &silent] {
        let client = with_rights(redis, rights).await?;
        for Family { kind, .. } in with_lease(redis) {
            let name = name();
            let what = format!("{} with {rights}", kind.name);
            // Readers wait only for a writer.
            let holds = if kind.name == "redis_read" { redis::write } else { kind.make };
            let held = take(&holds(&client, &name, Ask::default())).await?;
            let waiter = spawn_acquire((kind.make)(&client, &name, Ask::default()));
            held.release().await.context(what.clone())?;
            let next = waiter.await?.context(what.clone())?;
            next.release().await.context(what.clone())?;
            let _held = take(&(kind.make)(&client, &name, Ask::default())).await?;
            let freed = match kind.name {
                "redis_fair" => client.fair_lock(&name).force_unlock().await,
                "redis_write" => client.rw_lock(&name).write().force_unlock().await,
                "redis_read" => client.rw_lock(&name).read().force_unlock().await,
                _ => client.lock(&name).force_unlock().await,
            };
            ensure!(freed.context(what.clone())?, "{what}: it was not held");
        }
        let semaphore = client.semaphore(&name());
        ensure!(semaphore.try_set_permits(1).await?, "permits with {rights}");
        semaphore.acquire(1, SOON).await?.release().await?;
        ensure_equal("permits", semaphore.available_permits().await?, 1)?;
        let latch = client.latch(&name());
        ensure!(latch.try_set_count(NonZeroU32::MIN).await?, "a latch with {rights}");
        latch.count_down().await.context("the last count")?;
        latch.wait(SOON).await?;
    }
    Ok(())
}
