//! §4 The lock of MySQL: a row under a unique key, inserted to lock and deleted to unlock.
//!
//! 1. Insert a row named `lock` into `tb_lock`, with who inserts it; where it is there already, try again in 50 ms
//!    (each pause drawn from ±50 %, so that those who wait do not ask in step).
//! 2. Read, then write one less.
//! 3. Delete the row.
//!
//! What it survives: any number of instances. **What breaks it**: a holder that dies: its row stays, and nobody
//! gets in until somebody deletes it (§4.3). And all that wait ask the one database, which the holder needs too.
//!
//! Next: `table_lock_lease.rs`, the cure of §4.3; or `oversell_lock::mysql`, the lock itself.

use super::none;
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name},
    server::Server,
    stock::{Promise, Store, Strategy, under},
};
use oversell_lock::{Lock, mysql::Caller};

const NAME: &str = "lock";

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "table-lock",
    chapter: "4",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 140,
    names: &[Name::TableLock(NAME)],
    title: Bilingual {
        zh: "表锁：唯一键只让一个人插入",
        en: "A row as a lock: the unique key lets one insert",
    },
    breaks: Bilingual {
        zh: "持有者死了，锁就永远在",
        en: "a holder that dies leaves its row for ever",
    },
    source: include_str!("table_lock.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx
        .db
        .table_lock(&job.redis_name(NAME))
        .caller(caller(ctx, job, module_path!()));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| none::read_then_write(ctx, job, fence)).await
}

/// Who takes the lock, for the columns that the course has for it.
pub(super) fn caller(ctx: &Ctx, job: &Job, class: &str) -> Caller {
    Caller {
        class: class.to_owned(),
        method: "deduct".to_owned(),
        server: ctx.instance.clone(),
        desc: format!(
            "商品 {} 减库存 {}",
            job.request.stock_id,
            job.request.who.as_deref().unwrap_or_default()
        )
        .trim_end()
        .to_owned(),
    }
}
