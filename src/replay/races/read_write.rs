//! §2.10.5 Two come one after the other: both read, one reads and one writes, both write.
//!
//! 1. A takes its half of the lock, and is inside. B tries its own half: it gets in beside A, or is refused and waits.
//! 2. A releases; B ends. Four times: RR, RW, WR, WW.
//!
//! With one plain lock for all, readers wait for each other, though none of them changes anything. On its cure only they
//! go together: a writer is alone.
//!
//! Next: `permits.rs`.

use super::*;
use crate::section::LockState;
use oversell_lock::{Lock, LockError};

/// The name of the plain lock, which a reset clears.
const PLAIN_NAMES: &[Name] = &[Name::Redis("lock")];
/// The name of the read-write lock, which a reset clears.
const NAMES: &[Name] = &[Name::Redis("rwLock")];
/// A reader under the plain lock.
const PLAIN_READ: Act = Act::custom("plain-read", PLAIN_NAMES, |ctx, job| Box::pin(enter_and_leave(job, plain_lock(ctx, job))));
/// A writer under the plain lock.
const PLAIN_WRITE: Act = Act::custom("plain-write", PLAIN_NAMES, |ctx, job| Box::pin(enter_and_leave(job, plain_lock(ctx, job))));
/// A reader under the read half.
const READ: Act = Act::custom("rw-read", NAMES, |ctx, job| Box::pin(enter_and_leave(job, read_lock(ctx, job))));
/// A writer under the write half.
const WRITE: Act = Act::custom("rw-write", NAMES, |ctx, job| Box::pin(enter_and_leave(job, write_lock(ctx, job))));

/// The caption of a reader behind a reader.
const READ_READ: Step = say("A 正在读；B 也来读", "A reads; B comes, and reads");
/// The caption of a writer behind a reader.
const READ_WRITE: Step = say("A 正在读；B 也来写", "A reads; B comes, and writes");
/// The caption of a reader behind a writer.
const WRITE_READ: Step = say("A 正在写；B 也来读", "A writes; B comes, and reads");
/// The caption of a writer behind a writer.
const WRITE_WRITE: Step = say("A 正在写；B 也来写", "A writes; B comes, and writes");

pub(super) const RACE: Race = Race {
    lessons: &["2.10.5"],
    title: Bilingual::of("读读、读写、写读、写写", "Read and read, read and write, write and read, write and write"),
    breaks: Bilingual::of("只有一把普通的锁：读的人也要互相等", "with one plain lock readers wait for each other"),
    cure: Bilingual::of("读写锁：读读一起，有写就等", "a read-write lock: readers together, writers alone"),
    anomalies: &[Anomaly::Serialized],
    begin: &[],
    flaw: Variant {
        act: PLAIN_READ,
        steps: &[
            All(&b_waits_for_a(PLAIN_READ, PLAIN_READ, READ_READ, "RR waits,")),
            All(&b_waits_for_a(PLAIN_READ, PLAIN_WRITE, READ_WRITE, "RW waits,")),
            All(&b_waits_for_a(PLAIN_WRITE, PLAIN_READ, WRITE_READ, "WR waits,")),
            All(&b_waits_for_a(PLAIN_WRITE, PLAIN_WRITE, WRITE_WRITE, "WW waits")),
        ],
        expected: ExpectedResult::NOTHING.inside(1).noting(
            "RR waits, RW waits, WR waits, WW waits",
            "读后读、读后写、写后读、写后写：都要等",
            "whoever comes second waits, a reader behind a reader as well",
        ),
    },
    cured: Variant {
        act: READ,
        steps: &[
            say("A 进来读", "A gets in, and reads"),
            A.stops_at(Point::Locked),
            say("B 也进来读，和 A 同时在临界区", "B gets in beside A"),
            B.stops_at(Point::Locked),
            A.finishes(),
            B.finishes(),
            Note("RR together,"),
            All(&b_waits_for_a(READ, WRITE, READ_WRITE, "RW waits,")),
            All(&b_waits_for_a(WRITE, READ, WRITE_READ, "WR waits,")),
            All(&b_waits_for_a(WRITE, WRITE, WRITE_WRITE, "WW waits")),
        ],
        expected: ExpectedResult::NOTHING.inside(2).noting(
            "RR together, RW waits, WR waits, WW waits",
            "读后读：一起；读后写、写后读、写后写：等",
            "two readers are inside together; beside a writer the second one waits",
        ),
    },
};

/// The steps of one round: A gets in by `first`, B is refused by `second`, and gets in after A. `what` is the caption.
const fn b_waits_for_a(first: Act, second: Act, what: Step, note: &'static str) -> [Step; 9] {
    [
        what,
        A.acting(first).stops_at(Point::Locked),
        B.acting(second).stops_at(Point::Refused),
        say("A 释放锁，B 才进来", "A releases, and B gets in after it"),
        B.will_stop_at(Point::Locked),
        A.finishes(),
        B.stops_at(Point::Locked),
        B.finishes(),
        Note(note),
    ]
}

fn plain_lock(ctx: &Ctx, job: &Job) -> impl Lock {
    let lock = ctx.redis.lock(&job.redis_name("lock"));
    lock.lease(job.watchdog_lease(ctx))
}

fn read_lock(ctx: &Ctx, job: &Job) -> impl Lock {
    let lock = ctx.redis.rw_lock(&job.redis_name("rwLock")).read();
    lock.lease(job.watchdog_lease(ctx))
}

fn write_lock(ctx: &Ctx, job: &Job) -> impl Lock {
    let lock = ctx.redis.rw_lock(&job.redis_name("rwLock")).write();
    lock.lease(job.watchdog_lease(ctx))
}

/// Takes the lock, passing `refused` if it must wait, then `locked` and `left`, and releases it.
async fn enter_and_leave(job: &Job, lock: impl Lock) -> Result<Deduction, Error> {
    let guard = match lock.try_acquire().await {
        Err(LockError::Taken { .. }) => {
            job.reach(Point::Refused).await;
            lock.acquire(job.wait_left()).await?
        }
        tried => tried?,
    };
    job.reach(Point::Locked).await;
    job.reach(Point::Left).await;
    guard.release().await?;
    Ok(Deduction::default().with_lock_state(Some(LockState::Kept)))
}
