//! What a program gives a client: a connection that it has already, or what the server's own crate makes connections with.

use super::{redis::LIMIT, support::*, zookeeper::CHROOT};
use oversell_lock::{
    mysql::{MySqlOptions, MySqlPool},
    redis::{RedisClient, RedisOptions},
    zk::{ZkClient, ZkOptions},
};
use redis::{AsyncTypedCommands, IntoConnectionInfo, aio::ConnectionManagerConfig};
use sqlx::mysql::MySqlConnectOptions;
use std::str::FromStr;
use zookeeper_client::Client;

/// A client whose commands go over a connection of the program's by this way, and its wake-ups by a way of their own.
async fn over(redis: &Redis, way: &Mute) -> Result<RedisClient> {
    let shops = redis::Client::open(format!("redis://{}", way.address()))?;
    let config = ConnectionManagerConfig::new().set_response_timeout(Some(2 * LIMIT));
    let shops = shops.get_connection_manager_with_config(config).await?;
    let options = RedisOptions::new(format!("redis://{}", redis.host())).timeout(LIMIT);
    Ok(RedisClient::over(shops, options)?)
}

#[apply(test!)]
async fn locks_go_over_the_programs_own_connection(redis: &Redis) -> Result {
    let (name, way) = (name(), Mute::to(redis.host())?);
    let (one, other) = (over(redis, &way).await?, redis.client().await);
    let held = take(&one.lock(&name)).await?;
    let waiter = acquiring(other.lock(&name));
    until("it is waited for", || redis.is_waited_for(&name)).await?;
    held.release().await?;
    let held = waiter.await?.context("it was not woken")?;
    let waiter = acquiring(one.lock(&name));
    until("it is waited for", || redis.is_waited_for(&name)).await?;
    held.release().await?;
    Ok(waiter.await?.context("nor was ours")?.release().await?)
}

/// It may have run: the lock is not had, and given back once the connection is there again.
#[apply(test!)]
async fn what_the_programs_own_connection_does_not_answer_is_undone(redis: &Redis) -> Result {
    let (name, way) = (name(), Mute::to(redis.host())?);
    let client = over(redis, &way).await?;
    // The script is there: the next request is the one that takes the lock.
    pass(&client.fenced_lock(&name)).await?;
    way.mute_at(name.clone().leak());
    let unanswered = client.fenced_lock(&name).acquire(SOON).await;
    unavailable("without an answer", unanswered)?;
    // It may be given back by now; its token stays.
    let tokens: u64 = redis
        .ask(&["GET", &format!("redisson_lock_token:{{{name}}}")])
        .await?;
    ensure!(
        tokens == 2,
        "it was not carried out, and the test shows nothing"
    );
    way.heal();
    let gone = async || {
        redis
            .outsider()
            .await
            .exists(&name)
            .await
            .is_ok_and(|there| !there)
    };
    until("it is given back", gone).await
}

#[apply(test!)]
async fn a_redis_is_what_its_own_crate_describes(redis: &Redis) -> Result {
    let (host, port) = redis
        .host()
        .rsplit_once(':')
        .map(|(host, port)| (host.to_owned(), port.parse::<u16>()))
        .context("a port")?;
    let server = (host, port?).into_connection_info()?;
    pass(&RedisClient::new(RedisOptions::from(server))?.lock(&name())).await
}

#[apply(test!)]
async fn a_database_is_what_sqlx_describes(table: &Table) -> Result {
    let server = MySqlConnectOptions::from_str(&table.url)?;
    pass(&MySqlPool::new(MySqlOptions::from(server))?.table_lease_lock(&name())).await
}

/// It logs in by itself: the nodes are kept from strangers, who cannot free the lock.
#[apply(test!)]
async fn a_session_is_made_by_the_programs_own_connector(zookeeper: &ZooKeeper) -> Result {
    let connector = Client::connector().with_auth("digest", b"shop:secret");
    let options = ZkOptions::new(zookeeper.address()).chroot(CHROOT);
    let options = options.connector(connector).only_for_ourselves();
    // What it makes is its own: not the directories of the other tests.
    zookeeper.outsider().await;
    let (name, shop) = (format!("/ours{}", name()), ZkClient::new(options)?);
    let guard = take(&shop.lock(&name)).await?;
    let stranger = zookeeper.client().await;
    refused("by a stranger", stranger.lock(&name).force_unlock().await)?;
    Ok(guard.release().await?)
}
