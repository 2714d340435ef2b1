//! Connections to the primary Redis that one request has for itself, for WATCH.
//!
//! deadpool-redis makes them and looks whether one that comes back still answers. With Sentinels, the client of the locks makes
//! them, which asks for the primary's role on the connection that it gives, and one that comes back is used again if what is at its
//! other end is still a primary.

use deadpool::managed::{self, Metrics, Object, RecycleError, RecycleResult};
use oversell_lock::redis::RedisClient;
use redis::{RedisError, RedisResult, Role, aio::MultiplexedConnection};

pub(crate) type RedisPool = managed::Pool<Manager>;

/// Makes the exclusive connections of a pool.
#[derive(Debug)]
pub(crate) struct Manager {
    /// Makes the connections without Sentinels, and checks in either case whether one that comes back answers.
    pub(crate) one: deadpool_redis::Manager,
    /// With Sentinels, the client that follows the primary.
    pub(crate) followed_client: Option<RedisClient>,
}

/// A connection that is out of the pool until it is dropped.
pub(crate) type ExclusiveConnection = Object<Manager>;

impl managed::Manager for Manager {
    type Type = MultiplexedConnection;
    type Error = RedisError;

    async fn create(&self) -> RedisResult<MultiplexedConnection> {
        match &self.followed_client {
            Some(client) => client.own_connection().await,
            None => self.one.create().await,
        }
    }

    /// Fails for a connection that does not answer and, with Sentinels, for one to a replica: the pool then drops it.
    async fn recycle(&self, connection: &mut MultiplexedConnection, metrics: &Metrics) -> RecycleResult<RedisError> {
        self.one.recycle(connection, metrics).await?;
        if self.followed_client.is_none() {
            return Ok(());
        }
        let role = redis::cmd("ROLE").query_async(connection).await?;
        match role {
            Role::Primary { .. } => Ok(()),
            _ => Err(RecycleError::message("it is a replica by now")),
        }
    }
}
