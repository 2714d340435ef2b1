//! §1.3 Two read the same number, and both write one less.
//!
//! 1. A reads 5000, and has not written yet.
//! 2. B reads 5000 too.
//! 3. Both write 4999: two are sold, one is gone.
//!
//! On its cure, one statement that checks and writes, there is nothing between for B to come into.
//!
//! Next: `two_mutexes.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["1.1", "1.7.1"],
    title: Bilingual::of("两个人同时看到 5000", "Two read 5000 at the same time"),
    breaks: Bilingual::of("读与写之间，另一个人也读了", "between the read and the write another one reads"),
    cure: Bilingual::of("一条 UPDATE 里检查并扣减", "one UPDATE that checks and deducts"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("none"),
        steps: &[
            say("A 读库存", "A reads the stock"),
            A.stops_at(Point::Read),
            say("A 还没写，B 也读", "A has not written yet, and B reads too"),
            B.on_instance_of(A).stops_at(Point::Read),
            say("A 写回 4999", "A writes 4999"),
            A.finishes(),
            say("B 也写回 4999：卖了两件，库存只减一件", "B writes 4999 too: two are sold, one is gone"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("single-update"),
        steps: &[
            say("A 一条语句检查并扣减", "A checks and deducts in one statement"),
            A.finishes(),
            say("B 也一样：中间插不进任何人", "and so does B: nobody fits in between"),
            B.on_instance_of(A).finishes(),
        ],
        expected: ExpectedResult::sold(2, 2),
    },
};
