//! The steps of [002]: under load each keeps its promise, and each refuses what it must. The checker alone judges. Their flaws are
//! replays: `replay/races.rs`.

use super::on_sale;
use crate::support::*;
use chrono::{TimeDelta, Utc};
use oversell::{
    ctx::Ctx,
    error::Error,
    seckill::{
        self, Order, OrderReceipt, SeckillError,
        check::{
            OrderAnswers, OrdersReport,
            OrdersVerdict::{self, DuplicateOrders, Exact},
            VoucherOrder, check_orders,
        },
        voucher,
    },
    stock::Promise,
};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

const NOW: Duration = Duration::ZERO;

struct Shop {
    step: &'static seckill::SeckillStep,
    ctxs: Vec<Arc<Ctx>>,
    voucher: i64,
    answers: Arc<Mutex<OrderAnswers>>,
}

impl Shop {
    async fn open(servers: &Servers, slug: &str, pieces: i64) -> Result<Self> {
        let step = seckill::find(slug).with_context(|| format!("there is no {slug}"))?;
        let ctxs: Vec<_> = (0..3).map(|_| servers.with(|_| ())).collect();
        let voucher = on_sale(&ctxs[0], pieces).await?;
        Ok(Self { step, ctxs, voucher, answers: Arc::default() })
    }

    /// Sends an order of a user of this shop to an instance.
    fn start(&self, instance: usize, user: i64) -> JoinHandle<Result<OrderReceipt, Error>> {
        let (ctx, place, answers) = (Arc::clone(&self.ctxs[instance]), self.step.spec.place, Arc::clone(&self.answers));
        let order = Order::new(self.voucher, self.voucher * 1_000_000 + user, NOW, TEST_WAIT_LIMIT);
        tokio::spawn(async move {
            let placed = place(&ctx, &order).await;
            if let Ok(OrderReceipt { order_id, .. }) = &placed {
                answers.lock().expect("nobody panics").orders.push(VoucherOrder { order_id: *order_id, user_id: order.user_id });
            }
            placed
        })
    }

    /// The checker's verdict, once orders that are written behind are written.
    async fn report(&self) -> Result<OrdersReport> {
        let answers = self.answers.lock().expect("nobody panics").clone();
        let written = async {
            loop {
                let records = voucher::read_records(&self.ctxs[0], self.voucher).await?;
                let report = check_orders(&records, Some(&answers));
                if report.lost_orders == 0 || !self.step.spec.rank.is_beyond() {
                    return Ok(report);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within_limit("an order that was answered is written", written).await?
    }

    /// Removes the test's data, and checks the verdict.
    async fn close(self, verdict: OrdersVerdict) -> Result<()> {
        let report = self.report().await?;
        voucher::remove(&self.ctxs[0], self.voucher).await?;
        // Users have six digits after the voucher's number, so no other voucher's users begin the same.
        for pattern in [format!("seckill:*:{}", self.voucher), format!("lock:order:{}??????", self.voucher)] {
            let mut redis = self.ctxs[0].redis.connection();
            let left: Vec<String> = redis::cmd("KEYS").arg(&pattern).query_async(&mut redis).await?;
            ensure!(left.is_empty(), "{} has left {left:?}", self.step.slug);
        }
        for ctx in &self.ctxs {
            ctx.close(TEST_WAIT_LIMIT).await;
        }
        ensure!(report.verdict == verdict, "{}: not {verdict:?} but {report:?}", self.step.slug);
        Ok(())
    }
}

/// 一人一单. One after the other, so that no lock is needed yet.
#[apply(test!)]
async fn without_a_check_one_user_orders_twice(servers: &Servers) -> Result<()> {
    for step in seckill::ALL.iter() {
        let shop = Shop::open(servers, step.slug, 10).await?;
        shop.start(0, 1).await??;
        let second = shop.start(1, 1).await?;
        let asks = !["check-then-deduct", "conditional-update"].contains(&step.slug);
        ensure!(matches!(second, Err(Error::Seckill(SeckillError::AlreadyOrdered))) == asks, "{}: {second:?}", step.slug);
        shop.close(if asks { Exact } else { DuplicateOrders }).await?;
    }
    Ok(())
}

fn promising() -> impl Iterator<Item = (&'static str, &'static seckill::SeckillStep)> {
    seckill::ALL.iter().filter(|step| step.spec.promise != Promise::Unsafe).map(|step| (step.slug, step))
}

/// Under load: 40 users with 3 orders each for 15 pieces, on as many instances as the step promises for.
#[apply(test!)]
#[over(promising())]
async fn keeps_its_promise(servers: &Servers, step: &'static seckill::SeckillStep) -> Result<()> {
    const PIECES: i64 = 15;
    let shop = Shop::open(servers, step.slug, PIECES).await?;
    let instances = if step.spec.promise == Promise::OneProcess { 1 } else { shop.ctxs.len() };
    let orders: Vec<_> = (0..120).map(|n| shop.start(n % instances, n as i64 / 3)).collect();
    for order in orders {
        match order.await? {
            Ok(_) | Err(Error::SoldOut | Error::Seckill(SeckillError::AlreadyOrdered | SeckillError::OrderUnderWay)) => {}
            Err(other) => bail!("{}: {other}", step.slug),
        }
    }
    let report = shop.report().await?;
    ensure!(report.orders == PIECES, "{}: {report:?}", step.slug);
    shop.close(Exact).await
}

/// Every step refuses before the sale, after it, when sold out, and for an unknown voucher, and leaves nothing.
#[apply(test!)]
async fn orders_before_after_and_beyond_the_stock_are_refused(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    let ctx = &site.ctxs[0];
    let hour = TimeDelta::hours(1);
    let add = async |pieces, begin, end| voucher::add(ctx, "100元代金券", pieces, begin, end).await;
    let now = Utc::now();
    let (early, late, none) = (
        add(1, now + hour, now + hour * 2).await?,
        add(1, now - hour * 2, now - hour).await?,
        add(0, now - hour, now + hour).await?,
    );
    for step in seckill::ALL.iter() {
        let place = async |voucher| (step.spec.place)(ctx, &Order::new(voucher, 1, NOW, TEST_WAIT_LIMIT)).await;
        let refused = [place(early).await, place(late).await, place(none).await, place(i64::MAX).await];
        let as_expected = matches!(
            refused,
            [
                Err(Error::Seckill(SeckillError::NotStarted)),
                Err(Error::Seckill(SeckillError::Over)),
                Err(Error::SoldOut),
                Err(Error::Seckill(SeckillError::NoVoucher(i64::MAX)))
            ]
        );
        ensure!(as_expected, "{}: {refused:?}", step.slug);
    }
    for voucher in [early, late, none] {
        let records = voucher::read_records(ctx, voucher).await?;
        let report = check_orders(&records, Some(&OrderAnswers::default()));
        ensure!(report.verdict == Exact && report.orders == 0, "{report:?}");
        voucher::remove(ctx, voucher).await?;
        let gone = [voucher::read(ctx, voucher).await.map(drop), voucher::remove(ctx, voucher).await];
        ensure!(gone.iter().all(|gone| matches!(gone, Err(Error::Seckill(SeckillError::NoVoucher(_))))), "{gone:?}");
    }
    Ok(())
}

/// Both take the piece in one statement. If no order can follow, since the id worker has no Redis, the answer does not
/// claim that nothing was changed.
#[apply(test!)]
#[over(["check-then-deduct", "conditional-update"].map(|slug| (slug, slug)))]
async fn a_piece_that_left_without_an_order_is_not_called_unchanged(servers: &Servers, slug: &'static str) -> Result<()> {
    let ctx = servers.with(|config| config.redis.url = "redis://127.0.0.1:1".to_owned().into());
    let voucher = on_sale(&ctx, 10).await?;
    let step = seckill::find(slug).context("no step")?;
    let order = Order::new(voucher, 7, NOW, TEST_WAIT_LIMIT);
    let ordered = (step.spec.place)(&ctx, &order).await;
    let left = voucher::read(&ctx, voucher).await?.stock;
    voucher::remove(&ctx, voucher).await?;
    ensure!(matches!(ordered, Err(Error::PieceGone(_))) && left == 9, "{ordered:?}, and {left} are left");
    Ok(())
}
