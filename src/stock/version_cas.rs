//! §1.7.3 The optimistic lock: write only if the version is still the one that was read.
//!
//! 1. Read the row and its version.
//! 2. `UPDATE … SET version = version + 1 WHERE id = ? AND version = ?`.
//! 3. No row changed: another was faster. Pause for a random time, read anew, as long as it may wait.
//!
//! Each attempt is two statements in autocommit: inside one REPEATABLE READ transaction the second read would show
//! the first one's snapshot, and no retry could ever succeed.
//!
//! What it survives: any number of instances, holders that die (nobody holds anything). **What breaks it**:
//! nothing; but under contention most attempts are wasted. An A-B-A of the count does not fool it: versions only
//! grow.
//!
//! Next: `redis_watch.rs`, the same idea in Redis.

use super::{Deducted, Job, Promise, Server, Store, Strategy, Title, retry::Backoff, row};
use crate::{ctx::Ctx, error::Error};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "version-cas",
    chapter: "1.7.3",
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    beyond: false,
    names: &[],
    title: Title {
        zh: "乐观锁：版本号没变才写", en: "The optimistic lock: write if the version still stands"
    },
    breaks: Title {
        zh: "不会断；但并发越大，重试越多", en: "nothing; but the more contention, the more is retried"
    },
    source: include_str!("version_cas.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

const TAKE_ONE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ?";

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    // One connection for all attempts: no more contend at once than the pool has, and the others wait in its line.
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let mut backoff = Backoff::new(job, "row in db_stock (version)");
    loop {
        let row = row::read(&mut conn, job.stock_id).await?;
        if row.count <= 0 {
            conn.done();
            return Err(Error::SoldOut);
        }
        job.inside().await;
        let update = sqlx::query(TAKE_ONE).bind(row.count - 1).bind(job.stock_id).bind(row.version);
        let changed = row::answered(update.execute(&mut *conn).await)?;
        if changed == 1 {
            conn.done();
            return Ok(Deducted {
                remaining: Some(row.count - 1),
                fence: None,
                retries: backoff.retries(),
                lock: None,
            });
        }
        backoff.pause().await?;
    }
}
