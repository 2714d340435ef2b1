//! Access to Redis: users with passwords, and servers that speak TLS.

use super::{certificates, support::*};
use oversell::lab::Port;
use oversell_lock::redis::{RedisClient, RedisOptions};
use std::{path::Path, process::Stdio};
use tokio::process::{Child, Command};

/// A user that the server knows, until the test has ended.
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
async fn options_that_break_a_rule_are_refused_and_no_password_is_shown(redis: &Redis) -> Result {
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

/// A Redis of this test's that speaks TLS and nothing else.
fn tls(folder: &Path, port: &Port, asks_for_certificates: &str) -> Result<Child> {
    let mut server = Command::new("redis-server");
    server.args(["--bind", "127.0.0.1", "--port", "0", "--save", ""]);
    server.args(["--tls-port", &port.number().to_string()]);
    for (option, file) in [
        ("--tls-cert-file", "server.pem"),
        ("--tls-key-file", "server.key"),
        ("--tls-ca-cert-file", "ca.pem"),
        ("--tls-auth-clients", asks_for_certificates),
    ] {
        server.args([option, file]);
    }
    server.current_dir(folder).stdout(Stdio::null());
    Ok(server.kill_on_drop(true).spawn()?)
}

#[apply(test!)]
async fn a_server_is_reached_by_tls_and_only_one_that_is_vouched_for(_: &Redis) -> Result {
    let (name, folder) = (name(), certificates::folder("redis-tls").await?);
    let port = Port::free()?;
    let mut server = tls(&folder, &port, "no")?;
    let authority = std::fs::read(folder.join("ca.pem"))?;
    // One that trusts the authority that has signed the certificate, and one that trusts the system's.
    let options = || {
        let options = RedisOptions::new(format!("rediss://127.0.0.1:{}", port.number()));
        options.timeout(Duration::from_secs(5))
    };
    let client = || RedisClient::new(options().authorities(&authority[..]));
    let clients = [client()?, client()?];
    let answers = async || clients[0].lock(&name).holder().await.is_ok();
    until("it answers", answers).await?;
    let guard = take(&clients[0].lock(&name)).await?;
    // The wake-ups come by a connection of their own.
    let next = acquiring(clients[1].lock(&name));
    guard.release().await?;
    next.await?.context("the next")?.release().await?;

    let stranger = RedisClient::new(options())?.lock(&name).try_acquire().await;
    unavailable("by nobody's word", stranger)?;
    let plain = RedisClient::connect(format!("redis://127.0.0.1:{}", port.number())).await;
    unavailable("without TLS", plain)?;
    server.kill().await?;
    Ok(std::fs::remove_dir_all(folder)?)
}

#[apply(test!)]
async fn a_server_that_asks_for_certificates_lets_in_who_shows_one(_: &Redis) -> Result {
    let (name, folder) = (name(), certificates::folder("redis-mtls").await?);
    let port = Port::free()?;
    let mut server = tls(&folder, &port, "yes")?;
    let file = |name: &str| std::fs::read(folder.join(name));
    let (authority, key) = (file("ca.pem")?, file("server.key")?);
    let options = || {
        let options = RedisOptions::new(format!("rediss://127.0.0.1:{}", port.number()));
        options
            .timeout(Duration::from_secs(5))
            .authorities(&authority[..])
    };
    let shown = options().certificate(file("server.pem")?, &key[..]);
    let client = RedisClient::new(shown)?;
    let answers = async || client.lock(&name).holder().await.is_ok();
    until("it answers", answers).await?;
    pass(&client.lock(&name)).await?;
    let nameless = RedisClient::new(options())?.lock(&name).try_acquire().await;
    unavailable("without a certificate", nameless)?;
    for (certificate, key) in [(&b"no PEM"[..], &key[..]), (&authority, b"no PEM")] {
        let broken = RedisClient::new(options().certificate(certificate, key)).map(drop);
        invalid("a certificate or a key that is none", broken)?;
    }
    let nobody = RedisClient::new(options().authorities("no PEM")).map(drop);
    invalid("authorities that are none", nobody)?;
    server.kill().await?;
    Ok(std::fs::remove_dir_all(folder)?)
}
