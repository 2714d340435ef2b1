//! The tokens of a fenced lock in Redis, which has lost their counter.

use crate::support::*;
use oversell_lock::Fence;

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
            ensure_equal("the token", guard.fence(), Some(Fence(next)))?;
            guard.release().await?;
        }
    }
    Ok(())
}

/// The counter of a resource that is gone is deleted, and nothing of the lock is left; another lock's stays.
#[apply(test!)]
async fn a_counter_is_forgotten_with_its_resource(redis: &Redis) -> Result {
    let process = redis.client().await;
    let (gone, stays) = (process.fenced_lock(&name()), process.fenced_lock(&name()));
    for lock in [&gone, &stays] {
        take(lock).await?.release().await?;
    }
    gone.forget().await?;
    gone.forget().await?;
    for (lock, next) in [(&gone, 1), (&stays, 2)] {
        let guard = take(lock).await?;
        ensure_equal("the token", guard.fence(), Some(Fence(next)))?;
        guard.release().await?;
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
    ensure_invalid("a token for a hold that has none", inner)?;
    outer.release().await?;
    let outer = take(&fenced).await?;
    let inner = take(&plain).await?;
    ensure_equal("the hold's token", inner.fence(), outer.fence())?;
    for guard in [outer, inner] {
        guard.release().await?;
    }
    Ok(())
}
