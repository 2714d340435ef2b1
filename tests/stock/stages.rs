//! The stages of §2.1 to §2.7, where a replay does not show it: what an unlock says, what who goes away leaves behind, and
//! how long a lease is.
//!
//! A job is stopped at a named point, the other side of the race does its part, and the job goes on. No test hopes for
//! a race. Where a lease must end first, its holder's instance has a short one and all others a long one.

use crate::support::*;
use oversell::{
    ctx::Ctx,
    error::Error,
    section::{Deducted, Job, LockState, Name, Pause, Point},
    stock::{self, Store},
};
use redis::FromRedisValue;
use std::sync::Arc;
use tokio::task::JoinHandle;
type Sale = Result<Deducted, Error>;

const STOCK: i64 = 100;
const NOW: Duration = Duration::ZERO;
/// The lease of a holder that is to lose its lock; those that are to keep theirs have [`LONG`].
const SHORT_MS: u64 = 300;

/// One stage, one product, and the instances that contend for it.
struct Stage {
    slug: &'static str,
    site: Site,
    /// One whose leases are short.
    hasty: Side,
    /// One in another instance, whose leases are long.
    steady: Side,
}

/// Who contends, and the lease that it asks for.
struct Side {
    ctx: Arc<Ctx>,
    lease: Duration,
}

impl Side {
    fn job(&self, stage: &Stage, wait: Duration) -> Job {
        Job::new(stage.site.id, NOW, wait).asked(Some(self.lease), None)
    }
}

/// A job that is on its way, or stopped.
type Running = JoinHandle<Sale>;

impl Stage {
    async fn new(servers: &Servers, slug: &'static str) -> Self {
        let site = servers.site().await;
        site.put_stock(STOCK).await;
        let hasty = Side {
            ctx: Arc::clone(&site.ctxs[0]),
            lease: Duration::from_millis(SHORT_MS),
        };
        let steady = Side {
            ctx: Arc::clone(&site.ctxs[1]),
            lease: LONG,
        };
        Self {
            slug,
            site,
            hasty,
            steady,
        }
    }

    /// A job on its way, as soon as it is stopped at `point`.
    async fn stopped(&self, side: &Side, point: Point) -> Result<(Running, Pause)> {
        let mut job = side.job(self, LONG);
        let pause = job.pause_at(point);
        let running = self.start(side, Arc::new(job));
        self.at(&pause, point).await?;
        Ok((running, pause))
    }

    async fn at(&self, pause: &Pause, point: Point) -> Result<()> {
        soon(&format!("{} at {point}", self.slug), pause.reached()).await
    }

    fn start(&self, side: &Side, job: Arc<Job>) -> Running {
        let (ctx, deduct) = (
            Arc::clone(&side.ctx),
            stock::find(self.slug).expect("a stage").deduct,
        );
        tokio::spawn(async move { deduct(&ctx, &job).await })
    }

    /// Tries to take a piece in a steady instance, waiting at most so long: whether it got in.
    async fn gets_in(&self, wait: Duration) -> Result<bool> {
        let tried = self.start(&self.steady, Arc::new(self.steady.job(self, wait)));
        match tried.await? {
            Ok(_) => Ok(true),
            Err(Error::NotHad { .. }) => Ok(false),
            Err(other) => bail!("{}: {other}", self.slug),
        }
    }

    fn key(&self) -> String {
        Job::new(self.site.id, NOW, NOW).redis_name(&format!("lock:{}", self.slug))
    }

    async fn redis<T: FromRedisValue>(&self, command: &str, arguments: &[&str]) -> Result<T> {
        let mut command = redis::cmd(command);
        command.arg(self.key()).arg(arguments);
        let mut redis = self.steady.ctx.redis.connection();
        Ok(command.query_async(&mut redis).await?)
    }

    /// Waits until the lock is nobody's: its lease has ended, or it was given back.
    async fn free(&self) -> Result<()> {
        until(&format!("{} is free", self.slug), || async {
            Ok(!self.redis::<bool>("EXISTS", &[]).await?)
        })
        .await
    }

    /// So many were sold, and so many left the shelf; the lock is free again.
    async fn sold(&self, sold: i64, gone: i64) -> Result<()> {
        self.free().await?;
        let left = STOCK - self.site.stock(Store::Redis).await;
        ensure!(
            left == gone,
            "{}: {sold} were sold; {left} left the shelf and not {gone}",
            self.slug
        );
        Ok(())
    }
}

/// Lets a stopped job go on, to its end: it has sold a piece, and its unlock has found this.
async fn finish((running, pause): (Running, Pause)) -> Result<Option<LockState>> {
    pause.go_on();
    Ok(running.await??.lock)
}

/// The late unlock, at `point`, of one whose lease has ended, while a second is inside: whether a third gets in beside
/// it (that one is then seen in the stock), and what the late one says of its lock.
async fn a_late_unlock_frees_anothers_lock(
    servers: &Servers,
    slug: &'static str,
    point: Point,
) -> Result<(bool, Option<LockState>)> {
    let stage = Stage::new(servers, slug).await;
    // The first has written long ago, so what follows is not its write's fault. It comes to its point with a long
    // lease, which then ends: that it comes there before is not left to the clock.
    let late = stage.stopped(&stage.steady, point).await?;
    stage.redis::<bool>("PEXPIRE", &["1"]).await?;
    stage.free().await?;
    let second = stage.stopped(&stage.steady, Point::Read).await?;
    let found = finish(late).await?;
    let beside = stage.gets_in(NOW).await?;
    finish(second).await?;
    if beside {
        stage.sold(3, 2).await?;
    } else {
        stage.sold(2, 2).await?;
    }
    Ok((beside, found))
}

/// What a late unlock says of its lock: without an owner in the key it cannot tell that what it has deleted was another's,
/// only that there was no key at all.
#[apply(test!)]
async fn a_late_unlock_says_lost_where_it_can_tell(servers: &Servers) -> Result<()> {
    let stage = Stage::new(servers, "redis-setnx-ttl").await;
    let late = stage.stopped(&stage.hasty, Point::Read).await?;
    stage.free().await?;
    ensure!(
        finish(late).await? == Some(LockState::Lost),
        "redis-setnx-ttl: there was no key, and it found one"
    );

    for (slug, point, (beside, found)) in [
        ("redis-setnx-ttl", Point::Written, (true, LockState::Kept)),
        ("redis-setnx-owner", Point::Checked, (true, LockState::Kept)),
        (
            "redis-setnx-owner",
            Point::Written,
            (false, LockState::Lost),
        ),
        ("redis-setnx-lua", Point::Written, (false, LockState::Lost)),
    ] {
        let seen = a_late_unlock_frees_anothers_lock(servers, slug, point).await?;
        ensure!(seen == (beside, Some(found)), "{slug}, {point}: {seen:?}");
    }
    Ok(())
}

/// Who hangs up leaves no key, in every stage: inside, while it waits, and before it knows that it has the lock.
#[apply(test!)]
async fn a_stage_that_is_given_up_leaves_no_key(servers: &Servers) -> Result<()> {
    for slug in [
        "redis-setnx",
        "redis-setnx-ttl",
        "redis-setnx-owner",
        "redis-setnx-lua",
        "redis-reentrant",
        "redis-watchdog",
    ] {
        let stage = Stage::new(servers, slug).await;
        let (inside, _pause) = stage.stopped(&stage.steady, Point::Read).await?;
        for _ in 0..5 {
            let (waiting, refused) = stage.stopped(&stage.steady, Point::Refused).await?;
            refused.go_on();
            waiting.abort();
        }
        inside.abort();
        stage.free().await?;

        let (unaware, taken) = stage.stopped(&stage.steady, Point::Taken).await?;
        unaware.abort();
        ensure!(!stage.gets_in(NOW).await?, "{slug}: was not taken");
        taken.go_on();
        stage.free().await?;
        ensure!(stage.gets_in(NOW).await?, "{slug}: the lock is not free");
        stage.sold(1, 1).await?;
    }
    Ok(())
}

/// `lease_ms`: every lock of Redis that has a lease has the one that was asked for, and without asking a shorter one.
#[apply(test!)]
async fn a_lease_that_is_asked_for_replaces_the_strategys_own(servers: &Servers) -> Result<()> {
    const ASKED: Duration = Duration::from_secs(60);
    /// In milliseconds, none of a strategy's own is longer.
    const LONGEST: i64 = 30_000;
    for strategy in stock::ALL
        .iter()
        .filter(|strategy| strategy.slug != "redis-setnx")
    {
        let Some(Name::Redis(name) | Name::RedisFor(name, _) | Name::RedisNodes(name)) =
            strategy.names.first()
        else {
            continue;
        };
        for lease in [Some(ASKED), None] {
            let site = servers.site().await;
            site.put_stock(STOCK).await;
            let job = Arc::new(Job::new(site.id, LONG, LONG).asked(lease, None));
            let (ctx, inside) = (Arc::clone(&site.ctxs[0]), Arc::clone(&job));
            let running = tokio::spawn(async move { (strategy.deduct)(&ctx, &inside).await });
            while !job.seen.has_entered() && !running.is_finished() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let mut pttl = redis::cmd("PTTL");
            pttl.arg(job.redis_name(name));
            let left: i64 = pttl
                .query_async(&mut site.ctxs[1].redis.connection())
                .await?;
            running.abort();
            ensure!(left > 0, "{} has no lease: {left}", strategy.slug);
            let is_asked = left > LONGEST;
            ensure!(
                is_asked == lease.is_some(),
                "{}: {left} ms are left of {lease:?}",
                strategy.slug
            );
        }
    }
    Ok(())
}
