//! The stock of a product in both stores: reading, resetting and removing it, for the operator.
//!
//! A reset is done in all servers that it needs, or in none: they are asked whether they would do it before the first is
//! changed. Where one falls silent after that, or refuses all the same, the answer says that the outcome is unknown.

mod clear;

use crate::{
    ctx::Ctx,
    error::Error,
    section::{etcd, mysql::is_contended, names, redis_key, zk_node::unavailable},
    server::Server,
    stock::Store,
};
use clear::ProductNames;
pub use clear::{ResetScope, delete_nodes};
use futures::future::{join_all, try_join_all};
use oversell_lock::{mysql::Conn, redis::RedisClient};
use serde::Serialize;
use serde_json::json;
use sqlx::Executor;
use std::{
    future::Future,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};
use utoipa::ToSchema;
use zookeeper_client::Client;

/// Time limit of each step of a reset: a person waits for the answer.
const STEP_TIMEOUT: Duration = Duration::from_secs(3);

/// §1.2: the stock that the course starts with.
const SEED_COUNT: i64 = 5000;

/// The row and its buckets in one statement, so at one time. A Galera node first applies every earlier commit of any node;
/// other servers read that as a comment.
const READ_STOCK: &str = "/*M!100100 SET STATEMENT wsrep_sync_wait = 1 FOR */ SELECT id, product_code, stock_code, CAST(count + (SELECT COALESCE(SUM(count), 0) FROM db_stock_bucket \
                    WHERE stock_id = db_stock.id) AS SIGNED) AS count, version FROM db_stock WHERE id = ?";
/// Makes the row of a product, or sets its count and raises its version.
const PUT_STOCK: &str = "INSERT INTO db_stock (id, product_code, stock_code, count) VALUES (?, ?, '001', ?) \
                   ON DUPLICATE KEY UPDATE count = VALUES(count), version = version + 1";
/// The product of which it is counted what resets have put in.
const COUNTED_PRODUCT: i64 = 1;
/// What a reset finds in MySQL, and what nobody takes from meanwhile: the row, then its buckets.
const LOCK_STOCK: [&str; 2] = [
    "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE",
    "SELECT CAST(COALESCE(SUM(count), 0) AS SIGNED) FROM db_stock_bucket WHERE stock_id = ? FOR UPDATE",
];
const DELETE_STOCK: &str = "DELETE FROM db_stock WHERE id = ?";
const CLEAR_FENCE: &str = "UPDATE db_stock SET fence = 0 WHERE id = ?";
/// A reset puts all pieces into the row, so the buckets must be empty.
const EMPTY_BUCKETS: &str = "DELETE FROM db_stock_bucket WHERE stock_id = ?";
const DELETE_LOCK: &str = "DELETE FROM tb_lock WHERE lock_name = ?";
/// Marks Redis as seeded; changes no row if it was before.
const MARK_SEEDED: &str = "INSERT IGNORE INTO seeded (store) VALUES ('redis')";

/// The Redis of students' scripts, as the lab and the containers call it: a reset that cannot reach it answers with this name.
const STUDENT_REDIS: &str = "redis-mine";
/// The nodes of Redlock in the order of `redis.nodes`, as the lab and the containers call them.
pub(crate) const NODES: [&str; 9] =
    ["redis", "redis-2", "redis-3", "redis-4", "redis-5", "redis-6", "redis-7", "redis-8", "redis-9"];

/// How many more pieces of product 1 the resets of this instance have put into each store than they found there: so it can be told
/// from the sold pieces and those that are left whether too many were sold, over a reset too.
#[derive(Debug, Default)]
struct PutPieces {
    mysql: AtomicI64,
    redis: AtomicI64,
}

/// The pieces that resets of this instance have put into MySQL and into Redis, less those that they found there.
pub fn put_pieces(ctx: &Ctx) -> [i64; 2] {
    let put = ctx.local.of::<PutPieces>();
    [&put.mysql, &put.redis].map(|store| store.load(Ordering::Relaxed))
}

/// A product in both stores. Servers that are down are listed in `missing`, and their part is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StockLevels {
    /// As MySQL has it, with the pieces of its buckets; null if there is no row, or MySQL is down.
    pub mysql: Option<MySqlStock>,
    /// The key of Redis; null if Redis is down.
    pub redis: Option<RedisStock>,
    /// The servers that did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!([]))]
    pub missing: Vec<&'static str>,
}

/// A product as MySQL has it: its row of `db_stock`, with the pieces of its buckets in `count`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MySqlStock {
    #[schema(example = 1)]
    pub id: i64,
    /// The product, as the course writes it.
    #[schema(example = "1001")]
    pub product_code: Option<String>,
    #[schema(example = "001")]
    pub stock_code: Option<String>,
    /// Pieces left, those in buckets included.
    #[schema(example = 5000)]
    pub count: i64,
    /// Grows with each write.
    #[schema(example = 0)]
    pub version: i64,
}

/// The key of Redis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RedisStock {
    #[schema(example = "stock")]
    pub key: String,
    /// Pieces left; null if the key does not exist.
    #[schema(example = 5000)]
    pub count: Option<i64>,
}

/// Reads the stock of a product from both stores.
/// Errors: [`Error::NoProduct`] if both answer and neither has it; MySQL's error if neither answers.
pub async fn read(ctx: &Ctx, stock_id: i64) -> Result<StockLevels, Error> {
    let (mysql, redis) = tokio::join!(read_mysql_stock(ctx, stock_id), read_redis_stock(ctx, stock_id));
    let (mysql, redis) = match (mysql, redis) {
        (Err(error), Err(_)) => return Err(error),
        (Ok(None), Ok(RedisStock { count: None, .. })) => return Err(Error::NoProduct(stock_id)),
        both => both,
    };
    let down = [(Server::MySql, mysql.is_err()), (Server::Redis, redis.is_err())];
    Ok(StockLevels {
        missing: down.into_iter().filter(|(_, down)| *down).map(|(server, _)| server.name()).collect(),
        mysql: mysql.ok().flatten(),
        redis: redis.ok(),
    })
}

/// The pieces of a product in one store.
/// Errors: [`Error::NoProduct`], [`Error::NoStock`] if Redis has lost it, or [`Error::Unavailable`] without an answer.
pub async fn count(ctx: &Ctx, store: Store, stock_id: i64) -> Result<i64, Error> {
    let count = match store {
        Store::Redis => read_redis_stock(ctx, stock_id).await?.count,
        Store::MySql => read_mysql_stock(ctx, stock_id).await?.map(|row| row.count),
    };
    match (count, store) {
        (Some(count), _) => Ok(count),
        (None, Store::MySql) => Err(Error::NoProduct(stock_id)),
        (None, Store::Redis) => Err(redis_key::missing_key_error(ctx, stock_id).await),
    }
}

/// Sets both stores to `count` (0 to 1,000,000,000), makes a new product if needed, and clears its locks, held or not. With a
/// scope only that part. Returns the servers in which nothing was cleared, since they are down: without a scope it needs only
/// the stores, and never a node of Redlock.
/// Errors: [`Error::Unavailable`] if a server that is needed is down, [`Error::Refuses`] if it refuses, [`Error::Timeout`]
/// if somebody holds the row: nothing was changed. [`Error::Unknown`] if a server fell silent or refused in the middle.
/// Dropping it may leave the reset half done.
pub async fn reset(ctx: &Ctx, stock_id: i64, count: i64, scope: Option<ResetScope<'_>>) -> Result<Vec<&'static str>, Error> {
    set_and_clear(ctx, stock_id, Some(count), scope).await
}

/// Removes a product from the stores and its locks from the servers; with a scope only that part. The caller refuses
/// product 1. Returns the servers in which nothing was cleared, since they are down. Errors: as [`reset`].
pub async fn remove(ctx: &Ctx, stock_id: i64, scope: Option<ResetScope<'_>>) -> Result<Vec<&'static str>, Error> {
    set_and_clear(ctx, stock_id, None, scope).await
}

/// Sets the stores to `count`, or without it deletes what they hold, and clears the names, after asking every server. Returns
/// the servers that are down and were left out.
async fn set_and_clear(
    ctx: &Ctx,
    stock_id: i64,
    count: Option<i64>,
    scope: Option<ResetScope<'_>>,
) -> Result<Vec<&'static str>, Error> {
    let sets = |store| scope.is_none_or(|scope| scope.store == Some(store));
    let names = ProductNames::of(scope, ctx, stock_id);
    let stock = sets(Store::Redis).then(|| redis_key::stock_key(ctx, stock_id));

    // Every server is asked before the first one is changed.
    let mut missing = Vec::new();
    let mut conn = None;
    if sets(Store::MySql) || names.fence || !names.rows.is_empty() {
        conn = Some(ctx.admin_conn(STEP_TIMEOUT).await?);
    }
    let on_main: Vec<_> = stock.iter().chain(&names.keys).cloned().collect();
    if !on_main.is_empty() {
        probe_writes(&ctx.redis, &on_main).await?;
    }
    let mut others = Vec::new();
    if !names.node_keys.is_empty() {
        let nodes = writable_nodes(ctx, &names.node_keys, &mut missing).await;
        others.extend(nodes.into_iter().map(|node| (node, &names.node_keys)));
    }
    if !names.mine_keys.is_empty() {
        match probe_writes(&ctx.mine, &names.mine_keys).await {
            Ok(()) => others.push((&ctx.mine, &names.mine_keys)),
            Err(_) if scope.is_none() => missing.push(STUDENT_REDIS),
            Err(error) => return Err(error),
        }
    }
    let mut zk = None;
    if !names.paths.is_empty() {
        match reachable_zookeeper(ctx).await {
            Ok(there) => zk = Some(there),
            Err(_) if scope.is_none() => missing.push(Server::ZooKeeper.name()),
            Err(error) => return Err(error),
        }
    }

    let clears_etcd = !names.prefixes.is_empty() && is_etcd_reachable(ctx, scope, &mut missing).await?;

    let mut changed = conn.is_some();
    if let Some(conn) = conn {
        let put = reset_rows(conn, stock_id, sets(Store::MySql), count, &names).await?;
        if stock_id == COUNTED_PRODUCT {
            ctx.local.of::<PutPieces>().mysql.fetch_add(put, Ordering::Relaxed);
        }
    }
    // The pieces are set before the locks are cleared: the next holder must read the new number.
    let stock = stock.map(|key| {
        let mut pieces = redis::pipe();
        match count {
            // MGET, since a key of another type is no error to it.
            Some(count) => pieces.cmd("MGET").arg(&key).set(key, count),
            None => pieces.del(key),
        };
        pieces
    });
    let cleared = async {
        for (redis, keys) in others {
            let mut redis = redis.connection();
            let parts = clear::unlock_commands(&mut redis, keys).await?;
            clear::execute(&mut redis, &parts, &mut changed).await?;
        }
        if !on_main.is_empty() {
            let mut redis = ctx.redis.connection();
            let locks = clear::unlock_commands(&mut redis, &names.keys).await?;
            let parts: Vec<_> = stock.into_iter().chain(locks).collect();
            let answers = clear::execute(&mut redis, &parts, &mut changed).await?;
            if let (Some(count), Some(found), COUNTED_PRODUCT) = (count.filter(|_| sets(Store::Redis)), answers.first(), stock_id)
            {
                let found: (Option<i64>,) = redis::from_redis_value(found.clone()).unwrap_or_default();
                ctx.local.of::<PutPieces>().redis.fetch_add(count - found.0.unwrap_or(0), Ordering::Relaxed);
            }
        }
        Ok(())
    };
    let cleared = within_limit(Server::Redis, cleared).await.map_err(mark_unknown_outcome)?;
    redis_key::classify_write(cleared, true).map_err(|error| match error {
        Error::Refuses { server, reason, .. } if changed => Error::Unknown { server, reason },
        error if changed => mark_unknown_outcome(error),
        error => error,
    })?;
    if let Some(zk) = zk {
        let cleared = within_limit(Server::ZooKeeper, delete_nodes(&zk, names.paths)).await;
        cleared.and_then(|done| done).map_err(mark_unknown_outcome)?;
    }
    if clears_etcd {
        let cleared = try_join_all(names.prefixes.iter().map(|prefix| etcd::delete_below(ctx, prefix)));
        within_limit(Server::Etcd, cleared).await.and_then(|done| done).map_err(mark_unknown_outcome)?;
    }
    Ok(missing)
}

/// Whether etcd answers; without a scope, one that does not is added to `missing`, and an instance without etcd misses none.
async fn is_etcd_reachable(ctx: &Ctx, scope: Option<ResetScope<'_>>, missing: &mut Vec<&'static str>) -> Result<bool, Error> {
    match (etcd::ask(ctx, "maintenance/status", json!({})).await, scope) {
        (Ok(_), _) => Ok(true),
        (Err(error), Some(_)) => Err(error),
        (Err(Error::NoEtcd), None) => Ok(false),
        (Err(_), None) => {
            missing.push(Server::Etcd.name());
            Ok(false)
        }
    }
}

/// The nodes of Redlock that take writes; adds the names of the others to `missing`.
async fn writable_nodes<'a>(ctx: &'a Ctx, keys: &[String], missing: &mut Vec<&'static str>) -> Vec<&'a RedisClient> {
    let mut writable = Vec::new();
    let probed = join_all(ctx.nodes.iter().map(|node| probe_writes(node, keys))).await;
    for ((node, probed), name) in ctx.nodes.iter().zip(probed).zip(NODES) {
        match probed {
            Ok(()) => writable.push(node),
            Err(_) => missing.push(name),
        }
    }
    writable
}

/// The part of a reset in MySQL, in one transaction; the product's row stays as it is unless `sets_stock`. Returns how many more
/// pieces there are than before.
async fn reset_rows(
    mut conn: Conn,
    stock_id: i64,
    sets_stock: bool,
    count: Option<i64>,
    names: &ProductNames,
) -> Result<i64, Error> {
    within_limit(Server::MySql, conn.execute("START TRANSACTION")).await??;
    let mut put = 0;
    // Of a product that is new, the locks would be of gaps, in which two resets wait for each other.
    if let (true, Some(count), COUNTED_PRODUCT) = (sets_stock, count, stock_id) {
        put = count;
        for found in LOCK_STOCK {
            let found = sqlx::query_scalar::<_, i64>(found).bind(stock_id);
            put -= execute_unless_row_is_held(found.fetch_optional(&mut *conn)).await?.unwrap_or(0);
        }
    }
    let mut writes = Vec::new();
    if sets_stock {
        let code = 1000_i64.saturating_add(stock_id).to_string();
        writes.push(match count {
            Some(count) => sqlx::query(PUT_STOCK).bind(stock_id).bind(code).bind(count),
            None => sqlx::query(DELETE_STOCK).bind(stock_id),
        });
        writes.push(sqlx::query(EMPTY_BUCKETS).bind(stock_id));
    }
    if names.fence {
        writes.push(sqlx::query(CLEAR_FENCE).bind(stock_id));
    }
    writes.extend(names.rows.iter().map(|lock| sqlx::query(DELETE_LOCK).bind(lock)));
    for write in writes {
        execute_unless_row_is_held(write.execute(&mut *conn)).await?;
    }
    within_limit(Server::MySql, conn.execute("COMMIT"))
        .await
        .map_err(mark_unknown_outcome)?
        .map_err(|e| mark_unknown_outcome(e.into()))?;
    conn.done();
    Ok(put)
}

/// Asks Redis whether it would change these keys, by writes beside them, in the same slots, that change nothing. Fails if not.
async fn probe_writes(redis: &RedisClient, keys: &[String]) -> Result<(), Error> {
    let mut ask = redis::pipe();
    for key in keys {
        // Unlike UNLINK, this is refused if memory is full, as a transaction is.
        ask.setrange(format!("{}:nothing", names::in_braces(key)), 0, "");
    }
    Ok(within_limit(Server::Redis, ask.exec_async(&mut redis.connection())).await??)
}

/// A session of ZooKeeper that has just answered; [`Error::Unavailable`] without an answer in time.
async fn reachable_zookeeper(ctx: &Ctx) -> Result<Client, Error> {
    let zk = ctx.zk.session()?;
    within_limit(Server::ZooKeeper, zk.check_stat("/")).await?.map_err(unavailable)?;
    Ok(zk)
}

/// Executes a write to a row that a strategy may hold; [`Error::Timeout`] if it is held, or MySQL does not answer in time.
async fn execute_unless_row_is_held<T>(write: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Error> {
    match tokio::time::timeout(STEP_TIMEOUT, write).await {
        Ok(Err(error)) if !is_contended(&error) => Err(error.into()),
        Ok(Ok(done)) => Ok(done),
        _ => Err(Error::Timeout { what: "row in db_stock".into(), waited: STEP_TIMEOUT }),
    }
}

/// Makes [`Error::Unknown`] of [`Error::Unavailable`] after the first change: the reset is then half done.
fn mark_unknown_outcome(error: Error) -> Error {
    match error {
        Error::Unavailable { server, reason } => Error::Unknown { server, reason },
        error => error,
    }
}

/// Puts the 5000 pieces of the course into Redis, once per database: a mark in MySQL records it. A Redis that loses them
/// later stays without until somebody sets the stock. (The migrations put them into MySQL.)
/// Errors: [`Error::Unavailable`] if MySQL or Redis is down: it is to be called again.
pub async fn seed(ctx: &Ctx) -> Result<(), Error> {
    let mut conn = ctx.admin_conn(STEP_TIMEOUT).await?;
    within_limit(Server::MySql, conn.execute("START TRANSACTION")).await??;
    // Waits for another instance that is seeding.
    if within_limit(Server::MySql, conn.execute(MARK_SEEDED)).await??.rows_affected() == 1 {
        let mut set = redis::cmd("SET");
        set.arg(redis_key::stock_key(ctx, 1)).arg(SEED_COUNT).arg("NX");
        within_limit(Server::Redis, set.exec_async(&mut ctx.redis.connection())).await??;
    }
    within_limit(Server::MySql, conn.execute("COMMIT")).await??;
    conn.done();
    Ok(())
}

/// The row of this product with the pieces of its buckets; `None` without a row.
async fn read_mysql_stock(ctx: &Ctx, stock_id: i64) -> Result<Option<MySqlStock>, Error> {
    let mut conn = ctx.admin_conn(STEP_TIMEOUT).await?;
    let read = sqlx::query_as(READ_STOCK).bind(stock_id).fetch_optional(&mut *conn);
    let row: Option<(_, _, _, _, _)> = within_limit(Server::MySql, read).await??;
    conn.done();
    Ok(row.map(|(id, product_code, stock_code, count, version)| MySqlStock { id, product_code, stock_code, count, version }))
}

/// The stock's key of this product and its pieces, if it exists.
async fn read_redis_stock(ctx: &Ctx, stock_id: i64) -> Result<RedisStock, Error> {
    let key = redis_key::stock_key(ctx, stock_id);
    let mut redis = ctx.redis.connection();
    let count = within_limit(Server::Redis, redis::cmd("GET").arg(&key).query_async(&mut redis)).await??;
    Ok(RedisStock { key, count })
}

/// Waits for `step` at most [`STEP_TIMEOUT`]; then `server` counts as unavailable.
async fn within_limit<T>(server: Server, step: impl Future<Output = T>) -> Result<T, Error> {
    let done = tokio::time::timeout(STEP_TIMEOUT, step).await;
    done.map_err(|_| Error::unavailable(server, "no answer in time"))
}
