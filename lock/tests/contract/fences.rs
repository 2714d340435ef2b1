//! The tokens of a fenced lock in Redis, which has lost their counter.

use super::support::*;
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
            is("the token", guard.fence(), Some(Fence(next)))?;
            guard.release().await?;
        }
    }
    Ok(())
}
