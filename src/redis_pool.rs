//! Connections to the primary Redis that one request has for itself, for WATCH.
//!
//! The client of the locks makes them, and so asks the Sentinels, if there are any. One that comes back is used again if it
//! answers; with Sentinels, if what is at its other end is still a primary.

use deadpool::managed::{self, Metrics, Object, RecycleError, RecycleResult};
use oversell_lock::redis::RedisClient;
use redis::{
    Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Role, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};

/// Those of one instance.
pub(crate) type RedisPool = managed::Pool<Manager>;

/// Makes them.
#[derive(Debug)]
pub(crate) struct Manager {
    pub(crate) client: RedisClient,
    /// Whether the primary may become a replica.
    pub(crate) sentinels: bool,
}

/// One of them, which goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Exclusive(Object<Manager>);

impl managed::Manager for Manager {
    type Type = MultiplexedConnection;
    type Error = RedisError;

    async fn create(&self) -> RedisResult<MultiplexedConnection> {
        self.client.own_connection().await
    }

    async fn recycle(
        &self,
        connection: &mut MultiplexedConnection,
        _: &Metrics,
    ) -> RecycleResult<RedisError> {
        let mut asked = redis::pipe();
        asked.cmd("UNWATCH").ignore();
        if !self.sentinels {
            return Ok(asked.cmd("PING").exec_async(connection).await?);
        }
        let (role,): (Role,) = asked.cmd("ROLE").query_async(connection).await?;
        match role {
            Role::Primary { .. } => Ok(()),
            _ => Err(RecycleError::message("it is a replica by now")),
        }
    }
}

impl From<Object<Manager>> for Exclusive {
    fn from(connection: Object<Manager>) -> Self {
        Self(connection)
    }
}

impl ConnectionLike for Exclusive {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}
