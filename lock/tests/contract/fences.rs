//! The tokens of a fenced lock in Redis.

use super::{family::Server, redis::Redis, support::*};
use oversell_lock::{
    Fence, Guard, Lock, LockError,
    redis::{Lease, RedisClient, RedisFencedLock},
};
use redis::AsyncTypedCommands;
use std::time::Duration;

/// Tokens in the order in which the lock was taken: by one process after another, handed over inside a process, after a
/// lease has ended. An owner that takes it again has the token that it had.
async fn tokens_rise<L: Lock + 'static>(
    redis: &Redis,
    name: &str,
    lock: impl Fn(&RedisClient) -> L,
) -> Result<()> {
    let (one, other) = (redis.client().await, redis.client().await);
    let mut last = 0;
    let mut drawn = |how: &str, guard: &Guard| {
        let Some(Fence(token)) = guard.fence() else {
            bail!("{how}: no token");
        };
        ensure!(token > last, "{how}: {token} after {last}");
        last = token;
        Ok(())
    };
    for process in [&one, &other, &one] {
        let guard = lock(process).acquire(SOON).await?;
        drawn("plain", &guard)?;
        guard.release().await?;
    }

    let owner = one.owner();
    let own = one.fenced_lock(name).owner(owner);
    let outer = take(&own).await?;
    drawn("outer", &outer)?;
    let waiting: Vec<_> = [&one, &other, &one]
        .map(|process| {
            let lock = lock(process);
            acquiring(lock)
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
    let inner = own.acquire(Duration::ZERO).await?;
    ensure!(
        inner.fence() == outer.fence(),
        "the guards of one hold have two tokens"
    );
    inner.release().await?;
    outer.release().await?;
    // Which of the two processes is first is not said.
    let mut guards = futures::stream::FuturesUnordered::from_iter(waiting);
    while let Some(guard) = futures::StreamExt::next(&mut guards).await {
        let guard = guard??;
        drawn("after waiting", &guard)?;
        guard.release().await?;
    }

    let brief = one
        .fenced_lock(name)
        .lease(Lease::Fixed(Duration::from_millis(300)));
    let ended = take(&brief).await?;
    drawn("brief", &ended)?;
    let guard = lock(&other).acquire(SOON).await?;
    drawn("after a lease has ended", &guard)?;
    drop(ended);
    Ok(guard.release().await?)
}

#[apply(test!)]
async fn tokens_rise_however_the_lock_is_taken(redis: &Redis) -> Result<()> {
    let name = name();
    tokens_rise(redis, &name, |process| process.fenced_lock(&name)).await
}

/// The twin: its token is drawn in a command of its own, before the lock is taken.
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

#[apply(test!)]
async fn a_token_that_is_drawn_before_the_lock_is_taken_is_caught(redis: &Redis) -> Result<()> {
    // In the order in which they came they may also have it, if seldom.
    for _ in 0..20 {
        let name = name();
        let twin = |process: &RedisClient| DrawsBefore(process.fenced_lock(&name), process.clone());
        if tokens_rise(redis, &name, twin)
            .await
            .is_err_and(|broken| broken.to_string().contains("after waiting"))
        {
            return Ok(());
        }
    }
    bail!("not caught")
}

/// A counter that Redis has lost begins again below what the resource has seen; lifted, the next token is above it.
#[apply(test!)]
async fn a_lost_counter_is_lifted_above_what_was_seen(redis: &Redis) -> Result<()> {
    // Beyond what Lua's numbers can tell apart.
    for seen in [41, (1 << 53) + 1] {
        lifted_above(redis, seen).await?;
    }
    Ok(())
}

async fn lifted_above(redis: &Redis, seen: u64) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let lock = process.fenced_lock(&name);
    lock.lift(Fence(seen)).await?;
    let guard = take(&lock).await?;
    ensure!(
        guard.fence() == Some(Fence(seen + 1)),
        "{:?} after {seen}",
        guard.fence()
    );
    lock.lift(Fence(1)).await?;
    guard.release().await?;
    let guard = take(&lock).await?;
    ensure!(
        guard.fence() == Some(Fence(seen + 2)),
        "{:?}: it was lifted downwards",
        guard.fence()
    );
    Ok(guard.release().await?)
}
