//! The configuration and one client of each server, passed to every handler and strategy.
//!
//! No client connects when it is made. An instance starts without its servers, answers 503 to requests that need
//! them, and serves those as soon as the servers are up.

use crate::{
    config::Config,
    error::Error,
    redis_pool::{Manager, RedisPool},
    server::Server,
};
use ::redis::aio::ConnectionLike;
use deadpool_redis::redis::AsyncConnectionConfig;
use futures::future::{OptionFuture, join_all};
use oversell_lock::{
    LockError, Process,
    etcd::{EtcdClient, EtcdOptions},
    local::ByType,
    mysql::{Conn, MySqlOptions, TablePool},
    redis::{self, RedisClient, RedisOptions},
    zk::{ZkClient, ZkOptions},
};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{Connection, Executor};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Connections of the pool for the stock and health checks: a query that waits for a row lock must not block the checks.
const ADMIN_POOL_SIZE: usize = 3;
/// MySQL connections, and as many of Redis, for all actors of replays, more than play at once: a stopped one keeps its own.
const ACTOR_POOL_SIZE: usize = 256;
/// MySQL connections of an actor that has a pool of its own: for a section, and for the statements of the lock around it.
const OWN_POOL_SIZE: usize = 4;

/// The clients of one instance. Cloning it is cheap.
#[derive(Clone)]
pub struct Ctx {
    inner: Arc<Inner>,
    pub db: TablePool,
    /// A separate pool for administrative requests (stock, health): lock holders may use all of `db`.
    pub admin_pool: TablePool,
    /// Exclusive Redis connections, for WATCH.
    pub(crate) watch: RedisPool,
    /// The main Redis: plain commands, scripts and locks.
    pub redis: RedisClient,
    /// The nodes of Redlock, in the order of the configuration; without any there, the main one alone.
    pub nodes: Arc<[RedisClient]>,
    pub zk: ZkClient,
    etcd: Option<EtcdClient>,
    /// State of strategies and lessons in this process, by type.
    pub local: Arc<ByType>,
}

/// The fields of a [`Ctx`].
pub struct Inner {
    pub config: Config,
    /// This instance's name, as header `x-instance` gives it.
    pub instance: String,
    /// This process; the owners of its locks carry its id.
    pub process: Process,
    /// The Redis in which students' scripts run (`redis.mine_url`); if none is configured the main one, by another connection.
    pub mine: RedisClient,
    /// The pools of the actors of replays.
    actor_pools: (TablePool, RedisPool),
    /// What the actors of one product share in this process.
    actor_states: Mutex<HashMap<i64, Weak<ByType>>>,
    /// Background tasks that must end before the process does.
    pub tasks: TaskTracker,
    /// Cancelled when the process begins to end: locks that are held for a time are released.
    pub closing: CancellationToken,
}

/// The options of a pool of the servers at these addresses; all pools of the same ones differ in their size only.
fn mysql_options(urls: &[SecretString], connections: usize, process: &Process) -> MySqlOptions {
    let options = MySqlOptions::of(urls.iter().map(ExposeSecret::expose_secret));
    // On by default in MariaDB from 11.6.2: a strategy that reads and then writes would get error 1020, and not do what the
    // course's does.
    let options = options.session_variable("innodb_snapshot_isolation = OFF");
    // The server's default may be another one. That each statement commits by itself, the pool sets.
    let options = options.session_variable("TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    options.connections(connections).process(process.clone())
}

/// The options of the Redis at `url`, without Sentinels.
fn redis_options(config: &Config, url: &SecretString, process: &Process) -> RedisOptions {
    RedisOptions::new(url.expose_secret())
        .prefix(&config.redis.prefix)
        .lease(Duration::from_millis(config.lock.lease_ms))
        .timeout(Duration::from_millis(config.redis.timeout_ms))
        .process(process.clone())
}

/// The options of the main Redis: with Sentinels and `redis.wait_replicas`, if they are configured.
fn main_redis_options(config: &Config, process: &Process) -> RedisOptions {
    let sentinels = config.redis.sentinels.iter().map(ExposeSecret::expose_secret);
    redis_options(config, &config.redis.url, process)
        .sentinels(sentinels, &config.redis.master)
        .wait_replicas(config.redis.wait_replicas)
}

/// The options of the ZooKeeper at these addresses.
fn zk_options(config: &Config, connect: &str) -> ZkOptions {
    ZkOptions::new(connect)
        .chroot(&config.zookeeper.chroot)
        .session(Duration::from_millis(config.zookeeper.session_ms))
        .data(config.instance())
}

/// A client of etcd's nodes at these addresses; `None` without any.
fn etcd_client(endpoints: &[String], process: &Process) -> Result<Option<EtcdClient>, LockError> {
    let options = || EtcdOptions::new(endpoints.join(",")).process(process.clone());
    (!endpoints.is_empty()).then(|| EtcdClient::new(options())).transpose()
}

/// A pool of at most `size` connections to the main Redis, each of which has one user at a time, as WATCH needs it. Connects
/// to none yet.
fn redis_pool(config: &Config, redis: &RedisClient, size: usize) -> Result<RedisPool, LockError> {
    let timeout = Some(Duration::from_millis(config.redis.timeout_ms));
    let no_redis = |reason: String| LockError::Unavailable { server: Server::Redis.name(), reason: reason.into() };
    let one = deadpool_redis::Manager::new_with_config(
        config.redis.url.expose_secret(),
        AsyncConnectionConfig::new().set_response_timeout(timeout).set_connection_timeout(timeout),
    )
    .map_err(|e| no_redis(e.to_string()))?;
    let manager = Manager { one, followed_client: (!config.redis.sentinels.is_empty()).then(|| redis.clone()) };
    RedisPool::builder(manager).max_size(size).runtime(deadpool::Runtime::Tokio1).build().map_err(|e| no_redis(e.to_string()))
}

impl Ctx {
    /// Makes every client; connects to none. Must run inside a tokio runtime.
    /// Errors: [`LockError::Unavailable`] for an invalid address.
    pub fn new(config: Config) -> Result<Self, LockError> {
        let process = Process::labelled(&config.instance())?;
        let mysql = |connections| mysql_options(config.mysql_urls(), connections, &process);
        let options = |url: &SecretString| redis_options(&config, url, &process);
        let main = &config.redis.url;
        let redis = RedisClient::new(main_redis_options(&config, &process))?;
        let node = |url: &SecretString| {
            if url.expose_secret() == main.expose_secret() { Ok(redis.clone()) } else { RedisClient::new(options(url)) }
        };
        // A connection of its own even then, so that a script disturbs nobody else.
        let mine = match config.redis.mine_url.expose_secret() {
            "" => RedisClient::new(main_redis_options(&config, &process))?,
            _ => RedisClient::new(options(&config.redis.mine_url))?,
        };
        let nodes = config.node_urls().iter().map(node).collect::<Result<_, _>>()?;
        let redis_pool = |size| redis_pool(&config, &redis, size);
        let (db, admin_pool, watch) =
            (TablePool::new(mysql(config.mysql.pool))?, TablePool::new(mysql(ADMIN_POOL_SIZE))?, redis_pool(config.redis.pool)?);
        let inner = Inner {
            instance: config.instance(),
            actor_pools: (TablePool::new(mysql(ACTOR_POOL_SIZE))?, redis_pool(ACTOR_POOL_SIZE)?),
            actor_states: Mutex::default(),
            process,
            mine,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            config,
        };
        Ok(Self {
            zk: ZkClient::new(zk_options(&inner.config, &inner.config.zookeeper.connect))?,
            etcd: etcd_client(&inner.config.etcd.endpoints, &inner.process)?,
            inner: Arc::new(inner),
            db,
            admin_pool,
            watch,
            redis,
            nodes,
            local: Arc::default(),
        })
    }

    /// The same clients with the pools of the actors of replays as `db`, `admin_pool` and `watch`; all else stays shared.
    pub(crate) fn with_actor_pools(&self) -> Self {
        let (db, watch) = self.actor_pools.clone();
        Self { inner: Arc::clone(&self.inner), admin_pool: db.clone(), db, watch, local: Arc::clone(&self.local), ..self.clone() }
    }

    /// [`with_actor_pools`](Self::with_actor_pools), and a `local` of this product alone: nothing that its actors hold in this
    /// process is seen by those of another. Calls for one product share it while one of their results lives.
    pub(crate) fn for_actors_of(&self, stock_id: i64) -> Self {
        let mut states = self.actor_states.lock();
        states.retain(|_, state| state.strong_count() > 0);
        let shared = states.get(&stock_id).and_then(Weak::upgrade);
        let local = shared.unwrap_or_default();
        states.insert(stock_id, Arc::downgrade(&local));
        drop(states);
        Self { local, ..self.with_actor_pools() }
    }

    /// The same clients, but `redis` and `nodes` send over what `tap` makes of their connections; `tap` also gets the index of
    /// a Redlock node, and `None` for the main Redis. `watch` and `mine` are not tapped.
    /// Errors: [`LockError::Invalid`] outside a tokio runtime.
    pub(crate) fn with_redis_over<C>(&self, tap: impl Fn(redis::Connection, Option<usize>) -> C) -> Result<Self, LockError>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        let (config, process) = (&self.config, &self.process);
        let main = || main_redis_options(config, process);
        let nodes = self.nodes.iter().zip(config.node_urls()).enumerate();
        let nodes = nodes.map(|(n, (node, url))| {
            let options = match config.redis.nodes.is_empty() {
                true => main(),
                false => redis_options(config, url, process),
            };
            RedisClient::over(tap(node.connection(), Some(n)), options)
        });
        Ok(Self {
            redis: RedisClient::over(tap(self.redis.connection(), None), main())?,
            nodes: nodes.collect::<Result<_, _>>()?,
            ..self.clone()
        })
    }

    /// The same clients, but `zk` has a session of its own with the servers at these addresses, which the caller closes.
    /// Errors: [`LockError::Invalid`] outside a tokio runtime.
    pub(crate) fn with_zookeeper_at(&self, connect: &str) -> Result<Self, LockError> {
        Ok(Self { zk: ZkClient::new(zk_options(&self.config, connect))?, ..self.clone() })
    }

    /// The same clients, but `db` is a small pool of its own, of the servers at the addresses that `tap` makes of theirs. The
    /// caller closes it.
    /// Errors: those of `tap`, and [`LockError::Invalid`] outside a tokio runtime.
    pub(crate) fn with_mysql_over(&self, tap: impl FnMut(&SecretString) -> Result<SecretString, Error>) -> Result<Self, Error> {
        let urls = self.config.mysql_urls().iter().map(tap);
        let urls = urls.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { db: TablePool::new(mysql_options(&urls, OWN_POOL_SIZE, &self.process))?, ..self.clone() })
    }

    /// The client of etcd.
    /// Errors: [`Error::NoEtcd`] if the instance has none.
    pub(crate) fn etcd(&self) -> Result<&EtcdClient, Error> {
        self.etcd.as_ref().ok_or(Error::NoEtcd)
    }

    /// The same clients, but that of etcd is its own, of the nodes at these addresses. The caller closes it.
    /// Errors: [`LockError::Invalid`] outside a tokio runtime.
    pub(crate) fn with_etcd_at(&self, endpoints: &[String]) -> Result<Self, LockError> {
        Ok(Self { etcd: etcd_client(endpoints, &self.process)?, ..self.clone() })
    }

    /// A name in Redis, with the configured prefix.
    pub fn redis_key(&self, name: &str) -> String {
        format!("{}{name}", self.config.redis.prefix)
    }

    /// A connection to MySQL: waits at most `wait` for a free one, and a second more for a new one. With `mysql.causal_reads`
    /// it sees every commit of any node.
    /// Errors: [`Error::Timeout`] if all stay in use, [`Error::Unavailable`] if MySQL is down or does not answer.
    pub async fn mysql(&self, wait: Duration) -> Result<Conn, Error> {
        const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
        let conn = async {
            let mut conn = self.db.conn(wait).await?;
            if self.config.mysql.causal_reads {
                conn.execute("SET SESSION wsrep_sync_wait = 1").await?;
            }
            Ok::<_, Error>(conn)
        };
        let late = |_| Error::unavailable(Server::MySql, "a new connection is not answered");
        timeout(wait + CONNECT_TIMEOUT, conn).await.map_err(late)?
    }

    /// A connection of the administrative pool that has answered a ping. If it does not, the idle connections of all MySQL pools
    /// are dropped and another one is returned unchecked. Getting one, the ping and getting another may take `wait` each.
    /// Errors: [`LockError::Unavailable`] if all stay in use, or MySQL is down.
    pub async fn admin_conn(&self, wait: Duration) -> Result<Conn, LockError> {
        let mut conn = self.admin_pool.conn(wait).await?;
        if let Ok(Ok(())) = timeout(wait, conn.ping()).await {
            return Ok(conn);
        }
        drop(conn);
        self.forget_idle();
        self.admin_pool.conn(wait).await
    }

    /// Drops every idle connection to MySQL: if one is dead, the others are too, and the outcome of a write would be unknown.
    pub fn forget_idle(&self) {
        self.db.forget_idle();
        self.actor_pools.0.forget_idle();
        self.admin_pool.forget_idle();
    }

    /// Cancels `closing`, waits for all tasks, releases all locks and closes the sessions. After `limit` it gives up, and warns.
    pub async fn close(&self, limit: Duration) {
        self.closing.cancel();
        self.tasks.close();
        let nodes = join_all(self.nodes.iter().map(RedisClient::close));
        let closing = async {
            tokio::join!(
                self.tasks.wait(),
                self.redis.close(),
                self.mine.close(),
                nodes,
                self.zk.close(),
                OptionFuture::from(self.etcd.as_ref().map(EtcdClient::close)),
                self.db.close(),
                self.actor_pools.0.close(),
                self.admin_pool.close()
            );
        };
        if tokio::time::timeout(limit, closing).await.is_err() {
            tracing::warn!("the servers did not answer in time; held locks end with their lease, session or row");
        }
    }
}

impl std::ops::Deref for Ctx {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").field("instance", &self.instance).finish_non_exhaustive()
    }
}
