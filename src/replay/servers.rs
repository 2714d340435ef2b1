//! What the servers hold of a replay's product: locks, queues, counters, stock, and the token of the row.
//!
//! Next: `shared_reads.rs`, which reads them for all replays together; `observer.rs`, which turns changes into events.

use super::{
    act::{Act, PieceStore},
    shared_reads::{LockEntry, Row, SharedReads},
};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Name, etcd, names, redis_key},
    stock::Store,
};
use futures::future::join_all;
use oversell_lock::redis::Connection;
use redis::Script;
use serde_json::json;
use std::sync::{Arc, LazyLock};

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
                    let locks = shared.redis.read(&self.ctx, (0, self.key(name))).await?;
                    seen.locks.extend(locks.locks());
                }
                Name::RedisMine(name) => {
                    let locks = shared.mine.read(&self.ctx, (0, self.key(name))).await?;
                    seen.locks.extend(locks.locks());
                }
                Name::RedisNodes(name) => {
                    let nodes = (0..self.ctx.nodes.len()).map(|n| {
                        let key = (n, self.key(name));
                        shared.nodes.read(&self.ctx, key)
                    });
                    // Redlock must work with some nodes down.
                    for (n, node) in join_all(nodes).await.into_iter().enumerate() {
                        let held = node.map(|node| node.locks()).unwrap_or_default();
                        seen.locks.extend(held.into_iter().map(|held| held.on_node(n)));
                    }
                }
                Name::RedisCount(name) => {
                    let key = self.key(name);
                    let count = shared.redis.read(&self.ctx, (0, key.clone())).await?;
                    seen.counts.extend(count.number().map(|count| (key, count)));
                }
                Name::ZooKeeper(path) => {
                    let path = names::as_path(path, self.stock_id);
                    seen.locks.extend(shared.zookeeper.read(&self.ctx, path).await?);
                }
                Name::Etcd(prefix) => {
                    let prefix = names::as_path(prefix, self.stock_id);
                    seen.locks.extend(shared.etcd.read(&self.ctx, prefix).await?);
                }
                Name::TableLock(name) => {
                    let name = names::in_redis(name, self.stock_id);
                    let row = shared.mysql.read(&self.ctx, Row::Lock(name)).await?;
                    seen.locks.extend(row.lock);
                }
                Name::Fence => {
                    let row = shared.mysql.read(&self.ctx, Row::Stock(self.stock_id));
                    seen.fence = row.await?.fence;
                }
            }
        }
        seen.stock = match self.act.piece_store() {
            Some(PieceStore::Voucher) => {
                let row = shared.mysql.read(&self.ctx, Row::Voucher(self.stock_id));
                row.await?.count
            }
            Some(PieceStore::Stock(Store::MySql)) => {
                let row = shared.mysql.read(&self.ctx, Row::Stock(self.stock_id));
                row.await?.count
            }
            Some(PieceStore::Stock(Store::Redis)) => {
                let key = (0, redis_key::stock_key(&self.ctx, self.stock_id));
                shared.redis.read(&self.ctx, key).await?.number()
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
