//! Everything that a request can come to besides success. `http` turns it into a status in one match.

use crate::server::Server;
use oversell_lock::LockError;
use std::time::Duration;

/// What Redis says of a key that holds another type; a script's error has it in its text.
const WRONG_TYPE: &str = "WRONGTYPE";

/// Why a request did not do what it was asked.
#[derive(Debug, thiserror::Error)]
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
    /// A key holds another type than the lock that is to be written there: somebody else's. Nothing was changed.
    #[error(
        "a key of redis holds another type than this lock's (WRONGTYPE): redis-cli TYPE shows it, PUT /stock clears it"
    )]
    WrongType,
    /// A voucher that was put into Redis is not there any more. Nothing was changed.
    #[error(
        "redis has lost the stock of voucher {0}: nobody invents it anew; POST /voucher makes another voucher"
    )]
    NoVoucherStock(i64),
    /// Nobody has claimed an order of this number.
    #[error("there is no order {0}")]
    NoOrder(i64),
    /// The id worker has no id to give. Nothing was changed.
    #[error("no id: {0}")]
    NoId(String),
    /// The lock, row or connection was not had in time. Nothing was changed.
    #[error("{what} not had within {} ms", waited.as_millis())]
    NotHad {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
    },
    /// Another has the lock, and who asked does not wait. Nothing was changed.
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
    /// There is no lesson of this name.
    #[error("there is no lesson {0}; GET /test/deadlock lists those on deadlocks")]
    NoLesson(String),
    /// More came than are let through. Nothing was changed.
    #[error("more requests than are let through")]
    Limited,
    /// An address that only nginx has.
    #[error("nginx has this limit, and no instance alone; behind it there are {}", .0.join(", "))]
    OnlyAtNginx(&'static [&'static str]),
    /// Something that only an administrator may do, without the token that the configuration asks for.
    #[error("this needs the header Authorization: Bearer with the admin token")]
    Unauthorized,
    /// A page of another host asked for something that changes something.
    #[error(
        "header {header} names another host; only a page of this service and a client without a browser may do this"
    )]
    Forbidden {
        /// The header that says so.
        header: &'static str,
    },
    /// A body that is not declared to be JSON, where JSON is asked for.
    #[error("the body must be JSON, with header Content-Type: application/json")]
    NotJson,
    /// There is nothing at this address.
    #[error("there is nothing at this address; /docs lists what there is")]
    NoRoute,
    /// The address is right, the method is not.
    #[error("this address does not take this method; header Allow lists those that it takes")]
    NoMethod,
    /// The body is larger than the configuration allows.
    #[error("the body must be at most {0} bytes")]
    TooLarge(usize),
    /// As many requests as the configuration allows are under way.
    #[error("too many requests are under way")]
    Overloaded,
    /// The request took longer than the configuration allows, and was given up wherever it was.
    #[error("given up after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// A bug: the handler panicked, wherever it was.
    #[error("panicked: {0}")]
    Panicked(String),
    /// A run of load is going on; there is one at a time.
    #[error("{by} is running {strategy} from instance {instance}; still to run: {}", left.map_or("not known yet".into(), |t| format!("about {} ms", t.as_millis())))]
    RunInProgress {
        /// The run.
        id: String,
        /// The instance that sends it.
        instance: String,
        /// Who started it.
        by: String,
        /// What it tries.
        strategy: String,
        /// How long it will still take, once that can be told.
        left: Option<Duration>,
    },
    /// As many visits as may be are under way. Nothing was changed.
    #[error(
        "{under_way} visits are under way, and {most} may be at once: wait until some are over"
    )]
    ClassFull {
        /// How many were sent and are not over.
        under_way: usize,
        /// How many may be.
        most: usize,
    },
    /// There is no run of this number.
    #[error("there is no run {0}")]
    NoRun(String),
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
    /// \[002\]: there is no step of this name.
    #[error("there is no strategy {0} of the voucher order")]
    NoOrderStrategy(String),
    /// There is no replay of this lesson.
    #[error("there is no replay of lesson {0}; GET /replays lists those that there are")]
    NoReplay(String),
    /// Replays are not enabled here.
    #[error(
        "replays are not enabled here (setting replays.enabled): a lab and the compose file enable them"
    )]
    NoReplays,
    /// A replay is going on; there is one at a time.
    #[error("the replay of lesson {0} is going on")]
    ReplayInProgress(&'static str),
    /// There is no actor of this id.
    #[error("there is no actor {0}")]
    NoSuchActor(uuid::Uuid),
    /// Another instance does not play its part. Nothing was changed.
    #[error("the instance at {at} does not play its part: {reason}")]
    NoActor {
        /// Its address.
        at: String,
        /// What it or the client said.
        reason: String,
    },
    /// No lab has started this instance.
    #[error(
        "no lab has started the servers here, so nobody takes orders to break them: `oversell lab` starts one that does"
    )]
    NoLab,
    /// The lab does not carry out an order: there is no such member, or it is not in a state for this. Nothing was changed.
    #[error("{0}")]
    LabRefuses(String),
    /// A replay did not go as it must.
    #[error("the replay did not go as it must: {0}")]
    Replay(String),
    /// Ours: a bug, or a server that answers what it never should.
    #[error("{0}")]
    Internal(String),
}

impl Error {
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
            // Invalid, and what is yet to come: nothing that waiting or asking again would mend.
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// What a database error means for a statement that changed nothing: a read, or a write that was refused.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(e) => Self::Internal(e.to_string()),
            e => Self::Unavailable {
                server: Server::MySql.name(),
                reason: e.to_string(),
            },
        }
    }
}

/// What a Redis error means for a command that changed nothing.
impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        if error.to_string().contains(WRONG_TYPE) {
            return Self::WrongType;
        }
        Self::Unavailable {
            server: Server::Redis.name(),
            reason: error.to_string(),
        }
    }
}
