//! [002] The mutex inside the transaction is given back before the commit.
//!
//! 1. A locks the mutex, reads 5000, writes 4999, unlocks. It has not committed yet.
//! 2. B locks the mutex, on the same instance, and reads: 5000, since what is not committed is invisible to a plain read.
//! 3. A commits; B writes 4999, and commits: two are sold, one is gone, and never were two under the mutex.
//!
//! On its cure the mutex is round the write and its commit: B reads what A has committed.
//!
//! **What breaks it**: a lock that is given back before its transaction has committed.
//!
//! Next: `one_order.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["002.unlock-before-commit"],
    title: Bilingual::of("先解锁，后提交", "Unlock first, commit afterwards"),
    breaks: Bilingual::of(
        "解锁与提交之间，别人读到的还是旧的",
        "between the unlock and the commit another reads what was there before",
    ),
    cure: Bilingual::of("锁包住整个事务：提交以后才解锁", "the lock is wider than the transaction: commit, then unlock"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("mutex-commit-late"),
        steps: &[
            say(
                "A 在事务里：拿到锁，读，写，解锁；还没提交",
                "A, in a transaction: locks, reads, writes, unlocks; it has not committed yet",
            ),
            A.stops_at(Point::Released),
            say("锁空着，B 拿到，读到的还是 5000", "the mutex is free: B locks it, and still reads 5000"),
            B.on_instance_of(A).stops_at(Point::Read),
            B.continues(),
            say("A 提交 4999", "A commits 4999"),
            A.finishes(),
            say("B 也写 4999、提交：卖了两件，库存只减一件", "B writes 4999 too, and commits: two are sold, one is gone"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(1),
    },
    cured: Variant {
        act: Act::Strategy("mutex"),
        steps: &[
            say("A 拿到锁，读，写，自动提交；还没解锁", "A locks, reads and writes, by autocommit; it has not unlocked yet"),
            A.stops_at(Point::Written),
            say("B 等锁", "B waits for the mutex"),
            B.on_instance_of(A).waits(),
            say("A 解锁，B 读到 4999", "A unlocks, and B reads 4999"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1),
    },
};
