//! §4 The lock of MySQL: a row under a unique key, inserted to lock and deleted to unlock.
//!
//! 1. Insert a row named `lock` into `tb_lock`; where it is there already, try again in 50 ms.
//! 2. Read, then write one less.
//! 3. Delete the row.
//!
//! What it survives: any number of instances. **What breaks it**: a holder that dies: its row stays, and nobody
//! gets in until somebody deletes it (§4.3). Polling makes it the slowest of all.
//!
//! Next: `oversell_lock::mysql`, the lock itself.

use super::{Deducted, Job, Name, Promise, Server, Store, Strategy, Title, row, under};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::{Lock, mysql::TableLock};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "table-lock",
    chapter: "4",
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    beyond: false,
    names: &[Name::TableLock("lock")],
    title: Title {
        zh: "表锁：唯一键只让一个人插入", en: "A row as a lock: the unique key lets one insert"
    },
    breaks: Title { zh: "持有者死了，锁就永远在", en: "a holder that dies leaves its row for ever" },
    source: include_str!("table_lock.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = TableLock::new(&ctx.db, &job.redis_name("lock"), &ctx.process);
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| row::read_then_write(ctx, job, fence)).await
}
