//! The connection that commands and scripts share, made again whenever it is broken.
//!
//! 1. One rule: after any error that no server has answered, and after an answer that says that another server might do it
//!    (it is a replica by now, it wants a login), the next command makes a new connection, which asks where the primary is,
//!    if Sentinels say it.
//! 2. Where the last one was of no use, that one waits for a while before, longer from time to time: until then commands
//!    wait for it, and are told its own error, never that of an earlier attempt.
//! 3. A connection that is closed while nothing is sent is noticed as well, and told to those who rely on the server.
//!
//! One that its user gives ([`RedisClient::over`](super::RedisClient::over)) is made again by whoever gave it.
//!
//! What it does not do: send a command twice. Next to read: `primary.rs`, then `engine.rs`.

use super::{failure::needs_new_connection, primary::Primary};
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use parking_lot::Mutex;
use redis::{
    Cmd, Pipeline, PushInfo, PushKind, RedisError, RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection, SendError},
};
use std::{fmt, io, sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// The connection of a [`RedisClient`](super::RedisClient), to be given to a command of the `redis` crate. Cloning it is
/// cheap.
#[derive(Debug, Clone)]
pub struct Connection {
    transport: Transport,
    /// Whether the last command found a connection, and went out.
    sent: bool,
}

#[derive(Debug, Clone)]
enum Transport {
    Own(Arc<Shared>),
    User(UserConnection),
}

/// The user's own connection.
#[derive(Clone)]
struct UserConnection {
    clone: Arc<dyn Fn() -> Box<dyn ConnectionLike + Send> + Send + Sync>,
    timeout: Duration,
}

struct Shared {
    primary: Primary,
    runtime: Handle,
    /// Told of each connection that was closed: with it a server may have gone, and what it knew.
    disconnects: watch::Sender<()>,
    current: Mutex<Current>,
}

/// One connection, being made or ready; `None` until it is needed.
struct Current {
    /// Counts the connections, so that what is said of an old one does not count against the new one.
    number: u64,
    attempt: Option<Attempt>,
    not_before: Instant,
    /// How many before it, in a row, were of no use.
    failures: u32,
}

type Attempt = future::Shared<BoxFuture<'static, RedisResult<MultiplexedConnection>>>;

impl Connection {
    /// Not yet made. The primary must speak RESP3.
    pub(super) fn new(primary: Primary, runtime: Handle, disconnects: watch::Sender<()>) -> Self {
        let current = Mutex::new(Current {
            number: 0,
            attempt: None,
            not_before: Instant::now(),
            failures: 0,
        });
        let shared = Arc::new(Shared {
            primary,
            runtime,
            disconnects,
            current,
        });
        Self {
            transport: Transport::Own(shared),
            sent: false,
        }
    }

    /// The user's own, which is made again by its owner, if at all.
    pub(super) fn given(
        connection: impl ConnectionLike + Clone + Send + Sync + 'static,
        timeout: Duration,
    ) -> Self {
        let clone = Arc::new(move || Box::new(connection.clone()) as Box<_>);
        Self {
            transport: Transport::User(UserConnection { clone, timeout }),
            // What it did with a command that failed is not known.
            sent: true,
        }
    }

    /// Whether the last command went out, so that a server may have carried it out; where not, there was no connection. Always
    /// `true` of one that its user gives ([`RedisClient::over`](super::RedisClient::over)), of which this is not known.
    ///
    /// ```no_run
    /// # async fn example(redis: oversell_lock::redis::RedisClient) -> redis::RedisResult<()> {
    /// let mut connection = redis.connection();
    /// let left = redis::cmd("DECR").arg("stock").query_async::<i64>(&mut connection).await;
    /// if left.is_err() && !connection.has_sent() {
    ///     println!("nothing was sold");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn has_sent(&self) -> bool {
        self.sent
    }
}

impl UserConnection {
    async fn answer<T>(&self, answer: RedisFuture<'_, T>) -> RedisResult<T> {
        let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
        timeout(self.timeout, answer).await.unwrap_or_else(late)
    }
}

impl Shared {
    /// The connection that is there, or a new one, and its number; says in `sent` whether there is one.
    async fn made(self: &Arc<Self>, sent: &mut bool) -> RedisResult<(u64, MultiplexedConnection)> {
        *sent = false;
        let (number, attempt) = self.attempt();
        let connection = attempt.await;
        if connection.is_err() {
            self.replace(number);
        }
        *sent = connection.is_ok();
        Ok((number, connection?))
    }

    fn attempt(self: &Arc<Self>) -> (u64, Attempt) {
        let mut current = self.current.lock();
        let (number, not_before) = (current.number, current.not_before);
        let attempt = current
            .attempt
            .get_or_insert_with(|| self.begin(number, not_before));
        (number, attempt.clone())
    }

    /// In a task of its own: it goes on where the command that wanted it is given up.
    fn begin(self: &Arc<Self>, number: u64, not_before: Instant) -> Attempt {
        let told = Arc::downgrade(self);
        let config = self
            .primary
            .config()
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection
                    && let Some(shared) = told.upgrade()
                {
                    shared.replace(number);
                    shared.disconnects.send_replace(());
                }
                Ok::<_, SendError>(())
            });
        let primary = self.primary.clone();
        let made = self.runtime.spawn(async move {
            sleep_until(not_before).await;
            primary.connect(&config).await.map(|(made, _)| made)
        });
        let made = async {
            made.await
                .unwrap_or_else(|stopped| Err(io::Error::other(stopped).into()))
        };
        made.boxed().shared()
    }

    /// What was sent over it has come to this.
    fn judge(&self, number: u64, answer: Result<&[Value], &RedisError>) {
        let needs_another = |value: &Value| matches!(value, Value::ServerError(error) if needs_new_connection(error.code(), error.details()));
        if answer.is_err() || answer.is_ok_and(|values| values.iter().any(needs_another)) {
            return self.replace(number);
        }
        let mut current = self.current.lock();
        if current.number == number {
            current.failures = 0;
        }
    }

    /// It is broken, or could not be made: the next command has a new one.
    fn replace(&self, number: u64) {
        let mut current = self.current.lock();
        if current.number == number {
            let pause = match current.failures {
                0 => Duration::ZERO,
                n => MAX_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(n - 1)),
            };
            *current = Current {
                number: number + 1,
                attempt: None,
                not_before: Instant::now() + pause,
                failures: current.failures.saturating_add(1),
            };
        }
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let Self { transport, sent } = self;
        let answer = async move {
            let shared = match transport {
                Transport::Own(shared) => shared,
                Transport::User(user) => {
                    let mut connection = (user.clone)();
                    return user.answer(connection.req_packed_command(cmd)).await;
                }
            };
            let (number, mut connection) = shared.made(sent).await?;
            let answer = connection.send_packed_command(cmd).await;
            shared.judge(number, answer.as_ref().map(std::slice::from_ref));
            answer
        };
        answer.boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let Self { transport, sent } = self;
        let answers = async move {
            let shared = match transport {
                Transport::Own(shared) => shared,
                Transport::User(user) => {
                    let mut connection = (user.clone)();
                    let answers = connection.req_packed_commands(commands, offset, count);
                    return executed(commands, user.answer(answers).await?);
                }
            };
            let (number, mut connection) = shared.made(sent).await?;
            let answers = connection
                .send_packed_commands(commands, offset, count)
                .await;
            shared.judge(number, answers.as_ref().map(Vec::as_slice));
            executed(commands, answers?)
        };
        answers.boxed()
    }

    fn get_db(&self) -> i64 {
        match &self.transport {
            Transport::Own(shared) => shared.primary.db(),
            Transport::User(user) => (user.clone)().get_db(),
        }
    }
}

/// The answers, unless EXEC was refused, so that nothing has run: then its error, of which the `redis` crate would say only
/// that it cannot be read.
fn executed(commands: &Pipeline, answers: Vec<Value>) -> RedisResult<Vec<Value>> {
    match &answers[..] {
        [Value::ServerError(refused)] if commands.is_transaction() => Err(refused.clone().into()),
        _ => Ok(answers),
    }
}

impl fmt::Debug for UserConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserConnection").finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("connections", &self.current.lock().number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{ErrorKind, ServerErrorKind};

    #[test]
    fn a_transaction_that_is_refused_fails_with_what_redis_says() {
        let refused = redis::parse_redis_value(b"-CROSSSLOT Keys in request\r\n").unwrap();
        let kind = |commands: &Pipeline, answers: &[Value]| {
            executed(commands, answers.to_vec()).map_err(|error| error.kind())
        };
        let mut transaction = redis::pipe();
        transaction.atomic();
        let crossed = ErrorKind::Server(ServerErrorKind::CrossSlot);
        assert_eq!(
            kind(&transaction, std::slice::from_ref(&refused)),
            Err(crossed)
        );
        // Of one that has run, and of a pipeline, an answer is as it is.
        for (commands, answer) in [
            (&transaction, Value::Array(vec![refused.clone()])),
            (&redis::pipe(), refused),
        ] {
            assert_eq!(
                kind(commands, std::slice::from_ref(&answer)),
                Ok(vec![answer])
            );
        }
    }
}
