//! A Java reader beside ours: its watchdog sets the lease of every reader to its own, which may be shorter than ours.

use crate::{redis::LIMIT, support::*};
use oversell_lock::redis::{RedisClient, RedisOptions};

/// The Java process's watchdog lease.
const JAVA: Duration = Duration::from_secs(2);

fn process(redis: &Redis, java: Option<Duration>) -> Result<RedisClient> {
    let options = RedisOptions::new(format!("redis://{}", redis.host())).timeout(LIMIT);
    let java = java.into_iter();
    let options = java.fold(options, RedisOptions::java_watchdog);
    Ok(RedisClient::new(options)?)
}

/// The Java reader renews once and disappears: no writer may then be beside our reader.
async fn nobody_writes_beside_a_reader(redis: &Redis, process: RedisClient) -> Result {
    let (name, other) = (name(), redis.client().await);
    let lease = Lease::Watchdog(JAVA * 9);
    let reader = take(&process.rw_lock(&name).read().lease(lease)).await?;
    let ms = JAVA.as_millis().to_string();
    for key in redis.keys(&name).await {
        redis.ask::<i64>(&["PEXPIRE", &key, &ms]).await?;
    }
    let writer = other.rw_lock(&name).write().acquire(JAVA * 2).await;
    match writer {
        Ok(writer) => {
            ensure!(reader.is_lost(), "a writer beside a reader");
            writer.release().await?;
        }
        // On a busy machine it may be lost by now, which is not the subject.
        Err(LockError::Taken { .. }) => drop(reader),
        Err(other) => return Err(other.into()),
    }
    redis.no_key_left(&name).await
}

#[apply(test!)]
async fn a_java_watchdog_that_is_shorter_lets_nobody_in(redis: &Redis) -> Result {
    nobody_writes_beside_a_reader(redis, process(redis, Some(JAVA))?).await
}

/// The twin does not know the Java lease. On a busy machine its reader may learn of the loss in time.
#[apply(test!)]
async fn a_process_that_takes_a_java_watchdog_for_longer_is_caught(redis: &Redis) -> Result {
    let beside = async || nobody_writes_beside_a_reader(redis, process(redis, None)?).await;
    caught(in_some_try(beside).await, "a writer beside a reader")
}
