//! What the servers hold of a replay's product: locks, queues, counters, stock, and the token of the row.
//!
//! Next: `observer.rs`, which turns changes into events.

use super::act::Act;
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Name, names},
    stock_admin::no_zookeeper,
};
use oversell_lock::redis::Connection;
use redis::Script;
use std::{sync::LazyLock, time::Duration};
use tokio::time::timeout;

/// A Redis node that takes longer counts as down.
const NODE_TIMEOUT: Duration = Duration::from_millis(200);

static END_LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/end_lease.lua")));

/// A row of `tb_lock`, with the rest of its lease in milliseconds.
const SELECT_LOCK: &str = "SELECT COALESCE(owner, server_name, ''), CAST(holds AS SIGNED), TIMESTAMPDIFF(MICROSECOND, NOW(3), expires_at) DIV 1000 \
                        FROM tb_lock WHERE lock_name = ?";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockEntry {
    pub(super) key: String,
    /// The text in the server that stands for the owner.
    pub(super) owner: String,
    /// In milliseconds; -1 for a lock without a lease.
    pub(super) pttl: Option<i64>,
    /// The owner's holds, if the lock counts them.
    pub(super) count: Option<i64>,
    /// The owner and its waiters, in the server's order.
    pub(super) queue: Vec<String>,
}

impl LockEntry {
    /// Puts the name of the node before the key: `redis-2 redLock:7`.
    fn on_node(self, n: usize) -> Self {
        Self {
            key: format!("{} {}", node_name(n), self.key),
            ..self
        }
    }

    /// Whether the lock never ends by itself, though its server has leases.
    pub(super) fn has_no_lease(&self) -> bool {
        self.pttl == Some(-1)
    }

    /// Whether both are the same hold, seen at different times.
    pub(super) fn is_same_hold(&self, other: &Self) -> bool {
        self.key == other.key && self.owner == other.owner
    }
}

/// The lab's name of a Redis node: `redis`, `redis-2` …
pub(super) fn node_name(n: usize) -> String {
    match n {
        0 => "redis".to_owned(),
        n => format!("redis-{}", n + 1),
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerState {
    pub(super) locks: Vec<LockEntry>,
    /// Counters by their keys: free permits, what a latch still counts.
    pub(super) counts: Vec<(String, i64)>,
    pub(super) stock: Option<i64>,
    pub(super) fence: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct ServerReader {
    ctx: Ctx,
    act: Act,
    stock_id: i64,
}

impl ServerReader {
    pub(super) fn of(ctx: &Ctx, act: Act, stock_id: i64) -> Self {
        Self {
            ctx: ctx.clone(),
            act,
            stock_id,
        }
    }

    pub(super) async fn read(&self) -> Result<ServerState, Error> {
        let mut seen = ServerState::default();
        for name in self.act.scope().names {
            match name {
                Name::Redis(_) | Name::RedisMine(_) | Name::RedisFor(..) | Name::RedisNodes(_) => {
                    let several = matches!(name, Name::RedisNodes(_));
                    for (n, (key, mut node)) in self.keys(name).into_iter().enumerate() {
                        let read = read_redis(key, &mut node);
                        if several {
                            // Redlock must work with some nodes down.
                            let held = timeout(NODE_TIMEOUT, read).await.ok().and_then(Result::ok);
                            seen.locks
                                .extend(held.into_iter().flatten().map(|held| held.on_node(n)));
                        } else {
                            seen.locks.extend(read.await?);
                        }
                    }
                }
                Name::RedisCount(_) => {
                    for (key, mut node) in self.keys(name) {
                        let count: Option<i64> =
                            redis::cmd("GET").arg(&key).query_async(&mut node).await?;
                        seen.counts.extend(count.map(|count| (key, count)));
                    }
                }
                Name::ZooKeeper(path) => seen.locks.extend(
                    self.read_zookeeper(&names::in_zookeeper(path, self.stock_id))
                        .await?,
                ),
                Name::TableLock(name) => {
                    let name = names::in_redis(name, self.stock_id);
                    seen.locks.extend(self.read_table(name).await?);
                }
                Name::Fence => seen.fence = Some(self.read_fence().await?),
            }
        }
        seen.stock = self.act.count_goods_left(&self.ctx, self.stock_id).await?;
        Ok(seen)
    }

    /// Ends every lease in Redis and in `tb_lock`, as if its time were over; with `node`, only those on that Redis
    /// node. Locks without a lease stay.
    pub(super) async fn end_leases(&self, node: Option<usize>) -> Result<(), Error> {
        for name in self.act.scope().names {
            if let Name::TableLock(name) = name {
                self.end_row_lease(name).await?;
            }
            let keys = self.keys(name).into_iter().enumerate();
            for (_, (key, mut redis)) in keys.filter(|(n, _)| node.is_none_or(|node| node == *n)) {
                let ended: i64 = END_LEASE.key(&key).invoke_async(&mut redis).await?;
                tracing::debug!(key, ended, "the end of a lease");
            }
        }
        Ok(())
    }

    async fn end_row_lease(&self, name: &str) -> Result<(), Error> {
        let mut conn = self.ctx.admin_conn(self.ctx.config.wait()).await?;
        let end = sqlx::query(
            "UPDATE tb_lock SET expires_at = NOW(3) WHERE lock_name = ? AND expires_at IS NOT NULL",
        );
        end.bind(names::in_redis(name, self.stock_id))
            .execute(&mut *conn)
            .await?;
        conn.done();
        Ok(())
    }

    /// Whether the lock is on no key of this Redis node.
    pub(super) async fn is_free_on_node(&self, node: usize) -> Result<bool, Error> {
        for name in self.act.scope().names {
            if let Some((key, mut node)) = self.keys(name).into_iter().nth(node) {
                let mut there = redis::cmd("EXISTS");
                if there.arg(&key).query_async(&mut node).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The keys of a name, each with its node.
    fn keys(&self, name: &Name) -> Vec<(String, Connection)> {
        let key = |name| self.ctx.redis_key(&names::in_redis(name, self.stock_id));
        match name {
            Name::Redis(name) | Name::RedisFor(name, _) | Name::RedisCount(name) => {
                vec![(key(name), self.ctx.redis.connection())]
            }
            Name::RedisMine(name) => vec![(key(name), self.ctx.mine.connection())],
            Name::RedisNodes(name) => self
                .ctx
                .nodes
                .iter()
                .map(|node| (key(name), node.connection()))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The node itself, or its children by number, of which the first holds the lock.
    async fn read_zookeeper(&self, path: &str) -> Result<Option<LockEntry>, Error> {
        let zk = self.ctx.zk.session()?;
        let mut below = match zk.list_children(path).await {
            Ok(below) => below,
            Err(zookeeper_client::Error::NoNode) => return Ok(None),
            Err(error) => return Err(no_zookeeper(error)),
        };
        let number = |name: &String| {
            name.rsplit(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        below.sort_by_key(number);
        let paths = match below.is_empty() {
            true => vec![path.to_owned()],
            false => below.iter().map(|name| format!("{path}/{name}")).collect(),
        };
        let mut queue = Vec::new();
        for path in paths {
            match zk.get_data(&path).await {
                // A directory without data is no lock.
                Ok((data, stat)) if !data.is_empty() || stat.ephemeral_owner != 0 => {
                    // A shared count stores four bytes here, and is no lock.
                    let owner = String::from_utf8(data)
                        .ok()
                        .filter(|owner| !owner.contains('\0'));
                    queue.extend(owner);
                }
                Ok(_) | Err(zookeeper_client::Error::NoNode) => {}
                Err(error) => return Err(no_zookeeper(error)),
            }
        }
        let Some(owner) = queue.first().cloned() else {
            return Ok(None);
        };
        Ok(Some(LockEntry {
            key: path.to_owned(),
            owner,
            pttl: None,
            count: None,
            queue,
        }))
    }

    async fn read_table(&self, name: String) -> Result<Option<LockEntry>, Error> {
        let mut conn = self.ctx.admin_conn(self.ctx.config.wait()).await?;
        let row: Option<(String, Option<i64>, Option<i64>)> = sqlx::query_as(SELECT_LOCK)
            .bind(&name)
            .fetch_optional(&mut *conn)
            .await?;
        conn.done();
        Ok(row.map(|(owner, holds, left)| {
            // A row without an end has no lease. A row whose lease is over stays until another locker deletes it.
            let pttl = Some(left.map_or(-1, |left| left.max(0)));
            LockEntry {
                key: name,
                owner,
                pttl,
                count: holds,
                queue: Vec::new(),
            }
        }))
    }

    async fn read_fence(&self) -> Result<u64, Error> {
        let mut conn = self.ctx.admin_conn(self.ctx.config.wait()).await?;
        let fence =
            sqlx::query_scalar("SELECT fence FROM db_stock WHERE id = ?").bind(self.stock_id);
        let fence = fence.fetch_one(&mut *conn).await?;
        conn.done();
        Ok(fence)
    }
}

/// A string, or a hash of owners: a read-write lock has an entry for each. A fair lock has a queue of waiters too.
async fn read_redis(key: String, node: &mut Connection) -> Result<Vec<LockEntry>, Error> {
    let mut read = redis::pipe();
    let queue = format!("redisson_lock_queue:{}", names::in_braces(&key));
    read.cmd("TYPE")
        .arg(&key)
        .cmd("PTTL")
        .arg(&key)
        .cmd("LRANGE")
        .arg(queue)
        .arg(0)
        .arg(-1);
    let (kind, pttl, waiting): (String, i64, Vec<String>) = read.query_async(node).await?;
    let owners: Vec<(String, Option<i64>)> = match kind.as_str() {
        "string" => {
            let owner: Option<String> = redis::cmd("GET").arg(&key).query_async(node).await?;
            owner.map(|owner| (owner, None)).into_iter().collect()
        }
        "hash" => {
            let fields: Vec<(String, String)> =
                redis::cmd("HGETALL").arg(&key).query_async(node).await?;
            let owners = fields.into_iter().filter(|(field, _)| field != "mode");
            owners
                .map(|(owner, count)| (owner, count.parse().ok()))
                .collect()
        }
        _ => Vec::new(),
    };
    let held = owners.into_iter().map(|(owner, count)| {
        let queue = match waiting.is_empty() {
            true => Vec::new(),
            false => [&owner].into_iter().chain(&waiting).cloned().collect(),
        };
        LockEntry {
            key: key.clone(),
            owner,
            pttl: Some(pttl),
            count,
            queue,
        }
    });
    Ok(held.collect())
}
