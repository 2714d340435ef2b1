//! The stream of orders that were claimed in Redis: its names, what an entry says, and what becomes of one.
//!
//! 1. `claim.lua` adds an entry, and notes its order under `seckill:queued`.
//! 2. A consumer of the group `g1` has it delivered, writes the order, and settles the entry: it is acknowledged and
//!    deleted, so that the stream has what is not settled, and nothing else.
//! 3. An entry that cannot be written is buried in `stream.orders.dead`, with its reason, and its piece goes back to the
//!    voucher in Redis (`give_back.lua`) where MySQL still has one.
//!
//! What it survives: a consumer that dies between writing and settling; the entry stays pending, and another consumer claims
//! it. So an entry may be delivered twice, and writing it must be idempotent. **What breaks it**: a Redis that loses it.
//!
//! Next: `consumer.rs`.

use super::SeckillError;
use crate::{ctx::Ctx, error::Error, section::session::Session};
use redis::{
    AsyncCommands, Pipeline,
    aio::ConnectionLike,
    streams::{StreamId, StreamPendingReply},
};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// The stream of claimed orders that are not settled.
pub(super) const ORDERS_STREAM: &str = "stream.orders";
/// The group of all consumers.
pub(super) const CONSUMER_GROUP: &str = "g1";
/// The stream of entries that could not be written.
pub(super) const DEAD_STREAM: &str = "stream.orders.dead";
/// How many dead letters are kept at least; Redis drops older ones.
const MIN_DEAD_LETTERS: usize = 10_000;
/// The hash that leads from an unsettled order to its entry.
pub(super) const QUEUED_KEY: &str = "seckill:queued";
/// Key prefix of the reason why an order was buried.
const FAILED_KEY: &str = "seckill:failed";
/// How long the reason why an order was buried is kept.
const FAILED_TTL: Duration = Duration::from_hours(7 * 24);

/// The script that puts the piece of a buried order on sale again.
const GIVE_BACK: &str = include_str!("steps/lua/give_back.lua");

const FIND_ORDER: &str = "SELECT id FROM tb_voucher_order WHERE id = ?";
/// Time limit of the query for an order: a person waits for the answer.
const MYSQL_TIMEOUT: Duration = Duration::from_secs(3);

/// An order as an entry of the stream names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuedOrder {
    pub(super) order_id: i64,
    pub(super) user_id: i64,
    pub(super) voucher_id: i64,
}

/// The state of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase", tag = "state", content = "reason")]
pub enum OrderState {
    /// It was claimed, and is not written yet.
    Pending,
    /// It stands in the database.
    Stored,
    /// It could not be written, for this reason.
    Failed(String),
}

/// How many entries are not delivered yet, delivered and unsettled, and buried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Entries that no consumer has had yet.
    pub lag: u64,
    /// Entries that a consumer has, or had when it died.
    pub pending: u64,
    /// Entries that were buried.
    pub dead: u64,
}

/// An entry of the stream that was delivered to this consumer.
#[derive(Debug)]
pub(super) struct StreamEntry {
    /// Its place in the stream.
    pub(super) at: String,
    /// Its order, or why it has none.
    pub(super) order: Result<QueuedOrder, String>,
}

impl From<StreamId> for StreamEntry {
    fn from(entry: StreamId) -> Self {
        let field = |name| entry.get(name).ok_or_else(|| format!("the entry has no number {name}"));
        let read = || Ok(QueuedOrder { order_id: field("id")?, user_id: field("userId")?, voucher_id: field("voucherId")? });
        Self { order: read(), at: entry.id }
    }
}

/// Whether an order is queued, in MySQL, or buried.
/// Errors: [`SeckillError::NoOrder`], also 7 days after it was buried; [`Error::Unavailable`] if a server is down.
pub async fn read_order_state(ctx: &Ctx, order_id: i64) -> Result<OrderState, Error> {
    // Redis first: what is not queued any more was written before.
    let mut ask = redis::pipe();
    ask.hexists(ctx.redis_key(QUEUED_KEY), order_id).get(failed_key(ctx, order_id));
    let (queued, failed): (bool, Option<String>) = ask.query_async(&mut ctx.redis.connection()).await?;
    let mut conn = ctx.mysql(MYSQL_TIMEOUT).await?;
    let stored = sqlx::query_scalar(FIND_ORDER).bind(order_id);
    let stored: Option<i64> = Session::of(&conn).bounded(MYSQL_TIMEOUT, stored.fetch_optional(&mut *conn)).await?;
    conn.done();
    match (stored, failed, queued) {
        (Some(_), ..) => Ok(OrderState::Stored),
        (None, Some(reason), _) => Ok(OrderState::Failed(reason)),
        (None, None, true) => Ok(OrderState::Pending),
        (None, None, false) => Err(SeckillError::NoOrder(order_id).into()),
    }
}

/// The key of the reason why this order was buried.
fn failed_key(ctx: &Ctx, order_id: i64) -> String {
    ctx.redis_key(&format!("{FAILED_KEY}:{order_id}"))
}

/// Counts the unsettled and the buried entries.
pub async fn count_backlog(ctx: &Ctx) -> Result<Backlog, Error> {
    let (orders, mut redis) = (ctx.redis_key(ORDERS_STREAM), ctx.redis.connection());
    let mut ask = redis::pipe();
    let (all, dead): (u64, u64) = ask.xlen(&orders).xlen(ctx.redis_key(DEAD_STREAM)).query_async(&mut redis).await?;
    let pending = match redis.xpending(&orders, CONSUMER_GROUP).await {
        Ok::<StreamPendingReply, _>(pending) => pending.count() as u64,
        // No consumer has run yet.
        Err(error) if error.code() == Some("NOGROUP") => 0,
        Err(error) => return Err(error.into()),
    };
    Ok(Backlog { lag: all.saturating_sub(pending), pending, dead })
}

/// Acknowledges and deletes entries whose orders are written.
pub(super) async fn acknowledge_and_delete(
    ctx: &Ctx,
    redis: &mut impl ConnectionLike,
    written: &[StreamEntry],
) -> Result<(), Error> {
    let mut pipe = redis::pipe();
    add_remove_commands(ctx, pipe.atomic(), written);
    Ok(pipe.exec_async(redis).await?)
}

/// Moves an entry that cannot be written to the dead letters and marks its order as failed. `gives_back_to`: the key of the
/// voucher, if its piece is on sale again, and after it the key of its users, if the user may order again.
pub(super) async fn move_to_dead_letters(
    ctx: &Ctx,
    redis: &mut impl ConnectionLike,
    entry: &StreamEntry,
    reason: &str,
    gives_back_to: &[String],
) -> Result<(), Error> {
    tracing::error!(entry = entry.at, order = ?entry.order, reason, "an order cannot be written");
    let mut pipe = redis::pipe();
    let mut letter = redis::cmd("XADD");
    letter
        .arg((ctx.redis_key(DEAD_STREAM), "MAXLEN", "~", MIN_DEAD_LETTERS, "*"))
        .arg("entry")
        .arg(&entry.at)
        .arg("reason")
        .arg(reason);
    if let Ok(order) = &entry.order {
        letter.arg("id").arg(order.order_id).arg("userId").arg(order.user_id).arg("voucherId").arg(order.voucher_id);
        let key = failed_key(ctx, order.order_id);
        pipe.set_ex(key, reason, FAILED_TTL.as_secs()).ignore();
        if !gives_back_to.is_empty() {
            pipe.cmd("EVAL")
                .arg(GIVE_BACK)
                .arg(1 + gives_back_to.len())
                .arg(ctx.redis_key(ORDERS_STREAM))
                .arg(gives_back_to)
                .arg(CONSUMER_GROUP)
                .arg(&entry.at)
                .arg(order.user_id)
                .ignore();
        }
    }
    add_remove_commands(ctx, pipe.atomic().add_command(letter), std::slice::from_ref(entry));
    Ok(pipe.exec_async(redis).await?)
}

/// Adds the commands to `pipe` that acknowledge and delete the entries and forget that their orders are queued; sends nothing.
/// The acknowledgement comes first, so that no consumer has an entry pending that is gone.
fn add_remove_commands(ctx: &Ctx, pipe: &mut Pipeline, entries: &[StreamEntry]) {
    let at: Vec<_> = entries.iter().map(|entry| &entry.at).collect();
    pipe.xack(ctx.redis_key(ORDERS_STREAM), CONSUMER_GROUP, &at).xdel(ctx.redis_key(ORDERS_STREAM), &at);
    let orders: Vec<_> = entries.iter().filter_map(|entry| entry.order.as_ref().ok()).map(|o| o.order_id).collect();
    if !orders.is_empty() {
        pipe.hdel(ctx.redis_key(QUEUED_KEY), &orders);
    }
}
