//! §2.2 → §2.3 A's job outlives its lease, and then A deletes what is there: B's lock.
//!
//! 1. A has the lock, has read, and works longer than its lease.
//! 2. The lease ends; B takes the lock, and reads.
//! 3. A writes, and deletes the key, which is B's by now.
//! 4. C gets in beside B.
//!
//! On its cure A looks first whose key it is, and leaves it: C waits until B is through. That A and B were both inside is
//! not cured by that: §2.7 is.
//!
//! Next: `look_then_delete.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.3", "001.expire"],
    title: Bilingual::of("迟到的 DEL 删掉了别人的锁", "A late DEL deletes another's lock"),
    breaks: Bilingual::of("业务比租约长，DEL 不看锁是谁的", "the job outlives its lease, and DEL does not look"),
    cure: Bilingual::of(
        "锁里写上持有者，删之前先判断（2.3）。还超卖 1：A 的业务仍比租约长，续期见 2.7，令牌见 [003]",
        "the key names its owner, who looks first (2.3). One is oversold still: A's job outlives its lease; see 2.7 for renewal, [003] for tokens",
    ),
    anomalies: &[Anomaly::LateRelease, Anomaly::LostUpdate],
    begin: &[
        say("A 拿到锁，读库存，然后一直忙", "A has the lock, reads the stock, and is busy"),
        A.lease(3000).stops_at(Point::Read),
        say("A 的租约到期：锁没了，A 还在忙", "A's lease ends: its lock is gone, and A is still busy"),
        LeaseEnds,
        say("B 拿到锁，也读", "B takes the lock, and reads too"),
        B.stops_at(Point::Read),
        say("C 等待", "C waits"),
        C.stops_at(Point::Refused),
        say("A 写完，删锁", "A writes, and deletes the lock"),
    ],
    flaw: Variant {
        act: Act::Strategy("redis-setnx-ttl"),
        steps: &[
            A.finishes_and_unlocks(),
            say("删的是 B 的锁：C 进来了，和 B 同时在临界区", "it was B's: C gets in beside B"),
            C.finishes(),
            say("B 写完：把 C 卖的也盖掉了", "B writes over what C has sold"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(3, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-setnx-owner"),
        steps: &[
            A.finishes_with_lock_lost(),
            say("锁是 B 的，A 不删；B 写完", "the lock is B's, and A leaves it; B writes"),
            B.finishes(),
            say("B 释放锁以后，C 才进来", "C gets in after B"),
            C.finishes(),
            LockIsFree,
        ],
        expected: ExpectedResult::sold(3, 2).inside(2),
    },
};
