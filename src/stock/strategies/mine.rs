#![doc = include_str!("mine.md")]

use super::redis_watchdog::{self, Renewable};
use crate::stock::*;
use crate::{
    own_lock::{Scripts, run_script},
    section::{
        Points, lua,
        redis_polling::{self, Lock, LockCommands},
    },
};
use oversell_lock::redis::{Connection, RedisClient};
use redis::RedisResult;
use tokio_util::task::AbortOnDropHandle;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.7",
    rank: Rank::Beyond("redis-watchdog"),
    store: Store::Redis,
    promise: Promise::Lease,
    needs: &[Server::Redis],
    pace: 1_500,
    names: &[Name::RedisMine("lock:mine")],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// The course's own locks as scripts: section, acquire, release, renew. That of §2.3 is not among them: a script looks and
/// deletes in one step, which is §2.5.
const STAGES: [(&str, &str, &str, &str); 5] = [
    ("2.1", include_str!("lua/setnx.lua"), include_str!("lua/del.lua"), ""),
    ("2.2", include_str!("lua/set_ttl.lua"), include_str!("lua/del.lua"), ""),
    ("2.5", include_str!("lua/set_owner.lua"), include_str!("lua/delete_if_mine.lua"), ""),
    ("2.6", include_str!("lua/enter.lua"), include_str!("lua/leave.lua"), ""),
    ("2.7", include_str!("lua/enter.lua"), include_str!("lua/leave.lua"), include_str!("lua/renew.lua")),
];

/// Takes a piece under the visitor's scripts, and renews the lease if they have a script for that.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let scripts = current_scripts(ctx, job.visitor()).await?;
    let lock = || {
        let mine =
            VisitorScripts { acquire: scripts.acquire.clone(), release: scripts.release.clone(), renew: scripts.renew.clone() };
        Lock::new(ctx, job, "lock:mine", job.lease(ctx), mine)
    };
    let held = redis_polling::lock(ctx, job, lock()).await?;
    let watchdog = (!scripts.renew.trim().is_empty()).then(|| {
        let points = job.observation.points().clone();
        let renewed = redis_watchdog::renew(ctx.clone(), lock(), points);
        AbortOnDropHandle::new(tokio::spawn(renewed))
    });
    let section = async {
        let outcome = redis_polling::read_then_write(ctx, job).await;
        // Before the unlock, so that no renewal outlives the lock.
        drop(watchdog);
        outcome
    };
    redis_polling::run_then_release(held, section).await
}

/// The scripts of the course's own locks without their comments, each with its section.
pub fn stages() -> impl Iterator<Item = (&'static str, Scripts)> {
    STAGES.into_iter().map(|(section, acquire, release, renew)| {
        let [acquire, release, renew] = [acquire, release, renew].map(lua::without_comments);
        (section, Scripts { acquire, release, renew })
    })
}

/// The scripts that this visitor keeps; until then the first stage's.
pub(crate) async fn current_scripts(ctx: &Ctx, visitor: &str) -> Result<Scripts, Error> {
    let kept = Scripts::load(ctx, visitor).await?;
    let first = || stages().next().map(|(_, scripts)| scripts);
    kept.or_else(first).ok_or_else(|| Error::Internal("there is no stage".to_owned()))
}

/// The visitor's own three scripts as a lock.
struct VisitorScripts {
    acquire: String,
    release: String,
    renew: String,
}

impl VisitorScripts {
    /// Runs one of the scripts with the lock's key, owner and lease. Returns whether it answers yes.
    async fn run(script: &str, lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        run_script(script, &lock.key, &lock.owner, lock.lease, redis).await
    }
}

impl LockCommands for VisitorScripts {
    const UNDOES_FAILED_ATTEMPTS: bool = true;

    fn client(ctx: &Ctx) -> &RedisClient {
        &ctx.mine
    }

    /// Runs the acquire script that the visitor wrote; returns whether it answers yes.
    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        Self::run(&lock.commands.acquire, lock, redis).await
    }

    /// Runs the visitor's release script; returns whether it answers yes.
    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        Self::run(&lock.commands.release, lock, redis).await
    }
}

impl Renewable for VisitorScripts {
    async fn renew(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        Self::run(&lock.commands.renew, lock, redis).await
    }
}
