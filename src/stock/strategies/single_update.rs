//! §1.7.1 One statement that checks and writes: the database's row lock does the rest.
//!
//! 1. `UPDATE … SET count = count - 1 WHERE id = ? AND count > 0`.
//! 2. One row changed: sold. None: sold out.
//!
//! What it survives: any number of requests and instances. **What breaks it**: nothing; but the statement cannot
//! say what was there before and after, and the decision must fit into SQL.
//!
//! Next: `single_update_buckets.rs`, where the row itself is no bottleneck; or `select_for_update.rs`, where the decision is taken in the program.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, mysql},
    server::Server,
    stock::{Promise, Store, Strategy},
};

/// A plain read, which locks nothing.
const READ: &str =
    "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "single-update",
    chapter: "1.7.1",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 5_500,
    names: &[],
    title: Bilingual {
        zh: "一条 SQL：更新时判断库存",
        en: "One UPDATE that checks as it writes",
    },
    breaks: Bilingual {
        zh: "不会断；但看不到前后的数",
        en: "nothing; but it sees no number before or after",
    },
    source: include_str!("single_update.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

const TAKE_ONE: &str =
    "UPDATE db_stock SET count = count - 1, version = version + 1 WHERE id = ? AND count > 0";

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let since = job.inside().await;
    if job.tried(
        since,
        mysql::execute(ctx, job, sqlx::query(TAKE_ONE).bind(job.request.stock_id)).await?,
    ) == 0
    {
        mysql::read(ctx, job, READ).await?;
        return Err(Error::SoldOut);
    }
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}
