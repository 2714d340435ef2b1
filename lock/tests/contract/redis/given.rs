//! Clients over a connection of the program's own, or from a description of the server's own crate.

use crate::{redis::LIMIT, register::Engines, support::*};
use oversell_lock::{
    mysql::{MySqlOptions, TablePool},
    redis::{RedisClient, RedisOptions},
};
use redis::{IntoConnectionInfo, aio::ConnectionManagerConfig};
use sqlx::mysql::MySqlConnectOptions;
use std::str::FromStr;

/// A client whose commands use a connection of the program's own over this proxy, and whose wake-ups use another.
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
    let waiter = spawn_acquire(other.lock(&name));
    until("it is waited for", || redis.is_waited_for(&name)).await?;
    held.release().await?;
    let held = waiter.await?.context("it was not woken")?;
    let waiter = spawn_acquire(one.lock(&name));
    until("it is waited for", || redis.is_waited_for(&name)).await?;
    held.release().await?;
    Ok(waiter.await?.context("nor was ours")?.release().await?)
}

/// An unanswered acquire may have run: it fails, and is undone once the connection is back.
#[apply(test!)]
async fn what_the_programs_own_connection_does_not_answer_is_undone(redis: &Redis) -> Result {
    let (name, way) = (name(), Mute::to(redis.host())?);
    let client = over(redis, &way).await?;
    // The script is loaded, so the next request acquires.
    pass(&client.fenced_lock(&name)).await?;
    way.mute_at(name.clone().leak());
    let unanswered = client.fenced_lock(&name).acquire(SOON).await;
    ensure_unavailable("without an answer", unanswered)?;
    // It may be released by now; its token stays.
    let token = format!("redisson_lock_token:{{{name}}}");
    let tokens: u64 = redis.ask(&["GET", &token]).await?;
    ensure_equal("tokens, the unanswered one's among them", tokens, 2)?;
    way.heal();
    let gone = async || redis.ask::<u64>(&["EXISTS", &name]).await;
    until("it is given back", async || matches!(gone().await, Ok(0))).await
}

#[apply(test!)]
async fn a_server_is_what_its_own_crate_describes(all: &Engines) -> Result {
    let redis = format!("redis://{}", all.redis.host()).into_connection_info()?;
    pass(&RedisClient::new(RedisOptions::from(redis))?.lock(&name())).await?;
    let mysql = MySqlConnectOptions::from_str(&all.table.url)?;
    pass(&TablePool::new(MySqlOptions::from(mysql))?.table_lease_lock(&name())).await
}
