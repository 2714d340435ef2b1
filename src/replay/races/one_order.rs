//! [002] One order per user: asked, and answered by what is there, which is not yet what another is about to write.
//!
//! 1. A and B are two orders of one user, on one instance. Both ask whether the user has an order: neither has. Each has
//!    locked a lock object of its own.
//! 2. Both take a piece, and write an order.
//!
//! On its cure a unique key lets the database refuse the second order, wherever it comes from.
//!
//! What it survives: with the key, any number of orders and instances. **What breaks it**: nothing.
//!
//! Next: `cluster.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["002.new-mutex"],
    title: Bilingual::of("同一个人的两单同时来", "Two orders of one user at once"),
    breaks: Bilingual::of(
        "都查到没有订单：锁不是同一把",
        "both find no order: they lock different objects",
    ),
    cure: Bilingual::of(
        "唯一索引：数据库拒绝第二单",
        "a unique key: the database refuses the second",
    ),
    begin: &[
        say(
            "A 查：这个人还没有订单",
            "A asks: the user has no order yet",
        ),
        A.stops_at(Point::Checked),
        say(
            "同一个人的 B 也查：没有",
            "B, of the same user, asks too: no order",
        ),
        B.on_instance_of(A).stops_at(Point::Checked),
        say(
            "A 扣库存，写订单，提交",
            "A takes a piece, writes its order, and commits",
        ),
        A.finishes(),
    ],
    flaw: Variant {
        act: Act::Order("user-mutex-new"),
        steps: &[
            say(
                "B 也写了：一个人两单",
                "B writes one too: two orders of one user",
            ),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2),
    },
    cured: Variant {
        act: Act::Order("unique-key"),
        steps: &[
            say(
                "B 写订单：索引不让，回滚",
                "B's order: the key refuses it, and it is rolled back",
            ),
            B.fails(),
        ],
        expected: ExpectedResult::sold(1, 1),
    },
};
