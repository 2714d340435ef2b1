//! Everything that a request can come to besides success. `http` turns it into a status in one match.

use crate::stock::Server;
use oversell_lock::LockError;
use std::time::Duration;

/// Why a request did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no piece left.
    #[error("sold out")]
    SoldOut,
    /// There is no product of this number.
    #[error("stock_id {0}: there is no such product; PUT /stock?stock_id={0} makes it")]
    NoProduct(i64),
    /// The lock, row or connection was not had in time. Nothing was changed.
    #[error("{what} not had within {} ms", waited.as_millis())]
    NotHad {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
    },
    /// The lock was lost before the write. Nothing was changed.
    #[error("lock {0} was lost before the write")]
    Lost(String),
    /// A server is down. Nothing was changed.
    #[error("{server} is not available: {reason}")]
    Unavailable {
        /// Which server.
        server: &'static str,
        /// What its client said: for the log, not for the answer.
        reason: String,
    },
    /// A write was sent and no answer came: the piece may be sold or not.
    #[error("{server} did not answer a write; whether it was done is unknown: {reason}")]
    Unknown {
        /// Which server.
        server: &'static str,
        /// What its client said: for the log, not for the answer.
        reason: String,
    },
    /// What the client sent is not as it should be.
    #[error("{field}: {rule}")]
    BadInput {
        /// The field.
        field: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// There is no strategy of this name.
    #[error("there is no strategy {0}")]
    NoStrategy(String),
    /// `PUT /stock` without the token that the configuration asks for.
    #[error("this needs the header Authorization: Bearer with the admin token")]
    Unauthorized,
    /// Ours: a bug, or a server that answers what it never should.
    #[error("{0}")]
    Internal(String),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Taken { name, waited } => Self::NotHad { what: name, waited },
            LockError::Lost { name } => Self::Lost(name),
            LockError::Unavailable { server, reason } => Self::Unavailable { server, reason },
            LockError::Invalid { .. } => Self::Internal(error.to_string()),
        }
    }
}

/// What a database error means for a statement that changed nothing: a read, or a write that was refused.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(e) => Self::Internal(e.to_string()),
            e => Self::Unavailable { server: Server::MySql.name(), reason: e.to_string() },
        }
    }
}

/// What a Redis error means for a command that changed nothing.
impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        Self::Unavailable { server: Server::Redis.name(), reason: error.to_string() }
    }
}
