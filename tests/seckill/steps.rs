//! The steps of [002]: each one's flaw on the first try, by a forced interleaving, and its cure by the same one; and that each
//! keeps its promise under load. What happened is judged by the checker alone.

use crate::support::*;
use chrono::{TimeDelta, Utc};
use oversell::{
    ctx::Ctx,
    error::Error,
    seckill::{
        self, Order, Ordered, Step,
        check::{Answers, Entry, Report, Verdict, check},
        voucher,
    },
    section::{LockState, Pause, Point},
    stock::Promise,
};
use redis::FromRedisValue;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

type Placed = Result<Ordered, Error>;
type Running = JoinHandle<Placed>;

const NOW: Duration = Duration::ZERO;

/// One voucher, one step, and three instances.
struct Shop {
    step: &'static Step,
    ctxs: Vec<Arc<Ctx>>,
    voucher: i64,
    answers: Arc<Mutex<Answers>>,
}

impl Shop {
    async fn open(servers: &Servers, slug: &str, pieces: i64) -> Result<Self> {
        let step = seckill::find(slug).with_context(|| format!("there is no {slug}"))?;
        let ctxs: Vec<_> = (0..3).map(|_| servers.with(|_| ())).collect();
        let voucher = on_sale(&ctxs[0], pieces).await?;
        Ok(Self {
            step,
            ctxs,
            voucher,
            answers: Arc::default(),
        })
    }

    /// An order of one of the users that only this shop has.
    fn order(&self, user: i64, wait: Duration) -> Order {
        Order::new(self.voucher, self.user(user), NOW, wait)
    }

    fn user(&self, user: i64) -> i64 {
        self.voucher * 1_000_000 + user
    }

    /// Sends an order to an instance.
    fn start(&self, instance: usize, order: Order) -> Running {
        let (ctx, place, answers) = (
            Arc::clone(&self.ctxs[instance]),
            self.step.order,
            Arc::clone(&self.answers),
        );
        let here = order.voucher_id == self.voucher;
        tokio::spawn(async move {
            let placed = place(&ctx, &order).await;
            if let (Ok(Ordered { order_id, .. }), true) = (&placed, here) {
                answers.lock().expect("nobody panics").orders.push(Entry {
                    order_id: *order_id,
                    user_id: order.user_id,
                });
            }
            placed
        })
    }

    /// The outcome of a user's order at an instance.
    async fn place(&self, instance: usize, user: i64, wait: Duration) -> Result<Placed> {
        Ok(self.start(instance, self.order(user, wait)).await?)
    }

    /// An order on its way, as soon as it is stopped at `point`.
    async fn stopped(
        &self,
        instance: usize,
        mut order: Order,
        point: Point,
    ) -> Result<(Running, Pause)> {
        let pause = order.job.pause_at(point);
        let running = self.start(instance, order);
        soon(&format!("{} at {point}", self.step.slug), pause.reached()).await?;
        Ok((running, pause))
    }

    /// Asks Redis something about the lock of the first user.
    async fn lock<T: FromRedisValue>(&self, command: &str, arguments: &[&str]) -> Result<T> {
        let mut command = redis::cmd(command);
        command
            .arg(format!("lock:order:{}", self.user(1)))
            .arg(arguments);
        let mut redis = self.ctxs[0].redis.connection();
        Ok(command.query_async(&mut redis).await?)
    }

    /// Ends the lease of the first user's lock: its holder has taken too long.
    async fn end_lease(&self) -> Result<()> {
        ensure!(
            self.lock::<bool>("PEXPIRE", &["1"]).await?,
            "there is no lock"
        );
        // Again and again: a holder that still lives may have renewed it meanwhile.
        until("the lock is gone", || async {
            Ok(!self.lock::<bool>("PEXPIRE", &["1"]).await?)
        })
        .await
    }

    /// What the checker says. An order that was answered and is written behind is waited for.
    async fn report(&self) -> Result<Report> {
        let answers = self.answers.lock().expect("nobody panics").clone();
        let written = async {
            loop {
                let report = check(
                    &voucher::books(&self.ctxs[0], self.voucher).await?,
                    Some(&answers),
                );
                if report.lost_orders == 0 || !self.step.rank.is_beyond() {
                    return Ok(report);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        soon("an order that was answered is written", written).await?
    }

    /// Takes away what the test has made, and ensures the checker's verdict.
    async fn close(self, verdict: Verdict) -> Result<()> {
        let report = self.report().await?;
        voucher::remove(&self.ctxs[0], self.voucher).await?;
        // A user of this shop has six digits after the voucher's: with any number of them, another voucher's begin so too.
        for pattern in [
            format!("seckill:*:{}", self.voucher),
            format!("lock:order:{}??????", self.voucher),
        ] {
            let mut redis = self.ctxs[0].redis.connection();
            let left: Vec<String> = redis::cmd("KEYS")
                .arg(&pattern)
                .query_async(&mut redis)
                .await?;
            ensure!(left.is_empty(), "{} has left {left:?}", self.step.slug);
        }
        for ctx in &self.ctxs {
            ctx.close(LONG).await;
        }
        ensure!(
            report.verdict == verdict,
            "{}: not {verdict:?} but {report:?}",
            self.step.slug
        );
        Ok(())
    }
}

async fn on_sale(ctx: &Ctx, pieces: i64) -> Result<i64> {
    let (begin, end) = (
        Utc::now() - TimeDelta::hours(1),
        Utc::now() + TimeDelta::hours(1),
    );
    Ok(voucher::add(ctx, "100元代金券", pieces, begin, end).await?)
}

/// Lets a stopped order go on, to its end.
async fn finish((running, pause): (Running, Pause)) -> Result<Placed> {
    pause.go_on();
    Ok(running.await?)
}

/// 库存超卖问题分析. Both have read the last piece.
#[apply(test!)]
async fn two_who_read_the_last_piece_both_take_it_until_the_update_looks(
    servers: &Servers,
) -> Result<()> {
    for (slug, verdict) in [
        ("check-then-deduct", Verdict::Oversold),
        ("conditional-update", Verdict::Exact),
    ] {
        let shop = Shop::open(servers, slug, 1).await?;
        let first = shop.stopped(0, shop.order(1, LONG), Point::Read).await?;
        ensure!(shop.place(1, 2, LONG).await?.is_ok(), "the second got none");
        let late = finish(first).await?;
        ensure!(
            late.is_ok() == (verdict == Verdict::Oversold),
            "{slug}: {late:?}"
        );
        shop.close(verdict).await?;
    }
    Ok(())
}

/// 一人一单. One after the other, so that no lock is needed yet.
#[apply(test!)]
async fn one_person_orders_twice_until_somebody_asks(servers: &Servers) -> Result<()> {
    for step in seckill::ALL.iter() {
        let shop = Shop::open(servers, step.slug, 10).await?;
        shop.place(0, 1, LONG).await??;
        let second = shop.place(1, 1, LONG).await?;
        let asks = !["check-then-deduct", "conditional-update"].contains(&step.slug);
        ensure!(
            matches!(second, Err(Error::AlreadyOrdered)) == asks,
            "{}: {second:?}",
            step.slug
        );
        shop.close(if asks {
            Verdict::Exact
        } else {
            Verdict::DuplicateOrders
        })
        .await?;
    }
    Ok(())
}

/// 粒度, 集群. The first has found that the user has no order, and has not written its own.
#[apply(test!)]
async fn only_the_same_lock_keeps_a_users_second_order_out(servers: &Servers) -> Result<()> {
    let (same, other) = (0, 1);
    for (slug, instance, gets_in) in [
        ("user-mutex-new", same, true),
        ("user-mutex", same, false),
        ("user-mutex", other, true),
        ("global-mutex", same, false),
        ("global-mutex", other, true),
        ("redis-lock-fixed-id", other, false),
        ("redis-lock-owner", other, false),
        ("redis-lock-lua", other, false),
        ("redis-rlock", other, false),
    ] {
        let shop = Shop::open(servers, slug, 10).await?;
        let first = shop
            .stopped(same, shop.order(1, LONG), Point::Checked)
            .await?;
        let second = shop
            .place(instance, 1, if gets_in { LONG } else { NOW })
            .await?;
        let as_expected = match &second {
            Ok(_) => gets_in,
            Err(Error::NotHad { what, .. }) => !gets_in && what.contains("mutex"),
            Err(Error::OrderUnderWay) => !gets_in && slug.starts_with("redis"),
            Err(_) => false,
        };
        ensure!(as_expected, "{slug}, instance {instance}: {second:?}");
        ensure!(finish(first).await?.is_ok(), "the first has no order");
        shop.close(if gets_in {
            Verdict::DuplicateOrders
        } else {
            Verdict::Exact
        })
        .await?;
    }
    Ok(())
}

/// 粒度. What too coarse means: a user waits for another, with whom it has nothing in common.
#[apply(test!)]
async fn one_lock_for_all_makes_others_wait_and_one_per_user_does_not(
    servers: &Servers,
) -> Result<()> {
    for (slug, waits) in [("global-mutex", true), ("user-mutex", false)] {
        let shop = Shop::open(servers, slug, 10).await?;
        let first = shop.stopped(0, shop.order(1, LONG), Point::Checked).await?;
        let second = shop.place(0, 2, if waits { NOW } else { LONG }).await?;
        ensure!(
            matches!(second, Err(Error::NotHad { .. })) == waits,
            "{slug}: {second:?}"
        );
        ensure!(finish(first).await?.is_ok(), "the first has no order");
        shop.close(Verdict::Exact).await?;
    }
    Ok(())
}

/// 事务. The first is stopped before it commits; whether it still has its lock is the difference.
#[apply(test!)]
async fn a_lock_inside_the_transaction_is_unlocked_before_the_commit(
    servers: &Servers,
) -> Result<()> {
    let flaw = Shop::open(servers, "user-mutex-in-tx", 10).await?;
    let first = flaw.stopped(0, flaw.order(1, LONG), Point::Commit).await?;
    let second = flaw.stopped(0, flaw.order(1, LONG), Point::Checked).await?;
    ensure!(
        finish(first).await?.is_ok() && finish(second).await?.is_ok(),
        "one of them has no order"
    );
    flaw.close(Verdict::DuplicateOrders).await?;

    let cure = Shop::open(servers, "user-mutex", 10).await?;
    let first = cure.stopped(0, cure.order(1, LONG), Point::Commit).await?;
    let second = cure.place(0, 1, NOW).await?;
    ensure!(matches!(second, Err(Error::NotHad { .. })), "{second:?}");
    ensure!(finish(first).await?.is_ok(), "the first has no order");
    cure.close(Verdict::Exact).await
}

/// 误删, 原子性. The late one orders another voucher: the lock is the user's, and so its own order is not what goes wrong.
#[apply(test!)]
async fn a_late_unlock_deletes_anothers_lock_until_compare_and_delete_are_one(
    servers: &Servers,
) -> Result<()> {
    let (kept, lost) = (Some(LockState::Kept), Some(LockState::Lost));
    for (slug, point, verdict, found) in [
        // It cannot even tell that the key which it deletes is another's.
        (
            "redis-lock-fixed-id",
            Point::Unlock,
            Verdict::DuplicateOrders,
            kept,
        ),
        ("redis-lock-owner", Point::Unlock, Verdict::Exact, lost),
        (
            "redis-lock-owner",
            Point::Compared,
            Verdict::DuplicateOrders,
            kept,
        ),
        ("redis-lock-lua", Point::Compared, Verdict::Exact, lost),
    ] {
        let shop = Shop::open(servers, slug, 10).await?;
        let another = on_sale(&shop.ctxs[0], 10).await?;
        let late = shop
            .stopped(0, Order::new(another, shop.user(1), NOW, LONG), point)
            .await?;
        shop.end_lease().await?;
        let second = shop.stopped(1, shop.order(1, LONG), Point::Checked).await?;
        let late = finish(late).await??;
        ensure!(
            late.lock == found,
            "{slug} at {point}: the late one found {:?}",
            late.lock
        );
        let third = shop.place(2, 1, LONG).await?;
        ensure!(
            third.is_ok() == (verdict != Verdict::Exact),
            "{slug} at {point}: {third:?}"
        );
        ensure!(finish(second).await?.is_ok(), "the second has no order");
        voucher::remove(&shop.ctxs[0], another).await?;
        shop.close(verdict).await?;
    }
    Ok(())
}

/// 锁不住. An order takes longer than its lease: it is renewed; and where the holder stood still with its process, so that nobody
/// renewed it, the database refuses.
#[apply(test!)]
async fn an_order_longer_than_its_lease_is_not_alone_until_it_is_renewed_or_the_database_refuses(
    servers: &Servers,
) -> Result<()> {
    for (slug, verdict) in [
        ("redis-lock-lua", Verdict::DuplicateOrders),
        // The lease ends all the same: what a process that stands still does not renew.
        ("redis-rlock", Verdict::DuplicateOrders),
        ("unique-key", Verdict::Exact),
    ] {
        let shop = Shop::open(servers, slug, 10).await?;
        let long = shop.stopped(0, shop.order(1, LONG), Point::Checked).await?;
        if slug.starts_with("redis") {
            shop.end_lease().await?;
        }
        ensure!(
            shop.place(1, 1, LONG).await?.is_ok(),
            "{slug}: nobody got in beside it"
        );
        let long = finish(long).await?;
        let refused = matches!(long, Err(Error::AlreadyOrdered));
        ensure!(refused == (verdict == Verdict::Exact), "{slug}: {long:?}");
        shop.close(verdict).await?;
    }

    let shop = Shop::open(servers, "redis-rlock", 10).await?;
    let order = shop.order(1, LONG).leased(Some(Duration::from_secs(3)));
    let long = shop.stopped(0, order, Point::Checked).await?;
    let renewed = async {
        let mut left = i64::MAX;
        loop {
            let now = shop.lock::<i64>("PTTL", &[]).await?;
            if now > left {
                return anyhow::Ok(());
            }
            left = now;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, renewed)
        .await
        .context("the lease was never renewed")??;
    let second = shop.place(1, 1, LONG).await?;
    ensure!(matches!(second, Err(Error::OrderUnderWay)), "{second:?}");
    ensure!(finish(long).await?.is_ok(), "the long one has no order");
    shop.close(Verdict::Exact).await
}

/// The steps that promise something.
fn promising() -> impl Iterator<Item = (&'static str, &'static Step)> {
    seckill::ALL
        .iter()
        .filter(|step| step.promise != Promise::Unsafe)
        .map(|step| (step.slug, step))
}

/// Under load: 40 users with 3 orders each, all at once, for 15 pieces, on as many instances as the step promises for.
#[apply(test!)]
#[over(promising())]
async fn keeps_its_promise(servers: &Servers, step: &'static Step) -> Result<()> {
    const PIECES: i64 = 15;
    let shop = Shop::open(servers, step.slug, PIECES).await?;
    let instances = if step.promise == Promise::OneProcess {
        1
    } else {
        shop.ctxs.len()
    };
    let orders: Vec<_> = (0..120)
        .map(|n| shop.start(n % instances, shop.order(n as i64 / 3, LONG)))
        .collect();
    for order in orders {
        match order.await? {
            Ok(_) | Err(Error::SoldOut | Error::AlreadyOrdered | Error::OrderUnderWay) => {}
            Err(other) => bail!("{}: {other}", step.slug),
        }
    }
    let report = shop.report().await?;
    ensure!(report.orders == PIECES, "{}: {report:?}", step.slug);
    shop.close(Verdict::Exact).await
}

/// Before, after, none left, none there: in every step, and none of it leaves anything behind.
#[apply(test!)]
async fn a_seckill_has_a_begin_an_end_and_a_stock(servers: &Servers) -> Result<()> {
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
        let place = async |voucher| (step.order)(ctx, &Order::new(voucher, 1, NOW, LONG)).await;
        let refused = [
            place(early).await,
            place(late).await,
            place(none).await,
            place(i64::MAX).await,
        ];
        let as_expected = matches!(
            refused,
            [
                Err(Error::NotStarted),
                Err(Error::Over),
                Err(Error::SoldOut),
                Err(Error::NoVoucher(i64::MAX))
            ]
        );
        ensure!(as_expected, "{}: {refused:?}", step.slug);
    }
    for voucher in [early, late, none] {
        let report = check(
            &voucher::books(ctx, voucher).await?,
            Some(&Answers::default()),
        );
        ensure!(
            report.verdict == Verdict::Exact && report.orders == 0,
            "{report:?}"
        );
        voucher::remove(ctx, voucher).await?;
        let gone = [
            voucher::read(ctx, voucher).await.map(drop),
            voucher::remove(ctx, voucher).await,
        ];
        ensure!(
            gone.iter()
                .all(|gone| matches!(gone, Err(Error::NoVoucher(_)))),
            "{gone:?}"
        );
    }
    Ok(())
}
