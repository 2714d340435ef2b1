//! §2.10.6 Three come to a room for two.
//!
//! 1. A and B come in, and stay.
//! 2. C comes: nothing keeps it out, and three are inside.
//!
//! On its cure they take permits from a semaphore. It has two here, so that three actors are enough to see it (the course
//! has three, and ten requests): C waits until A leaves.
//!
//! Next: `latch.rs`.

use super::*;
use oversell_lock::LockError;

/// The semaphore's name in Redis.
const SEMAPHORE: &str = "semaphore";
/// The names that the acts write, and a reset clears.
const NAMES: &[Name] = &[Name::RedisCount(SEMAPHORE)];
/// The permits of the semaphore.
const PERMITS: u32 = 2;

pub(super) const RACE: Race = Race {
    lessons: &["2.10.6"],
    title: Bilingual::of("两个许可，来了三个", "Two permits, and three that come"),
    breaks: Bilingual::of("没有信号量：来多少进多少", "without a semaphore all that come are inside"),
    cure: Bilingual::of(
        "信号量：先拿许可再进（这里是 2 个，课程是 3 个）",
        "a semaphore: no entry without a permit (2 here, 3 in the course)",
    ),
    anomalies: &[Anomaly::OverLimit],
    begin: &[
        say("这里两个许可（课程是三个）：A 进来", "two permits here (the course has three): A comes in"),
        A.stops_at(Point::Locked),
        say("B 进来", "B comes in"),
        B.stops_at(Point::Locked),
    ],
    flaw: Variant {
        act: Act::custom("come-in", NAMES, |_, job| Box::pin(enter_without_permit(job))),
        steps: &[
            say("C 也进来了：里面有三个人", "C comes in too: three are inside"),
            C.stops_at(Point::Locked),
            A.finishes(),
            B.finishes(),
            C.finishes(),
        ],
        expected: ExpectedResult::NOTHING.inside(3),
    },
    cured: Variant {
        act: Act::custom("take-a-permit", NAMES, |ctx, job| Box::pin(take_a_permit(ctx, job))),
        steps: &[
            say("C 也来了：许可发完了，等着", "C comes too: no permit is left, and it waits"),
            C.stops_at(Point::Refused),
            Note("C waits"),
            C.will_stop_at(Point::Locked),
            say("A 走了，还了许可：C 进来", "A leaves and gives its permit back: C comes in"),
            A.finishes(),
            C.stops_at(Point::Locked),
            B.finishes(),
            C.finishes(),
        ],
        expected: ExpectedResult::NOTHING.inside(2).noting("C waits", "C 在等待", "C waits"),
    },
};

/// The flaw: enters without a permit.
async fn enter_without_permit(job: &Job) -> Result<Deduction, Error> {
    job.reach(Point::Locked).await;
    Ok(Deduction::default())
}

/// The cure: takes a permit, waiting for one if all are out, and gives it back.
async fn take_a_permit(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let semaphore = ctx.redis.semaphore(&job.redis_name(SEMAPHORE)).initially(PERMITS).without_lease();
    let permit = match semaphore.try_acquire(1).await {
        Err(LockError::Taken { .. }) => {
            job.reach(Point::Refused).await;
            semaphore.acquire(1, job.wait_left()).await?
        }
        tried => tried?,
    };
    job.reach(Point::Locked).await;
    job.reach(Point::Left).await;
    permit.release().await?;
    job.reach(Point::Released).await;
    Ok(Deduction::default())
}
