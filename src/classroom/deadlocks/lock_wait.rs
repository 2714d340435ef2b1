//! [003] Waiting for a long transaction, and the end of the wait.
//!
//! 1. A writes row 10, and is not done for a long time: its transaction stays open.
//! 2. B wants the same row and waits. There is no circle, and so no deadlock.
//! 3. After `innodb_lock_wait_timeout`, here 1 s, B gets error 1205. Only its statement is undone: its transaction is
//!    still open, with all other locks that it holds, until it is rolled back.
//!
//! The cure: smaller transactions. A commits before its long work, and B has the row at once.
//!
//! What it survives: nothing is lost, with the cure or without. **What breaks it**: who takes error 1205 for 1213 and
//! goes on, or begins again without a ROLLBACK, commits half a transaction.
//!
//! Next: `two_transactions.rs`, which plays these, and retries whole transactions.

use super::lesson::{
    BEGIN, COMMIT, DeadlockLesson, LOCK_WAIT_TIMEOUT,
    Statement::{A, B},
};
use oversell_lab::terminal::bilingual::Bilingual;

const TAKE: &str = "UPDATE goods SET count = count - 1 WHERE id = 10";
/// A statement that stands for work that takes longer than the other transaction may wait.
const LONG_WORK: &str = "SELECT COUNT(*) FROM goods";

pub(super) const LESSON: DeadlockLesson = DeadlockLesson {
    slug: "lock-wait",
    title: Bilingual::of("大事务长时间不释放锁", "A long transaction does not let go"),
    breaks: Bilingual::of("B 只会堵塞一段时间，然后报错", "B waits only so long, and then gets an error"),
    cure: Bilingual::of("大事务拆小", "smaller transactions"),
    error: LOCK_WAIT_TIMEOUT,
    wait_s: 1,
    index: None,
    long: Some(LONG_WORK),
    explain: None,
    // B's COMMIT comes before A's: A's long work lasts longer than B may wait.
    uncured: &[A(BEGIN), B(BEGIN), A(TAKE), B(TAKE), A(LONG_WORK), B(COMMIT), A(COMMIT)],
    cured: &[A(BEGIN), B(BEGIN), A(TAKE), B(TAKE), A(COMMIT), A(LONG_WORK), B(COMMIT)],
};
