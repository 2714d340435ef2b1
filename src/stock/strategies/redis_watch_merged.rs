//! Beyond §1.8: one transaction for all who wait in this instance, so that the instances contend and not the requests.
//!
//! 1. Wait until nobody of this instance is under way; then all who wait go together (`merged.rs`).
//! 2. `WATCH stock`, then `GET stock`.
//! 3. `MULTI`, `SET stock` as many less as they are, or as there are pieces, `EXEC`; each is told its own number.
//! 4. EXEC answers nil: another instance was faster. Start anew, with those who may still wait.
//!
//! What it survives: any number of instances, clients that hang up, more requests than pieces. **What breaks it**: a Redis
//! that loses its last second of writes; and all who went together share one fate: where EXEC gets no answer, it is unknown
//! for every one of them. What needs a time of its own between reading and writing cannot go with others, so `hold_ms` is
//! spent before.
//!
//! Next: `merged.rs`, who goes with whom; then `redis_setnx.rs`.

use super::redis_watch::{exec, watched};
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, redis_key},
    server::Server,
    stock::{
        Promise, Store, Strategy,
        merged::{self, Merged, Taken},
    },
};
use std::time::Duration;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "redis-watch-merged",
    chapter: "1.8",
    rank: Rank::Beyond("redis-watch"),
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 12_000,
    names: &[],
    title: Bilingual {
        zh: "合并的 WATCH：一个实例里等着的请求合成一个事务",
        en: "WATCH, merged: one transaction for all who wait in an instance",
    },
    breaks: Bilingual {
        zh: "不会断；但一次没有回答，整批都不知结果",
        en: "nothing; but an answer that is lost is lost for all who went together",
    },
    source: include_str!("redis_watch_merged.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    merged::deduct::<Watched>(ctx, job).await
}

struct Watched;

impl Merged for Watched {
    const WHAT: &'static str = "key stock (WATCH)";

    async fn take(ctx: &Ctx, stock_id: i64, wanted: i64, wait: Duration) -> Result<Taken, Error> {
        let key = redis_key::of(ctx, stock_id);
        let mut conn = redis_key::watch_connection(ctx, wait).await?;
        let before = watched(ctx, &mut conn, &key, stock_id).await?;
        let pieces = wanted.min(before);
        if pieces <= 0 {
            return Ok(Taken::SoldOut);
        }
        let left = before - pieces;
        Ok(if exec(&mut conn, &key, left).await? {
            Taken::Pieces(pieces, Some(left))
        } else {
            Taken::Beaten
        })
    }
}
