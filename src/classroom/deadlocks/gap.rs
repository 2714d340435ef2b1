//! [003] A lock on what is not there: gap locks under REPEATABLE READ.
//!
//! 1. A looks for row 15 `FOR UPDATE`, B for row 16. Neither is there: each locks the gap between rows 10 and 20, and a
//!    gap may be locked by both, since such a lock keeps nobody out but who inserts.
//! 2. A inserts row 15 and waits for B's gap lock.
//! 3. B inserts row 16 and would wait for A's: error 1213, although the rows are different ones.
//!
//! The cure: READ COMMITTED, which locks no gaps: both insert at once.
//!
//! What it survives: nothing is lost, with the cure or without. **What breaks it**: under READ COMMITTED the same
//! question may have another answer later in the same transaction (phantoms). Where both insert the same row, a unique
//! key lets only one of them.
//!
//! Next: `lock_wait.rs`, where nobody is rolled back.

use super::lesson::{
    BEGIN, COMMIT, DEADLOCK, DeadlockLesson,
    Statement::{A, B},
};
use oversell_lab::terminal::bilingual::Bilingual;

const REPEATABLE_READ: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
const READ_COMMITTED: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
const LOOK_15: &str = "SELECT count FROM goods WHERE id = 15 FOR UPDATE";
const LOOK_16: &str = "SELECT count FROM goods WHERE id = 16 FOR UPDATE";
const ADD_15: &str = "INSERT INTO goods VALUES (15, 'P15', 1)";
const ADD_16: &str = "INSERT INTO goods VALUES (16, 'P16', 1)";

/// The same statements under either isolation level.
macro_rules! under {
    ($level:expr) => {
        &[A($level), B($level), A(BEGIN), B(BEGIN), A(LOOK_15), B(LOOK_16), A(ADD_15), B(ADD_16), A(COMMIT), B(COMMIT)]
    };
}

pub(super) const LESSON: DeadlockLesson = DeadlockLesson {
    slug: "gap",
    title: Bilingual::of("可重复读下的间隙锁", "Gap locks under REPEATABLE READ"),
    breaks: Bilingual::of("两个事务锁住同一个间隙，都插不进去", "both lock one gap, and neither can insert into it"),
    cure: Bilingual::of("降低隔离级别：从 RR 调整为 RC", "a lower isolation level: READ COMMITTED has no gap locks"),
    error: DEADLOCK,
    wait_s: 10,
    index: None,
    long: None,
    explain: None,
    uncured: under!(REPEATABLE_READ),
    cured: under!(READ_COMMITTED),
};
