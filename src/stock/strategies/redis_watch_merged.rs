#![doc = include_str!("redis_watch_merged.md")]

use super::redis_watch::{exec, watched};
use crate::stock::prelude::*;
use crate::{
    section::redis_key,
    stock::merged::{self, TakeMany, TakeOutcome},
};
use tokio::time::timeout;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.8",
    rank: Rank::Beyond("redis-watch"),
    store: Store::Redis,
    promise: Promise::Safe,
    needs: &[Server::Redis],
    pace: 12_000,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    merged::deduct::<WatchAndSet>(ctx, job).await
}

struct WatchAndSet;

impl TakeMany for WatchAndSet {
    const WHAT: &'static str = "key stock (WATCH)";

    async fn take(
        ctx: &Ctx,
        stock_id: i64,
        wanted: i64,
        wait: Duration,
    ) -> Result<TakeOutcome, Error> {
        let key = redis_key::of(ctx, stock_id);
        let watched = async {
            let mut conn = redis_key::watch_connection(ctx, wait).await?;
            let before = watched(ctx, &mut *conn, &key, stock_id).await?;
            Ok((conn, before))
        };
        // Together within the time of one answer: a server that stops answers neither.
        let limit = wait + Duration::from_millis(ctx.config.redis.timeout_ms);
        let watched = timeout(limit, watched).await;
        let no_answer = |_| Err(Error::down(Server::Redis, "no answer in time"));
        let (mut conn, before) = watched.unwrap_or_else(no_answer)?;
        let pieces = wanted.min(before);
        if pieces <= 0 {
            return Ok(TakeOutcome::SoldOut);
        }
        let left = before - pieces;
        Ok(if exec(&mut *conn, &key, left).await? {
            TakeOutcome::Pieces(pieces, Some(left))
        } else {
            TakeOutcome::Conflict
        })
    }
}
