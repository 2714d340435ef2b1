//! The connection to one server that all commands share, made again whenever it breaks.
//!
//! 1. After any error that no server sent, and after an answer that another server might not give (it is a replica by now, it
//!    wants a login), the next command makes a new connection, which asks the Sentinels for the primary, if there are any.
//! 2. If the last connection was of no use, the new one waits before it connects, longer each time. Commands wait for
//!    it, and get its own error, never that of an earlier attempt.
//! 3. A connection that closes while idle is noticed too, and reported to `disconnects`.
//!
//! A command is never sent twice. Next to read: `primary.rs`.

use super::{failure::needs_new_connection, primary::Primary};
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use parking_lot::Mutex;
use redis::{
    Cmd, Pipeline, PushInfo, PushKind, RedisError, RedisResult, Value,
    aio::{MultiplexedConnection, SendError},
};
use std::{fmt, io, slice, sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, error::Elapsed, sleep_until, timeout},
};

/// The pause before the second attempt to connect after a failure; each further one is twice as long. The first attempt is made
/// at once.
const FIRST_RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two attempts to connect: short beside the default time limit of a command, 3 s.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// A command; or a pipeline, with how many of its first answers to skip and how many of the next ones to return.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    Command(&'a Cmd),
    Pipeline(&'a Pipeline, usize, usize),
}

impl Request<'_> {
    /// The answer to each of its commands. Those of several come in an array.
    pub(super) fn answers(self, answer: &Value) -> &[Value] {
        match (self, answer) {
            (Self::Pipeline(..), Value::Array(answers)) => answers,
            _ => slice::from_ref(answer),
        }
    }
}

/// The connection to one server that all commands share, made again after a break.
pub(super) struct SharedConnection {
    primary: Primary,
    runtime: Handle,
    /// Notified when a connection is closed: the server may have gone with it, and its data.
    disconnects: watch::Sender<()>,
    current: Mutex<CurrentConnection>,
}

/// The present connection of a [`SharedConnection`], ready, being made or not yet needed.
struct CurrentConnection {
    /// Counts connections, so that a report about an old one does not affect the new one.
    number: u64,
    /// The connection, ready or being made; `None` until a command needs it.
    attempt: Option<ConnectAttempt>,
    /// No attempt to connect begins before this time.
    not_before: Instant,
    /// How many connections in a row were discarded before it, also idle ones that closed.
    failures: u32,
}

/// A connection that is ready or being made, for all who wait for it.
type ConnectAttempt = future::Shared<BoxFuture<'static, RedisResult<MultiplexedConnection>>>;

impl SharedConnection {
    /// Connects on first use. The primary must speak RESP3.
    pub(super) fn new(primary: Primary, runtime: Handle, disconnects: watch::Sender<()>) -> Arc<Self> {
        let current = Mutex::new(CurrentConnection { number: 0, attempt: None, not_before: Instant::now(), failures: 0 });
        Arc::new(Self { primary, runtime, disconnects, current })
    }

    /// Sends the request once; sets `sent` to whether it went out. The answers of several commands come in an array, and a
    /// server's error as a value. After any other error the connection is discarded.
    pub(super) async fn send(
        self: &Arc<Self>,
        request: Request<'_>,
        limit: Option<Duration>,
        sent: &mut bool,
    ) -> RedisResult<Value> {
        let (number, mut connection) = self.connect(sent).await?;
        let answer = async {
            match request {
                Request::Command(cmd) => connection.send_packed_command(cmd).await,
                Request::Pipeline(commands, offset, count) => {
                    let answers = connection.send_packed_commands(commands, offset, count);
                    answers.await.map(Value::Array)
                }
            }
        };
        let answer = match limit {
            Some(limit) => timeout(limit, answer).await.unwrap_or_else(timeout_error),
            None => answer.await,
        };
        self.discard_if_broken(number, answer.as_ref().map(|answer| request.answers(answer)));
        answer
    }

    pub(super) fn db(&self) -> i64 {
        self.primary.db()
    }

    /// How many connections in a row were discarded since the last useful answer.
    pub(super) fn discards_in_a_row(&self) -> u32 {
        self.current.lock().failures
    }

    /// Returns the present connection, or a new one, and its number; sets `sent` to whether there is one.
    async fn connect(self: &Arc<Self>, sent: &mut bool) -> RedisResult<(u64, MultiplexedConnection)> {
        *sent = false;
        let (number, attempt) = self.current_attempt();
        let connection = attempt.await;
        if connection.is_err() {
            self.discard(number);
        }
        *sent = connection.is_ok();
        Ok((number, connection?))
    }

    /// Returns the present connection or the attempt to make it, and its number; begins an attempt if there is none.
    fn current_attempt(self: &Arc<Self>) -> (u64, ConnectAttempt) {
        let mut current = self.current.lock();
        let (number, not_before) = (current.number, current.not_before);
        let attempt = current.attempt.get_or_insert_with(|| self.begin_attempt(number, not_before));
        (number, attempt.clone())
    }

    /// Connects, not before `not_before`, in a task of its own, which continues if the command that wanted it is dropped. When
    /// that connection closes, it is discarded and `disconnects` is notified.
    fn begin_attempt(self: &Arc<Self>, number: u64, not_before: Instant) -> ConnectAttempt {
        let told = Arc::downgrade(self);
        let config = self.primary.config().set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection
                && let Some(shared) = told.upgrade()
            {
                shared.discard(number);
                shared.disconnects.send_replace(());
            }
            Ok::<_, SendError>(())
        });
        let primary = self.primary.clone();
        let made = self.runtime.spawn(async move {
            sleep_until(not_before).await;
            primary.connect(&config).await.map(|(made, _)| made)
        });
        let made = async { made.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped).into())) };
        made.boxed().shared()
    }

    /// Discards the connection if there was no answer, or one that another server might not give; otherwise resets the count of
    /// failures.
    fn discard_if_broken(&self, number: u64, answer: Result<&[Value], &RedisError>) {
        let needs_another =
            |value: &Value| matches!(value, Value::ServerError(error) if needs_new_connection(error.code(), error.details()));
        if answer.is_err() || answer.is_ok_and(|values| values.iter().any(needs_another)) {
            return self.discard(number);
        }
        let mut current = self.current.lock();
        if current.number == number {
            current.failures = 0;
        }
    }

    /// Discards the connection with this number: the next command makes a new one, after a pause if others failed before.
    fn discard(&self, number: u64) {
        let mut current = self.current.lock();
        if current.number == number {
            let pause = match current.failures {
                0 => Duration::ZERO,
                n => MAX_RECONNECT_PAUSE.min(FIRST_RECONNECT_PAUSE * 2_u32.saturating_pow(n - 1)),
            };
            *current = CurrentConnection {
                number: number + 1,
                attempt: None,
                not_before: Instant::now() + pause,
                failures: current.failures.saturating_add(1),
            };
        }
    }
}

/// The error of an answer that did not come in time.
pub(super) fn timeout_error<T>(_: Elapsed) -> RedisResult<T> {
    Err(io::Error::from(io::ErrorKind::TimedOut).into())
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnection").field("connections", &self.current.lock().number).finish_non_exhaustive()
    }
}
