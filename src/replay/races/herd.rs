//! §3.4.2 The herd: one gives the lock back, and how many are woken?
//!
//! 1. Fifty wait in a queue of numbered nodes, each with a session of its own, and all watch the directory.
//! 2. One release after the other: 50 are woken, 49, 48 … and each time one of them gets in.
//!
//! On its cure each watches the node before its own: a release wakes one.
//!
//! Points: `woken`, with the number, for each release.
//!
//! Next: `queue_of_nodes.rs`.

use super::*;
use crate::classroom::zk_herd::{self, Watch};

/// Waiters behind the holder: enough to see a herd.
const WAITERS: u16 = 50;

pub(super) const RACE: Race = Race {
    lessons: &["3.4.2.herd"],
    title: Bilingual::of("羊群效应：释放一次锁，唤醒几个", "The herd effect: how many does a release wake"),
    breaks: Bilingual::of("都监听父节点：释放一次锁，全部唤醒", "all watch the directory: each release wakes all of them"),
    cure: Bilingual::of("只监听前一个节点：释放一次锁，唤醒一个", "each watches the node before its own: a release wakes one"),
    anomalies: &[Anomaly::Herd],
    begin: &[],
    flaw: Variant {
        act: Act::custom("zk-watch-parent", &[], |ctx, job| Box::pin(drain_queue(ctx, job, Watch::Parent))),
        steps: &[
            say("一个持有锁，50 个排队，每个都监听父节点", "one has the lock, 50 wait, and each watches the directory"),
            A.continues(),
            say("一个一个释放锁：每次唤醒几个", "one release after the other: how many each of them wakes"),
            A.finishes(),
            NoteFrom(woken_counts),
        ],
        expected: ExpectedResult::NOTHING.noting(
            "50 49 48 … 2 1 0",
            "每次释放锁唤醒几个：50 49 48 … 2 1 0",
            "woken at each release: 50 49 48 … 2 1 0",
        ),
    },
    cured: Variant {
        act: Act::custom("zk-watch-predecessor", &[], |ctx, job| Box::pin(drain_queue(ctx, job, Watch::Predecessor))),
        steps: &[
            say(
                "一个持有锁，50 个排队，每个都监听前一个节点",
                "one has the lock, 50 wait, and each watches the node before its own",
            ),
            A.continues(),
            say("一个一个释放锁：每次唤醒几个", "one release after the other: how many each of them wakes"),
            A.finishes(),
            NoteFrom(woken_counts),
        ],
        expected: ExpectedResult::NOTHING.noting(
            "1 1 1 … 1 1 0",
            "每次释放锁唤醒几个：1 1 1 … 1 1 0",
            "woken at each release: 1 1 1 … 1 1 0",
        ),
    },
};

/// Lets [`WAITERS`] waiters, all with this watch, get the lock one after the other; then passes the point `woken` once for each
/// release, with how many it woke. Sells nothing.
async fn drain_queue(ctx: &Ctx, job: &Job, watch: Watch) -> Result<Deduction, Error> {
    let drained = zk_herd::drain_once(ctx, WAITERS, job.wait_left(), watch).await?;
    for woken in drained.0 {
        job.reach_with(Point::Woken, woken).await;
    }
    Ok(Deduction::default())
}

/// How many waiters the first three and the last three releases woke: `50 49 48 … 2 1 0`.
fn woken_counts(play: &Play) -> String {
    let woken = play.values_of("woken");
    let [first, last] =
        [woken.first_chunk::<3>(), woken.last_chunk()].map(|some| some.map_or_else(String::new, |some| some.join(" ")));
    format!("{first} … {last}")
}
