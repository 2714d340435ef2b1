//! What the servers hold of a replay's product: locks, queues, counters, stock, and the token of the row.
//!
//! Next: `shared_reads.rs`, which reads them for all replays together; `observer.rs`, which turns changes into events.

use super::{
    act::{Act, PieceStore},
    shared_reads::{LockEntry, READ_TIMEOUT, RedisEntry, SharedReads},
};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Name, etcd, names, redis_key, zk_node::unavailable},
    server::Server,
    stock::Store,
};
use futures::future::{join_all, try_join_all};
use oversell_lock::redis::Connection;
use redis::Script;
use serde_json::json;
use std::sync::{Arc, LazyLock};
use tokio::time::timeout;
use zookeeper_client::Error as Zk;

/// Ends the lease of a key at once; a key without a lease stays.
static END_LEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/end_lease.lua")));

/// What the servers hold of a replay; `None` for what its act does not use, or what is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerState {
    pub(super) locks: Vec<LockEntry>,
    /// Counters by their keys: free permits, what a latch still counts.
    pub(super) counts: Vec<(String, i64)>,
    pub(super) stock: Option<i64>,
    pub(super) fence: Option<u64>,
}

/// Reads what the servers hold for one replay.
#[derive(Debug, Clone)]
pub(super) struct ServerReader {
    ctx: Ctx,
    shared: Arc<SharedReads>,
    act: Act,
    stock_id: i64,
}

impl ServerReader {
    pub(super) fn new(ctx: &Ctx, act: Act, stock_id: i64) -> Self {
        Self { ctx: ctx.clone(), shared: ctx.local.of(), act, stock_id }
    }

    /// What the servers hold, from reads that all replays of this instance share. A Redlock node that is down shows no lock; any
    /// other server that does not answer is an error.
    pub(super) async fn read(&self) -> Result<ServerState, Error> {
        let shared = &self.shared;
        let mut seen = ServerState::default();
        for name in self.act.reset_scope().names {
            match name {
                Name::Redis(name) | Name::RedisFor(name, _) => {
                    let entry = shared.redis.read(&self.ctx, self.key(name)).await?;
                    seen.locks.extend(entry.into_iter().flat_map(RedisEntry::locks));
                }
                Name::RedisMine(name) => {
                    let entry = shared.mine.read(&self.ctx, self.key(name)).await?;
                    seen.locks.extend(entry.into_iter().flat_map(RedisEntry::locks));
                }
                Name::RedisNodes(name) => {
                    let nodes = (0..self.ctx.nodes.len()).map(|n| shared.nodes.read(&self.ctx, (n, self.key(name))));
                    for (n, entry) in try_join_all(nodes).await?.into_iter().enumerate() {
                        let locks = entry.into_iter().flat_map(RedisEntry::locks);
                        seen.locks.extend(locks.map(|lock| lock.on_node(n)));
                    }
                }
                Name::RedisCount(name) => {
                    let entry = shared.redis.read(&self.ctx, self.key(name)).await?;
                    let count = entry.and_then(|entry| entry.number());
                    seen.counts.extend(count.map(|count| (self.key(name), count)));
                }
                Name::ZooKeeper(path) => {
                    let lock = zookeeper_lock(&self.ctx, names::as_path(path, self.stock_id));
                    seen.locks.extend(in_time(Server::ZooKeeper, lock).await?);
                }
                Name::Etcd(prefix) => {
                    let lock = etcd_lock(&self.ctx, names::as_path(prefix, self.stock_id));
                    seen.locks.extend(in_time(Server::Etcd, lock).await?);
                }
                Name::TableLock(name) => {
                    let name = names::in_redis(name, self.stock_id);
                    seen.locks.extend(shared.table_locks.read(&self.ctx, name).await?);
                }
                Name::Fence => {
                    let product = shared.products.read(&self.ctx, self.stock_id).await?;
                    seen.fence = product.map(|(_, fence)| fence);
                }
            }
        }
        seen.stock = match self.act.piece_store() {
            Some(PieceStore::Voucher) => shared.vouchers.read(&self.ctx, self.stock_id).await?,
            Some(PieceStore::Stock(Store::MySql)) => {
                let product = shared.products.read(&self.ctx, self.stock_id).await?;
                product.map(|(pieces, _)| pieces)
            }
            Some(PieceStore::Stock(Store::Redis)) => {
                let key = redis_key::stock_key(&self.ctx, self.stock_id);
                shared.redis.read(&self.ctx, key).await?.and_then(|entry| entry.number())
            }
            None => None,
        };
        Ok(seen)
    }

    /// The key of this name for the product of the replay.
    fn key(&self, name: &str) -> String {
        self.ctx.redis_key(&names::in_redis(name, self.stock_id))
    }

    /// Ends every lease of the replay's names, in Redis and in `tb_lock`, as if its time were over; `node` leaves out the
    /// other nodes of Redis, but not `tb_lock`. Locks without a lease stay.
    pub(super) async fn end_leases(&self, node: Option<usize>) -> Result<(), Error> {
        for name in self.act.reset_scope().names {
            if let Name::TableLock(name) = name {
                self.end_row_lease(name).await?;
            }
            if let Name::Etcd(prefix) = name
                && let Some(holder) = etcd::contenders(&self.ctx, &names::as_path(prefix, self.stock_id)).await?.first()
            {
                etcd::ask(&self.ctx, "lease/revoke", json!({"ID": holder.lease})).await?;
            }
            let keys = self.keys(name).into_iter().enumerate();
            for (_, (key, mut redis)) in keys.filter(|(n, _)| node.is_none_or(|node| node == *n)) {
                let ended: i64 = END_LEASE.key(&key).invoke_async(&mut redis).await?;
                tracing::debug!(key, ended, "the end of a lease");
            }
        }
        Ok(())
    }

    /// Lets the lease in this row of `tb_lock` be over; the row stays. Without a lease nothing changes.
    async fn end_row_lease(&self, name: &str) -> Result<(), Error> {
        let mut conn = self.ctx.admin_conn(self.ctx.config.default_wait()).await?;
        let end = sqlx::query("UPDATE tb_lock SET expires_at = NOW(3) WHERE lock_name = ? AND expires_at IS NOT NULL");
        end.bind(names::in_redis(name, self.stock_id)).execute(&mut *conn).await?;
        conn.done();
        Ok(())
    }

    /// Whether this Redis node has no key of the lock.
    pub(super) async fn is_free_on_node(&self, node: usize) -> Result<bool, Error> {
        for name in self.act.reset_scope().names {
            if let Some((key, mut node)) = self.keys(name).into_iter().nth(node) {
                let mut there = redis::cmd("EXISTS");
                if there.arg(&key).query_async(&mut node).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The keys of a name in Redis, each with a connection to its node; empty for a name elsewhere.
    fn keys(&self, name: &Name) -> Vec<(String, Connection)> {
        match name {
            Name::Redis(name) | Name::RedisFor(name, _) | Name::RedisCount(name) => {
                vec![(self.key(name), self.ctx.redis.connection())]
            }
            Name::RedisMine(name) => vec![(self.key(name), self.ctx.mine.connection())],
            Name::RedisNodes(name) => self.ctx.nodes.iter().map(|node| (self.key(name), node.connection())).collect(),
            _ => Vec::new(),
        }
    }
}

/// Waits for a server's answer within [`READ_TIMEOUT`]. Each error is an [`Error::Replay`].
async fn in_time<T>(server: Server, read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let answer = timeout(READ_TIMEOUT, read).await;
    answer.unwrap_or_else(|_| Err(Error::unavailable(server, "no answer in time"))).map_err(Error::replay)
}

/// The lock at `path`: the node itself, or its children by number, of which the first holds it. `None` if nobody does.
async fn zookeeper_lock(ctx: &Ctx, path: String) -> Result<Option<LockEntry>, Error> {
    let zk = ctx.zk.session()?;
    let mut below = match zk.list_children(&path).await {
        Ok(below) => below,
        Err(Zk::NoNode) => return Ok(None),
        Err(error) => return Err(unavailable(error)),
    };
    let number = |name: &String| name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().to_owned();
    below.sort_by_key(number);
    let paths: Vec<_> = match below.is_empty() {
        true => vec![path.clone()],
        false => below.iter().map(|name| format!("{path}/{name}")).collect(),
    };
    let mut queue = Vec::new();
    for node in join_all(paths.iter().map(|path| zk.get_data(path))).await {
        match node {
            // A directory without data is no lock.
            Ok((data, stat)) if !data.is_empty() || stat.ephemeral_owner != 0 => {
                // A shared count stores four bytes here, and is no lock.
                let owner = String::from_utf8(data).ok().filter(|owner| !owner.contains('\0'));
                queue.extend(owner);
            }
            Ok(_) | Err(Zk::NoNode) => {}
            Err(error) => return Err(unavailable(error)),
        }
    }
    Ok(LockEntry::of_queue(path, queue))
}

/// The lock below `prefix`. `None` if nobody holds it.
async fn etcd_lock(ctx: &Ctx, prefix: String) -> Result<Option<LockEntry>, Error> {
    let contenders = etcd::contenders(ctx, &prefix).await?;
    Ok(LockEntry::of_queue(prefix, contenders.into_iter().map(|contender| contender.owner).collect()))
}
