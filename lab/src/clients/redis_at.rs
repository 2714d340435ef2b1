//! A connection to a Redis for observers from outside: the lab, the course's experiments, the tests.
//!
//! The client gives up after half a second by default; a busy machine sometimes needs longer.

use redis::{AsyncConnectionConfig, Client, RedisResult, aio::MultiplexedConnection};
use std::time::Duration;

/// Time limit of the connection and of each answer.
const CONNECT_AND_REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to the server at `url`, which waits a minute to be made, and a minute for each answer.
/// Errors: nobody listens there, or nothing was answered in time.
pub async fn redis_at(url: &str) -> RedisResult<MultiplexedConnection> {
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_AND_REPLY_TIMEOUT))
        .set_response_timeout(Some(CONNECT_AND_REPLY_TIMEOUT));
    Client::open(url)?.get_multiplexed_async_connection_with_config(&patient).await
}
