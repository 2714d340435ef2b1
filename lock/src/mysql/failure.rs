//! Why a statement failed, and three questions: may it have been carried out? May it be repeated? Can its connection be used again?
//!
//! Next to read: `connection_id.rs`, which ends what a statement without an answer may still do.

use crate::LockError;
use sqlx::{error::DatabaseError, mysql::MySqlDatabaseError};
use std::time::Duration;

/// The server's name in errors.
pub(super) const SERVER: &str = "mysql";

/// The numbers of temporary errors: there are too many connections, or the server ended the statement because of others.
const RETRYABLE_ERRORS: [u16; 6] = [1040, 1203, 1205, 1213, 1226, 1317];

/// Errors after which the server has changed nothing, and will change nothing on this connection: it is read-only after
/// a fail-over (1290, 1836), has left its Galera cluster (1047) or replication group (3101), is offline (3032), or has
/// closed an idle connection (4031).
pub(super) const NOT_WRITABLE_ERRORS: [u16; 6] = [1047, 1290, 1836, 3032, 3101, 4031];

/// The server shuts down (1053), or the connection was killed (1927). A proxy also says so when the server behind it
/// has gone, so the statement may have been carried out.
pub(super) const CONNECTION_KILLED_ERRORS: [u16; 2] = [1053, 1927];

/// The number of the error for a table that does not exist.
const NO_SUCH_TABLE_ERROR: u16 = 1146;

/// The table `tb_lock` does not exist. It is the reason of a [`LockError::Refused`], and its source is the server's error.
#[derive(Debug, thiserror::Error)]
#[error("the table tb_lock is missing: make it with `create_table()` of the pool ({0})")]
pub struct TableMissing(#[source] sqlx::Error);

/// All connections of the pool were in use for all of the wait. It is the reason of a [`LockError::Unavailable`].
#[derive(Debug, thiserror::Error)]
#[error("all connections of the pool were in use for {} ms", waited.as_millis())]
pub struct PoolExhausted {
    /// The caller's wait limit.
    pub waited: Duration,
}

/// Why a statement failed: it was not sent, refused, or not answered.
#[derive(Debug)]
pub(super) enum StatementFailure {
    /// It was not sent.
    Unsent(LockError),
    /// The server answered with an error, and has changed nothing.
    Answered(Box<dyn DatabaseError>),
    /// It was sent and may have been carried out.
    Unanswered(LockError),
}

impl From<StatementFailure> for LockError {
    fn from(failure: StatementFailure) -> Self {
        match failure {
            StatementFailure::Unsent(error) | StatementFailure::Unanswered(error) => error,
            StatementFailure::Answered(error) => to_lock_error(sqlx::Error::Database(error)),
        }
    }
}

/// [`LockError::Refused`] for an answer that repeating does not change, [`LockError::Unavailable`] for all else.
pub(super) fn to_lock_error(error: sqlx::Error) -> LockError {
    if matches!(&error, sqlx::Error::Database(answer) if has_error_number(&**answer, &[NO_SUCH_TABLE_ERROR])) {
        return LockError::Refused { server: SERVER, reason: TableMissing(error).into() };
    }
    let refused = match &error {
        sqlx::Error::Database(answer) => [&RETRYABLE_ERRORS[..], &NOT_WRITABLE_ERRORS, &CONNECTION_KILLED_ERRORS]
            .iter()
            .all(|passing| !has_error_number(&**answer, passing)),
        _ => false,
    };
    let (server, reason) = (SERVER, error.into());
    if refused { LockError::Refused { server, reason } } else { LockError::unavailable(server, reason) }
}

/// Whether all connections were in use.
pub(super) fn is_exhausted(error: &LockError) -> bool {
    matches!(error, LockError::Unavailable { reason, .. } if reason.is::<PoolExhausted>())
}

/// Whether the server ended the statement because of others (a deadlock, a lock wait timeout, a `KILL QUERY`): it has changed
/// nothing and can be repeated at once.
pub(super) fn is_contention(error: &dyn DatabaseError) -> bool {
    has_error_number(error, &[1205, 1213, 1317])
}

/// Whether the server shuts down (1053) or the connection was killed (1927). A proxy also says so when the server
/// behind it has gone, so a write may have been carried out.
#[must_use]
pub fn is_cut_off(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| has_error_number(error, &CONNECTION_KILLED_ERRORS))
}

/// Whether the error has one of these numbers.
pub(super) fn has_error_number(error: &dyn DatabaseError, numbers: &[u16]) -> bool {
    error.try_downcast_ref::<MySqlDatabaseError>().is_some_and(|error| numbers.contains(&error.number()))
}

/// The error of a statement without an answer in time.
pub(super) fn no_answer_error() -> LockError {
    LockError::unavailable(SERVER, "no answer in time; what was asked is undone or goes on in the background")
}
