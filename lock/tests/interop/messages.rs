//! A release in Redis wakes the waiter by a message, not by its timed re-check.

use super::support::*;
use std::time::Duration;
use tokio::time::Instant;

/// The twin of our release sends no message: Java would sleep until the lease's end.
#[apply(clause!)]
#[over(redissons_told, Once)]
async fn a_release_without_a_message_leaves_java_asleep(pair: Pair) -> Result<()> {
    let (redis, mut holder, mut waiter) = (pair.redis(), pair.ours(), pair.theirs());
    pair.set_permits().await?;
    holder.hold_up().await?;
    let mut waiting = waiter.waits().await?;
    pair.until_listening(1).await?;
    // What Java does between its subscription and its sleep.
    waiting.ensure_sleeping().await?;
    redis.free(pair.kind, &pair.name).await?;
    waiting.ensure_sleeping().await?;
    let message = match pair.kind {
        Kind::Permits { take, .. } => take,
        _ => 0,
    };
    redis.publish(&pair.name, message).await?;
    waiting.comes().await?;
    drop(holder);
    waiter.release_lock().await
}

#[apply(clause!)]
#[over(redissons_told, Once)]
async fn ours_is_woken_by_javas_message(pair: Pair) -> Result<()> {
    woken_by_the_message(&pair, pair.kind).await
}

#[apply(clause!)]
#[over(redissons_readers, Once)]
async fn our_writer_is_woken_by_javas_last_reader(pair: Pair) -> Result<()> {
    woken_by_the_message(&pair, Kind::Read).await
}

/// Java holds `held`. The rounds without a message show how long an unwoken waiter takes, which looks every half
/// second: rounds with a message must be several times faster.
async fn woken_by_the_message(pair: &Pair, held: Kind) -> Result<()> {
    const ROUNDS: usize = 7;
    const TIMES: u32 = 4;
    let (mut told, mut untold) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        told.push(round(pair.again(), held, true).await?);
        untold.push(round(pair.again(), held, false).await?);
    }
    let median = |mut waits: Vec<Duration>| {
        waits.sort();
        waits[ROUNDS / 2]
    };
    let (told, untold) = (median(told), median(untold));
    ensure!(told * TIMES < untold, "{told:?} with a message, {untold:?} without one");
    Ok(())
}

/// One of ours waits until Java releases, or until the lock is freed without a message; returns how long that takes.
async fn round(pair: Pair, held: Kind, told: bool) -> Result<Duration> {
    let (mut holder, mut waiter) = (pair.theirs().with(held), pair.ours());
    pair.set_permits().await?;
    holder.hold_up().await?;
    let waiting = waiter.waits().await?;
    match pair.kind {
        // All waiters of a process listen by one pattern, before they are in the queue.
        Kind::Fair => pair.until_queue(1).await?,
        _ => pair.until_listening(1).await?,
    }
    let freed = Instant::now();
    if told {
        holder.release().await?;
    } else {
        pair.redis().free(pair.kind, &pair.name).await?;
    }
    let came = waiting.comes().await?;
    waiter.release_lock().await?;
    Ok(came - freed)
}
