//! The errors of the stock, the seckill and the lessons. Those that only HTTP knows are in `http/error.rs`.

use crate::server::Server;
use oversell_lock::LockError;
use std::time::Duration;

/// The name of Redis' error for a key of another type; the error of a script has it in its text.
const WRONG_TYPE: &str = "WRONGTYPE";

/// Why a piece was not sold, or a lesson not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no piece left.
    #[error("sold out")]
    SoldOut,
    /// There is no product of this number.
    #[error("stock_id {0}: there is no such product; PUT /stock?stock_id={0} makes it")]
    NoProduct(i64),
    /// The product has a row in MySQL, and Redis has nothing of it: it has lost it. Nothing was changed.
    #[error(
        "redis has no stock of product {0}: nobody invents it anew; PUT /stock?stock_id={0} sets it"
    )]
    NoStock(i64),
    /// The key of the lock holds a value of another type, which is not ours. Nothing was changed.
    #[error(
        "a key of redis holds another type than this lock's (WRONGTYPE): redis-cli TYPE shows it, PUT /stock clears it"
    )]
    WrongType,
    /// A voucher that was put into Redis is not there any more. Nothing was changed.
    #[error(
        "redis has lost the stock of voucher {0}: nobody invents it anew; POST /voucher makes another voucher"
    )]
    NoVoucherStock(i64),
    /// No order of this number was claimed.
    #[error("there is no order {0}")]
    NoOrder(i64),
    /// The id worker cannot give an id. Nothing was changed.
    #[error("no id: {0}")]
    NoId(String),
    /// The lock, row or connection was not acquired in time. Nothing was changed.
    #[error("{what} was not acquired within {} ms", waited.as_millis())]
    NotHad {
        /// The lock, row or connection.
        what: String,
        /// The time that the request waited.
        waited: Duration,
    },
    /// Another holder has the lock, and this request does not wait. Nothing was changed.
    #[error("lock {0} is taken, and this request does not wait")]
    Taken(String),
    /// The lock was lost before the write. Nothing was changed.
    #[error("lock {0} was lost before the write")]
    Lost(String),
    /// A newer holder has written since: the row refused our older fencing token. Nothing was changed.
    #[error(
        "token {fence} of lock {name} is refused: the row has seen token {seen} of a newer holder"
    )]
    Fenced {
        /// The lock.
        name: String,
        /// The token that was shown.
        fence: u64,
        /// The token that the row has seen.
        seen: u64,
    },
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
    /// More came than are let through. Nothing was changed.
    #[error("more requests than are let through")]
    Limited,
    /// The request took longer than the configuration allows, and was given up wherever it was.
    #[error("given up after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// A bug: the handler panicked, wherever it was.
    #[error("panicked: {0}")]
    Panicked(String),
    /// \[002\]: there is no voucher of this number.
    #[error("there is no voucher {0}; POST /voucher makes one")]
    NoVoucher(i64),
    /// \[002\]: the seckill of the voucher begins later.
    #[error("the seckill has not begun yet")]
    NotStarted,
    /// \[002\]: the seckill of the voucher has ended.
    #[error("the seckill is over")]
    Over,
    /// \[002\]: the user has an order of the voucher.
    #[error("this user has ordered the voucher already")]
    AlreadyOrdered,
    /// \[002\]: another order of the same user is under way.
    #[error("an order of this user is under way; a user orders once")]
    OrderUnderWay,
    /// Another instance does not play its part. Nothing was changed.
    #[error("the instance at {at} does not play its part: {reason}")]
    NoActor {
        /// Its address.
        at: String,
        /// What it or the client said.
        reason: String,
    },
    /// A replay did not go as it must.
    #[error("the replay did not go as it must: {0}")]
    Replay(String),
    /// Ours: a bug, or a server that answers what it never should.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// A replay that did not go as it must.
    pub(crate) fn replay(why: impl std::fmt::Display) -> Self {
        Self::Replay(why.to_string())
    }

    /// A server that is down. Nothing was changed.
    pub(crate) fn down(server: Server, why: impl std::fmt::Display) -> Self {
        Self::Unavailable {
            server: server.name(),
            reason: why.to_string(),
        }
    }

    /// A write of which it is not known whether it was done.
    pub(crate) fn unknown(server: Server, why: impl std::fmt::Display) -> Self {
        Self::Unknown {
            server: server.name(),
            reason: why.to_string(),
        }
    }

    /// The server that did not do its part.
    #[must_use]
    pub fn server(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable { server, .. } | Self::Unknown { server, .. } => Some(server),
            _ => None,
        }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Taken { name, waited } => Self::NotHad { what: name, waited },
            LockError::Lost { name } => Self::Lost(name),
            LockError::Refused { reason, .. } if reason.to_string().contains(WRONG_TYPE) => {
                Self::WrongType
            }
            LockError::Unavailable { server, reason } | LockError::Refused { server, reason } => {
                Self::Unavailable {
                    server,
                    reason: reason.to_string(),
                }
            }
            // An invalid use, or a kind of error that is added later: waiting or trying again does not help.
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// For a statement that changed nothing: a read, or a write that was refused.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(e) => Self::Internal(e.to_string()),
            e => Self::down(Server::MySql, e),
        }
    }
}

/// For a command that changed nothing.
impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        if error.to_string().contains(WRONG_TYPE) {
            return Self::WrongType;
        }
        Self::down(Server::Redis, error)
    }
}
