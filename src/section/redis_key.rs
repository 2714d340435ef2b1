//! The stock as a Redis key: its name, and the errors for a missing key and a missing answer.

use crate::{
    ctx::Ctx,
    error::Error,
    redis_pool::ExclusiveConnection,
    section::{names, product::check_product},
    server::Server,
};
use deadpool::managed::{PoolError, Timeouts};
use redis::{ErrorKind, RedisError};
use std::time::Duration;
use tokio::time::timeout;

/// The key of product 1's stock, without the configured prefix.
const KEY: &str = "stock";

/// The key of the stock of this product, with the configured prefix.
pub(crate) fn stock_key(ctx: &Ctx, stock_id: i64) -> String {
    ctx.redis_key(&names::in_redis(KEY, stock_id))
}

/// Takes an exclusive connection from the pool. [`Error::Timeout`] if none is free within `wait`, [`Error::Unavailable`] if
/// Redis does not answer within `redis.timeout_ms` more. The pool sends UNWATCH before a connection is reused.
pub(crate) async fn watch_connection(ctx: &Ctx, wait: Duration) -> Result<ExclusiveConnection, Error> {
    let timeouts = Timeouts { wait: Some(wait), create: None, recycle: None };
    let limit = wait + Duration::from_millis(ctx.config.redis.timeout_ms);
    let connection = timeout(limit, ctx.watch.timeout_get(&timeouts)).await;
    let connection = connection.map_err(|_| Error::unavailable(Server::Redis, "no connection in time"))?;
    connection.map_err(|e| match e {
        PoolError::Timeout(_) => Error::Timeout { what: "redis connection pool".into(), waited: wait },
        e => Error::unavailable(Server::Redis, e),
    })
}

/// Classifies the result of a write: done, refused by the server or not even `sent` (nothing changed), or without a readable
/// answer ([`Error::Unknown`]).
pub(crate) fn classify_write<T>(result: Result<T, RedisError>, sent: bool) -> Result<T, Error> {
    result.map_err(|e| match e.kind() {
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::UnexpectedReturnType if sent => Error::unknown_outcome(Server::Redis, e),
        _ => e.into(),
    })
}

/// The error for a missing key: [`Error::NoStock`] if the product has a row in MySQL (product 1 always has), else
/// [`Error::NoProduct`]; if MySQL does not tell, its own error.
pub(crate) async fn missing_key_error(ctx: &Ctx, stock_id: i64) -> Error {
    check_product(ctx, stock_id).await.err().unwrap_or(Error::NoStock(stock_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_an_unreadable_answer_is_unknown() {
        for kind in [ErrorKind::Io, ErrorKind::Parse, ErrorKind::UnexpectedReturnType] {
            let came = |sent| classify_write::<()>(Err(RedisError::from((kind, "?"))), sent);
            assert!(matches!(came(true), Err(Error::Unknown { .. })), "{kind:?}");
            assert!(matches!(came(false), Err(Error::Unavailable { .. })), "{kind:?}: it did not go out");
        }
        let refused = RedisError::from((ErrorKind::Extension, "no", "READONLY".into()));
        let refused = classify_write::<()>(Err(refused), true);
        assert!(matches!(refused, Err(Error::Unavailable { .. })));
    }

    #[test]
    fn a_key_of_another_type_is_reported_as_such() {
        let text = "Operation against a key holding the wrong kind of value";
        let error = RedisError::from((ErrorKind::Extension, "WRONGTYPE", text.into()));
        assert!(matches!(Error::from(error), Error::WrongType));
    }
}
