//! §1.7.3 The optimistic lock: write only if the version is still the one that was read.
//!
//! 1. Read the row and its version.
//! 2. `UPDATE … SET version = version + 1 WHERE id = ? AND version = ?`.
//! 3. No row changed: another was faster. Read anew, at once, as long as it may wait.
//!
//! Each statement is a transaction of its own, on a connection of its own: inside one REPEATABLE READ transaction the
//! second read would show the first one's snapshot, and no retry could ever succeed.
//!
//! What it survives: any number of instances, holders that die (nobody holds anything). **What breaks it**: nothing; but
//! of all who have read one version only one gets through: the more there are, the more work is thrown away. An A-B-A of
//! the count does not fool it: versions only grow.
//!
//! Points for a replay: `read`, `conflict`, `written`.
//!
//! Next: `version_cas_paced.rs`, which lets only a few try at once; or `redis_watch.rs`, the same idea in Redis.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Point, mysql},
    server::Server,
    stock::{Promise, Store, Strategy},
};

/// A plain read, which locks nothing.
const READ: &str =
    "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "version-cas",
    chapter: "1.7.3",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 460,
    names: &[],
    title: Bilingual {
        zh: "乐观锁：版本号没变才写",
        en: "The optimistic lock: write if the version still stands",
    },
    breaks: Bilingual {
        zh: "不会断；但并发越大，重试越多",
        en: "nothing; but the more contention, the more is retried",
    },
    source: include_str!("version_cas.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

const TAKE_ONE: &str =
    "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ?";

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let mut retries = 0;
    loop {
        let row = mysql::read(ctx, job, READ).await?;
        if row.count <= 0 {
            return Err(Error::SoldOut);
        }
        let since = job.inside().await;
        job.tell(Point::Read, row.count).await;
        let write = sqlx::query(TAKE_ONE)
            .bind(row.count - 1)
            .bind(job.request.stock_id)
            .bind(row.version);
        if job.tried(since, mysql::execute(ctx, job, write).await?) == 1 {
            job.tell(Point::Written, row.count - 1).await;
            return Ok(Deducted {
                remaining: Some(row.count - 1),
                fence: None,
                retries,
                lock: None,
            });
        }
        job.at(Point::Conflict).await;
        if job.wait_left().is_zero() {
            return Err(job.not_had("row in db_stock (version)"));
        }
        retries += 1;
    }
}
