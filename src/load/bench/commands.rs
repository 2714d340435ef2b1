//! How many commands a section costs: what the instances send to the main Redis while a strategy is loaded, as its
//! MONITOR shows it.
//!
//! What a script does inside Redis is no command that was sent, and is left out. A reset of the stock and the reading of
//! it are in every count: a load of a strategy that knows nothing of Redis says how many they are.

use crate::failure::Failure;
use futures::{Stream, StreamExt};
use std::future::Future;
use uuid::Uuid;

/// MONITOR marks with this what a script does.
const INSIDE_A_SCRIPT: &str = " lua] ";

/// The Redis that is watched.
pub(super) struct Commands(redis::Client);

impl Commands {
    /// Connects when first used.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where `url` is not one.
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        Ok(Self(redis::Client::open(url).map_err(failed)?))
    }

    /// What `load` comes to, and how many commands Redis was sent meanwhile.
    ///
    /// # Errors
    ///
    /// Those of `load`; [`Failure::Unusable`] where Redis does not answer.
    pub(super) async fn during<T>(&self, load: impl Future<Output = Result<T, Failure>>) -> Result<(T, u64), Failure> {
        let monitor = self.0.get_async_monitor().await.map_err(failed)?;
        // Read all the time: Redis cuts off a reader that falls behind.
        let end = Uuid::new_v4().to_string();
        let counted = tokio::spawn(count_until(monitor.into_on_message::<String>(), end.clone()));
        let came_to = load.await;
        let mut connection = self.0.get_multiplexed_async_connection().await.map_err(failed)?;
        redis::cmd("ECHO").arg(&end).exec_async(&mut connection).await.map_err(failed)?;
        let counted = counted.await.map_err(failed)?;
        let counted = counted.ok_or_else(|| failed("its MONITOR has ended"))?;
        Ok((came_to?, counted))
    }
}

/// The lines before the one that names `end`, which were sent from outside; `None` where it never came.
async fn count_until(mut lines: impl Stream<Item = String> + Unpin, end: String) -> Option<u64> {
    let mut counted = 0;
    while let Some(line) = lines.next().await {
        if line.contains(&end) {
            return Some(counted);
        }
        if !line.contains(INSIDE_A_SCRIPT) {
            counted += 1;
        }
    }
    None
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Unusable(format!("the commands to Redis cannot be counted: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_script_does_inside_redis_was_not_sent() {
        let lines = [
            r#"1.1 [0 127.0.0.1:1] "EVALSHA" "x""#,
            r#"1.2 [0 lua] "hincrby" "lock""#,
            r#"1.3 [0 127.0.0.1:1] "ECHO" "end""#,
            r#"1.4 [0 127.0.0.1:1] "GET" "stock""#,
        ];
        let lines = || futures::stream::iter(lines.map(String::from));
        assert_eq!(count_until(lines(), "end".into()).await, Some(1));
        assert_eq!(count_until(lines(), "never".into()).await, None);
    }
}
