//! §1.7.2, [003] Two read under a shared lock, and both want to write: a deadlock.
//!
//! 1. A and B read under `LOCK IN SHARE MODE`: both may.
//! 2. A wants to write, and waits until B's shared lock is gone. B wants to write, and waits until A's is.
//! 3. The server sees the circle and rolls one of them back, which begins again.
//!
//! On its cure they read `FOR UPDATE`: B waits before it has read, and nobody is rolled back.
//!
//! What it survives: nothing is oversold, with the cure or without. **What breaks it**: the price: work is thrown away.
//!
//! Next: `version_moved.rs`, which locks nothing.

use super::row_lock::A_READS_UNDER_ROW_LOCK;
use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["1.7.2.shared"],
    title: Bilingual::of("共享锁升级：互相等待", "Shared locks that both want to become exclusive"),
    breaks: Bilingual::of("都拿着共享锁，都等对方释放", "both have the shared lock, and wait for the other's"),
    cure: Bilingual::of("要写的，一开始就用 FOR UPDATE 读", "a reader that is going to write reads FOR UPDATE"),
    anomalies: &[Anomaly::Deadlock],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("select-share"),
        steps: &[
            say("A 用共享锁读", "A reads under a shared lock"),
            A.stops_at(Point::Read),
            say("B 也用共享锁读：可以同时", "B reads under a shared lock too: both may"),
            B.stops_at(Point::Read),
            say("A 要写：等 B 释放共享锁", "A wants to write, and waits for B's shared lock"),
            A.continues(),
            say(
                "B 也要写：死锁。数据库回滚其中一个，它从头再来",
                "B wants to write too: a deadlock. The server rolls one back, which begins again",
            ),
            FinishTogether(&[A, B]),
            NoteFrom(Play::retry_note),
        ],
        expected: ExpectedResult::sold(2, 2).inside(2).noting("retries 1", "重试 1 次", "1 retry"),
    },
    cured: Variant {
        act: Act::Strategy("select-for-update"),
        steps: &[All(A_READS_UNDER_ROW_LOCK), NoteFrom(Play::retry_note)],
        expected: ExpectedResult::sold(2, 2).inside(1).noting("retries 0", "重试 0 次", "0 retries"),
    },
};
