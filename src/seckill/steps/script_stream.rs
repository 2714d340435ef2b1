//! Beyond [002]: one script in Redis checks and claims, and queues the order, which is written behind.
//!
//! 1. Take the order's number from the id worker.
//! 2. Send the script: begin, end, stock and user are checked, the piece and the user are taken, and the order goes into the
//!    stream `stream.orders`, all in one step. It is answered at once; MySQL has not been asked.
//! 3. Where Redis does not know the voucher yet, put its stock there, once, and send the script again.
//! 4. A consumer writes the order into MySQL (`consumer.rs`). `GET /voucher-order/{order_id}` says whether it has.
//!
//! What it survives: any number of users and instances, and a MySQL that is slow or down: who was answered is in the stream,
//! and written sooner or later. **What breaks it**: a Redis that loses writes that it has answered (with `appendfsync always`
//! it loses none, with `everysec` the last second of a machine that fails, without a file all): those orders are lost. And a
//! voucher that another step sells too: what one takes the other does not see.
//!
//! Next: `voucher_in_redis.rs`, how the stock gets there; then `consumer.rs`.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    seckill::{Order, Ordered, Step, id_worker, stream, voucher_in_redis},
    section::redis_key,
    stock::Promise,
};
use redis::Script;
use std::sync::LazyLock;

pub(super) const STEP: Step = Step {
    slug: "script-stream",
    course: "一人一单",
    rank: Rank::Beyond("unique-key"),
    promise: Promise::Safe,
    title: Bilingual {
        zh: "Lua 脚本判断并占用，订单经 Stream 异步落库",
        en: "One script checks and claims, the order is written behind by a stream",
    },
    breaks: Bilingual {
        zh: "Redis 丢掉已回答的写入，订单就丢了",
        en: "a Redis that loses what it has answered loses orders",
    },
    source: include_str!("script_stream.rs"),
    order: |ctx, order| Box::pin(place(ctx, order)),
};

static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lua/claim.lua")));

const CLAIMED: u8 = 0;
const NOT_THERE: u8 = 1;
const NOT_BEGUN: u8 = 2;
const OVER: u8 = 3;
const SOLD_OUT: u8 = 4;
const ORDERED: u8 = 5;

async fn place(ctx: &Ctx, order: &Order) -> Result<Ordered, Error> {
    order.job.inside().await;
    let order_id = id_worker::next(ctx, "order").await?;
    let mut code = claim(ctx, order, order_id).await?;
    if code == NOT_THERE {
        voucher_in_redis::publish(ctx, order).await?;
        code = claim(ctx, order, order_id).await?;
    }
    match code {
        CLAIMED => Ok(Ordered {
            order_id,
            lock: None,
        }),
        NOT_THERE => Err(Error::NoVoucherStock(order.voucher_id)),
        NOT_BEGUN => Err(Error::NotStarted),
        OVER => Err(Error::Over),
        SOLD_OUT => Err(Error::SoldOut),
        ORDERED => Err(Error::AlreadyOrdered),
        other => Err(Error::Internal(format!("claim.lua returned {other}"))),
    }
}

async fn claim(ctx: &Ctx, order: &Order, order_id: i64) -> Result<u8, Error> {
    let (voucher, users) = (
        voucher_in_redis::stock(ctx, order.voucher_id),
        voucher_in_redis::users(ctx, order.voucher_id),
    );
    let mut script = CLAIM.key(voucher);
    script
        .key(users)
        .key(ctx.redis_key(stream::ORDERS))
        .key(ctx.redis_key(stream::QUEUED));
    script
        .arg(order.user_id)
        .arg(order.voucher_id)
        .arg(order_id);
    redis_key::answered(script.invoke_async(&mut ctx.redis.connection()).await)
}
