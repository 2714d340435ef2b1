#![doc = include_str!("redis_fenced.md")]

use crate::stock::fenced;
use crate::stock::prelude::*;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "[003]",
    rank: Rank::After("redis-write"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::Redis],
    pace: 670,
    names: &[Name::Redis("fencedLock"), Name::Fence],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ctx
        .redis
        .fenced_lock(&job.redis_name("fencedLock"))
        .lease(job.watchdog(ctx));
    let guard = lock.acquire(job.wait_left()).await?;
    let lift = async |seen| lock.lift(seen).await;
    under(guard, async |fence| {
        let outcome = fenced::fenced_read_then_write(ctx, job, lock.name(), fence, lift).await;
        if let Err(Error::NoProduct(_)) = outcome {
            // No row remembers a token. Without this each number that a client makes up leaves a counter behind.
            lock.forget().await?;
        }
        outcome
    })
    .await
}
