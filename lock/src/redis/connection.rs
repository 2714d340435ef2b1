//! What commands and scripts are sent over: one server's connection, the program's own one, or a cluster.
//!
//! The user's own connection ([`RedisClient::over`](super::RedisClient::over)) is made again by the user, the others by the
//! library.
//!
//! A command is never sent twice, unless a node of a cluster has refused it (`cluster.rs`). Next to read:
//! `shared_connection.rs`, then `cluster.rs`.

use super::{
    cluster::Cluster,
    node::RedisNode,
    shared_connection::{Request, SharedConnection, timeout_error},
};
use futures::FutureExt;
use redis::{Cmd, FromRedisValue, Pipeline, RedisFuture, RedisResult, Value, aio::ConnectionLike};
use std::{fmt, io, sync::Arc, time::Duration};
use tokio::time::timeout;

/// The connection of a [`RedisClient`](super::RedisClient), for commands of the `redis` crate. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Connection {
    transport: Transport,
    /// Whether the last command went out.
    sent: bool,
    /// How long an answer may take, if less than the client's time limit.
    limit: Option<Duration>,
}

/// What a [`Connection`] sends its commands over: one server's connection, the program's own one, or a cluster.
#[derive(Debug, Clone)]
enum Transport {
    Server(Arc<SharedConnection>),
    User(UserConnection),
    Cluster {
        cluster: Arc<Cluster>,
        /// The node of the last command, for the next one without a key.
        last: Option<Arc<RedisNode>>,
    },
}

/// The connection that the program gave the client, as a function that clones it, and the time limit of an answer.
#[derive(Clone)]
struct UserConnection {
    clone: Arc<dyn Fn() -> Box<dyn ConnectionLike + Send> + Send + Sync>,
    timeout: Duration,
}

impl Connection {
    /// A connection for commands to one server.
    pub(super) fn to_server(shared: Arc<SharedConnection>) -> Self {
        Self { transport: Transport::Server(shared), sent: false, limit: None }
    }

    /// A connection for commands to the nodes of a cluster.
    pub(super) fn to_cluster(cluster: Arc<Cluster>) -> Self {
        Self { transport: Transport::Cluster { cluster, last: None }, sent: false, limit: None }
    }

    /// A connection for commands over the user's own one.
    pub(super) fn over_users_connection(
        connection: impl ConnectionLike + Clone + Send + Sync + 'static,
        timeout: Duration,
    ) -> Self {
        let clone = Arc::new(move || Box::new(connection.clone()) as Box<_>);
        Self {
            transport: Transport::User(UserConnection { clone, timeout }),
            // Whether it sent a failed command is unknown.
            sent: true,
            limit: None,
        }
    }

    /// Limits the wait for each answer (`None`: the client's time limit): a connection without one by then is given up.
    pub(super) fn with_answer_limit(self, limit: Option<Duration>) -> Self {
        Self { limit, ..self }
    }

    /// Whether the last command went out, so that a server may have carried it out; if not, there was no connection, or the nodes
    /// of a cluster refused it. `false` before the first command. Always `true` for a connection given by its user
    /// ([`RedisClient::over`](super::RedisClient::over)), because it is unknown there.
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

impl Transport {
    /// Sends the request once over the library's own connections, and sets `sent` to whether it went out. The user's
    /// connection is asked by its own methods instead.
    async fn send(&mut self, request: Request<'_>, limit: Option<Duration>, sent: &mut bool) -> RedisResult<Value> {
        match self {
            Self::Server(shared) => shared.send(request, limit, sent).await,
            Self::Cluster { cluster, last } => cluster.send(request, limit, last, sent).await,
            Self::User(_) => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        }
    }
}

impl UserConnection {
    /// Waits for the answer, at most `limit` or the time limit of a command, whichever is less.
    async fn await_answer<T>(&self, limit: Option<Duration>, answer: RedisFuture<'_, T>) -> RedisResult<T> {
        let limit = limit.map_or(self.timeout, |limit| limit.min(self.timeout));
        timeout(limit, answer).await.unwrap_or_else(timeout_error)
    }
}

impl ConnectionLike for Connection {
    /// Sends the command once, and notes whether it went out.
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let Self { transport, sent, limit } = self;
        let limit = *limit;
        let answer = async move {
            if let Transport::User(user) = transport {
                let mut connection = (user.clone)();
                let answer = connection.req_packed_command(cmd);
                return user.await_answer(limit, answer).await;
            }
            transport.send(Request::Command(cmd), limit, sent).await
        };
        answer.boxed()
    }

    /// Sends the commands once, and notes whether they went out; fails if an EXEC was refused.
    fn req_packed_commands<'a>(&'a mut self, commands: &'a Pipeline, offset: usize, count: usize) -> RedisFuture<'a, Vec<Value>> {
        let Self { transport, sent, limit } = self;
        let limit = *limit;
        let answers = async move {
            if let Transport::User(user) = transport {
                let mut connection = (user.clone)();
                let answers = connection.req_packed_commands(commands, offset, count);
                return check_exec(commands, user.await_answer(limit, answers).await?);
            }
            let request = Request::Pipeline(commands, offset, count);
            let answer = transport.send(request, limit, sent).await?;
            check_exec(commands, Vec::from_redis_value(answer)?)
        };
        answers.boxed()
    }

    fn get_db(&self) -> i64 {
        match &self.transport {
            Transport::Server(shared) => shared.db(),
            Transport::User(user) => (user.clone)().get_db(),
            Transport::Cluster { .. } => 0,
        }
    }
}

/// Returns the answers; or the error of an EXEC that was refused and has run nothing, which the `redis` crate would report as
/// unreadable.
fn check_exec(commands: &Pipeline, answers: Vec<Value>) -> RedisResult<Vec<Value>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{ErrorKind, ServerErrorKind};

    #[test]
    fn a_transaction_that_is_refused_fails_with_what_redis_says() {
        let refused = redis::parse_redis_value(b"-CROSSSLOT Keys in request\r\n").unwrap();
        let kind = |commands: &Pipeline, answers: &[Value]| check_exec(commands, answers.to_vec()).map_err(|error| error.kind());
        let mut transaction = redis::pipe();
        transaction.atomic();
        let crossed = ErrorKind::Server(ServerErrorKind::CrossSlot);
        assert_eq!(kind(&transaction, std::slice::from_ref(&refused)), Err(crossed));
        // The answer of a transaction that ran, or of a pipeline, is unchanged.
        for (commands, answer) in [(&transaction, Value::Array(vec![refused.clone()])), (&redis::pipe(), refused)] {
            assert_eq!(kind(commands, std::slice::from_ref(&answer)), Ok(vec![answer]));
        }
    }
}
