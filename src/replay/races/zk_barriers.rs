//! §3.7.6 Three begin together, or each when it comes.
//!
//! 1. Without a barrier A begins, and is through, before C has come.
//!
//! On its cure, a double barrier for three, A and B wait at the entrance until C comes: all three begin at once; and one
//! that is done waits at the exit for the others.
//!
//! Points: `locked` (inside), `written` (through).
//!
//! Next: `zk_counts.rs`.

use super::*;
use std::num::NonZeroU32;

/// The path of the barrier.
const ROOM: &str = "/curator/double-barrier";
/// How many must come: three.
const MEMBERS: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

pub(super) const RACE: Race = Race {
    lessons: &["3.7.6"],
    title: Bilingual::of("三个一起开始", "Three begin together"),
    breaks: Bilingual::of("没有栅栏：先来的先做完，谁也不等谁", "no barrier: the first to come is the first to go"),
    cure: Bilingual::of("双栅栏：到齐了才开始，全部完成后一起离开", "a double barrier: all begin, and leave, together"),
    anomalies: &[Anomaly::Early],
    begin: &[],
    flaw: Variant {
        act: Act::custom("no-barrier", &[], |_, job| Box::pin(enter_and_leave(job))),
        steps: &[
            say("A 来了就做，做完就走", "A comes, works, and is through"),
            A.finishes(),
            say("B 来了就做，做完就走", "B comes, works, and is through"),
            B.finishes(),
            say("C 来了就做，做完就走", "C comes, works, and is through"),
            C.finishes(),
        ],
        expected: ExpectedResult::NOTHING.inside(1),
    },
    cured: Variant {
        act: Act::custom("zk-double-barrier", &[Name::ZooKeeper(ROOM)], |ctx, job| Box::pin(work_between_barriers(ctx, job))),
        steps: &[
            say("A 来了，在栅栏前等", "A comes, and waits at the barrier"),
            A.will_stop_at(Point::Locked),
            say("B 也来了，还差一个", "B comes too: one is missing"),
            B.will_stop_at(Point::Locked),
            say("C 来了：到齐了，三个同时开始", "C comes: all are there, and the three begin at once"),
            C.stops_at(Point::Locked),
            A.stops_at(Point::Locked),
            B.stops_at(Point::Locked),
            say("做完的在出口等，都做完才一起离开", "each waits at the exit, and all leave together"),
            FinishTogether(&[A, B, C]),
        ],
        expected: ExpectedResult::NOTHING.inside(3),
    },
};

/// Passes the points `locked` (inside) and `written` (through), and waits for nobody. Takes no piece: the result is empty.
async fn enter_and_leave(job: &Job) -> Result<Deduction, Error> {
    job.reach(Point::Locked).await;
    job.reach(Point::Written).await;
    Ok(Deduction::default())
}

/// Waits at the entrance for all members, works, and waits at the exit for all.
async fn work_between_barriers(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let room = ctx.zk.double_barrier(&job.zk_path(ROOM), MEMBERS);
    let member = room.enter(job.wait_left()).await?;
    let done = enter_and_leave(job).await;
    room.leave(&member, job.wait_left()).await?;
    done
}
