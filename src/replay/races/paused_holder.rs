//! [003] The holder's process stands still for longer than its lease, and then writes what it had worked out before.
//!
//! 1. A has the lock, and has read; its process is stopped (SIGSTOP), as by a long garbage collection.
//! 2. Nobody renews the lease: it ends. B takes the lock, reads and writes.
//! 3. A goes on, believes that the lock is its own, and writes over B.
//!
//! On its cure both show a token to the row. B's is higher; the row refuses A's write, and A has sold nothing. That two were
//! inside is not cured by that: no lock with a lease can.
//!
//! **What it cannot do** without a lab: stop a process. There A's request stands still and its process does not, so the
//! lease is ended here.
//!
//! Next: `paused_session.rs`, the same in ZooKeeper.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["003.pause"],
    title: Bilingual::of("持有者停得比租约还久", "A holder that is paused beyond its lease"),
    breaks: Bilingual::of("醒来以后还以为锁是自己的，照样写", "it wakes, believes that the lock is its own, and writes"),
    cure: Bilingual::of("fencing token（防护令牌）：行只认更大的，拒绝旧的", "a fencing token: the row refuses the older one"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 拿到锁，读库存", "A has the lock, and reads the stock"),
        A.lease(3000).stops_at(Point::Read),
        A.gets_paused(),
        say("A 停住了：没人续期，租约到期", "A is paused: nobody renews the lease, and it ends"),
        UnrenewedLeaseEnds,
        say("B 拿到锁，读", "B takes the lock, and reads"),
        B.stops_at(Point::Read),
        say("B 写完，释放锁", "B writes, and releases"),
        B.finishes(),
    ],
    flaw: Variant {
        act: Act::Strategy("redis-lock"),
        steps: &[
            say("A 醒了，不知道锁已经没了，接着写", "A wakes, does not know that its lock is gone, and writes"),
            A.gets_resumed(),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-fenced"),
        steps: &[
            say(
                "A 醒了，带着旧令牌去写：行见过更新的令牌，拒绝它",
                "A wakes and writes with its old token: the row has a newer one, and refuses it",
            ),
            A.gets_resumed(),
            A.fails_fenced(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(2),
    },
};
