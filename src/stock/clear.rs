//! Every name of CONTRACT section 5, to be cleared when the stock is reset: locks, queues, permits, latches.

use super::{Server, redis_key};
use crate::{ctx::Ctx, error::Error};
use futures::future::{BoxFuture, try_join_all};
use redis::{
    AsyncConnectionConfig,
    aio::{ConnectionLike, MultiplexedConnection},
};
use std::time::Duration;
use zookeeper_client::Client;

const READ_WRITE: &str = "rwLock";

const REDIS: [&str; 17] = [
    "lock:redis-setnx",
    "lock:redis-setnx-ttl",
    "lock:redis-setnx-owner",
    "lock:redis-setnx-lua",
    "lock:redis-reentrant",
    "lock:redis-watchdog",
    "lock",
    "fairLock",
    "lock1",
    "lock2",
    "lock3",
    READ_WRITE,
    "redLock",
    "fencedLock",
    "semaphore",
    "latch",
    "reentrantLock",
];

const ZOOKEEPER: [&str; 14] = [
    "/distributed/zk-ephemeral",
    "/distributed/zk-sequential",
    "/distributed/zk-lock",
    "/distributed/zk-reentrant",
    "/curator/lock",
    "/curator/semaphore-mutex",
    "/curator/rwlock",
    "/curator/multi/1",
    "/curator/multi/2",
    "/curator/multi/3",
    "/curator/reentrant",
    "/curator/barrier",
    "/curator/double-barrier",
    "/locks/semaphore",
];

/// The other nodes of Redlock, each of which must be there.
pub(super) async fn nodes(ctx: &Ctx) -> Result<Vec<MultiplexedConnection>, Error> {
    redis::cmd("PING").exec_async(&mut ctx.redis.connection()).await?;
    let timeout = Duration::from_millis(ctx.config.redis.timeout_ms);
    let options =
        AsyncConnectionConfig::new().set_connection_timeout(Some(timeout)).set_response_timeout(Some(timeout));
    let main = &ctx.config.redis.url;
    let others = ctx.config.redis.nodes.iter().enumerate().filter(|(_, url)| *url != main);
    try_join_all(others.map(async |(i, url)| {
        let down = |e: redis::RedisError| Error::Unavailable {
            server: Server::Redis.name(),
            reason: format!("node {} of redis.nodes: {e}", i + 1),
        };
        let client = redis::Client::open(url.reveal()).map_err(down)?;
        client.get_multiplexed_async_connection_with_config(&options).await.map_err(down)
    }))
    .await
}

/// Deletes the locks on every node, sets the stock, and wakes who waits for a lock.
pub(super) async fn redis(
    ctx: &Ctx,
    nodes: Vec<MultiplexedConnection>,
    stock_id: i64,
    count: i64,
) -> Result<(), Error> {
    for mut node in nodes {
        let commands = unlock(ctx, &mut node, stock_id).await?;
        commands.exec_async(&mut node).await?;
    }
    let mut main = ctx.redis.connection();
    let mut commands = unlock(ctx, &mut main, stock_id).await?;
    commands.cmd("SET").arg(redis_key::of(ctx, stock_id)).arg(count);
    redis_key::answered(commands.exec_async(&mut main).await)
}

/// One transaction that deletes every lock with what belongs to it, and wakes who waits on its channel.
async fn unlock(ctx: &Ctx, node: &mut impl ConnectionLike, stock_id: i64) -> Result<redis::Pipeline, Error> {
    let mut commands = redis::pipe();
    commands.atomic();
    for base in REDIS {
        let name = format!("{}{}", ctx.config.redis.prefix, redis_key::for_stock(base, stock_id));
        let braced = if name.contains('{') { name.clone() } else { format!("{{{name}}}") };
        let mut keys = vec![
            format!("redisson_lock_queue:{braced}"),
            format!("redisson_lock_timeout:{braced}"),
            format!("redisson_lock_token:{braced}"),
            format!("{braced}:timeout"),
            format!("{braced}:claims"),
            format!("{braced}:opened"),
        ];
        if base == READ_WRITE {
            let counted: Vec<(String, String)> = redis::cmd("HGETALL").arg(&name).query_async(node).await?;
            keys.extend(holds(&braced, &counted));
        }
        keys.push(name.clone());
        commands.cmd("DEL").arg(keys);
        commands.cmd("PUBLISH").arg(format!("redisson_lock__channel:{braced}")).arg(0);
        commands.cmd("PUBLISH").arg(format!("redisson_rwlock:{braced}")).arg(1);
        commands.cmd("PUBLISH").arg(format!("redisson_countdownlatch__channel__{{{name}}}")).arg(0);
    }
    Ok(commands)
}

/// The keys of the holds that a read-write lock counts: `{n}:<owner>:rwlock_timeout:<i>`; of a write, only ours have some.
fn holds(braced: &str, hash: &[(String, String)]) -> Vec<String> {
    let owners = hash.iter().filter(|(owner, _)| owner != "mode");
    owners
        .flat_map(|(owner, holds)| {
            let holds: u32 = holds.parse().unwrap_or(0);
            (1..=holds).map(move |i| format!("{braced}:{owner}:rwlock_timeout:{i}"))
        })
        .collect()
}

/// Deletes everything under every lock's path.
pub(super) async fn zookeeper(client: &Client, stock_id: i64) -> Result<(), Error> {
    let paths = ZOOKEEPER.map(|path| if stock_id == 1 { path.to_owned() } else { format!("{path}-{stock_id}") });
    try_join_all(paths.into_iter().map(|path| delete_below(client, path))).await.map_err(no_zookeeper)?;
    Ok(())
}

/// What is deleted meanwhile by its owner, or created anew by another, is no error.
fn delete_below(client: &Client, path: String) -> BoxFuture<'_, Result<(), zookeeper_client::Error>> {
    Box::pin(async move {
        let children = match client.list_children(&path).await {
            Err(zookeeper_client::Error::NoNode) => return Ok(()),
            children => children?,
        };
        for child in children {
            let child = format!("{path}/{child}");
            delete_below(client, child.clone()).await?;
            match client.delete(&child, None).await {
                Ok(()) | Err(zookeeper_client::Error::NoNode | zookeeper_client::Error::NotEmpty) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })
}

/// What a ZooKeeper error means for a reset.
pub(super) fn no_zookeeper(error: zookeeper_client::Error) -> Error {
    Error::Unavailable { server: Server::ZooKeeper.name(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hold_of_a_read_write_lock_has_a_key_to_clear() {
        let hash = [("mode", "read"), ("u:1", "2"), ("u:2:write", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let keys = holds("{rwLock}", &hash);
        let expected = ["u:1:rwlock_timeout:1", "u:1:rwlock_timeout:2", "u:2:write:rwlock_timeout:1"];
        assert_eq!(keys, expected.map(|key| format!("{{rwLock}}:{key}")));
    }
}
