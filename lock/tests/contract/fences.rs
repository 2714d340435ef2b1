//! The tokens of a fenced lock in Redis.

use super::support::*;
use oversell_lock::{
    Fence,
    redis::{Lease, RedisClient},
};
use redis::AsyncTypedCommands;

/// Tokens in the order in which the lock was taken: handed over inside a process and to another one, after a lease has
/// ended. An owner that takes it again has the token that it had.
async fn tokens_rise<L: Lock + 'static>(
    redis: &Redis,
    name: &str,
    lock: impl Fn(&RedisClient) -> L,
) -> Result {
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
    let owner = one.owner();
    let own = one.fenced_lock(name).owner(owner);
    let outer = take(&own).await?;
    drawn("outer", &outer)?;
    let waiting = [&one, &other, &one].map(|process| acquiring(lock(process)));
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let waits = async || redis.listeners(&channel).await.is_ok_and(|n| n > 0);
    until("the other process waits", waits).await?;
    let inner = own.try_acquire().await?;
    is("the tokens of one hold", inner.fence(), outer.fence())?;
    inner.release().await?;
    outer.release().await?;
    // Which of the two processes is first is not said.
    let mut guards = futures::stream::FuturesUnordered::from_iter(waiting);
    while let Some(guard) = futures::StreamExt::next(&mut guards).await {
        let guard = guard??;
        drawn("after waiting", &guard)?;
        guard.release().await?;
    }

    let brief = Lease::Fixed(Duration::from_millis(300));
    let brief = one.fenced_lock(name).lease(brief);
    let ended = take(&brief).await?;
    drawn("brief", &ended)?;
    let guard = lock(&other).acquire(SOON).await?;
    drawn("after a lease has ended", &guard)?;
    drop(ended);
    Ok(guard.release().await?)
}

#[apply(test!)]
async fn tokens_rise_however_the_lock_is_taken(redis: &Redis) -> Result {
    let name = name();
    tokens_rise(redis, &name, |process| process.fenced_lock(&name)).await
}

/// The twin: its token is drawn in a command of its own, before the lock is taken.
fn draws_before(client: &RedisClient, name: &str) -> AnyLock {
    made(name, client.clone(), |client, name, wait| async move {
        let counter = format!("redisson_lock_token:{{{name}}}");
        let token = client.connection().incr(counter, 1).await;
        let token = Fence(token.expect("redis is there") as u64);
        let held = client.fenced_lock(&name).acquire(wait).await?;
        Ok(guard(&name, Some(token), held.release()))
    })
}

/// In the order in which they came they may also have it, if seldom.
#[apply(test!)]
async fn a_token_that_is_drawn_before_the_lock_is_taken_is_caught(redis: &Redis) -> Result {
    let drawn = async || {
        let name = name();
        tokens_rise(redis, &name, |process| draws_before(process, &name)).await
    };
    caught(in_some_try(drawn).await, "after waiting")
}

/// A counter that Redis has lost begins again below what the resource has seen; lifted, the next token is above it.
#[apply(test!)]
async fn a_lost_counter_is_lifted_above_what_was_seen(redis: &Redis) -> Result {
    // Beyond what Lua's numbers can tell apart.
    for seen in [41, (1 << 53) + 1] {
        let (name, process) = (name(), redis.client().await);
        let lock = process.fenced_lock(&name);
        // The second time it would be lifted downwards.
        for (lifted, next) in [(seen, seen + 1), (1, seen + 2)] {
            lock.lift(Fence(lifted)).await?;
            let guard = take(&lock).await?;
            is("the token", guard.fence(), Some(Fence(next)))?;
            guard.release().await?;
        }
    }
    Ok(())
}

/// Its owner has the lock already, by a handle that draws no token.
#[apply(test!)]
async fn no_guard_of_a_fenced_lock_is_without_a_token(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let owner = process.owner();
    let (plain, fenced) = (process.lock(&name), process.fenced_lock(&name));
    let (plain, fenced) = (plain.owner(owner), fenced.owner(owner));
    let outer = take(&plain).await?;
    // An hour: a test that waits for it hangs.
    let inner = fenced.acquire(Duration::from_secs(3600)).await;
    invalid("a token for a hold that has none", inner)?;
    outer.release().await?;
    let outer = take(&fenced).await?;
    let inner = take(&plain).await?;
    is("the hold's token", inner.fence(), outer.fence())?;
    for guard in [outer, inner] {
        guard.release().await?;
    }
    Ok(())
}
