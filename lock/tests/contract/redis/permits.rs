//! What the semaphore in Redis without a lease promises beyond the random programs (`programs.rs`).

use crate::support::*;
use oversell_lock::redis::RedisSemaphore;

const PERMITS: i64 = 3;

async fn all_are_back(redis: &Redis, semaphore: &RedisSemaphore) -> Result {
    let back = async || matches!(semaphore.available_permits().await, Ok(PERMITS));
    until("all permits are back", back).await?;
    let alone = async || redis.keys(semaphore.name()).await == [semaphore.name()];
    until("the count alone is left", alone).await
}

#[apply(test!)]
async fn permits_are_set_once(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).without_lease();
    let before = semaphore.try_acquire(1).await.map(|_| ());
    ensure!(before.is_err(), "a semaphore that is not set has permits");
    ensure!(semaphore.try_set_permits(3).await?, "not set");
    let all = semaphore.acquire(3, FOR_EVER).await?;
    let again = semaphore.try_set_permits(3).await?;
    ensure!(!again, "set again though none is free");
    all.release().await?;
    all_are_back(redis, &semaphore).await
}

/// Permits taken before a reset are not released into the new semaphore.
#[apply(test!)]
async fn permits_of_a_deleted_semaphore_are_not_given_to_the_next(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).without_lease();
    semaphore.try_set_permits(3).await?;
    let early = semaphore.acquire(1, SOON).await?;
    let late = semaphore.acquire(2, SOON).await?;
    redis.delete(&name).await;
    ensure_lost("released before the new one was set", early.release().await)?;
    semaphore.try_set_permits(3).await?;
    ensure_lost("released after that", late.release().await)?;
    all_are_back(redis, &semaphore).await
}

#[apply(test!)]
async fn tries_at_once_of_one_process_all_have_their_permit(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).without_lease().initially(3);
    let tries = (0..3).map(|_| semaphore.try_acquire(1));
    let all = try_join_all(tries).await?;
    drop(all);
    all_are_back(redis, &semaphore).await
}

/// A waiter for a deleted semaphore continues with the new one.
#[apply(test!)]
async fn a_waiter_goes_on_after_a_reset(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).without_lease().initially(3);
    let old = semaphore.acquire(3, SOON).await?;
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire(3, SOON).await?.release().await }
    });
    redis.delete(&name).await;
    waiter.await??;
    drop(old);
    all_are_back(redis, &semaphore).await
}
