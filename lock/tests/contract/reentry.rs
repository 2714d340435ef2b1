//! A lock in Redis that its owner takes again, and one whose lease nobody renews.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    redis::Redis,
};
use futures::{StreamExt, stream::FuturesUnordered};
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{Lease, RedisClient, RedisLock},
};
use redis::AsyncTypedCommands;
use std::{sync::Arc, time::Duration};

/// A lease that ends within the test.
const BRIEF: Duration = Duration::from_millis(300);

/// What Redis counts for all owners of the lock together.
async fn holds(redis: &Redis, name: &str) -> Result<u64, String> {
    let counts = redis
        .outsider()
        .await
        .hvals(name)
        .await
        .map_err(|e| e.to_string())?;
    Ok(counts.iter().filter_map(|n| n.parse::<u64>().ok()).sum())
}

/// Three holds of one owner, taken past waiters of the same process and of another, given back in no order: only the
/// last one lets the others in.
async fn frees_with_the_last_hold<L: Lock>(
    redis: &Redis,
    name: &str,
    others: [&RedisClient; 2],
    lock: L,
) -> Verdict {
    let first = says("the first hold", lock.acquire(SOON).await)?;
    let waiting: Vec<_> = others
        .into_iter()
        .map(|other| {
            let lock = other.lock(name);
            tokio::spawn(async move { lock.acquire(SOON * 2).await })
        })
        .collect();
    until("both processes wait", || async {
        let told: i64 = redis::cmd("PUBLISH")
            .arg(format!("redisson_lock__channel:{{{name}}}"))
            .arg("0")
            .query_async(&mut redis.outsider().await)
            .await
            .unwrap_or(0);
        told >= 1
    })
    .await?;
    let second = says("past who waits", lock.acquire(Duration::ZERO).await)?;
    let third = says("past who waits", lock.acquire(Duration::ZERO).await)?;
    for guard in [first, third] {
        says("one guard's release", guard.release().await)?;
        // However often it was taken: the server sees one hold.
        let counted = holds(redis, name).await?;
        ensure(counted == 1, || {
            format!("{counted} holds where 1 must be left")
        })?;
        ensure(waiting.iter().all(|w| !w.is_finished()), || {
            "somebody got in beside the owner".into()
        })?;
    }
    ensure(!second.is_lost(), || "the last hold was lost".into())?;
    says("the last release", second.release().await)?;
    // Who of the two processes is first is not said.
    let mut guards = FuturesUnordered::from_iter(waiting);
    while let Some(guard) = guards.next().await {
        let guard = says("a turn", guard.map_err(|e| e.to_string())?)?;
        says("release", guard.release().await)?;
    }
    until("nothing is left", || async {
        redis.left(name).await.is_empty()
    })
    .await
}

pub(crate) async fn an_owner_takes_its_lock_again_past_who_waits(redis: Arc<Redis>) -> Verdict {
    let (name, own, other) = (name(), redis.process().await, redis.process().await);
    let lock = own.lock(&name).owner(own.owner());
    frees_with_the_last_hold(&redis, &name, [&own, &other], lock).await
}

/// The twin: the same lock, whose release does not count.
struct FreesWithTheFirst(RedisLock, Redis);

impl Lock for FreesWithTheFirst {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let honest = self.0.acquire(wait).await?;
        let (guard, mut keeper) = Guard::new(self.name(), None);
        let (name, mut outsider) = (self.name().to_owned(), self.1.outsider().await);
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            // Here the honest lock gives one hold back.
            outsider.del(name).await.ok();
            honest.release().await.ok();
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

pub(crate) async fn a_release_that_does_not_count_is_caught(redis: Arc<Redis>) -> Verdict {
    let (name, own, other) = (name(), redis.process().await, redis.process().await);
    let lock = own.lock(&name).owner(own.owner());
    let twin = FreesWithTheFirst(lock, Redis::at(format!("redis://{}", redis.server())));
    match frees_with_the_last_hold(&redis, &name, [&own, &other], twin).await {
        // Whom it lets in may be inside before it is looked at.
        Err(broken) if broken.contains("holds where") || broken.contains("somebody got in") => {
            Ok(())
        }
        other => Err(format!("not caught: {other:?}")),
    }
}

/// Another handle of the same owner, and another owner beside it: the first is let in, the second waits.
pub(crate) async fn ownership_goes_by_owner_and_not_by_handle(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let owner = process.owner();
    let outer = says(
        "outer",
        process.lock(&name).owner(owner).acquire(SOON).await,
    )?;
    let inner = says(
        "another handle",
        process.lock(&name).owner(owner).try_acquire().await,
    )?;
    let stranger = process
        .lock(&name)
        .owner(process.owner())
        .try_acquire()
        .await;
    ensure(matches!(stranger, Err(LockError::Taken { .. })), || {
        format!("another owner: {stranger:?}")
    })?;
    says("outer", outer.release().await)?;
    let stranger = process.lock(&name).try_acquire().await;
    ensure(matches!(stranger, Err(LockError::Taken { .. })), || {
        format!("beside the inner hold: {stranger:?}")
    })?;
    says("inner", inner.release().await)?;
    ensure(holds(&redis, &name).await? == 0, || "a hold is left".into())
}

/// The re-entry's answer is lost: the first guard keeps the lock, and its release frees it.
pub(crate) async fn an_unanswered_re_entry_leaves_the_outer_hold_and_no_other(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, other) = (name(), redis.process().await);
    let mute = Mute::to(redis.host()).await;
    let process = redis.process_at(&mute.address()).await;
    let lock = process
        .lock(&name)
        .owner(process.owner())
        .lease(Lease::Watchdog(SOON));
    let outer = says("outer", lock.acquire(SOON).await)?;
    mute.mute();
    let inner = lock.acquire(SOON).await;
    ensure(matches!(inner, Err(LockError::Unavailable { .. })), || {
        format!("without an answer: {inner:?}")
    })?;
    ensure(holds(&redis, &name).await? == 1, || {
        "the outer hold has gone".into()
    })?;
    mute.heal().await;
    ensure(!outer.is_lost(), || "the outer hold was lost".into())?;
    let refused = other.lock(&name).try_acquire().await;
    ensure(matches!(refused, Err(LockError::Taken { .. })), || {
        format!("beside the outer hold: {refused:?}")
    })?;
    until("the way is open again", || async {
        redis::cmd("PING")
            .exec_async(&mut process.connection())
            .await
            .is_ok()
    })
    .await?;
    says("release", outer.release().await)?;
    ensure(holds(&redis, &name).await? == 0, || "a hold is left".into())
}

/// A hold of a fixed lease inside a renewed one does not make the lock end earlier, and ends for its own holder alone.
pub(crate) async fn a_short_lease_inside_does_not_end_the_long_one(redis: Arc<Redis>) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let lock = process.lock(&name).owner(process.owner());
    let outer = says("outer", lock.acquire(SOON).await)?;
    let inner = says(
        "inner",
        lock.clone().lease(Lease::Fixed(BRIEF)).acquire(SOON).await,
    )?;
    tokio::time::timeout(SOON, inner.lost())
        .await
        .map_err(|_| "the fixed lease never ended")?;
    let left: i64 = redis::cmd("PTTL")
        .arg(&name)
        .query_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())?;
    ensure(left > BRIEF.as_millis() as i64 && !outer.is_lost(), || {
        format!("the outer hold has {left} ms left")
    })?;
    let ended = inner.release().await;
    ensure(matches!(ended, Err(LockError::Lost { .. })), || {
        format!("the ended hold was released: {ended:?}")
    })?;
    let refused = other.lock(&name).try_acquire().await;
    ensure(matches!(refused, Err(LockError::Taken { .. })), || {
        format!("beside the outer hold: {refused:?}")
    })?;
    says("outer", outer.release().await)?;
    ensure(holds(&redis, &name).await? == 0, || "a hold is left".into())
}

/// A fixed lease is not renewed: it ends while its holder lives, the holder is told before another can have the lock, and
/// its late release frees nothing of the other.
pub(crate) async fn a_fixed_lease_ends_and_its_late_release_frees_nothing(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let first = process
        .lock(&name)
        .lease(Lease::Fixed(BRIEF))
        .acquire(SOON)
        .await;
    let first = says("the first", first)?;
    let second = says(
        "the second, once the lease has ended",
        other.lock(&name).acquire(SOON).await,
    )?;
    ensure(first.is_lost(), || {
        "another has the lock, and its holder was not told".into()
    })?;
    let late = first.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || {
        format!("the late release: {late:?}")
    })?;
    ensure(holds(&redis, &name).await? == 1, || {
        "the late release has freed another's lock".into()
    })?;
    says("release", second.release().await)
}

/// A renewed lease does not end: the twin of the one above.
pub(crate) async fn a_renewed_lease_outlives_its_length(redis: Arc<Redis>) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let lease = Lease::Watchdog(Duration::from_secs(6));
    let held = says("held", process.lock(&name).lease(lease).acquire(SOON).await)?;
    let refused = other.lock(&name).acquire(lease.duration() * 4 / 3).await;
    ensure(matches!(refused, Err(LockError::Taken { .. })), || {
        format!("beyond the lease: {refused:?}")
    })?;
    says("release", held.release().await)
}

/// A thousand waiters of one process are one subscription and one contender.
pub(crate) async fn a_thousand_waiters_for_a_lock_are_one_contender(redis: Arc<Redis>) -> Verdict {
    let (name, holder, crowded) = (name(), redis.process().await, redis.process().await);
    let held = says("held", holder.lock(&name).acquire(SOON).await)?;
    let waiters: Vec<_> = (0..1000)
        .map(|_| {
            let lock = crowded.lock(&name);
            tokio::spawn(async move { lock.acquire(SOON * 3).await?.release().await })
        })
        .collect();
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let told = || async {
        let mut outsider = redis.outsider().await;
        redis::cmd("PUBLISH")
            .arg(&channel)
            .arg("0")
            .query_async::<i64>(&mut outsider)
            .await
            .unwrap_or(0)
    };
    until("the crowd waits", || async { told().await > 0 }).await?;
    let subscriptions = told().await;
    ensure(subscriptions == 1, || {
        format!("{subscriptions} subscriptions")
    })?;
    says("release", held.release().await)?;
    for waiter in waiters {
        says("a turn", waiter.await.map_err(|e| e.to_string())?)?;
    }
    drop((holder, crowded));
    until("the subscription has ended", || async { told().await == 0 }).await
}

/// The lock was lost and nobody has told its owner yet, who takes it again: that finds the loss out. The hold from before
/// is lost, and the new one is not.
pub(crate) async fn a_re_entry_does_not_hide_a_loss(redis: Arc<Redis>) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let lock = process.lock(&name).owner(process.owner());
    let before = says("before", lock.acquire(SOON).await)?;
    // Taken away, had by another, and free again, all between two renewals.
    redis
        .outsider()
        .await
        .del(&name)
        .await
        .map_err(|e| e.to_string())?;
    let between = says("between", other.lock(&name).acquire(Duration::ZERO).await)?;
    says("between", between.release().await)?;
    let after = says("after", lock.acquire(SOON).await)?;
    ensure(before.is_lost(), || {
        "the hold from before was not told".into()
    })?;
    let late = before.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || {
        format!("the hold from before: {late:?}")
    })?;
    ensure(holds(&redis, &name).await? == 1 && !after.is_lost(), || {
        "the new hold went with the old one".into()
    })?;
    says("release", after.release().await)
}

/// Two tasks of one owner wait for another's lock, and each goes on only when both are inside.
pub(crate) async fn tasks_of_one_owner_come_in_together(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let held = says("held", process.lock(&name).acquire(SOON).await)?;
    let (owner, both) = (process.owner(), Arc::new(tokio::sync::Barrier::new(2)));
    let tasks = [(), ()].map(|()| {
        let (lock, both) = (process.lock(&name).owner(owner), Arc::clone(&both));
        tokio::spawn(async move {
            let guard = lock.acquire(SOON).await?;
            both.wait().await;
            guard.release().await
        })
    });
    let stranger = process.lock(&name);
    let stranger = tokio::spawn(async move { stranger.acquire(SOON * 2).await?.release().await });
    says("release", held.release().await)?;
    for task in tasks {
        says("both inside", task.await.map_err(|e| e.to_string())?)?;
    }
    says("another", stranger.await.map_err(|e| e.to_string())?)?;
    ensure(holds(&redis, &name).await? == 0, || "a hold is left".into())
}
