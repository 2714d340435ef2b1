//! The tokens of a fenced lock in Redis.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    redis::Redis,
};
use oversell_lock::{
    Fence, Guard, Lock, LockError,
    redis::{Lease, RedisClient, RedisFencedLock},
};
use redis::AsyncTypedCommands;
use std::{sync::Arc, time::Duration};

/// Tokens in the order in which the lock was had: by one process after another, handed over inside a process, after a
/// lease has ended. An owner that takes it again has the token that it had.
async fn tokens_rise<L: Lock + 'static>(
    redis: &Redis,
    name: &str,
    lock: impl Fn(&RedisClient) -> L,
) -> Verdict {
    let (one, other) = (redis.process().await, redis.process().await);
    let mut last = 0;
    let mut drawn = |how: &str, guard: &Guard| {
        let Some(Fence(token)) = guard.fence() else {
            return Err(format!("{how}: no token"));
        };
        ensure(token > last, || format!("{how}: {token} after {last}"))?;
        last = token;
        Ok(())
    };
    for process in [&one, &other, &one] {
        let guard = says("a turn", lock(process).acquire(SOON).await)?;
        drawn("plain", &guard)?;
        says("release", guard.release().await)?;
    }

    let owner = one.owner();
    let own = one.fenced_lock(name).owner(owner);
    let outer = says("outer", own.acquire(SOON).await)?;
    drawn("outer", &outer)?;
    let waiting: Vec<_> = [&one, &other, &one]
        .map(|process| {
            let lock = lock(process);
            tokio::spawn(async move { lock.acquire(SOON).await })
        })
        .into();
    until("the other process waits", || async {
        let channel = format!("redisson_lock__channel:{{{name}}}");
        let told = redis::cmd("PUBLISH")
            .arg(channel)
            .arg("0")
            .query_async::<i64>(&mut redis.outsider().await)
            .await;
        told.is_ok_and(|told| told > 0)
    })
    .await?;
    let inner = says("inner", own.acquire(Duration::ZERO).await)?;
    ensure(inner.fence() == outer.fence(), || {
        "the guards of one hold have two tokens".into()
    })?;
    says("inner", inner.release().await)?;
    says("outer", outer.release().await)?;
    // Who of the two processes is first is not said.
    let mut guards = futures::stream::FuturesUnordered::from_iter(waiting);
    while let Some(guard) = futures::StreamExt::next(&mut guards).await {
        let guard = says("a turn", guard.map_err(|e| e.to_string())?)?;
        drawn("after waiting", &guard)?;
        says("release", guard.release().await)?;
    }

    let brief = one
        .fenced_lock(name)
        .lease(Lease::Fixed(Duration::from_millis(300)));
    let ended = says("brief", brief.acquire(SOON).await)?;
    drawn("brief", &ended)?;
    let guard = says("a turn", lock(&other).acquire(SOON).await)?;
    drawn("after a lease has ended", &guard)?;
    drop(ended);
    says("release", guard.release().await)
}

pub(crate) async fn tokens_rise_however_the_lock_is_had(redis: Arc<Redis>) -> Verdict {
    let name = name();
    tokens_rise(&redis, &name, |process| process.fenced_lock(&name)).await
}

/// The twin: its token is drawn in a command of its own, before the lock is had.
struct DrawsBefore(RedisFencedLock, RedisClient);

impl Lock for DrawsBefore {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let counter = format!("redisson_lock_token:{{{}}}", self.name());
        let token = self
            .1
            .connection()
            .incr(counter, 1)
            .await
            .expect("redis is there");
        let honest = self.0.acquire(wait).await?;
        let (guard, mut keeper) = Guard::new(self.name(), Some(Fence(token as u64)));
        tokio::spawn(async move { keeper.asked_to_release().await.done(honest.release().await) });
        Ok(guard)
    }
}

pub(crate) async fn a_token_that_is_drawn_before_the_lock_is_had_is_caught(
    redis: Arc<Redis>,
) -> Verdict {
    // In the order in which they came they may also have it, if seldom.
    for _ in 0..20 {
        let name = name();
        let twin = |process: &RedisClient| DrawsBefore(process.fenced_lock(&name), process.clone());
        if tokens_rise(&redis, &name, twin)
            .await
            .is_err_and(|broken| broken.contains("after waiting"))
        {
            return Ok(());
        }
    }
    Err("not caught".into())
}

/// A counter that Redis has lost begins anew below what the resource has seen; lifted, the next token is above it.
pub(crate) async fn a_lost_counter_is_lifted_above_what_was_seen(redis: Arc<Redis>) -> Verdict {
    // Beyond what Lua's numbers can tell apart.
    for seen in [41, (1 << 53) + 1] {
        lifted_above(&redis, seen).await?;
    }
    Ok(())
}

async fn lifted_above(redis: &Redis, seen: u64) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let lock = process.fenced_lock(&name);
    says("lift", lock.lift(Fence(seen)).await)?;
    let guard = says("a turn", lock.acquire(SOON).await)?;
    ensure(guard.fence() == Some(Fence(seen + 1)), || {
        format!("{:?} after {seen}", guard.fence())
    })?;
    says("lift", lock.lift(Fence(1)).await)?;
    says("release", guard.release().await)?;
    let guard = says("a turn", lock.acquire(SOON).await)?;
    ensure(guard.fence() == Some(Fence(seen + 2)), || {
        format!("{:?}: it was lifted downwards", guard.fence())
    })?;
    says("release", guard.release().await)
}
