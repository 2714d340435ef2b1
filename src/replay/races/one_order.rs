//! [002] One order per user, on one instance: a lock object that is made for each order locks nothing.
//!
//! 1. A and B are two orders of one user. Each locks an object of its own, as `toString()` makes one, so neither waits.
//! 2. Both ask whether the user has an order: neither has. Both take a piece, and write an order.
//!
//! On its cure both lock the one object that the process has for the user, as `intern()` gives it: B waits, and finds A's order.
//!
//! What it survives: with the one object, any number of orders to one instance. **What breaks it**: another instance, which has
//! objects of its own: `cluster.rs`.
//!
//! Next: `cluster.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["002.new-mutex"],
    title: Bilingual::of("同一个人的两单同时来", "Two orders of one user at once"),
    breaks: Bilingual::of(
        "toString()：每单锁一个新对象，谁也不等谁",
        "toString(): each order locks a new object, and nobody waits",
    ),
    cure: Bilingual::of("intern()：两单锁同一个对象", "intern(): both lock the same object"),
    anomalies: &[Anomaly::CheckThenAct],
    begin: &[],
    flaw: Variant {
        act: Act::Order("user-mutex-new"),
        steps: &[
            say("A 锁住新建的对象，查：没有订单", "A locks a new object, and asks: no order"),
            A.stops_at(Point::Checked),
            say(
                "同一个人的 B 锁住另一个新对象，不用等；查：也没有",
                "B, of the same user, locks another new one without a wait, and asks: no order",
            ),
            B.on_instance_of(A).stops_at(Point::Checked),
            say("A 扣库存，写订单，提交", "A takes a piece, writes its order, and commits"),
            A.finishes(),
            say("B 也写了：一个人两单", "B writes one too: two orders of one user"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(2),
    },
    cured: Variant {
        act: Act::Order("user-mutex"),
        steps: &[
            say("A 锁住这个人的那一个对象，查：没有订单", "A locks the one object of the user, and asks: no order"),
            A.stops_at(Point::Checked),
            say("同一个人的 B 要锁同一个对象：等", "B, of the same user, is to lock the same object, and waits"),
            B.on_instance_of(A).waits(),
            say("A 写订单，提交，释放", "A writes its order, commits, and unlocks"),
            A.finishes(),
            say("B 进来，查：已经有一单", "B gets in, and asks: there is an order"),
            B.fails(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1),
    },
};
