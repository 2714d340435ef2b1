//! §3.7.7 Two add one to a number that all instances share.
//!
//! 1. A reads 0, and has not set it yet. B reads 0 too, and sets 1.
//! 2. A sets 1: two have added, and the number is 1. `SharedCount.setCount` does not look.
//!
//! On its cure, `trySetCount`, the number is set only where its version is the one that was read: A is refused, reads again,
//! and sets 2. The atomic long does the same by itself.
//!
//! Points: `read`, `conflict`, `written`.
//!
//! Next: `promoted_replica.rs`.

use super::*;

const COUNT: &str = "/curator/count";
/// The names that the acts write, and a reset clears.
const NAMES: &[Name] = &[Name::ZooKeeper(COUNT)];

pub(super) const RACE: Race = Race {
    lessons: &["3.7.7"],
    title: Bilingual::of("两个人给共享计数器各加一", "Two add one to a shared count"),
    breaks: Bilingual::of("setCount 不看别人改过没有", "setCount does not look whether another has set it"),
    cure: Bilingual::of("trySetCount：版本没变才写，否则重来", "trySetCount: only where the version is as it was read"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 读到 0", "A reads 0"),
        A.stops_at(Point::Read),
        say("B 也读到 0，写 1", "B reads 0 too, and sets 1"),
        B.finishes(),
    ],
    flaw: Variant {
        act: Act::custom("zk-set-count", NAMES, |ctx, job| Box::pin(set_count(ctx, job))),
        steps: &[
            say("A 也写 1：加了两次，还是 1", "A sets 1 too: two have added, and it is 1"),
            A.finishes(),
            NoteFrom(last_value),
        ],
        expected: ExpectedResult::NOTHING.noting("1", "最后的计数是 1", "the count is 1 at the end"),
    },
    cured: Variant {
        act: Act::custom("zk-try-set-count", NAMES, |ctx, job| Box::pin(try_set_count(ctx, job))),
        steps: &[
            say("A 写 1 被拒绝：版本变了；再读，写 2", "A's 1 is refused: the version has changed; it reads, and sets 2"),
            A.finishes(),
            NoteFrom(last_value),
        ],
        expected: ExpectedResult::NOTHING.noting("2", "最后的计数是 2", "the count is 2 at the end"),
    },
};

/// Adds one to the shared count by a read and a write, between which another can come; sells nothing.
async fn set_count(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let count = ctx.zk.shared_count(&job.zk_path(COUNT), 0);
    let read = count.get().await?.value;
    job.reach_with(Point::Read, read).await;
    job.reach_with(Point::Written, count.set(read + 1).await?.value).await;
    Ok(Deduction::default())
}

/// Adds one to the shared count only if nobody has set it since it was read, and else tries again; sells nothing.
async fn try_set_count(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let count = ctx.zk.shared_count(&job.zk_path(COUNT), 0);
    let mut retries = 0;
    loop {
        let seen = count.get().await?;
        job.reach_with(Point::Read, seen.value).await;
        if let Ok(set) = count.try_set(seen, seen.value + 1).await? {
            job.reach_with(Point::Written, set.value).await;
            return Ok(Deduction { retries, ..Deduction::default() });
        }
        job.reach(Point::Conflict).await;
        retries += 1;
    }
}

/// The number that was set last; empty if none was.
fn last_value(play: &Play) -> String {
    play.values_of("written").pop().unwrap_or_default()
}
