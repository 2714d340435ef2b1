//! [003] A write without an index: it reads, and locks, every row.
//!
//! 1. A writes row 10, B writes row 20, each by the primary key.
//! 2. A writes the product P500, B the product P700: two other rows, of which nobody holds any. But `code` has no
//!    index: the server looks at every row, and locks each that it looks at, until the end of the transaction.
//! 3. So A waits at row 20, and B would wait at row 10: error 1213, although they want nothing of each other.
//!
//! The cure: an index on `code`. EXPLAIN shows the plan before and after: all rows (`ALL`; MariaDB says `index`, by the
//! primary key), then one row by `idx_code`.
//!
//! What it survives: nothing is lost, with the cure or without. **What breaks it**: an index that the server does not
//! use, because the table is small, or the condition does something with the column: ask EXPLAIN.
//!
//! Next: `gap.rs`, where what is locked is not there at all.

use super::lesson::{
    BEGIN, COMMIT, DEADLOCK, DeadlockLesson,
    Statement::{A, B},
};
use oversell_lab::terminal::bilingual::Bilingual;

const TAKE_10: &str = "UPDATE goods SET count = count - 1 WHERE id = 10";
const TAKE_20: &str = "UPDATE goods SET count = count - 1 WHERE id = 20";
const TAKE_P500: &str = "UPDATE goods SET count = count - 1 WHERE code = 'P500'";
const TAKE_P700: &str = "UPDATE goods SET count = count - 1 WHERE code = 'P700'";

/// The statements without the cure and with it: only the index differs.
const STEPS: &[super::lesson::Statement] =
    &[A(BEGIN), B(BEGIN), A(TAKE_10), B(TAKE_20), A(TAKE_P500), B(TAKE_P700), A(COMMIT), B(COMMIT)];

pub(super) const LESSON: DeadlockLesson = DeadlockLesson {
    slug: "full-scan",
    title: Bilingual::of("没有索引的更新：全表扫描", "An update without an index: a full scan"),
    breaks: Bilingual::of("行级锁上升为表级锁：每一行都被锁住", "row locks become a table lock: every row is locked"),
    cure: Bilingual::of("用执行计划分析，建立相应的索引", "look at the plan, and add the index"),
    error: DEADLOCK,
    wait_s: 10,
    long: None,
    index: Some("CREATE INDEX idx_code ON goods (code)"),
    explain: Some(TAKE_P500),
    uncured: STEPS,
    cured: STEPS,
};
