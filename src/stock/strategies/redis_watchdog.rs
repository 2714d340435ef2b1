#![doc = include_str!("redis_watchdog.md")]

use super::redis_reentrant::ReentrantScripts;
use crate::section::{
    Points, lua,
    redis_polling::{self, Lock, LockCommands},
};
use crate::stock::*;
use oversell_lock::redis::Connection;
use redis::{RedisResult, Script};
use std::sync::LazyLock;
use tokio_util::task::AbortOnDropHandle;

/// Renews the lease if the lock is still the owner's.
static RENEW: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("lua/renew.lua")));

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.7",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 590,
    names: &[Name::Redis("lock:redis-watchdog")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes a piece under the re-entrant lock, while a task renews its lease.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = || ReentrantScripts::lock(ctx, job, "lock:redis-watchdog");
    let held = redis_polling::lock(ctx, job, lock()).await?;
    let watchdog = AbortOnDropHandle::new(tokio::spawn(renew(ctx.clone(), lock(), job.observation.points().clone())));
    let section = async {
        let outcome = redis_polling::read_then_write(ctx, job).await;
        // Before the unlock, so that no renewal outlives the lock.
        drop(watchdog);
        outcome
    };
    redis_polling::run_then_release(held, section).await
}

/// A lock whose lease can be renewed: the re-entrant one, and a visitor's scripts.
pub(super) trait Renewable: LockCommands {
    /// Renews once; false if the lock is no longer the owner's.
    fn renew(lock: &Lock<Self>, redis: &mut Connection) -> impl Future<Output = RedisResult<bool>> + Send;
}

impl Renewable for ReentrantScripts {
    async fn renew(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        RENEW.key(&lock.key).arg(&lock.owner).arg(lock.lease).invoke_async(redis).await
    }
}

/// Renews the lock every third of its lease, until it is lost or this is aborted. A failed renewal is logged, and tried again.
pub(super) async fn renew<S: Renewable>(ctx: Ctx, lock: Lock<S>, points: Points) {
    let mut redis = S::client(&ctx).connection();
    loop {
        tokio::time::sleep(Duration::from_millis(lock.lease / 3)).await;
        points.reach(Point::Renew).await;
        let renewed = S::renew(&lock, &mut redis).await;
        points.reach(Point::Renewed).await;
        match renewed {
            Ok(true) => {}
            Ok(false) => return,
            // The next one may be answered, as long as the lease lasts.
            Err(error) => tracing::warn!(%error, lock = lock.key, "not renewed"),
        }
    }
}
