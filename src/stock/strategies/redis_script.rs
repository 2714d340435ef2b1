#![doc = include_str!("redis_script.md")]

use crate::section::{lua, redis_key};
use crate::stock::*;
use redis::Script;
use std::sync::LazyLock;

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "2.4",
    rank: Rank::Course,
    store: Store::Redis,
    promise: Promise::Safe,
    pace: 20_000,
    names: &[],
    needs: &[Server::Redis],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// What `take.lua` returns if no piece is left.
const SOLD_OUT: i64 = -1;

/// Takes a piece of the stock's key, if there is one.
static TAKE: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("lua/take.lua")));

/// Runs `take.lua`, which takes a piece if there is one.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let since = job.enter_and_stay().await;
    let key = redis_key::stock_key(ctx, job.request.stock_id);
    let mut redis = ctx.redis.connection();
    let left = TAKE.key(key).invoke_async(&mut redis).await;
    let left: Option<i64> = redis_key::classify_write(left, redis.has_sent())?;
    match job.record_attempt(since, left) {
        None => Err(redis_key::missing_key_error(ctx, job.request.stock_id).await),
        Some(SOLD_OUT) => Err(Error::SoldOut),
        Some(left) => Ok(Deduction::remaining(left)),
    }
}
