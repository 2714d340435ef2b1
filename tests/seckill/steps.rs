//! The steps of [002]: a forced schedule shows each flaw on the first try, and the same schedule its cure; under load
//! each step keeps its promise. The checker alone judges.

use super::on_sale;
use crate::{replay::races::ends_with, support::*};
use chrono::{TimeDelta, Utc};
use oversell::{
    ctx::Ctx,
    error::Error,
    replay::{self, A, Act, B, C, ExpectedResult, Play, RaceScript, Step},
    seckill::{
        self, Order, OrderReceipt, SeckillError,
        check::{
            OrderAnswers, OrdersReport,
            OrdersVerdict::{self, DuplicateOrders, Exact, Oversold},
            VoucherOrder, check_orders,
        },
        voucher,
    },
    section::Point,
    stock::Promise,
};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

const NOW: Duration = Duration::ZERO;

/// Plays a schedule of orders for a voucher, and checks the verdict.
async fn is_judged(
    servers: &Servers,
    slug: &'static str,
    pieces: i64,
    steps: &'static [Step],
    verdict: OrdersVerdict,
) -> Result<()> {
    const JUDGED: &[Step] = &[Step::Custom(|play| Box::pin(judge(play)))];
    let ctxs: Vec<_> = (0..3).map(|_| servers.with(|_| ())).collect();
    let script = RaceScript {
        pieces,
        steps: [steps, JUDGED],
        ..RaceScript::of(Act::Order(slug), steps, ExpectedResult::NOTHING)
    };
    let ending = ends_with(&ctxs, script).await?;
    for ctx in ctxs {
        ctx.close(TEST_WAIT_LIMIT).await;
    }
    ensure!(ending.notes == verdict.to_string(), "{slug}: not {verdict:?} but {ending:?}");
    Ok(())
}

async fn judge(play: &mut Play) -> Result<(), Error> {
    let records = voucher::read_records(&play.ctx, play.stock_id).await?;
    play.add_note(check_orders(&records, None).verdict.to_string());
    Ok(())
}

macro_rules! of_another_user {
    ($slug:literal) => {
        Act::custom(concat!($slug, " of another user"), &[], |ctx, job| {
            let voucher = job.request.stock_id;
            Box::pin(replay::place_order(ctx, job, $slug, voucher, voucher + 1))
        })
    };
}

/// Another voucher of the same user, with the same lock.
macro_rules! of_another_voucher {
    ($slug:literal) => {
        Act::custom(concat!($slug, " of another voucher"), &[], |ctx, job| {
            Box::pin(async {
                let another = on_sale(ctx, 10).await?;
                let user = job.request.stock_id;
                let ordered = replay::place_order(ctx, job, $slug, another, user).await;
                voucher::remove(ctx, another).await?;
                ordered
            })
        })
    };
}

/// 库存超卖问题分析. Both have read the last piece.
#[apply(test!)]
async fn both_readers_of_the_last_piece_take_it_without_a_check(servers: &Servers) -> Result<()> {
    const BOTH_TAKE_IT: &[Step] =
        &[A.stops_at(Point::Read), B.acting(of_another_user!("check-then-deduct")).finishes(), A.finishes()];
    const ONE_TAKES_IT: &[Step] =
        &[A.stops_at(Point::Read), B.acting(of_another_user!("conditional-update")).finishes(), A.fails_as("sold-out")];
    for (slug, steps, verdict) in
        [("check-then-deduct", BOTH_TAKE_IT, Oversold), ("conditional-update", ONE_TAKES_IT, Exact)]
    {
        is_judged(servers, slug, 1, steps, verdict).await?;
    }
    Ok(())
}

/// 粒度, 集群. The first has found no order of the user, and has not written its own.
#[apply(test!)]
async fn only_a_shared_lock_refuses_a_users_second_order(servers: &Servers) -> Result<()> {
    const AT_THE_SAME_INSTANCE: &[Step] = &[A.stops_at(Point::Checked), B.on_instance_of(A).finishes(), A.finishes()];
    const AT_ANOTHER: &[Step] = &[A.stops_at(Point::Checked), B.finishes(), A.finishes()];
    const WAITS_IN_VAIN: &[Step] =
        &[A.stops_at(Point::Checked), B.on_instance_of(A).impatient().times_out(), A.finishes()];
    const IS_REFUSED: &[Step] = &[A.stops_at(Point::Checked), B.fails_as("under-way"), A.finishes()];
    for (slug, steps, verdict) in [
        ("user-mutex-new", AT_THE_SAME_INSTANCE, DuplicateOrders),
        ("user-mutex", WAITS_IN_VAIN, Exact),
        ("user-mutex", AT_ANOTHER, DuplicateOrders),
        ("global-mutex", WAITS_IN_VAIN, Exact),
        ("global-mutex", AT_ANOTHER, DuplicateOrders),
        ("redis-lock-fixed-id", IS_REFUSED, Exact),
        ("redis-lock-owner", IS_REFUSED, Exact),
        ("redis-lock-lua", IS_REFUSED, Exact),
        ("redis-rlock", IS_REFUSED, Exact),
    ] {
        is_judged(servers, slug, 10, steps, verdict).await?;
    }
    Ok(())
}

/// 粒度. Too coarse: a user waits for another, with whom it shares nothing.
#[apply(test!)]
async fn one_lock_for_all_makes_others_wait_and_one_per_user_does_not(servers: &Servers) -> Result<()> {
    const WAITS_FOR_A: &[Step] = &[
        A.stops_at(Point::Checked),
        B.on_instance_of(A).acting(of_another_user!("global-mutex")).impatient().times_out(),
        A.finishes(),
    ];
    const GOES_AHEAD: &[Step] = &[
        A.stops_at(Point::Checked),
        B.on_instance_of(A).acting(of_another_user!("user-mutex")).finishes(),
        A.finishes(),
    ];
    is_judged(servers, "global-mutex", 10, WAITS_FOR_A, Exact).await?;
    is_judged(servers, "user-mutex", 10, GOES_AHEAD, Exact).await
}

/// 事务. The first stops before its commit; the difference is whether it still has its lock.
#[apply(test!)]
async fn a_lock_inside_the_transaction_is_unlocked_before_the_commit(servers: &Servers) -> Result<()> {
    const FLAW: &[Step] =
        &[A.stops_at(Point::Commit), B.on_instance_of(A).stops_at(Point::Checked), A.finishes(), B.finishes()];
    const CURE: &[Step] = &[A.stops_at(Point::Commit), B.on_instance_of(A).impatient().times_out(), A.finishes()];
    for (slug, steps, verdict) in [("user-mutex-in-tx", FLAW, DuplicateOrders), ("user-mutex", CURE, Exact)] {
        is_judged(servers, slug, 10, steps, verdict).await?;
    }
    Ok(())
}

/// 误删, 原子性. The late one orders another voucher under the same user's lock, so its own order is correct.
#[apply(test!)]
async fn a_late_unlock_deletes_anothers_lock_unless_atomic(servers: &Servers) -> Result<()> {
    const B_GETS_IN: &[Step] = &[Step::LeaseEnds, B.stops_at(Point::Checked)];
    // It cannot tell that it deletes another's key.
    const DELETES_ANOTHERS: &[Step] = &[A.finishes_and_unlocks(), C.finishes(), B.finishes()];
    const LEAVES_ANOTHERS: &[Step] = &[A.finishes_with_lock_lost(), C.fails_as("under-way"), B.finishes()];
    const FIXED_ID: &[Step] = &[
        A.acting(of_another_voucher!("redis-lock-fixed-id")).stops_at(Point::Unlock),
        Step::All(B_GETS_IN),
        Step::All(DELETES_ANOTHERS),
    ];
    const OWNER: &[Step] = &[
        A.acting(of_another_voucher!("redis-lock-owner")).stops_at(Point::Unlock),
        Step::All(B_GETS_IN),
        Step::All(LEAVES_ANOTHERS),
    ];
    const OWNER_COMPARED: &[Step] = &[
        A.acting(of_another_voucher!("redis-lock-owner")).stops_at(Point::Compared),
        Step::All(B_GETS_IN),
        Step::All(DELETES_ANOTHERS),
    ];
    const LUA: &[Step] = &[
        A.acting(of_another_voucher!("redis-lock-lua")).stops_at(Point::Compared),
        Step::All(B_GETS_IN),
        Step::All(LEAVES_ANOTHERS),
    ];
    for (slug, steps, verdict) in [
        ("redis-lock-fixed-id", FIXED_ID, DuplicateOrders),
        ("redis-lock-owner", OWNER, Exact),
        ("redis-lock-owner", OWNER_COMPARED, DuplicateOrders),
        ("redis-lock-lua", LUA, Exact),
    ] {
        is_judged(servers, slug, 10, steps, verdict).await?;
    }
    Ok(())
}

/// 锁不住. An order that outlasts its lease has it renewed. If the holder's process stood still and renewed nothing, the
/// database refuses.
#[apply(test!)]
async fn an_order_longer_than_its_lease_is_not_alone(servers: &Servers) -> Result<()> {
    // A process that stands still does not renew, so the lease ends.
    const IS_NOT_ALONE: &[Step] = &[A.stops_at(Point::Checked), Step::LeaseEnds, B.finishes(), A.finishes()];
    const THE_DATABASE_REFUSES: &[Step] = &[A.stops_at(Point::Checked), B.finishes(), A.fails_as("already-ordered")];
    const IS_RENEWED: &[Step] = &[
        A.self_ending_lease(3000, 3000).stops_at(Point::Checked),
        Step::Custom(|play| Box::pin(wait_until_renewed(play))),
        B.fails_as("under-way"),
        A.finishes(),
    ];
    for (slug, steps, verdict) in [
        ("redis-lock-lua", IS_NOT_ALONE, DuplicateOrders),
        ("redis-rlock", IS_NOT_ALONE, DuplicateOrders),
        ("unique-key", THE_DATABASE_REFUSES, Exact),
        ("redis-rlock", IS_RENEWED, Exact),
    ] {
        is_judged(servers, slug, 10, steps, verdict).await?;
    }
    Ok(())
}

/// Waits until the lease was renewed.
async fn wait_until_renewed(play: &Play) -> Result<(), Error> {
    let mut left = i64::MAX;
    loop {
        let now = play.lease_left().await?.unwrap_or_default();
        if now > left {
            return Ok(());
        }
        left = now;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

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
                answers
                    .lock()
                    .expect("nobody panics")
                    .orders
                    .push(VoucherOrder { order_id: *order_id, user_id: order.user_id });
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
        ensure!(
            matches!(second, Err(Error::Seckill(SeckillError::AlreadyOrdered))) == asks,
            "{}: {second:?}",
            step.slug
        );
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
            Ok(_)
            | Err(Error::SoldOut | Error::Seckill(SeckillError::AlreadyOrdered | SeckillError::OrderUnderWay)) => {}
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
async fn a_piece_that_left_without_an_order_is_not_called_unchanged(
    servers: &Servers,
    slug: &'static str,
) -> Result<()> {
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
