//! §2.6 → §2.7 A's job takes longer than its lease.
//!
//! 1. A has the lock, has read, and is busy. Its lease ends.
//! 2. B gets in, and reads the same number.
//! 3. Both write: two are sold, one is gone. A's unlock finds its lock lost.
//!
//! On its cure a timer renews the lease every third of it: B waits until A is through.
//!
//! Next: `late_renewal.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.7"],
    title: Bilingual::of("业务比租约长", "A job longer than its lease"),
    breaks: Bilingual::of("租约到期，锁中途没了", "the lease ends, and the lock is gone in the middle"),
    cure: Bilingual::of("看门狗：每过三分之一就续一次", "a watchdog renews every third of the lease"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[say("A 拿到锁，读库存，然后一直忙", "A has the lock, reads the stock, and is busy")],
    flaw: Variant {
        act: Act::Strategy("redis-reentrant"),
        steps: &[
            A.lease(3000).stops_at(Point::Read),
            say("没人续期：租约到期", "nobody renews: the lease ends"),
            LeaseEnds,
            say("B 进来了，和 A 同时在临界区", "B gets in beside A"),
            B.stops_at(Point::Read),
            say("A 写完才发现：锁早已不是它的", "A writes, and finds its lock lost"),
            A.finishes_with_lock_lost(),
            say("B 写的是同一个数", "B writes the same number"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-watchdog"),
        steps: &[
            // The course's 3 s at every pace: a busy machine may delay a renewal by two thirds of it.
            A.self_ending_lease(3000, 3000).stops_at(Point::Read),
            say("B 等待", "B waits"),
            B.stops_at(Point::Refused),
            say("定时器每过三分之一，就把租约重置为完整的时长", "a timer renews the lease every third of it"),
            // At a slow pace, this many renewals take longer than one lease.
            A.passes(Point::Renewed, 4, 1),
            Note("renewed"),
            say("锁还是 A 的：A 写完，释放锁", "the lock is still A's, who writes and releases"),
            A.finishes_and_unlocks(),
            say("然后 B 才进来", "and then B gets in"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1).noting("renewed", "续期了", "it was renewed"),
    },
};
