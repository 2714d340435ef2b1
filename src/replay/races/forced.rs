//! [004] demo2 takes the lock by force after its safety time, from a holder that is at work.
//!
//! 1. A has the lock, well within its lease, and works.
//! 2. B has waited for five of its leases, writes its own value into the key, and works too: two are inside.
//! 3. A finds another's value in the key: its lock is lost.
//!
//! On its cure, the library's lock, nobody takes what another has: B waits until A gives it back, or A's lease ends.
//!
//! What it survives: with the library's lock, a holder that dies. **What breaks it**: a holder that is paused beyond its lease.
//!
//! Next: `oversell_lock::redis`.

use super::*;
use crate::{
    classroom::{
        demo_layer,
        demo2::{self, LockValue},
    },
    section::LockState,
};
use oversell_lock::LockError;

/// The key of the library's lock, for the cure.
const CURED_LOCK_KEY: &str = "demo2Library";

pub(super) const RACE: Race = Race {
    lessons: &["004.force"],
    title: Bilingual::of("等久了就强行拿锁", "A waiter takes the lock by force"),
    breaks: Bilingual::of("被强占的人还在工作", "the holder that it is taken from is still at work"),
    cure: Bilingual::of("不强占：持有者死了，租约会到期", "no force: where a holder is dead, its lease ends"),
    anomalies: &[Anomaly::TwoHolders],
    begin: &[
        say("A 拿到锁，在工作，租约还早", "A has the lock and works; its lease is far from its end"),
        A.stops_at(Point::Worked),
    ],
    flaw: Variant {
        act: Act::custom("demo2", demo2::NAMES, |ctx, job| Box::pin(take_by_force(ctx, job))),
        steps: &[
            // Shorter than the text's lease of 10 s and safety time of 50 s, for the class's sake.
            say(
                "B 等了五个租约，强行拿到锁，值换成自己的",
                "B has waited for five leases, and takes the lock by force, with its own value in it",
            ),
            B.self_ending_lease(1000, 100).stops_at(Point::Worked),
            say("两个都在临界区；A 干完，锁已经不是它的了", "both are inside; A is done, and its lock is no longer its own"),
            A.finishes_with_lock_lost(),
            Note("A has lost its lock"),
            B.finishes(),
        ],
        expected: ExpectedResult::NOTHING.inside(2).noting("A has lost its lock", "A 的锁丢了", "A has lost its lock"),
    },
    cured: Variant {
        act: Act::custom("library-lock", &[Name::Redis(CURED_LOCK_KEY)], |ctx, job| Box::pin(lock_of_library(ctx, job))),
        steps: &[
            say("B 等", "B waits"),
            B.stops_at(Point::Waits),
            B.will_stop_at(Point::Worked),
            say("A 干完，释放锁", "A is done, and releases"),
            A.stops_at(Point::Leaves),
            A.finishes_and_unlocks(),
            say("B 才进来", "B gets in after it"),
            B.stops_at(Point::Worked),
            B.finishes(),
        ],
        expected: ExpectedResult::NOTHING.inside(1),
    },
};

/// Takes the lock of the second demo, works and unlocks; after the demo's safety time it takes the lock by force.
async fn take_by_force(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let found = demo2::visit(ctx, job, LockValue::Uuid).await?;
    Ok(Deduction::default().with_lock_state(found))
}

/// Waits for the library's lock, passes the points of its work without taking a piece, and releases it. That the lock was lost is
/// in the answer, and no error.
async fn lock_of_library(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    job.reach(Point::Waits).await;
    let guard = demo_layer::lock(ctx, job, CURED_LOCK_KEY).acquire(job.wait_left()).await?;
    job.reach(Point::Locked).await;
    job.reach(Point::Worked).await;
    job.reach(Point::Leaves).await;
    let found = match guard.release().await {
        Ok(()) => LockState::Kept,
        Err(LockError::Lost { .. }) => LockState::Lost,
        Err(error) => return Err(error.into()),
    };
    Ok(Deduction::default().with_lock_state(Some(found)))
}
