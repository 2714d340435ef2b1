//! The ceilings that need no HTTP: the rate at which several clients, each with a task of its own, do the same work.
//!
//! The ceiling of a lock is the rate of one uncontended client, which takes the lock, runs the section and releases. The ceiling
//! of `redis-lock` and `etcd-lock` uses the lock itself. The ceiling of `zk-lock` does the least that any lock in ZooKeeper must do: it
//! makes a numbered node and deletes it, and does not list the other nodes. A lock lets one in at a time, so waiters cannot make the
//! section faster. But in ZooKeeper waiters make their nodes while one is inside, which the one client does afterwards. So there
//! the ratio may be above 1.

use crate::{config::Config, ctx::Ctx, seckill::id_worker};
use oversell_lab::{
    addresses::Addresses,
    terminal::{
        bilingual::Bilingual,
        failure::{Failure, unusable},
    },
};
use sqlx::{Executor, MySqlConnection};
use std::{
    error::Error,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use zookeeper_client::{Acls, Client, CreateMode};

/// How long each ceiling is measured: short, so that a slow minute hits the strategy and its ceiling alike.
const MEASURED_TIME: Duration = Duration::from_secs(1);
/// Bounds the wait for a connection to MySQL.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the lock; nobody else takes it, so only a server that hangs reaches the limit.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// ZooKeeper's session timeout, and the lease in etcd; the session must outlive the loads between two measurements, also on a busy
/// machine.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Prefix of the bench's keys in Redis, apart from those of the instances.
pub(super) const PREFIX: &str = "oversell-bench:";
/// Directory of the bench's nodes in ZooKeeper, apart from those of the instances.
const DIRECTORY: &str = "/oversell-bench";
/// How many ids one command takes in [`BareWork::Ids`].
const IDS_PER_BATCH: u32 = 100;

/// §1.7.1's statement: takes one piece, if any is left.
const UPDATE: &str = "UPDATE db_stock SET count = count - 1, version = version + 1 WHERE id = ? AND count > 0";
/// §1.7.2's read, which locks the row.
const FOR_UPDATE: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
/// Reads the product's row without a lock.
const READ: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";
/// Writes the count that the section has computed.
const WRITE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?";

/// The work of a ceiling, without HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BareWork {
    /// §1.7.1: one statement.
    Update,
    /// §1.7.2: the transaction of four statements.
    ForUpdate,
    /// Lock, section and unlock in Redis.
    RedisLock,
    /// Lock, section and unlock in etcd.
    EtcdLock,
    /// Makes a numbered node of ZooKeeper, runs the section, deletes the node.
    ZkNode,
    /// `INCR` of a key in Redis.
    Incr,
    /// Takes one global id by each command.
    Id,
    /// Takes [`IDS_PER_BATCH`] global ids by each command.
    Ids,
}

impl BareWork {
    /// How many workers do the work at once. Of several numbers the best counts: on one hot row more connections may sell less.
    const fn workers(self) -> &'static [usize] {
        match self {
            Self::Update | Self::ForUpdate => &[10, 30, 100],
            Self::RedisLock | Self::EtcdLock | Self::ZkNode => &[1],
            Self::Incr | Self::Id | Self::Ids => &[100],
        }
    }

    /// Its name in the table.
    pub(super) const fn name(self) -> Bilingual {
        let (zh, en) = match self {
            Self::Update | Self::ForUpdate => ("不经 HTTP 的同样 SQL", "the same SQL without HTTP"),
            Self::RedisLock | Self::EtcdLock => ("一个客户端，没有别人", "one client, nobody else"),
            Self::ZkNode => ("一个客户端：建节点、临界区、删节点", "one client: create, section, delete"),
            Self::Incr => ("只有 INCR", "INCR alone"),
            Self::Id => ("编号，逐个", "ids, one by one"),
            Self::Ids => ("编号，一百个一批", "ids, in batches of 100"),
        };
        Bilingual::of(zh, en)
    }
}

/// Connected clients of MySQL, Redis and ZooKeeper, and the product that they work on; kept from one round to the next.
pub(super) struct Ceilings {
    ctx: Ctx,
    zookeeper: Client,
    product: i64,
}

/// A result whose error is any.
type CeilingResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

impl Ceilings {
    /// Connects to the servers of a lab, for work on this product, and makes [`DIRECTORY`].
    /// Errors: [`Failure::Unusable`] where an address is not one, or ZooKeeper does not answer.
    pub(super) async fn open(at: &Addresses, product: i64) -> Result<Arc<Self>, Failure> {
        let open = async || -> CeilingResult<_> {
            let config = Config::load(&[
                ("mysql.url", at.mysql.url.clone()),
                ("mysql.pool", "100".into()),
                ("redis.url", at.first_redis().to_owned()),
                ("redis.prefix", PREFIX.into()),
                ("zookeeper.connect", at.zookeeper.connect.clone()),
                ("etcd.endpoints", at.etcd.iter().map(|node| node.url.as_str()).collect::<Vec<_>>().join(",")),
            ])?;
            let zookeeper = Client::connector()
                .with_session_timeout(SESSION_TIMEOUT)
                .with_fail_eagerly()
                .connect(&at.zookeeper.connect)
                .await?;
            // The directory is no container, because the server deletes an empty container.
            let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
            zookeeper.mkdir(DIRECTORY, &directory).await?;
            Ok(Arc::new(Self { ctx: Ctx::new(config)?, zookeeper, product }))
        };
        open().await.map_err(bench_failure)
    }

    /// Measures how much of the work is done per second: the highest rate over its numbers of workers.
    pub(super) async fn per_second(self: &Arc<Self>, bare: BareWork) -> Result<f64, Failure> {
        let mut most = 0.0_f64;
        for workers in bare.workers() {
            most = most.max(self.per_second_of(bare, *workers).await.map_err(bench_failure)?);
        }
        Ok(most)
    }

    /// Measures the rate per second of this many workers, each with a connection to MySQL, for [`MEASURED_TIME`].
    async fn per_second_of(self: &Arc<Self>, bare: BareWork, workers: usize) -> CeilingResult<f64> {
        let mut conns = Vec::with_capacity(workers);
        for _ in 0..workers {
            let mut conn = self.ctx.db.conn(CONNECTION_TIMEOUT).await?;
            // The first run prepares the statements.
            self.run_once(bare, &mut conn).await?;
            conns.push(conn);
        }
        let (begun, mut running) = (Instant::now(), JoinSet::new());
        for mut conn in conns {
            let on = Arc::clone(self);
            running.spawn(async move {
                let mut done = 0;
                while begun.elapsed() < MEASURED_TIME {
                    done += on.run_once(bare, &mut conn).await?;
                }
                conn.done();
                CeilingResult::Ok(done)
            });
        }
        let mut done = 0;
        while let Some(worker) = running.join_next().await {
            done += worker??;
        }
        Ok(f64::from(done) / begun.elapsed().as_secs_f64())
    }

    /// Does the work once; returns how many pieces, commands or ids that were.
    async fn run_once(&self, bare: BareWork, conn: &mut MySqlConnection) -> CeilingResult<u32> {
        let (ctx, product) = (&self.ctx, self.product);
        match bare {
            BareWork::Update => {
                sqlx::query(UPDATE).bind(product).execute(conn).await?;
            }
            BareWork::ForUpdate => {
                conn.execute("START TRANSACTION").await?;
                let count: i64 = sqlx::query_scalar(FOR_UPDATE).bind(product).fetch_one(&mut *conn).await?;
                self.write(count - 1, conn).await?;
                conn.execute("COMMIT").await?;
            }
            BareWork::RedisLock => {
                let guard = ctx.redis.lock("lock").acquire(ACQUIRE_TIMEOUT).await?;
                self.run_section(conn).await?;
                guard.release().await?;
            }
            BareWork::EtcdLock => {
                let guard = ctx.etcd()?.lock(DIRECTORY).lease(SESSION_TIMEOUT).acquire(ACQUIRE_TIMEOUT).await?;
                self.run_section(conn).await?;
                guard.release().await?;
            }
            BareWork::ZkNode => {
                let prefix = format!("{DIRECTORY}/lock-");
                let numbered = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
                let (_, number) = self.zookeeper.create(&prefix, &[], &numbered).await?;
                self.run_section(conn).await?;
                let node = format!("{prefix}{number}");
                self.zookeeper.delete(&node, None).await?;
            }
            BareWork::Incr => {
                let mut redis = ctx.redis.connection();
                redis::cmd("INCR").arg(ctx.redis_key("incr")).exec_async(&mut redis).await?;
            }
            BareWork::Id => {
                id_worker::next_ids(ctx, "bench", 1).await?;
            }
            BareWork::Ids => {
                id_worker::next_ids(ctx, "bench", IDS_PER_BATCH).await?;
                return Ok(IDS_PER_BATCH);
            }
        }
        Ok(1)
    }

    /// The section that the lock strategies guard, on one connection: read, then write one less.
    async fn run_section(&self, conn: &mut MySqlConnection) -> CeilingResult<()> {
        let (count, _version, _fence): (i64, i64, u64) = sqlx::query_as(READ).bind(self.product).fetch_one(&mut *conn).await?;
        self.write(count - 1, conn).await
    }

    async fn write(&self, count: i64, conn: &mut MySqlConnection) -> CeilingResult<()> {
        let write = sqlx::query(WRITE).bind(count).bind(self.product);
        write.execute(conn).await?;
        Ok(())
    }

    /// Deletes the key and the node that do not expire, which may fail, and closes the clients.
    pub(super) async fn close(&self) {
        let mut redis = self.ctx.redis.connection();
        let key = self.ctx.redis_key("incr");
        if let Err(error) = redis::cmd("DEL").arg(key).exec_async(&mut redis).await {
            tracing::debug!(%error, "{PREFIX}incr is left");
        }
        if let Err(error) = self.zookeeper.delete(DIRECTORY, None).await {
            tracing::debug!(%error, "{DIRECTORY} is left");
        }
        self.ctx.close(MEASURED_TIME).await;
    }
}

/// [`Failure::Unusable`]: the ceiling cannot be measured because of this error.
pub(super) fn bench_failure(error: impl fmt::Display) -> Failure {
    unusable!("the ceiling cannot be measured: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stock;

    #[test]
    fn the_ceilings_use_the_very_sql_of_the_strategies() {
        for (slug, sql) in [
            ("single-update", UPDATE),
            ("select-for-update", FOR_UPDATE),
            ("select-for-update", WRITE),
            ("none", READ),
            ("none", WRITE),
        ] {
            let source = stock::find(slug).unwrap().source;
            assert!(source.contains(sql), "{slug}: {sql}");
        }
    }
}
