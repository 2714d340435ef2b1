//! Beyond §1.7.1: one statement for all who wait in this instance, `count = count - n`.
//!
//! 1. Wait until nobody of this instance is under way; then all n who wait go together (`merged.rs`).
//! 2. `UPDATE … SET count = count - n WHERE id = ? AND count >= n`.
//! 3. No row changed: there are fewer than n. Read how many, and take these; the others go round again, until the row has
//!    none.
//!
//! The row is locked and its commit flushed once for all of them, so what one commit costs no longer bounds the rate.
//!
//! What it survives: any number of instances, clients that hang up, more requests than pieces. **What breaks it**: nothing;
//! but all who went together share one fate (where the UPDATE gets no answer, it is unknown for every one of them), and the
//! statement tells nobody which number his piece had. `hold_ms` is spent before.
//!
//! Next: `merged.rs`, who goes with whom; then `select_for_update.rs`.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, mysql},
    server::Server,
    stock::{
        Promise, Store, Strategy,
        merged::{self, Merged, Taken},
    },
};
use std::time::Duration;

/// A plain read, which locks nothing.
const READ: &str =
    "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "single-update-merged",
    chapter: "1.7.1",
    rank: Rank::Beyond("single-update"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 13_000,
    names: &[],
    title: Bilingual {
        zh: "合并的一条 SQL：一个实例里等着的请求一起扣减",
        en: "One UPDATE, merged: one for all who wait in an instance",
    },
    breaks: Bilingual {
        zh: "不会断；但一次没有回答，整批都不知结果",
        en: "nothing; but an answer that is lost is lost for all who went together",
    },
    source: include_str!("single_update_merged.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

const TAKE: &str =
    "UPDATE db_stock SET count = count - ?, version = version + 1 WHERE id = ? AND count >= ?";

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    merged::deduct::<Update>(ctx, job).await
}

struct Update;

impl Merged for Update {
    const WHAT: &'static str = "row in db_stock";

    async fn take(
        ctx: &Ctx,
        stock_id: i64,
        mut wanted: i64,
        wait: Duration,
    ) -> Result<Taken, Error> {
        let job = Job::new(stock_id, Duration::ZERO, wait);
        loop {
            let take = sqlx::query(TAKE).bind(wanted).bind(stock_id).bind(wanted);
            if mysql::execute(ctx, &job, take).await? == 1 {
                return Ok(Taken::Pieces(wanted, None));
            }
            wanted = wanted.min(mysql::read(ctx, &job, READ).await?.count);
            if wanted <= 0 {
                return Ok(Taken::SoldOut);
            }
        }
    }
}
