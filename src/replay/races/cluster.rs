//! [002] One order per user, on two instances: each has its own locks of the users.
//!
//! 1. A and B are two orders of one user. A has the mutex of its instance for the user, and finds no order.
//! 2. B comes to another instance, where nobody has that mutex: it finds no order either. Both write one.
//!
//! On its cure the lock is in Redis, which the instances share: B is refused.
//!
//! What it survives: with the lock in Redis, any number of instances. **What breaks it**: a lease that ends.
//!
//! Next: `late_unlock.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["002.cluster"],
    title: Bilingual::of("集群：每个实例有自己的用户锁", "A cluster: each instance has its own locks of the users"),
    breaks: Bilingual::of("两个实例，两把锁，同一个人下了两单", "two instances, two locks: one user has two orders"),
    cure: Bilingual::of("锁放到 Redis 里，大家共用", "the lock is in Redis, which all share"),
    anomalies: &[Anomaly::CheckThenAct],
    begin: &[say("A 拿到这个人的锁，查：没有订单", "A has the lock of the user, and asks: no order"), A.stops_at(Point::Checked)],
    flaw: Variant {
        act: Act::Order("user-mutex"),
        steps: &[
            say(
                "同一个人的 B 来到另一个实例：那里的锁没人占",
                "B, of the same user, on another instance: nobody has the lock there",
            ),
            B.stops_at(Point::Checked),
            say("两个都写了订单", "both write an order"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(2),
    },
    cured: Variant {
        act: Act::Order("redis-lock-fixed-id"),
        steps: &[
            say(
                "同一个人的 B 来到另一个实例：锁被占着，拒绝",
                "B, of the same user, on another instance: the lock is taken, and B is refused",
            ),
            B.fails(),
            say("A 写订单，释放锁", "A writes its order, and unlocks"),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1),
    },
};
