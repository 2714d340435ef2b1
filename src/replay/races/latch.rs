//! §2.10.7 The monitor locks the door when all of the class are out.
//!
//! 1. A, the monitor, comes to the door and locks it. B and C are still in.
//!
//! On its cure A waits for a latch that each counts down when it goes out: the door is locked when B and C are out. The class
//! has two here, so that three actors are enough to see it (the course's has six).
//!
//! Next: `read_then_write.rs`, the first of all.

use super::*;
use std::num::NonZeroU32;

const LATCH: &str = "latch";
/// The names that the acts write, and a reset clears.
const NAMES: &[Name] = &[Name::RedisCount(LATCH)];
/// How many students must be out before the door is locked.
const CLASS: NonZeroU32 = NonZeroU32::new(2).expect("not zero");
/// The act of a student.
const GO_OUT: Act = Act::custom("go-out", NAMES, |ctx, job| Box::pin(count_down(ctx, job)));

pub(super) const RACE: Race = Race {
    lessons: &["2.10.7"],
    title: Bilingual::of("班长锁门", "The monitor locks the door"),
    breaks: Bilingual::of("不等人：门锁上时，B 和 C 还在教室里", "nobody is waited for: B and C are still in"),
    cure: Bilingual::of("闭锁：计数到 0 才锁门（这里是 2 个人）", "a latch: the door is locked at 0 (two people here)"),
    anomalies: &[Anomaly::Early],
    begin: &[],
    flaw: Variant {
        act: Act::custom("lock-the-door-at-once", NAMES, |_, job| Box::pin(lock_at_once(job))),
        steps: &[
            A.stops_at(Point::Door),
            say("班长 A 来了就锁门：B 和 C 还在教室里", "A, the monitor, locks the door: B and C are still in"),
            A.finishes(),
            Note("door"),
            say("B 出来了", "B goes out"),
            B.acting(GO_OUT).finishes(),
            Note("out"),
            say("C 出来了", "C goes out"),
            C.acting(GO_OUT).finishes(),
            Note("out"),
        ],
        expected: ExpectedResult::NOTHING.noting(
            "door out out",
            "班长锁门，出来一位，出来一位",
            "the door is locked, one goes out, one goes out",
        ),
    },
    cured: Variant {
        act: Act::custom("lock-the-door-after-all", NAMES, |ctx, job| Box::pin(lock_after_all(ctx, job))),
        steps: &[
            A.stops_at(Point::Waits),
            say("班长 A 等大家出来：还有 2 位", "A, the monitor, waits for all: two are in"),
            A.will_stop_at(Point::Door),
            say("B 出来了", "B goes out"),
            B.acting(GO_OUT).finishes(),
            Note("out"),
            say("C 出来了", "C goes out"),
            C.acting(GO_OUT).finishes(),
            Note("out"),
            A.stops_at(Point::Door),
            say("都出来了：A 锁门", "all are out: A locks the door"),
            A.finishes(),
            Note("door"),
        ],
        expected: ExpectedResult::NOTHING.noting(
            "out out door",
            "出来一位，出来一位，班长锁门",
            "one goes out, one goes out, the door is locked",
        ),
    },
};

/// The monitor passes the point of locking the door at once. No lock is taken.
async fn lock_at_once(job: &Job) -> Result<Deduction, Error> {
    job.reach(Point::Door).await;
    Ok(Deduction::default())
}

/// The monitor sets the latch to [`CLASS`], waits until it is zero, and passes the point of locking the door. No lock is taken.
async fn lock_after_all(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let latch = ctx.redis.latch(&job.redis_name(LATCH));
    latch.try_set_count(CLASS).await?;
    job.reach(Point::Waits).await;
    latch.wait(job.wait_left()).await?;
    job.reach(Point::Door).await;
    Ok(Deduction::default())
}

/// A student goes out and counts the latch down.
async fn count_down(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let left = ctx.redis.latch(&job.redis_name(LATCH)).count_down().await?;
    job.reach_with(Point::Out, left.map_or_else(|| "-".to_owned(), |left| left.to_string())).await;
    Ok(Deduction::default())
}
