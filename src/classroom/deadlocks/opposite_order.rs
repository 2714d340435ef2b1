//! [003] Two rows, locked in opposite order.
//!
//! 1. A writes row 10, B writes row 20: each holds one.
//! 2. A wants row 20 and waits for B. B wants row 10 and would wait for A: nobody could ever go on.
//! 3. The server sees the circle at once and rolls one of them back (error 1213); the other goes on.
//!
//! The cure: both lock in one order, the lower number first. Then B waits for its first row, and holds nothing that A
//! wants.
//!
//! What it survives: nothing is lost or written twice, with the cure or without. **What breaks it**: any two orders, in
//! tables as in rows: all code that locks several must agree on one.
//!
//! Next: `shared_to_exclusive.rs`, where one row is enough.

use super::lesson::{
    BEGIN, COMMIT, DEADLOCK, DeadlockLesson,
    Statement::{A, B},
};
use oversell_lab::terminal::bilingual::Bilingual;

const TAKE_10: &str = "UPDATE goods SET count = count - 1 WHERE id = 10";
const TAKE_20: &str = "UPDATE goods SET count = count - 1 WHERE id = 20";

pub(super) const LESSON: DeadlockLesson = DeadlockLesson {
    slug: "opposite-order",
    title: Bilingual::of("两个事务以相反的顺序锁两行", "Two transactions lock two rows in opposite order"),
    breaks: Bilingual::of("互相等待，其中一个被回滚", "each waits for the other; one of them is rolled back"),
    cure: Bilingual::of("以固定的顺序访问表和行", "access tables and rows in one fixed order"),
    error: DEADLOCK,
    wait_s: 10,
    index: None,
    long: None,
    explain: None,
    uncured: &[A(BEGIN), B(BEGIN), A(TAKE_10), B(TAKE_20), A(TAKE_20), B(TAKE_10), A(COMMIT), B(COMMIT)],
    cured: &[A(BEGIN), B(BEGIN), A(TAKE_10), B(TAKE_10), A(TAKE_20), A(COMMIT), B(TAKE_20), B(COMMIT)],
};
