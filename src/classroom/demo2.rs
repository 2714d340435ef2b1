//! `[004]` demo2: the lock as an object, `SyncLock`, which forces the lock after its safety time.
//!
//! 1. `SET demo2LockKey <value> NX PX 10000`; where it is there already, again in about 50 ms.
//! 2. After 50 s, five leases, it is taken by force: `SET demo2LockKey <value> PX 10000`, whoever has it. That is meant for
//!    a key without a lease, of a holder that died between SETNX and EXPIRE.
//! 3. Five seconds of work.
//! 4. `GET`; `DEL` where the value is one's own.
//!
//! What it survives: a holder that dies, also one that left a key for ever. **What breaks it**: the safety time. It runs
//! while others have the lock in turn, each in good order, and then the force is against one that is at work: two are inside.
//! Its value does, too: thread id and name are those of a process, and another process has the same. So one that is late
//! deletes the other's lock. With `?id=uuid`, the text's first improvement, it cannot; but a value for each call is no
//! owner: it could not tell its own lock from another's, and so never be re-entrant. An [`Owner`](oversell_lock::Owner),
//! a process's uuid and a number of its own, has neither fault.
//!
//! Points for a replay: `refused`, `locked`, `worked`.
//!
//! Next: `demo_layer.rs`, which takes the lock out of the code that it protects.

use crate::{
    classroom::demo1::LEASE,
    ctx::Ctx,
    error::Error,
    section::{
        Job, LockState, Name, Point, Points,
        redis_polling::{self, Lock, LockCommands},
    },
};
use oversell_lock::redis::Connection;
use parking_lot::Mutex;
use redis::RedisResult;
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};
use utoipa::ToSchema;
use uuid::Uuid;

const KEY: &str = "demo2LockKey";

/// The names that the lesson writes; a reset clears them.
pub(crate) const NAMES: &[Name] = &[Name::Redis(KEY)];

/// A waiter takes the lock by force after it has waited for this many of its own leases.
const FORCE_AFTER_LEASES: u32 = 5;

/// The default wait: longer than the time after which force is used.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(600);

/// The value that a holder writes into the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockValue {
    /// Id and name of its thread.
    #[default]
    Thread,
    /// A value for each call.
    Uuid,
}

/// Takes the lock, by force after five of its own leases, stays as long as the job says, and gives it back. Returns whether the
/// key still had its value; `None` if Redis did not answer the unlock.
/// Errors: [`Error::Timeout`] if others had it for all of the job's wait, [`Error::Unavailable`] if Redis is down.
/// Cancel safety: dropping it gives the lock back in the background.
pub async fn visit(ctx: &Ctx, job: &Job, id: LockValue) -> Result<Option<LockState>, Error> {
    let thread = ctx.local.of::<Threads>().start();
    let lease = job.request.lease.unwrap_or(LEASE);
    let force_from = Instant::now() + lease * FORCE_AFTER_LEASES;
    let lock = Lock { owner: id.value(&thread), ..Lock::new(ctx, job, KEY, LEASE, SyncLock { force_from }) };
    job.say(format_args!("lock start key={},value={}", lock.key, lock.owner));
    let held = redis_polling::lock(ctx, job, lock).await?;
    job.reach(Point::Locked).await;
    job.enter_and_stay().await;
    job.reach(Point::Worked).await;
    job.leave();
    Ok(held.unlock().await)
}

/// The lock of the second demo: SET NX with a lease, from a time on without NX; to unlock GET, a comparison here, then DEL.
struct SyncLock {
    /// The lock is taken by force from this time on.
    force_from: Instant,
}

impl LockCommands for SyncLock {
    /// Another process may have written the same value, so a failed attempt is not undone.
    const UNDOES_FAILED_ATTEMPTS: bool = false;

    async fn try_lock(lock: &Lock<Self>, redis: &mut Connection) -> RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(&lock.key).arg(&lock.owner).arg("PX").arg(lock.lease);
        if Instant::now() >= lock.commands.force_from {
            tracing::warn!(key = lock.key, value = lock.owner, "lock fail, try force lock");
        } else {
            set.arg("NX");
        }
        set.query_async(redis).await
    }

    async fn unlock(lock: &Lock<Self>, redis: &mut Connection, _: &Points) -> RedisResult<bool> {
        let value: Option<String> = redis::cmd("GET").arg(&lock.key).query_async(redis).await?;
        if value.as_ref() != Some(&lock.owner) {
            return Ok(false);
        }
        redis::cmd("DEL").arg(&lock.key).query_async(redis).await
    }
}

impl LockValue {
    /// The value that a request writes: id and name of its thread, or a new UUID.
    fn value(self, thread: &Thread) -> String {
        match self {
            Self::Thread => format!("{0}-http-exec-{0}", thread.id),
            Self::Uuid => Uuid::new_v4().to_string(),
        }
    }
}

/// The numbers, from 1 and used again, of the threads in use in this process. A Java server gives each request a thread.
#[derive(Debug, Default)]
struct Threads(Arc<Mutex<BTreeSet<u32>>>);

/// The number of one request; dropping it frees the number.
struct Thread {
    id: u32,
    busy: Arc<Mutex<BTreeSet<u32>>>,
}

impl Threads {
    /// Takes the lowest number that is free.
    fn start(&self) -> Thread {
        let mut busy = self.0.lock();
        let id = (1..).find(|id| !busy.contains(id)).unwrap_or_default();
        busy.insert(id);
        Thread { id, busy: Arc::clone(&self.0) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.busy.lock().remove(&self.id);
    }
}
