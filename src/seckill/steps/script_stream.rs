#![doc = include_str!("script_stream.md")]

use crate::seckill::*;
use crate::{
    seckill::{stream, voucher, voucher_in_redis},
    section::{lua, redis_key},
};
use redis::Script;
use std::sync::LazyLock;

pub(super) const STEP: StepSpec = StepSpec {
    course: "一人一单",
    rank: Rank::Beyond("unique-key"),
    promise: Promise::Safe,
    place: |ctx, order| Box::pin(place(ctx, order)),
};

/// Checks, claims a piece and queues the order, in one step.
static CLAIM: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("lua/claim.lua")));

/// The return codes of `lua/claim.lua`.
const CLAIMED: u8 = 0;
/// Redis does not have the voucher.
const NOT_THERE: u8 = 1;
const NOT_BEGUN: u8 = 2;
const OVER: u8 = 3;
const SOLD_OUT: u8 = 4;
/// The user has ordered the voucher before.
const ORDERED: u8 = 5;

/// Claims a piece in Redis, where a consumer finds the order and writes it later. Puts the voucher into Redis if it never was
/// there; [`SeckillError::NoVoucherStock`] if Redis has lost it.
async fn place(ctx: &Ctx, order: &Order) -> Result<OrderReceipt, Error> {
    order.job.enter_and_stay().await;
    let order_id = id_worker::next_id(ctx, id_worker::ORDERS).await?;
    let mut code = claim(ctx, order, order_id).await?;
    if code == NOT_THERE {
        voucher_in_redis::publish(ctx, order).await?;
        code = claim(ctx, order, order_id).await?;
    }
    match code {
        CLAIMED => Ok(OrderReceipt { order_id, lock: None }),
        NOT_THERE => Err(SeckillError::NoVoucherStock(order.voucher_id).into()),
        NOT_BEGUN => Err(SeckillError::NotStarted.into()),
        OVER => Err(SeckillError::Over.into()),
        SOLD_OUT => Err(Error::SoldOut),
        ORDERED => Err(SeckillError::AlreadyOrdered.into()),
        other => Err(Error::Internal(format!("claim.lua returned {other}"))),
    }
}

/// Runs `claim.lua`, and returns its code.
async fn claim(ctx: &Ctx, order: &Order, order_id: i64) -> Result<u8, Error> {
    let mut script = CLAIM.key(voucher::stock_key(ctx, order.voucher_id));
    script
        .key(voucher::users_key(ctx, order.voucher_id))
        .key(ctx.redis_key(stream::ORDERS_STREAM))
        .key(ctx.redis_key(stream::QUEUED_KEY));
    script.arg(order.user_id).arg(order.voucher_id).arg(order_id);
    let mut redis = ctx.redis.connection();
    let claimed = script.invoke_async(&mut redis).await;
    redis_key::classify_write(claimed, redis.has_sent())
}
