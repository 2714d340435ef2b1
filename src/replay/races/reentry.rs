//! §2.6 A holder needs its lock again: `a()` takes it, and calls `b()`, which takes it too.
//!
//! 1. A takes the lock of §2.5, and is inside.
//! 2. From within, A takes it again: the key is there. A waits for A, until its wait is over.
//!
//! On its cure the key is a hash that counts its owner's holds: 1, 2, 1, and free with the last.
//!
//! Next: `long_job.rs`.

use super::*;
use crate::{section::redis_polling, stock::SetnxWithScript};

/// Notes the holds of the lock by its owner.
const NOTE_HOLDS: Step = Custom(|play| Box::pin(note_holds(play)));

pub(super) const RACE: Race = Race {
    lessons: &["2.6", "002.reentrant"],
    title: Bilingual::of("拿着锁的人还要这把锁", "A holder needs its lock again"),
    breaks: Bilingual::of("SETNX 不认得持有者：持有者等自己", "SETNX does not know its owner, who waits for itself"),
    cure: Bilingual::of("Hash 记下是谁的、进了几次", "a hash says whose it is, and how often"),
    anomalies: &[Anomaly::Stuck],
    begin: &[],
    flaw: Variant {
        act: Act::custom_selling(Store::Redis, "redis-setnx-lua-twice", &[Name::Redis("lock:redis-setnx-lua")], |ctx, job| {
            Box::pin(method_a(ctx, job))
        }),
        steps: &[
            say("a()：A 拿到锁，进来了", "a(): A takes the lock, and is inside"),
            A.impatient().stops_at(Point::Locked),
            say("b()：A 再拿同一把锁，键已经在了", "b(): A takes the same lock again, and the key is there"),
            A.stops_at(Point::Refused),
            say("A 等待 A 自己释放", "A waits for itself"),
            A.times_out(),
            Note("A waits for A"),
        ],
        expected: ExpectedResult::NOTHING.inside(1).noting("A waits for A", "A 等自己", "A waits for itself"),
    },
    cured: Variant {
        act: Act::Strategy("redis-reentrant"),
        steps: &[
            say("a()：A 拿到锁，计数 1", "a(): A takes the lock, the count is 1"),
            A.stops_at(Point::Taken),
            NOTE_HOLDS,
            say("b()：A 再拿一次，计数 2", "b(): A takes it again, the count is 2"),
            A.stops_at(Point::Locked),
            NOTE_HOLDS,
            say("b() 写完，还一次，计数 1", "b() writes and leaves, the count is 1"),
            A.stops_at(Point::Unlocked),
            NOTE_HOLDS,
            say("a() 也还：计数到 0，锁才释放", "a() leaves too: at 0 the lock is free"),
            A.finishes(),
            NOTE_HOLDS,
        ],
        expected: ExpectedResult::sold(1, 1).inside(1).noting("1 2 1 0", "重入次数 1 2 1 0", "holds: 1 2 1 0"),
    },
};

/// The course's `a()`, under the lock of §2.5.
async fn method_a(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let held = redis_polling::lock(ctx, job, SetnxWithScript::lock(ctx, job)).await?;
    job.reach(Point::Locked).await;
    redis_polling::run_then_release(held, method_b(ctx, job)).await
}

/// The course's `b()`, under the same lock.
async fn method_b(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let held = redis_polling::lock(ctx, job, SetnxWithScript::lock(ctx, job)).await?;
    redis_polling::run_then_release(held, redis_polling::read_then_write(ctx, job)).await
}

/// Notes how often the lock is held: 0 if it is free.
async fn note_holds(play: &mut Play) -> Result<(), Error> {
    let held = play.first_lock().await?;
    play.add_note(held.map_or(0, |held| held.count.unwrap_or(1)));
    Ok(())
}
