#![doc = include_str!("mine.md")]

use super::redis_watchdog;
use crate::section::{
    Heard, Points, Unrenewed,
    mine::{Scripts, answer},
    redis_polling::{self as stage, Lock, Stage},
};
use crate::stock::prelude::*;
use redis::{RedisResult, Script};
use tokio_util::task::AbortOnDropHandle;

pub(super) const STRATEGY: Facts = Facts {
    chapter: "2.7",
    rank: Rank::Beyond("redis-watchdog"),
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_500,
    names: &[Name::RedisFor("lock:mine", Unrenewed::Configured)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let scripts = Scripts::kept(ctx).await?;
    let lock = || {
        let mine = Mine {
            acquire: Script::new(&scripts.acquire),
            release: Script::new(&scripts.release),
        };
        Lock::new(ctx, job, "lock:mine", job.leased(ctx), mine)
    };
    let held = stage::lock(ctx, job, lock()).await?;
    let watchdog = (!scripts.renew.is_empty()).then(|| {
        let (renew, points) = (Script::new(&scripts.renew), job.seen.points().clone());
        let renewed = redis_watchdog::renew(ctx.clone(), lock(), renew, points);
        AbortOnDropHandle::new(tokio::spawn(renewed))
    });
    let section = async {
        let outcome = stage::read_then_write(ctx, job).await;
        // Before the unlock, so that no renewal outlives the lock.
        drop(watchdog);
        outcome
    };
    stage::under(held, section).await
}

struct Mine {
    acquire: Script,
    release: Script,
}

impl Stage for Mine {
    const OWNED: bool = true;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Heard) -> RedisResult<bool> {
        let Lock { key, owner, lease, stage } = lock;
        answer(&stage.acquire, key, owner, *lease, redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Heard, _: &Points) -> RedisResult<bool> {
        let Lock { key, owner, lease, stage } = lock;
        answer(&stage.release, key, owner, *lease, redis).await
    }
}
