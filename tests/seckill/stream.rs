//! Orders that are written behind: dying consumers, orders that cannot be written, and the rest of their batch.
//!
//! Each test has its own stream, by its prefix in Redis, and runs its own consumers.

use super::on_sale;
use crate::support::*;
use oversell::{
    ctx::Ctx,
    error::Error,
    seckill::{
        self, Order, OrderReceipt, SeckillError,
        check::{
            OrderAnswers, OrdersReport,
            OrdersVerdict::{self, DuplicateOrders, Exact, LostOrders, LostPieces},
            VoucherOrder, check_orders,
        },
        consumer::Consumer,
        id_worker,
        stream::{self, Backlog, OrderState},
        voucher,
    },
    section::Point,
};
use redis::{AsyncCommands, streams::StreamReadReply};
use sqlx::Executor;
use std::sync::Arc;

const NOW: Duration = Duration::ZERO;
const USERS: i64 = 50;
/// More ids than any test needs.
const IDS: u32 = 1000;

/// A voucher with twice the pieces that are ordered, its stream, and the answers to its buyers.
pub(crate) struct VoucherSale {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) voucher: i64,
    pub(crate) answers: OrderAnswers,
}

impl VoucherSale {
    pub(crate) async fn open(ctx: Arc<Ctx>) -> Result<Self> {
        let voucher = on_sale(&ctx, 2 * USERS).await?;
        Ok(Self { ctx, voucher, answers: OrderAnswers::default() })
    }

    async fn of(servers: &Servers) -> Result<Self> {
        let id = servers.site().await.id;
        let ctx = servers.with(|config| config.redis.prefix = format!("stall-{id}:"));
        // Each prefix counts its own ids, but all share one table of orders: so each starts at another number.
        let used = u32::try_from(id)? * IDS;
        id_worker::next_ids(&ctx, id_worker::ORDERS, used).await?;
        Self::open(ctx).await
    }

    pub(crate) async fn order(&mut self, users: std::ops::Range<i64>) -> Result<()> {
        for user_id in users {
            let order_id = self.place(user_id).await?.order_id;
            self.answers.orders.push(VoucherOrder { order_id, user_id });
        }
        Ok(())
    }

    async fn place(&self, user_id: i64) -> Result<OrderReceipt, Error> {
        let step = seckill::find("script-stream").expect("a step");
        let order = Order::new(self.voucher, user_id, NOW, TEST_WAIT_LIMIT);
        (step.spec.place)(&self.ctx, &order).await
    }

    fn consumer(&self, name: &str) -> Consumer {
        Consumer::new(Ctx::clone(&self.ctx)).with_name(name, Duration::from_millis(1))
    }

    /// Runs a consumer until the stream is empty; returns the verdict.
    pub(crate) async fn settled(&self) -> Result<OrdersReport> {
        let last = tokio::spawn(self.consumer("last").run());
        wait_until("all is settled", || async {
            let Backlog { lag, pending, .. } = stream::count_backlog(&self.ctx).await?;
            Ok(lag + pending == 0)
        })
        .await?;
        last.abort();
        self.report().await
    }

    /// A consumer that has entries is believed dead, and goes on once another has settled them.
    async fn settle_beside_a_slow_consumer(&self) -> Result<()> {
        let mut slow = self.consumer("slow");
        let mut pause = slow.pause_at(Point::Delivered);
        let slow = tokio::spawn(slow.run());
        within_limit("a delivery", pause.wait_until_reached()).await?;
        self.settled().await?;
        pause.resume();
        self.ctx.closing.cancel();
        Ok(slow.await?)
    }

    /// A key of its voucher.
    fn key(&self, of: &str) -> String {
        (self.ctx).redis_key(&format!("seckill:{of}:{}", self.voucher))
    }

    async fn report(&self) -> Result<OrdersReport> {
        let records = voucher::read_records(&self.ctx, self.voucher).await?;
        Ok(check_orders(&records, Some(&self.answers)))
    }

    pub(crate) async fn close(self, verdict: OrdersVerdict) -> Result<()> {
        let report = self.settled().await?;
        voucher::remove(&self.ctx, self.voucher).await?;
        self.ctx.close(TEST_WAIT_LIMIT).await;
        ensure!(report.verdict == verdict, "not {verdict:?} but {report:?}");
        Ok(())
    }

    async fn state(&self, order_id: i64) -> Result<OrderState> {
        Ok(stream::read_order_state(&self.ctx, order_id).await?)
    }
}

/// A consumer dies with entries that it has not written, and with entries that it has written and not acknowledged.
#[apply(test!)]
async fn a_consumer_dying_anywhere_loses_and_doubles_no_order(servers: &Servers) -> Result<()> {
    for (point, written) in [(Point::Delivered, 0), (Point::Written, USERS)] {
        let mut sale = VoucherSale::of(servers).await?;
        sale.order(0..USERS).await?;
        ensure!(sale.state(sale.answers.orders[0].order_id).await? == OrderState::Pending, "it is not pending");
        let mut mortal = sale.consumer("mortal");
        let mut pause = mortal.pause_at(point);
        let mortal = tokio::spawn(mortal.run());
        within_limit(&point.to_string(), pause.wait_until_reached()).await?;
        let records = voucher::read_records(&sale.ctx, sale.voucher).await?;
        let backlog = stream::count_backlog(&sale.ctx).await?;
        let all = USERS as u64;
        let unsettled = (backlog.lag, backlog.pending, backlog.dead);
        ensure!(unsettled == (0, all, 0), "{point}: {backlog:?}");
        ensure!(records.orders.len() as i64 == written, "{point}: {} are written", records.orders.len());
        mortal.abort();
        drop(pause);
        sale.settled().await?;
        ensure!(sale.state(sale.answers.orders[0].order_id).await? == OrderState::Stored, "it is not stored");
        sale.close(Exact).await?;
    }
    Ok(())
}

/// A consumer that was believed dead goes on with entries that another has claimed, written and acknowledged.
#[apply(test!)]
async fn a_consumer_that_was_slow_and_not_dead_doubles_no_order(servers: &Servers) -> Result<()> {
    let mut sale = VoucherSale::of(servers).await?;
    sale.order(0..USERS).await?;
    sale.settle_beside_a_slow_consumer().await?;
    ensure!(stream::count_backlog(&sale.ctx).await?.dead == 0, "it has buried what is written");
    sale.close(Exact).await
}

/// The twins die at the same points.
#[apply(test!)]
async fn a_consumer_that_acks_first_or_forgets_its_order_is_caught(servers: &Servers) -> Result<()> {
    for (twin, verdict) in [(Twin::AcknowledgesFirst, LostOrders), (Twin::WritesAnew, DuplicateOrders)] {
        let mut sale = VoucherSale::of(servers).await?;
        sale.order(0..USERS).await?;
        // It dies, restarts, and receives its own entries again.
        for life in [">", "0"] {
            twin.live(&sale, life).await?;
        }
        sale.close(verdict).await?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Twin {
    AcknowledgesFirst,
    WritesAnew,
}

impl Twin {
    /// Runs from reading to its death: in its first life before what comes second.
    async fn live(self, sale: &VoucherSale, from: &str) -> Result<()> {
        let (mut redis, orders) = (sale.ctx.redis.connection(), sale.ctx.redis_key("stream.orders"));
        let made: redis::RedisResult<()> = redis.xgroup_create_mkstream(&orders, "g1", "0").await;
        ensure!(made.is_ok() == (from == ">"), "the group");
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg("g1").arg("twin").arg("STREAMS").arg(&orders).arg(from);
        let read: StreamReadReply = read.query_async(&mut redis).await?;
        let entries: Vec<_> = read.keys.into_iter().flat_map(|key| key.ids).collect();
        let at: Vec<_> = entries.iter().map(|entry| &entry.id).collect();
        if self == Self::AcknowledgesFirst && !at.is_empty() {
            let mut acknowledge = redis::pipe();
            acknowledge.xack(&orders, "g1", &at).xdel(&orders, &at);
            return Ok(acknowledge.exec_async(&mut redis).await?);
        }
        let mut conn = sale.ctx.mysql(TEST_WAIT_LIMIT).await?;
        for entry in &entries {
            let order_id = id_worker::next_id(&sale.ctx, id_worker::ORDERS).await?;
            let insert = sqlx::query("INSERT INTO tb_voucher_order (id, user_id, voucher_id) VALUES (?, ?, ?)");
            let user: i64 = entry.get("userId").context("no user")?;
            insert.bind(order_id).bind(user).bind(sale.voucher).execute(&mut *conn).await?;
            let deduct = sqlx::query("UPDATE tb_seckill_voucher SET stock = stock - 1 WHERE voucher_id = ?");
            deduct.bind(sale.voucher).execute(&mut *conn).await?;
        }
        conn.done();
        Ok(())
    }
}

/// Redis loses the list of buyers, and the same users order again: MySQL refuses the second orders, and their pieces
/// return to the stock. The twin has a piece that nobody sells.
#[apply(test!)]
async fn a_lost_set_of_users_costs_no_piece(servers: &Servers) -> Result<()> {
    let mut sale = VoucherSale::of(servers).await?;
    sale.order(0..USERS).await?;
    let mut redis = sale.ctx.redis.connection();
    let _: () = redis.del(sale.key("order")).await?;
    for user in 0..USERS {
        sale.place(user).await?;
    }
    let waiting = voucher::read_records(&sale.ctx, sale.voucher).await?;
    ensure!(waiting.redis_stock.is_none(), "orders wait, and it is judged: {waiting:?}");
    let report = sale.settled().await?;
    let key = sale.key("stock");
    let in_redis: i64 = redis.hget(&key, "stock").await?;
    ensure!((report.verdict, report.stock, in_redis) == (Exact, USERS, USERS), "{in_redis} in Redis, {report:?}");
    ensure!(stream::count_backlog(&sale.ctx).await?.dead == USERS as u64, "not all second orders were refused");
    let _: i64 = redis.hincr(&key, "stock", -1).await?;
    let twin = sale.report().await?;
    ensure!((twin.verdict, twin.lost_pieces) == (LostPieces, 1), "{twin:?}");
    let _: i64 = redis.hincr(&key, "stock", 1).await?;
    sale.close(Exact).await
}

/// Two consumers reject one entry: its piece returns once.
#[apply(test!)]
async fn a_slow_consumer_gives_no_piece_back_twice(servers: &Servers) -> Result<()> {
    let mut sale = VoucherSale::of(servers).await?;
    sale.order(0..1).await?;
    let mut redis = sale.ctx.redis.connection();
    let _: () = redis.del(sale.key("order")).await?;
    sale.settled().await?;
    sale.place(0).await?;
    sale.settle_beside_a_slow_consumer().await?;
    let key = sale.key("stock");
    let in_redis: i64 = redis.hget(&key, "stock").await?;
    ensure!(in_redis == 2 * USERS - 1, "{in_redis} in Redis");
    sale.close(Exact).await
}

/// An empty entry, and orders that MySQL refuses for their user, their stock, or another reason: each becomes a dead
/// letter with its reason, and the rest of the batch is written.
#[apply(test!)]
async fn an_unwritable_order_goes_to_the_dead_letters_with_its_reason(servers: &Servers) -> Result<()> {
    let (mut outsider, ctx) = servers.database("poison").await?;
    let mut config = ctx.config.clone();
    config.redis.prefix = "poison:".into();
    let ctx = Arc::new(Ctx::new(config)?);
    migrate(&ctx).await;
    let mut sale = VoucherSale::open(ctx).await?;
    let mut conn = sale.ctx.mysql(TEST_WAIT_LIMIT).await?;
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON tb_voucher_order FOR EACH ROW \
                  IF NEW.user_id = 13 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'user 13'; END IF";
    conn.execute(poison).await?;
    sale.order(0..USERS).await?;

    // These are claimed, but somebody else took what they need from MySQL.
    let (mut other, mut none) =
        (VoucherSale::open(Arc::clone(&sale.ctx)).await?, VoucherSale::open(Arc::clone(&sale.ctx)).await?);
    other.order(1..2).await?;
    none.order(1..2).await?;
    let (twice, empty) = (other.answers.orders[0].order_id, none.answers.orders[0].order_id);
    let taken = "INSERT INTO tb_voucher_order (id, user_id, voucher_id, claimed_by) VALUES (1, 1, ?, 1)";
    sqlx::query(taken).bind(other.voucher).execute(&mut *conn).await?;
    let sold = "UPDATE tb_seckill_voucher SET stock = 0 WHERE voucher_id = ?";
    sqlx::query(sold).bind(none.voucher).execute(&mut *conn).await?;
    conn.done();
    let mut nonsense = redis::cmd("XADD");
    nonsense.arg(sale.ctx.redis_key("stream.orders")).arg("*").arg("id").arg("none");
    nonsense.exec_async(&mut sale.ctx.redis.connection()).await?;

    let report = sale.settled().await?;
    ensure!((report.orders, report.lost_orders) == (USERS - 1, 1), "{report:?}");
    ensure!(stream::count_backlog(&sale.ctx).await?.dead == 4, "not four dead letters");
    for (order_id, why) in [(sale.answers.orders[13].order_id, "user 13"), (twice, "用户已经购买过一次!"), (empty, "库存不足！")]
    {
        match sale.state(order_id).await? {
            OrderState::Failed(reason) if reason.contains(why) => {}
            other => bail!("{why}: {other:?}"),
        }
    }
    // Whose order failed may order again; who has an order may not.
    for (voucher, user, is_listed) in [(sale.voucher, 13, false), (other.voucher, 1, true)] {
        let users = sale.ctx.redis_key(&format!("seckill:order:{voucher}"));
        let mut redis = sale.ctx.redis.connection();
        let listed: bool = redis.sismember(users, user).await?;
        ensure!(listed == is_listed, "user {user} of {voucher}: {listed}");
    }
    let failed = sale.ctx.redis_key(&format!("seckill:failed:{twice}"));
    let ends: i64 = sale.ctx.redis.connection().ttl(failed).await?;
    ensure!(ends > 0, "a reason is kept for ever: {ends}");
    let letters: redis::streams::StreamRangeReply =
        sale.ctx.redis.connection().xrange_all(sale.ctx.redis_key("stream.orders.dead")).await?;
    let reasons: Vec<String> = letters.ids.iter().filter_map(|letter| letter.get("reason")).collect();
    ensure!(reasons.iter().any(|reason| reason == "the entry has no number id"), "{reasons:?}");
    let unknown = stream::read_order_state(&sale.ctx, 7).await;
    ensure!(matches!(unknown, Err(Error::Seckill(SeckillError::NoOrder(7)))), "{unknown:?}");
    sale.ctx.close(TEST_WAIT_LIMIT).await;
    outsider.execute("DROP DATABASE poison").await?;
    Ok(())
}

/// A closing instance first writes what it has answered.
#[apply(test!)]
async fn a_consumer_that_closes_writes_what_was_answered(servers: &Servers) -> Result<()> {
    let mut sale = VoucherSale::of(servers).await?;
    sale.order(0..USERS).await?;
    sale.ctx.closing.cancel();
    sale.consumer("closing").run().await;
    let report = sale.report().await?;
    ensure!(report.verdict == Exact, "{report:?}");
    sale.close(Exact).await
}

/// Redis lost a voucher that was sold from there: nobody restores it.
#[apply(test!)]
async fn a_voucher_that_redis_has_lost_is_not_invented(servers: &Servers) -> Result<()> {
    let mut sale = VoucherSale::of(servers).await?;
    sale.order(0..1).await?;
    let key = sale.key("stock");
    let lost: bool = sale.ctx.redis.connection().del(&key).await?;
    ensure!(lost, "{key} was not there");
    let refused = sale.place(1).await;
    let as_expected = matches!(refused, Err(Error::Seckill(SeckillError::NoVoucherStock(voucher))) if voucher == sale.voucher);
    ensure!(as_expected, "{refused:?}");
    sale.close(Exact).await
}
