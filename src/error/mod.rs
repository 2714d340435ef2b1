//! The errors of the stock and the lessons. The seckill has its own in `error/seckill.rs`, HTTP in `http/error.rs`.

mod mysql;
mod redis;
mod seckill;

pub use seckill::SeckillError;

pub(crate) use mysql::{NOT_IN_ITS_CLUSTER, RECORD_CHANGED, error_number};

use crate::server::Server;

/// The meaning of etcd's alarm NOSPACE.
pub(crate) const ETCD_IS_FULL: &str = "it is full: its quota is used up; compact it, defragment it, then `etcdctl alarm disarm`";

use oversell_lock::{
    LockError,
    mysql::{PoolExhausted, TableMissing},
};
use std::{borrow::Cow, time::Duration};

/// Why a piece was not sold, an order not placed, or a lesson not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No piece is left. Nothing was changed.
    #[error("sold out")]
    SoldOut,
    /// MySQL has no row of this product. Nothing was changed.
    #[error("stock_id {0}: there is no such product; make it with PUT /stock?stock_id={0}")]
    NoProduct(i64),
    /// The product has a row in MySQL but no key in Redis. Nothing was changed.
    #[error("redis has lost the stock of product {0}; set it with PUT /stock?stock_id={0}")]
    NoStock(i64),
    /// A key in Redis, of a lock or of the stock, has another type than the command takes. Nothing was changed.
    #[error(
        "a key of redis holds another type than this lock's (WRONGTYPE); look at it with redis-cli TYPE, clear it with PUT /stock"
    )]
    WrongType,
    /// The id worker cannot give an id. Nothing was changed.
    #[error("no id: {0}")]
    NoId(String),
    /// The lock, row or connection was not acquired in time. Nothing was changed.
    #[error("{what} was not acquired within {} ms", waited.as_millis())]
    Timeout { what: String, waited: Duration },
    /// MariaDB rolled the transaction back, since another one has changed a row that it had read. Nothing was changed.
    #[error(
        "another transaction has changed a row after this one read it, and MariaDB rolled this one back (error 1020): \
         SET GLOBAL innodb_snapshot_isolation=OFF has it wait for the row instead"
    )]
    RowChanged,
    /// Another holder has the lock, and this request does not wait: only the demos of \[004\] answer so. Nothing was changed.
    #[error("lock {0} is taken, and this request does not wait")]
    Taken(String),
    /// The lock was lost before the write. Nothing was changed.
    #[error("lock {0} was lost before the write")]
    Lost(String),
    /// A newer holder has written since: the row refused our older fencing token. Nothing was changed.
    #[error("token {fence} of lock {name} is refused: the row has seen token {seen} of a newer holder")]
    Fenced {
        name: String,
        fence: u64,
        /// The token that the row has seen.
        seen: u64,
    },
    /// A server is down. Nothing was changed.
    #[error("{server} is not available: {reason}")]
    Unavailable {
        server: &'static str,
        /// The client's words, for the log only.
        reason: String,
    },
    /// The instance has no etcd. Nothing was changed.
    #[error(
        "there is no etcd here: install it (Debian package etcd-server) and start `oversell lab --etcd 1`, or set etcd.endpoints"
    )]
    NoEtcd,
    /// A server refuses, mostly until an operator fixes it. Nothing was changed.
    #[error("{server} refuses this: {why} ({reason})")]
    Refuses {
        server: &'static str,
        /// In our words; of a student's script, in Redis's.
        why: Cow<'static, str>,
        /// The server's words, for the log only.
        reason: String,
    },
    /// \[002\]: a piece was taken, and its order was not written: the piece is lost.
    #[error("a piece was taken, and its order was not written: {0}")]
    PieceGone(Box<Error>),
    /// A write has no answer: the piece may be sold or not.
    #[error("{server} did not answer a write; its outcome is unknown: {reason}")]
    Unknown {
        server: &'static str,
        /// The client's words, for the log only.
        reason: String,
    },
    /// A field of the request breaks a rule.
    #[error("{field}: {rule}")]
    BadInput {
        field: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// No strategy has this slug.
    #[error("there is no strategy {0}")]
    NoStrategy(String),
    /// A rate limit refused the request. Nothing was changed.
    #[error("the rate limit is reached; try again later")]
    Limited,
    /// As many of these are there as may be. Nothing was changed.
    #[error("there are at most {most} {what} at once: {}", words_of_end(again))]
    TooMany {
        what: &'static str,
        most: usize,
        /// When the next of them ends, if that is known.
        again: Option<Duration>,
    },
    /// The request exceeded the time limit of the service, or a replay's actor its lifetime, and was dropped.
    #[error("the request took longer than {} ms (server.request_timeout_ms) and was dropped", .0.as_millis())]
    RequestTimeout(Duration),
    /// \[002\]: an order of a voucher was refused.
    #[error(transparent)]
    Seckill(#[from] SeckillError),
    /// A bug: the handler panicked, or the task of a merged group. The outcome is unknown.
    #[error("panicked: {0}")]
    Panicked(String),
    /// Another instance did not answer as an actor. Nothing was changed.
    #[error("the instance at {at} did not play its actor: {reason}")]
    NoActor { at: String, reason: String },
    /// A replay left its script.
    #[error("the replay left its script: {0}")]
    Replay(String),
    /// A bug, or an impossible answer of a server.
    #[error("{0}")]
    Internal(String),
}

/// Whether etcd says that its quota is used up.
pub(crate) fn etcd_is_full(said: &str) -> bool {
    said.contains("database space exceeded")
}

/// When one of too many ends.
fn words_of_end(again: &Option<Duration>) -> String {
    match again {
        Some(again) => format!("one of them makes room in {} s", again.as_secs() + 1),
        None => "one of them must end first".to_owned(),
    }
}

impl Error {
    /// The error of a bound that is reached, of whose members none is known to end at a certain time.
    pub(crate) fn too_many(what: &'static str, most: usize) -> Self {
        Self::TooMany { what, most, again: None }
    }

    /// The error of a replay that left its script.
    pub(crate) fn replay(why: impl std::fmt::Display) -> Self {
        Self::Replay(why.to_string())
    }

    /// The error of a server that is down; nothing was changed.
    pub(crate) fn unavailable(server: Server, why: impl std::fmt::Display) -> Self {
        Self::Unavailable { server: server.name(), reason: why.to_string() }
    }

    /// The error of a server that refuses until an operator fixes it: `why` in our words, `reason` in the server's.
    pub(crate) fn refused(server: Server, why: impl Into<Cow<'static, str>>, reason: impl std::fmt::Display) -> Self {
        Self::Refuses { server: server.name(), why: why.into(), reason: reason.to_string() }
    }

    /// The error of a write without an answer.
    pub(crate) fn unknown_outcome(server: Server, why: impl std::fmt::Display) -> Self {
        Self::Unknown { server: server.name(), reason: why.to_string() }
    }

    /// Turns an error that came after a statement had taken a piece into `PieceGone`; an unknown outcome stays unknown.
    pub(crate) fn after_piece_was_taken(self) -> Self {
        match self {
            unknown @ Self::Unknown { .. } => unknown,
            error => Self::PieceGone(Box::new(error)),
        }
    }

    /// The server that is down, refuses or did not answer, by name; `None` for errors that are no server's.
    pub fn server(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable { server, .. } | Self::Refuses { server, .. } | Self::Unknown { server, .. } => Some(server),
            Self::NoEtcd => Some(Server::Etcd.name()),
            Self::PieceGone(error) => error.server(),
            _ => None,
        }
    }
}

/// `Taken`, and a pool of MySQL whose connections are all in use, count as [`Error::Timeout`]; an invalid use is `Internal`.
impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Taken { name, waited } | LockError::Timeout { name, waited } => Self::Timeout { what: name, waited },
            LockError::Lost { name } => Self::Lost(name),
            LockError::Refused { reason, .. } if redis::is_wrong_type(&reason) => Self::WrongType,
            LockError::Unavailable { server, reason } | LockError::Refused { server, reason } => {
                if let Some(PoolExhausted { waited }) = reason.downcast_ref() {
                    return Self::Timeout { what: "mysql connection pool".into(), waited: *waited };
                }
                let of_server = || reason.downcast_ref::<TableMissing>().and_then(std::error::Error::source);
                let of_server = reason.downcast_ref().or_else(|| of_server()?.downcast_ref());
                let mysql = of_server.and_then(mysql::why_refused);
                let etcd = || etcd_is_full(&reason.to_string()).then_some(ETCD_IS_FULL);
                let mysql = mysql.or_else(etcd).map(Cow::Borrowed);
                let why = mysql.or_else(|| reason.downcast_ref().and_then(redis::why_refused));
                let reason = reason.to_string();
                match why {
                    Some(why) => Self::Refuses { server, why, reason },
                    None => Self::Unavailable { server, reason },
                }
            }
            // An invalid use, or a new kind of error: trying again does not help.
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// For a statement that changed nothing: a read, or a write that was refused. A refusal of no known meaning is `Internal`.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if error_number(&error) == Some(RECORD_CHANGED) {
            return Self::RowChanged;
        }
        match (mysql::why_refused(&error), error) {
            (Some(why), error) => Self::refused(Server::MySql, why, error),
            (None, sqlx::Error::Database(e)) => Self::Internal(e.to_string()),
            (None, e) => Self::unavailable(Server::MySql, e),
        }
    }
}

/// For a command that changed nothing.
impl From<::redis::RedisError> for Error {
    fn from(error: ::redis::RedisError) -> Self {
        if redis::is_wrong_type(&error) {
            return Self::WrongType;
        }
        match redis::why_refused(&error) {
            Some(why) => Self::refused(Server::Redis, why, error),
            None => Self::unavailable(Server::Redis, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_refuses_names_the_setting_that_cures_it() {
        for (line, words) in [
            ("CROSSSLOT Keys in request don't hash to the same slot", "redis.prefix"),
            ("MOVED 3999 127.0.0.1:6381", "redis.url"),
            ("ASK 3999 127.0.0.1:6381", "redis.url"),
        ] {
            let said = ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
            let Ok(::redis::Value::ServerError(said)) = said else {
                panic!("{line} is {said:?}");
            };
            let error = Error::from(::redis::RedisError::from(said));
            let named = matches!(&error, Error::Refuses { why, .. } if why.contains(words));
            assert!(named, "{line}: {error:?}");
        }
    }
}
