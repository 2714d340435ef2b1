//! §2.3 → §2.5 The lease ends between the look (GET) and the delete (DEL).
//!
//! 1. A has written, and GET says that the lock is its own.
//! 2. The lease ends; B takes the lock, and reads.
//! 3. A deletes the key, which is B's by now.
//! 4. C gets in beside B.
//!
//! On its cure both are one script: nothing comes between.
//!
//! Next: `count_to_three.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.3.gap", "002.lock.lua"],
    title: Bilingual::of("租约在 GET 和 DEL 之间到期", "The lease ends between GET and DEL"),
    breaks: Bilingual::of("判断和删除是两条命令", "the look and the delete are two commands"),
    cure: Bilingual::of("一段脚本里比较并删除（2.5）", "compare and delete in one script (2.5)"),
    anomalies: &[Anomaly::LateRelease, Anomaly::LostUpdate],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("redis-setnx-owner"),
        steps: &[
            say("A 拿到锁，读，写", "A has the lock, reads, and writes"),
            A.lease(3000).stops_at(Point::Checked),
            say("GET 说锁是 A 的；这时租约到期", "GET says that the lock is A's; then the lease ends"),
            LeaseEnds,
            say("B 拿到锁，读", "B takes the lock, and reads"),
            B.stops_at(Point::Read),
            say("C 等待", "C waits"),
            C.stops_at(Point::Refused),
            All(A_DELETES_LOCK_OF_B),
        ],
        expected: ExpectedResult::sold(3, 2).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-setnx-lua"),
        steps: &[All(LEASE_ENDS_BEFORE_DELETE), All(A_LEAVES_LOCK_OF_B)],
        expected: ExpectedResult::sold(3, 3).inside(1),
    },
};

/// A has written; its lease ends before it deletes its lock. B takes the lock, and C is refused.
pub(super) const LEASE_ENDS_BEFORE_DELETE: &[Step] = &[
    say("A 拿到锁，读，写", "A has the lock, reads, and writes"),
    A.lease(3000).stops_at(Point::Written),
    say("A 还没删锁，租约到期", "the lease ends before A deletes the lock"),
    LeaseEnds,
    say("B 拿到锁，读", "B takes the lock, and reads"),
    B.stops_at(Point::Read),
    say("C 等待", "C waits"),
    C.stops_at(Point::Refused),
];

/// A deletes B's lock, and C gets in beside B.
pub(super) const A_DELETES_LOCK_OF_B: &[Step] = &[
    say("A 的 DEL 删掉了 B 的锁", "A's DEL deletes B's lock"),
    A.finishes_and_unlocks(),
    say("C 进来了，和 B 同时在临界区", "C gets in beside B"),
    C.finishes(),
    say("B 写完：把 C 卖的盖掉了", "B writes over what C has sold"),
    B.finishes(),
    LockIsFree,
];

/// A finds its lock lost and leaves B's; C waits for B.
pub(super) const A_LEAVES_LOCK_OF_B: &[Step] = &[
    say("A 的脚本比较：不是它的，不删", "A's script compares: it is not A's, and stays"),
    A.finishes_with_lock_lost(),
    say("B 写完，释放锁", "B writes, and releases"),
    B.finishes(),
    say("然后 C 才进来", "and then C gets in"),
    C.finishes(),
    LockIsFree,
];
