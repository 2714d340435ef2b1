//! The steps of [002]: under load each keeps its promise, and each refuses what it must. The checker alone judges. Their flaws are
//! replays (`replay/races.rs`) and lessons.

use super::on_sale;
use crate::support::*;
use chrono::{TimeDelta, Utc};
use oversell::{
    error::Error,
    seckill::{
        self, Order, SeckillError,
        check::{OrderAnswers, OrdersVerdict::Exact, VoucherOrder, check_orders},
        voucher,
    },
    stock::Promise,
};
use std::sync::Arc;

const NOW: Duration = Duration::ZERO;

fn promising() -> impl Iterator<Item = (&'static str, &'static seckill::SeckillStep)> {
    seckill::ALL.iter().filter(|step| step.spec.promise != Promise::Unsafe).map(|step| (step.slug, step))
}

/// Under load: 40 users with 3 orders each for 15 pieces, on as many instances as the step promises for. A removed voucher leaves
/// nothing.
#[apply(test!)]
#[over(promising())]
async fn keeps_its_promise(servers: &Servers, step: &'static seckill::SeckillStep) -> Result<()> {
    const PIECES: i64 = 15;
    let ctxs: Vec<_> = (0..3).map(|_| servers.with(|_| ())).collect();
    let voucher = on_sale(&ctxs[0], PIECES).await?;
    let instances = if step.spec.promise == Promise::OneProcess { 1 } else { ctxs.len() };
    let orders = (0..120).map(|n| {
        let (ctx, place) = (Arc::clone(&ctxs[n % instances]), step.spec.place);
        let order = Order::new(voucher, voucher * 1_000_000 + n as i64 / 3, NOW, TEST_WAIT_LIMIT);
        tokio::spawn(async move { (order.user_id, place(&ctx, &order).await) })
    });
    let mut answers = OrderAnswers::default();
    for order in orders.collect::<Vec<_>>() {
        match order.await? {
            (user_id, Ok(receipt)) => answers.orders.push(VoucherOrder { order_id: receipt.order_id, user_id }),
            (_, Err(Error::SoldOut | Error::Seckill(SeckillError::AlreadyOrdered | SeckillError::OrderUnderWay))) => {}
            (_, Err(other)) => bail!("{other}"),
        }
    }
    let report = async || anyhow::Ok(check_orders(&voucher::read_records(&ctxs[0], voucher).await?, Some(&answers)));
    // Some are written behind.
    wait_until("all orders are written", async || Ok(report().await?.lost_orders == 0)).await?;
    let report = report().await?;
    ensure!(report.verdict == Exact && report.orders == PIECES, "{report:?}");
    voucher::remove(&ctxs[0], voucher).await?;
    // Users have six digits after the voucher's number, so no other voucher's users begin the same.
    for pattern in [format!("seckill:*:{voucher}"), format!("lock:order:{voucher}??????")] {
        let left: Vec<String> = redis::cmd("KEYS").arg(&pattern).query_async(&mut ctxs[0].redis.connection()).await?;
        ensure!(left.is_empty(), "left: {left:?}");
    }
    for ctx in &ctxs {
        ctx.close(TEST_WAIT_LIMIT).await;
    }
    Ok(())
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
