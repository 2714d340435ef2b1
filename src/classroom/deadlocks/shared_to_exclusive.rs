//! [003] A shared lock that must become an exclusive one.
//!
//! 1. A and B read the same row under a shared lock: both may.
//! 2. A wants to write: its lock must become exclusive, and waits until B's shared lock is gone.
//! 3. B wants to write too, and would wait for A's: error 1213.
//!
//! The cure: who reads in order to write asks for all that it will need at once, with `FOR UPDATE`. Then B waits before
//! it has read. (Or an optimistic lock: `stock/strategies/version_cas.rs`.)
//!
//! What it survives: nothing is oversold, with the cure or without: see the strategy `select-share`, which retries.
//! **What breaks it**: nothing but its price: the exclusive lock is held through the whole transaction, and keeps
//! readers `FOR UPDATE` out.
//!
//! Next: `full_scan.rs`, where the rows that are locked are not the ones that were meant.

use super::lesson::{
    BEGIN, COMMIT, DEADLOCK, DeadlockLesson,
    Statement::{A, B},
};
use oversell_lab::terminal::bilingual::Bilingual;

const SHARED: &str = "SELECT count FROM goods WHERE id = 10 LOCK IN SHARE MODE";
const EXCLUSIVE: &str = "SELECT count FROM goods WHERE id = 10 FOR UPDATE";
const TAKE: &str = "UPDATE goods SET count = count - 1 WHERE id = 10";

pub(super) const LESSON: DeadlockLesson = DeadlockLesson {
    slug: "shared-to-exclusive",
    title: Bilingual::of("共享锁上升到排他锁", "A shared lock becomes an exclusive one"),
    breaks: Bilingual::of(
        "没有一次性申请够权限的锁，双方都在等对方释放共享锁",
        "neither asked for all it needs at once; each waits for the other's shared lock",
    ),
    cure: Bilingual::of("悲观锁：SELECT … FOR UPDATE", "the pessimistic lock: SELECT … FOR UPDATE"),
    error: DEADLOCK,
    wait_s: 10,
    index: None,
    long: None,
    explain: None,
    uncured: &[A(BEGIN), B(BEGIN), A(SHARED), B(SHARED), A(TAKE), B(TAKE), A(COMMIT), B(COMMIT)],
    cured: &[A(BEGIN), B(BEGIN), A(EXCLUSIVE), B(EXCLUSIVE), A(TAKE), A(COMMIT), B(TAKE), B(COMMIT)],
};
