//! §3.7.2 Curator's lock that is not re-entrant, taken again by its holder, in a method that the section calls.
//!
//! 1. A takes the one lease of `InterProcessSemaphoreMutex`: it has the lock.
//! 2. It takes the lock again: the lease is taken, by itself. It waits for itself, until its wait is over.
//!
//! On its cure it is the lock of §3.5, which counts what its owner holds, as `InterProcessMutex` (§3.7.1) does: the second
//! time gets in.
//!
//! Points of the second try: those of the strategy `zk-semaphore-mutex`.
//!
//! Next: `herd.rs`.

use super::zk_reentry::{A_TAKES_LOCK_TWICE, COUNTED_REENTRY, acquire_again};
use super::*;

const SEMAPHORE_MUTEX: &str = "/curator/semaphore-mutex";

pub(super) const RACE: Race = Race {
    lessons: &["3.7.2"],
    title: Bilingual::of("不可重入的锁，持有者再拿一次", "The holder of a lock that is not re-entrant takes it again"),
    breaks: Bilingual::of("唯一的租约在自己手里：自己等自己", "it has the only lease itself: it waits for itself"),
    cure: Bilingual::of(
        "换成会计数的锁，如 §3.5 那把：再拿一次只加一",
        "a lock that counts, such as that of §3.5: once more only adds one",
    ),
    anomalies: &[Anomaly::Stuck],
    begin: &[],
    flaw: Variant {
        act: Act::custom_selling(Store::MySql, "zk-semaphore-mutex-twice", &[Name::ZooKeeper(SEMAPHORE_MUTEX)], |ctx, job| {
            Box::pin(acquire_twice(ctx, job))
        }),
        steps: &[
            A_TAKES_LOCK_TWICE,
            A.stops_at(Point::Locked),
            say("租约只有一个，在 A 自己手里：A 等到超时", "there is one lease, which A has: A waits until its wait is over"),
            A.times_out(),
        ],
        expected: ExpectedResult::NOTHING.inside(1),
    },
    cured: COUNTED_REENTRY,
};

/// Takes the lock of §3.7.2, tries to sell under the same lock taken again, and releases it.
async fn acquire_twice(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let path = job.zk_path(SEMAPHORE_MUTEX);
    let guard = ctx.zk.semaphore_mutex(&path).acquire(job.wait_left()).await?;
    job.reach(Point::Locked).await;
    let inner = acquire_again(ctx, job, "zk-semaphore-mutex", &path).await;
    guard.release().await?;
    inner
}
