//! §4.2 as printed: who waited for the row as a lock buys again without it.
//!
//! 1. A inserts the row and reads. B's insert is refused: it will try again.
//! 2. A writes, and deletes its row. B tries again, has the lock, and takes its piece.
//! 3. B's retry comes back into the `catch` of its first try, which goes on: B reads and writes once more.
//!
//! On its cure the retry is a loop, and B takes one piece.
//!
//! Next: `dead_row.rs`, what the printed lock has in common with its cure.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["4.2.printed"],
    title: Bilingual::of("重试回来，又买一件", "The retry comes back, and buys again"),
    breaks: Bilingual::of(
        "catch 里没有 return：后面的代码没有锁又执行一遍",
        "no return in the catch: what comes after it runs again, without the lock",
    ),
    cure: Bilingual::of("用循环重试，拿到锁才往下走", "a loop retries, and goes on with the lock only"),
    anomalies: &[Anomaly::Doubled],
    begin: &[say("A 插入一行，拿到锁，读库存", "A inserts the row, has the lock, and reads"), A.stops_at(Point::Read)],
    flaw: Variant {
        act: Act::Strategy("table-lock-as-printed"),
        steps: &[
            say("B 插入失败：稍后重试", "B's insert is refused: it tries again later"),
            B.stops_at(Point::Refused),
            say("A 写 4999，删除这一行", "A writes 4999, and deletes the row"),
            A.finishes(),
            say(
                "B 重试，买到一件；返回以后又买一件：卖了两件，库存减三件",
                "B tries again, and buys; back in the catch it buys again: two are sold, three are gone",
            ),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 3).inside(1),
    },
    cured: Variant {
        act: Act::Strategy("table-lock"),
        steps: &[
            say("B 插入失败：等", "B's insert is refused: it waits"),
            B.will_stop_at(Point::Read),
            say("A 写 4999，删除这一行", "A writes 4999, and deletes the row"),
            A.finishes(),
            say("B 才进来，买一件", "B gets in after it, and buys one"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1),
    },
};
