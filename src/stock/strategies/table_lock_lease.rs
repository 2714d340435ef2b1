//! §4.3, [003] The lock table with its flaws cured: a lease, a sweep, and re-entry.
//!
//! 1. Insert a row as §4 does, with an owner and the end of its lease (30 s) by the clock of the database. Who finds a
//!    row whose lease has ended deletes it, and tries again.
//! 2. A task puts the end off every third of the lease.
//! 3. The section calls a method that takes the same lock again (`a()` that calls `b()`): the owner gets in, and the row
//!    shows two holds.
//! 4. Read, then write one less; unlock twice: the last one deletes the row, if it is still this owner's.
//!
//! What it survives: any number of instances, and a holder that dies: others get in when its lease ends. **What breaks
//! it**: a holder that is paused beyond its lease and then writes; a clock of the database that jumps; and the database
//! is still the one that everybody asks.
//!
//! Next: `mysql_named_lock.rs`, where the connection is the lease.

use super::{none, table_lock};
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name},
    server::Server,
    stock::{Promise, Store, Strategy, under},
};
use oversell_lock::{Lease, Lock, mysql::TableLeaseLock};

const NAME: &str = "lock:table-lock-lease";

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "table-lock-lease",
    chapter: "4.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Lease,
    needs: &[Server::MySql],
    pace: 110,
    names: &[Name::TableLock(NAME)],
    title: Bilingual {
        zh: "带租约的表锁：过期清理，可重入",
        en: "The row as a lock with a lease: swept, re-entrant",
    },
    breaks: Bilingual {
        zh: "持有者停顿超过租约",
        en: "a holder that is paused beyond its lease",
    },
    source: include_str!("table_lock_lease.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lease = job.leased(ctx);
    let lock = ctx
        .db
        .table_lease_lock(&job.redis_name(NAME))
        .caller(table_lock::caller(ctx, job, module_path!()))
        .lease(Lease::Watchdog(lease))
        .owner(job.owner(ctx));
    let outer = lock.acquire(job.wait_left()).await?;
    under(outer, |_| again(ctx, job, &lock)).await
}

async fn again(ctx: &Ctx, job: &Job, lock: &TableLeaseLock) -> Result<Deducted, Error> {
    let inner = lock.acquire(job.wait_left()).await?;
    under(inner, |fence| none::read_then_write(ctx, job, fence)).await
}
