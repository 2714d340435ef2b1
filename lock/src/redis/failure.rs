//! Why a command failed, and two questions: may it have run, even in part? Is it worth retrying?
//!
//! What may have run is undone. A release that failed is retried later if that is worthwhile. Nothing is repeated as if
//! it had not run.

use crate::LockError;
use redis::{ErrorKind, RedisError};
use std::time::Duration;

/// The server's name in errors.
pub(super) const SERVER: &str = "redis";

/// How much later an unanswered command may arrive than the one that undoes it over another connection: assumed, because
/// nothing bounds it.
pub(super) const MAX_COMMAND_DELAY: Duration = Duration::from_secs(5);

/// Temporary refusals, after which nothing was done, that another connection may avoid: it may lead to the new primary,
/// or log in.
const RETRY_ON_NEW_CONNECTION_CODES: [&str; 5] = ["READONLY", "NOREPLICAS", "LOADING", "MASTERDOWN", "NOAUTH"];
/// Temporary refusals that another connection does not avoid.
const RETRY_LATER_CODES: [&str; 6] = ["MISCONF", "OOM", "BUSY", "NOSCRIPT", "CLUSTERDOWN", SLOT_MOVES_CODE];
/// A node of a cluster says so while the slot of several keys is moved and some of them are at the other node.
pub(super) const SLOT_MOVES_CODE: &str = "TRYAGAIN";
/// While a slot moves, the old node may not write a key again that a script has just deleted: the script ends half-way.
const ENDED_HALF_WAY_MESSAGE: &str = "attempted to access a non local key";
/// The prefix that Redis 6 puts before a command's error in a script.
const REDIS_6_SCRIPT_ERROR_PREFIX: &str = "Error running script";

/// The slot of an object's keys is being moved from one node of a cluster to another, key by key. It is the reason of a
/// [`LockError::Unavailable`], and nothing was done.
#[derive(Debug, thiserror::Error)]
#[error("its slot is being moved to another node, and not all of its keys are there yet: try again when that is done")]
pub(super) struct SlotMoves;

/// Why a command failed, and what may be done about it.
#[derive(Debug, Clone)]
pub(super) struct CommandFailure {
    pub(super) error: LockError,
    /// It may have run, even in part, or may still run.
    pub(super) may_have_run: bool,
    /// The same command may succeed later.
    pub(super) retryable: bool,
}

impl CommandFailure {
    /// Classifies the error of a command; `sent` says whether it went out.
    pub(super) fn of(error: RedisError, sent: bool) -> Self {
        let answered = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
        let is_temporary = error.code().and_then(|code| temporary_refusal(code, error.detail())).is_some();
        let is_half_done = error.detail().is_some_and(|detail| detail.contains(ENDED_HALF_WAY_MESSAGE));
        let for_good = answered && !is_temporary && !is_half_done;
        let is_refusal = for_good || error.kind() == ErrorKind::AuthenticationFailed;
        let slot_moves = error.code() == Some(SLOT_MOVES_CODE);
        let (server, reason) = (SERVER, if slot_moves { SlotMoves.into() } else { error.into() });
        Self {
            error: if is_refusal { LockError::Refused { server, reason } } else { LockError::unavailable(server, reason) },
            // A script that is refused for good may have run in part.
            may_have_run: sent && !is_temporary,
            retryable: !sent || !for_good,
        }
    }
}

impl CommandFailure {
    /// Whether the next waiter would get the same error; `false` for a refusal for good, which may concern this caller alone.
    pub(super) fn affects_all_waiters(&self) -> bool {
        self.retryable || matches!(self.error, LockError::Unavailable { .. })
    }

    /// Whether the slot of the command's keys is being moved: another command, with one key, may be carried out.
    pub(super) fn is_by_moving_slot(&self) -> bool {
        is_by_moving_slot(&self.error)
    }

    /// How much later the command may arrive than the one that undoes it; zero if it has not run or was refused for good.
    pub(super) fn max_delay(&self) -> Duration {
        if self.may_have_run && self.retryable { MAX_COMMAND_DELAY } else { Duration::ZERO }
    }
}

/// Whether a command was refused because the slot of its keys is being moved, which ends by itself.
pub(super) fn is_by_moving_slot(error: &LockError) -> bool {
    matches!(error, LockError::Unavailable { reason, .. } if reason.is::<SlotMoves>())
}

impl From<CommandFailure> for LockError {
    fn from(failure: CommandFailure) -> Self {
        failure.error
    }
}

/// Turns the error of a plain command that was sent into a [`LockError`].
pub(super) fn to_lock_error(error: RedisError) -> LockError {
    CommandFailure::of(error, true).error
}

/// Whether another connection may avoid this refusal.
pub(super) fn needs_new_connection(code: &str, details: Option<&str>) -> bool {
    temporary_refusal(code, details).is_some_and(|refusal| RETRY_ON_NEW_CONNECTION_CODES.contains(&refusal))
}

/// The code of a refusal that is temporary, such as LOADING, as Redis 7 writes it or as Redis 6 puts it in a script's error.
fn temporary_refusal<'a>(code: &'a str, details: Option<&'a str>) -> Option<&'a str> {
    let is_temporary = |word: &&str| RETRY_ON_NEW_CONNECTION_CODES.contains(word) || RETRY_LATER_CODES.contains(word);
    let in_script = details.filter(|details| details.starts_with(REDIS_6_SCRIPT_ERROR_PREFIX));
    Some(code).filter(is_temporary).or_else(|| {
        let words = in_script?.split_whitespace();
        words.map(|word| word.trim_start_matches('-')).find(is_temporary)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{Value, make_extension_error, parse_redis_value};

    /// The error that a server writes as this line.
    fn server_error(line: &str) -> RedisError {
        let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let Value::ServerError(error) = value else {
            panic!("{line} is {value:?}");
        };
        error.into()
    }

    /// (may have run, retryable)
    fn classified(error: RedisError, sent: bool) -> (bool, bool) {
        let failure = CommandFailure::of(error, sent);
        (failure.may_have_run, failure.retryable)
    }

    #[test]
    fn a_temporary_refusal_has_done_nothing_and_is_retried() {
        let refusals = [
            "READONLY You can't write against a read only replica.",
            "READONLY You can't write against a read only replica. script: 5f1, on @user_script:14.",
            "ERR Error running script (call to f_5f1): @user_script:14: @user_script: 14: -READONLY You can't write \
             against a read only replica.",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            "ERR Error running script (call to f_5f1): @user_script:14: -MISCONF Errors writing to the AOF file",
            "NOREPLICAS Not enough good replicas to write.",
            "ERR Error running script (call to f_5f1): @user_script:14: -NOREPLICAS Not enough good replicas to write.",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "ERR Error running script (call to f_5f1): @user_script:14: -OOM command not allowed",
            "LOADING Redis is loading the dataset in memory",
            "NOAUTH Authentication required.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "BUSY Redis is busy running a script.",
            "NOSCRIPT No matching script.",
            "CLUSTERDOWN The cluster is down",
            "TRYAGAIN Multiple keys request during rehashing of slot",
        ];
        for line in refusals {
            assert_eq!(classified(server_error(line), true), (false, true), "{line}");
            assert!(matches!(to_lock_error(server_error(line)), LockError::Unavailable { .. }), "{line}");
        }
    }

    #[test]
    fn a_slot_that_moves_is_told_apart() {
        let moves = CommandFailure::of(server_error("TRYAGAIN Multiple keys request during rehashing of slot"), true);
        assert!(moves.is_by_moving_slot() && moves.error.to_string().contains("its slot is being moved"), "{moves:?}");
        assert!(!CommandFailure::of(server_error("CLUSTERDOWN The cluster is down"), true).is_by_moving_slot());
    }

    #[test]
    fn a_final_refusal_may_follow_a_part_and_is_not_retried() {
        let refusals = [
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "ERR Error running script (call to f_5f1): @user_script:5: WRONGTYPE Operation against a key",
            "ERR value is not an integer or out of range script: 5f1, on @user_script:12.",
            "NOPERM this user has no permissions to run the 'evalsha' command",
        ];
        for line in refusals {
            assert_eq!(classified(server_error(line), true), (true, false), "{line}");
            assert!(matches!(to_lock_error(server_error(line)), LockError::Refused { .. }), "{line}");
        }
    }

    #[test]
    fn a_script_that_a_moving_slot_ends_half_way_is_tried_again() {
        for line in [
            "ERR Script attempted to access a non local key in a cluster node script: 5f1, on @user_script:16.",
            "ERR Error running script (call to f_5f1): @user_script:16: @user_script: 16: Lua script attempted to access a \
             non local key in a cluster node",
        ] {
            assert_eq!(classified(server_error(line), true), (true, true), "{line}");
            let error = to_lock_error(server_error(line));
            assert!(matches!(error, LockError::Unavailable { .. }), "{line}");
        }
    }

    #[test]
    fn a_command_that_was_never_sent_is_sent_again() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let login = || make_extension_error("WRONGPASS".into(), None);
        assert_eq!(classified(refused.into(), false), (false, true));
        assert_eq!(classified(login(), false), (false, true));
        assert!(matches!(to_lock_error(login()), LockError::Refused { .. }));
        let silent = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert_eq!(classified(silent.into(), true), (true, true), "sent, and not answered");
    }
}
