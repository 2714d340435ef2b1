//! The stock as a key of Redis: its name, and what an answer that did not come means.

use super::Server;
use crate::{ctx::Ctx, error::Error};
use deadpool_redis::{Connection, PoolError, Timeouts};
use std::time::Duration;

const KEY: &str = "stock";

/// The key of this product, with the configured prefix.
pub(crate) fn of(ctx: &Ctx, stock_id: i64) -> String {
    ctx.redis_key(&for_stock(KEY, stock_id))
}

/// A name of CONTRACT section 5 for this product: `lock`, or `lock:7` for product 7.
pub(crate) fn for_stock(name: &str, stock_id: i64) -> String {
    if stock_id == 1 { name.to_owned() } else { format!("{name}:{stock_id}") }
}

/// A connection that nobody else uses meanwhile, waiting for it at most `wait`. It comes without a watch: the pool sends
/// UNWATCH first.
pub(super) async fn watch_connection(ctx: &Ctx, wait: Duration) -> Result<Connection, Error> {
    let timeouts = Timeouts { wait: Some(wait), create: None, recycle: None };
    ctx.watch.timeout_get(&timeouts).await.map_err(|e| match e {
        PoolError::Timeout(_) => Error::NotHad { what: "redis connection pool".into(), waited: wait },
        e => Error::Unavailable { server: Server::Redis.name(), reason: e.to_string() },
    })
}

/// What a write came to: done, refused by the server (nothing changed), or without an answer.
pub(crate) fn answered<T>(result: Result<T, redis::RedisError>) -> Result<T, Error> {
    result.map_err(|e| match e.kind() {
        redis::ErrorKind::Io => Error::Unknown { server: Server::Redis.name(), reason: e.to_string() },
        _ => e.into(),
    })
}
