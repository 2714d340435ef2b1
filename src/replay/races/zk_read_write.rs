//! §3.7.3 Two read and one writes: who has to wait for whom?
//!
//! 1. Under one exclusive lock the reader B waits for the reader A, though neither changes anything.
//! 2. C, who writes, waits for both.
//!
//! On its cure, the read-write lock, A and B are inside together; C waits until both have gone. A writer may read besides
//! (a downgrade); a reader that wants to write is refused at once, since it would wait for itself.
//!
//! Points: `locked`, `downgraded`, `upgrade-refused`.
//!
//! Next: `zk_barriers.rs`.

use super::*;
use crate::section::LockState;
use oversell_lock::Guard;

const LOCK: &str = "/curator/rwlock";
/// The names that the acts write, and a reset clears.
const NAMES: &[Name] = &[Name::ZooKeeper(LOCK)];
/// C's act on the cure: a writer.
const WRITE: Act = Act::custom("zk-write-half", NAMES, |ctx, job| Box::pin(write_and_downgrade(ctx, job)));

/// A ends, then B is inside and ends, then C; notes the order.
const ONE_AFTER_THE_OTHER: &[Step] = &[
    say("A 读完", "A has read"),
    A.finishes(),
    B.stops_at(Point::Locked),
    say("B 读完", "B has read"),
    B.finishes(),
    C.stops_at(Point::Locked),
    say("C 独自写", "C writes, alone"),
    C.finishes(),
    NoteFrom(seen_order),
];

pub(super) const RACE: Race = Race {
    lessons: &["3.7.3"],
    title: Bilingual::of("两个读，一个写", "Two read, one writes"),
    breaks: Bilingual::of("只有一把独占锁：读的也要等读的", "one exclusive lock: readers wait for readers"),
    cure: Bilingual::of("读写锁：读的一起读，写的独占", "a read-write lock: readers together, a writer alone"),
    anomalies: &[Anomaly::Serialized],
    begin: &[say("A 在读", "A reads"), A.stops_at(Point::Locked)],
    flaw: Variant {
        act: Act::custom("zk-exclusive", NAMES, |ctx, job| Box::pin(hold_plain_lock(ctx, job))),
        steps: &[
            say("B 也来读：等 A", "B comes to read too: it waits for A"),
            B.will_stop_at(Point::Locked),
            QueueHas(1),
            say("C 要写：排在后面", "C wants to write: behind them"),
            C.will_stop_at(Point::Locked),
            QueueHas(2),
            All(ONE_AFTER_THE_OTHER),
        ],
        expected: ExpectedResult::NOTHING.inside(1).noting("A B C", "进去的顺序：A B C", "they got in in the order A B C"),
    },
    cured: Variant {
        act: Act::custom("zk-read", NAMES, |ctx, job| Box::pin(read_and_try_upgrade(ctx, job))),
        steps: &[
            say("B 也来读：和 A 一起", "B comes to read too: together with A"),
            B.stops_at(Point::Locked),
            say("C 要写：等所有读的走完", "C wants to write: it waits until all readers have gone"),
            C.acting(WRITE).will_stop_at(Point::Locked),
            QueueHas(2),
            All(ONE_AFTER_THE_OTHER),
        ],
        expected: ExpectedResult::NOTHING.inside(2).noting(
            "A B C, upgrade refused, downgraded",
            "进去的顺序：A B C；升级被拒绝，降级可以",
            "they got in in the order A B C; upgrade refused, downgrade granted",
        ),
    },
};

/// Takes the lock as one exclusive lock, whoever reads or writes, and releases it.
async fn hold_plain_lock(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let guard = ctx.zk.lock(&job.zk_path(LOCK)).acquire(job.wait_left()).await?;
    job.reach(Point::Locked).await;
    leave_and_release(job, guard).await
}

/// Takes the read half, tries the write half without a wait (`upgrade-refused`), and releases the read half.
async fn read_and_try_upgrade(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let (lock, owner) = (ctx.zk.rw_lock(&job.zk_path(LOCK)), job.owner(ctx));
    let guard = lock.read().owner(owner).acquire(job.wait_left()).await?;
    job.reach(Point::Locked).await;
    if lock.write().owner(owner).acquire(Duration::ZERO).await.is_err() {
        job.reach(Point::UpgradeRefused).await;
    }
    leave_and_release(job, guard).await
}

/// Takes the write half, then the read half as the same owner (`downgraded`), and releases both.
async fn write_and_downgrade(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let (lock, owner) = (ctx.zk.rw_lock(&job.zk_path(LOCK)), job.owner(ctx));
    let guard = lock.write().owner(owner).acquire(job.wait_left()).await?;
    job.reach(Point::Locked).await;
    let reading = lock.read().owner(owner).acquire(job.wait_left()).await?;
    job.reach(Point::Downgraded).await;
    guard.release().await?;
    leave_and_release(job, reading).await
}

/// Passes the point `left`, and releases the lock.
async fn leave_and_release(job: &Job, guard: Guard) -> Result<Deduction, Error> {
    job.reach(Point::Left).await;
    guard.release().await?;
    Ok(Deduction::default().with_lock_state(Some(LockState::Kept)))
}

/// The order of acquisition, and the results of an upgrade and a downgrade.
fn seen_order(play: &Play) -> String {
    let mut seen = play.acquisition_order();
    for (what, words) in [("upgrade-refused", ", upgrade refused"), ("downgraded", ", downgraded")] {
        seen += if play.values_of(what).is_empty() { "" } else { words };
    }
    seen
}
