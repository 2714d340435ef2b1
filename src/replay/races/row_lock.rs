//! §1.7.2 A plain read locks nothing; `SELECT … FOR UPDATE` locks the row until the commit, for all instances.
//!
//! 1. A reads on one instance, B on another: a plain SELECT asks nobody.
//! 2. Both write 4999.
//!
//! On its cure the read itself takes the row's lock: B's read waits in the server until A has committed, and then reads 4999.
//!
//! What it survives: any number of instances. **What breaks it**: nothing; but a waiter holds a connection.
//!
//! Next: `shared_lock.rs`, the weaker lock.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["1.7.2"],
    title: Bilingual::of("读的时候就锁住那一行", "The read itself locks the row"),
    breaks: Bilingual::of("普通的 SELECT 不加锁", "a plain SELECT locks nothing"),
    cure: Bilingual::of("SELECT … FOR UPDATE：行锁到提交才释放", "SELECT … FOR UPDATE: the row is locked until the commit"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("none"),
        steps: &[
            say("A 读库存，没有加锁", "A reads the stock, and locks nothing"),
            A.stops_at(Point::Read),
            say("另一个实例上的 B 也读到 5000", "B, on another instance, reads 5000 too"),
            B.stops_at(Point::Read),
            say("两个都写回 4999", "both write 4999"),
            A.finishes(),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("select-for-update"),
        steps: &[All(A_READS_UNDER_ROW_LOCK)],
        expected: ExpectedResult::sold(2, 2).inside(1),
    },
};

/// A reads under the row lock, and B waits for it.
pub(super) const A_READS_UNDER_ROW_LOCK: &[Step] = &[
    say("A 用 FOR UPDATE 读：这一行锁住了", "A reads FOR UPDATE: the row is locked"),
    A.stops_at(Point::Read),
    say("另一个实例上的 B 也要读：在数据库里等", "B, on another instance, wants to read too: it waits in the database"),
    B.waits(),
    say("A 写 4999", "A writes 4999"),
    A.stops_at(Point::Written),
    say("A 提交，行锁释放，B 读到 4999", "A commits, the row is free, and B reads 4999"),
    A.finishes(),
    B.finishes(),
];
