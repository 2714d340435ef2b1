//! Every name of CONTRACT section 5, to be cleared when the stock is reset: locks, queues, permits, latches.

use super::{Server, redis_key};
use crate::{ctx::Ctx, error::Error};
use futures::future::{BoxFuture, try_join_all};
use redis::aio::ConnectionManager;
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

/// A node that is a lock by itself, and not a directory of contenders; and one that is a barrier by being there.
const EPHEMERAL: &str = "/distributed/zk-ephemeral";
const BARRIER: &str = "/curator/barrier";

const ZOOKEEPER: [&str; 15] = [
    EPHEMERAL,
    "/distributed/zk-sequential",
    "/distributed/zk-lock",
    "/distributed/zk-reentrant",
    "/distributed/zk-fenced",
    "/curator/lock",
    "/curator/semaphore-mutex",
    "/curator/rwlock",
    "/curator/multi/1",
    "/curator/multi/2",
    "/curator/multi/3",
    "/curator/reentrant",
    BARRIER,
    "/curator/double-barrier",
    "/locks/semaphore",
];

/// Whether the main Redis and each node of Redlock is there.
pub(super) async fn ping(ctx: &Ctx) -> Result<(), Error> {
    redis::cmd("PING").exec_async(&mut ctx.redis.connection()).await?;
    try_join_all(ctx.nodes.iter().zip(1..).map(async |(node, n)| {
        redis::cmd("PING").exec_async(&mut node.connection()).await.map_err(|e: redis::RedisError| Error::Unavailable {
            server: Server::Redis.name(),
            reason: format!("node {n} of redis.nodes: {e}"),
        })
    }))
    .await?;
    Ok(())
}

/// Deletes the locks on every node, sets the stock, and wakes who waits for a lock.
pub(super) async fn redis(ctx: &Ctx, stock_id: i64, count: i64) -> Result<(), Error> {
    for node in &ctx.nodes {
        let mut node = node.connection();
        unlock(ctx, &mut node, stock_id).await?.exec_async(&mut node).await?;
    }
    let mut main = ctx.redis.connection();
    let mut commands = unlock(ctx, &mut main, stock_id).await?;
    commands.cmd("SET").arg(redis_key::of(ctx, stock_id)).arg(count);
    redis_key::answered(commands.exec_async(&mut main).await)
}

/// One transaction that deletes every lock with what belongs to it, and wakes who waits on its channel.
async fn unlock(ctx: &Ctx, node: &mut ConnectionManager, stock_id: i64) -> Result<redis::Pipeline, Error> {
    let mut commands = redis::pipe();
    commands.atomic();
    for base in REDIS {
        let name = ctx.redis_key(&redis_key::for_stock(base, stock_id));
        let braced = if name.contains('{') { name.clone() } else { format!("{{{name}}}") };
        let mut keys = vec![
            format!("redisson_lock_queue:{braced}"),
            format!("redisson_lock_timeout:{braced}"),
            format!("redisson_lock_token:{braced}"),
            format!("{braced}:timeout"),
            format!("{braced}:claims"),
            format!("{braced}:opened"),
            format!("{braced}:seen"),
            format!("{braced}:came"),
            format!("{braced}:entered"),
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
    let path = |base: &str| if stock_id == 1 { base.to_owned() } else { format!("{base}-{stock_id}") };
    try_join_all(ZOOKEEPER.map(|base| delete_below(client, path(base)))).await.map_err(no_zookeeper)?;
    try_join_all([EPHEMERAL, BARRIER].map(async |base| delete(client, &path(base)).await))
        .await
        .map_err(no_zookeeper)?;
    Ok(())
}

/// What is deleted meanwhile by its owner, or has something in it again, is no error.
async fn delete(client: &Client, path: &str) -> Result<(), zookeeper_client::Error> {
    match client.delete(path, None).await {
        Err(zookeeper_client::Error::NoNode | zookeeper_client::Error::NotEmpty) => Ok(()),
        result => result,
    }
}

fn delete_below(client: &Client, path: String) -> BoxFuture<'_, Result<(), zookeeper_client::Error>> {
    Box::pin(async move {
        let children = match client.list_children(&path).await {
            Err(zookeeper_client::Error::NoNode) => return Ok(()),
            children => children?,
        };
        for child in children {
            let child = format!("{path}/{child}");
            delete_below(client, child.clone()).await?;
            delete(client, &child).await?;
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
