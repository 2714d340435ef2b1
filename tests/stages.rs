//! The stages of §2.1 to §2.7: each one's flaw on the first try, by a forced interleaving, and its cure one stage on.
//!
//! A job is stopped at a named point, the other side of the race does its part, and the job goes on. No test hopes for
//! a race. Where a lease must end first, its holder's instance has a short one and all others a long one.

use crate::support::{Servers, Site};
use oversell::{
    ctx::Ctx,
    error::Error,
    stock::{self, Deducted, Job, LockState, Name, Pause, Store},
};
use redis::FromRedisValue;
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

type Outcome = Result<(), String>;
type Sale = Result<Deducted, Error>;

const STOCK: i64 = 100;
const NOW: Duration = Duration::ZERO;
/// The longest that a test waits for what must come.
const LONG: Duration = Duration::from_secs(20);
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
    async fn new(servers: &Servers, slug: &'static str, short_ms: u64) -> Self {
        let site = servers.site().await;
        site.put_stock(STOCK).await;
        let hasty = Side { ctx: Arc::clone(&site.ctxs[0]), lease: Duration::from_millis(short_ms) };
        let steady = Side { ctx: Arc::clone(&site.ctxs[1]), lease: LONG };
        Self { slug, site, hasty, steady }
    }

    /// A job on its way, as soon as it is stopped at `point`.
    async fn stopped(&self, side: &Side, point: &'static str) -> Result<(Running, Pause), String> {
        let mut job = side.job(self, LONG);
        let pause = job.pause_at(point);
        let running = self.start(side, Arc::new(job));
        self.at(&pause, point).await?;
        Ok((running, pause))
    }

    async fn at(&self, pause: &Pause, point: &str) -> Outcome {
        let reached = tokio::time::timeout(LONG, pause.reached()).await;
        reached.map_err(|_| format!("{}: the job never came to {point}", self.slug))
    }

    fn start(&self, side: &Side, job: Arc<Job>) -> Running {
        let (ctx, deduct) = (Arc::clone(&side.ctx), stock::find(self.slug).expect("a stage").deduct);
        tokio::spawn(async move { deduct(&ctx, &job).await })
    }

    /// Tries to take a piece in a steady instance, waiting at most so long: whether it got in.
    async fn gets_in(&self, wait: Duration) -> Result<bool, String> {
        let tried = self.start(&self.steady, Arc::new(self.steady.job(self, wait)));
        match tried.await.map_err(|e| e.to_string())? {
            Ok(_) => Ok(true),
            Err(Error::NotHad { .. }) => Ok(false),
            Err(other) => Err(format!("{}: {other}", self.slug)),
        }
    }

    fn key(&self) -> String {
        Job::new(self.site.id, NOW, NOW).redis_name(&format!("lock:{}", self.slug))
    }

    async fn redis<T: FromRedisValue>(&self, command: &str, arguments: &[&str]) -> Result<T, String> {
        let mut command = redis::cmd(command);
        command.arg(self.key()).arg(arguments);
        command.query_async(&mut self.steady.ctx.redis.connection()).await.map_err(|e| e.to_string())
    }

    /// Waits until the lock is nobody's: its lease has ended, or it was given back.
    async fn free(&self) -> Outcome {
        let gone = async {
            while self.redis::<bool>("EXISTS", &[]).await? {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        };
        tokio::time::timeout(LONG, gone).await.map_err(|_| format!("{}: the lock stays", self.slug))?
    }

    /// So many were sold, and so many left the shelf; the lock is free again.
    async fn sold(&self, sold: i64, gone: i64) -> Outcome {
        self.free().await?;
        let left = STOCK - self.site.stock(Store::Redis).await;
        if left == gone {
            Ok(())
        } else {
            Err(format!("{}: {sold} were sold; {left} left the shelf and not {gone}", self.slug))
        }
    }
}

/// Lets a stopped job go on, to its end: it has sold a piece, and its unlock has found this.
async fn finish((running, pause): (Running, Pause)) -> Result<Option<LockState>, String> {
    pause.go_on();
    running.await.map_err(|e| e.to_string())?.map(|sold| sold.lock).map_err(|e| e.to_string())
}

fn ensure(holds: bool, otherwise: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// §2.1 → §2.2. The holder is stopped and never goes on: for Redis and all others it is dead.
pub(crate) async fn a_dead_holder_blocks_everyone_until_the_lock_has_a_lease(servers: &Servers) -> Outcome {
    let flaw = Stage::new(servers, "redis-setnx", SHORT_MS).await;
    let dead = flaw.stopped(&flaw.hasty, "read").await?;
    ensure(!flaw.gets_in(Duration::from_millis(3 * SHORT_MS)).await?, "somebody got past a dead holder's key")?;
    ensure(flaw.redis::<i64>("PTTL", &[]).await? == -1, "the key of redis-setnx ends by itself")?;
    // The one whom only its process's death stops from deleting its key does so when its client hangs up.
    dead.0.abort();
    flaw.sold(0, 0).await?;

    let cure = Stage::new(servers, "redis-setnx-ttl", SHORT_MS).await;
    let dead = cure.stopped(&cure.hasty, "read").await?;
    ensure(cure.gets_in(LONG).await?, "nobody got in after the dead holder's lease")?;
    dead.0.abort();
    cure.sold(1, 1).await
}

/// The late unlock, at `point`, of one whose lease has ended, while a second is inside: whether a third gets in beside
/// it (that one is then seen in the stock), and what the late one says of its lock.
async fn a_late_unlock_frees_anothers_lock(
    servers: &Servers,
    slug: &'static str,
    point: &'static str,
) -> Result<(bool, Option<LockState>), String> {
    let stage = Stage::new(servers, slug, SHORT_MS).await;
    // The first has written long ago, so what follows is not its write's fault. It comes to its point with a long
    // lease, which then ends: that it comes there before is not left to the clock.
    let late = stage.stopped(&stage.steady, point).await?;
    stage.redis::<bool>("PEXPIRE", &["1"]).await?;
    stage.free().await?;
    let second = stage.stopped(&stage.steady, "read").await?;
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

/// §2.2 → §2.3. Its job takes longer than its lease (the course's 7 s under 3 s), and then it deletes what is there.
pub(crate) async fn a_late_delete_frees_anothers_lock_until_it_has_an_owner(servers: &Servers) -> Outcome {
    let stage = Stage::new(servers, "redis-setnx-ttl", SHORT_MS).await;
    let late = stage.stopped(&stage.hasty, "read").await?;
    stage.free().await?;
    let second = stage.stopped(&stage.steady, "read").await?;
    finish(late).await?;
    ensure(stage.gets_in(NOW).await?, "redis-setnx-ttl: the late delete has freed nothing")?;
    finish(second).await?;
    // The first and the second have read the same number, and the second overwrites what the third has sold.
    stage.sold(3, 1).await?;

    let late = stage.stopped(&stage.hasty, "read").await?;
    stage.free().await?;
    ensure(finish(late).await? == Some(LockState::Lost), "redis-setnx-ttl: there was no key, and it found one")?;

    let flaw = a_late_unlock_frees_anothers_lock(servers, "redis-setnx-ttl", "written").await?;
    // It cannot even tell that the key which it has deleted was another's.
    ensure(flaw == (true, Some(LockState::Kept)), format!("redis-setnx-ttl: {flaw:?}"))?;
    let cure = a_late_unlock_frees_anothers_lock(servers, "redis-setnx-owner", "written").await?;
    ensure(cure == (false, Some(LockState::Lost)), format!("redis-setnx-owner: {cure:?}"))
}

/// §2.3 → §2.5. The lease ends between the look and the delete; in the script there is nothing between.
pub(crate) async fn a_check_before_the_delete_is_too_early_until_both_are_one_script(servers: &Servers) -> Outcome {
    let flaw = a_late_unlock_frees_anothers_lock(servers, "redis-setnx-owner", "checked").await?;
    ensure(flaw == (true, Some(LockState::Kept)), format!("redis-setnx-owner: {flaw:?}"))?;
    let cure = a_late_unlock_frees_anothers_lock(servers, "redis-setnx-lua", "written").await?;
    ensure(cure == (false, Some(LockState::Lost)), format!("redis-setnx-lua: {cure:?}"))
}

/// §2.5 → §2.6. The same request takes the lock again, from within its section.
pub(crate) async fn re_entry_waits_for_itself_until_the_lock_counts(servers: &Servers) -> Outcome {
    let (inner, holds) = enters_again(servers, "redis-setnx-lua").await?;
    ensure(matches!(inner, Err(Error::NotHad { .. })) && holds.is_empty(), format!("redis-setnx-lua: {inner:?}"))?;
    let (inner, holds) = enters_again(servers, "redis-reentrant").await?;
    // Two for each time that the section was entered, of which the inner one has given back its own.
    ensure(inner.is_ok() && holds == [2], format!("redis-reentrant: {inner:?}, holds {holds:?}"))
}

/// What the inner call came to, and the holds that the outer one has after it (where the lock counts them).
async fn enters_again(servers: &Servers, slug: &'static str) -> Result<(Sale, Vec<i64>), String> {
    let stage = Stage::new(servers, slug, SHORT_MS).await;
    let mut job = stage.steady.job(&stage, Duration::from_millis(500));
    let pause = job.pause_at("locked");
    let job = Arc::new(job);
    let outer = stage.start(&stage.steady, Arc::clone(&job));
    stage.at(&pause, "locked").await?;
    let inner = stage.start(&stage.steady, job).await.map_err(|e| e.to_string())?;
    let counts = stage.redis::<String>("TYPE", &[]).await? == "hash";
    let holds = if counts { stage.redis("HVALS", &[]).await? } else { Vec::new() };
    finish((outer, pause)).await?;
    let sold = 1 + i64::from(inner.is_ok());
    stage.sold(sold, sold).await?;
    Ok((inner, holds))
}

/// §2.6 → §2.7. The job takes longer than its lease: another is beside it, unless a watchdog renews.
pub(crate) async fn a_long_job_loses_its_lock_until_a_watchdog_renews_it(servers: &Servers) -> Outcome {
    let flaw = Stage::new(servers, "redis-reentrant", SHORT_MS).await;
    let long = flaw.stopped(&flaw.hasty, "read").await?;
    ensure(flaw.gets_in(LONG).await?, "redis-reentrant: nobody got in after the lease")?;
    ensure(finish(long).await? == Some(LockState::Lost), "redis-reentrant: the unlock has found no loss")?;
    flaw.sold(2, 1).await?;

    // The course's 3 s: a busy machine may delay a renewal by two thirds of it.
    const LEASE_MS: u64 = 3000;
    let cure = Stage::new(servers, "redis-watchdog", LEASE_MS).await;
    let long = cure.stopped(&cure.hasty, "read").await?;
    let beside = cure.gets_in(Duration::from_millis(LEASE_MS * 3 / 2)).await?;
    ensure(!beside, "redis-watchdog: the long job has lost its lock")?;
    ensure(finish(long).await? == Some(LockState::Kept), "redis-watchdog: the unlock has found a loss")?;
    cure.sold(1, 1).await
}

/// [001] 2.2.1.3 → §2.7. A holder's lease ends while its process stands still, another gets in, and then the timer of
/// the first goes off. If it does not look whose lock it is, the second has the lease of the first from then on.
pub(crate) async fn a_late_renewal_is_for_anothers_lock_until_it_looks_at_the_owner(servers: &Servers) -> Outcome {
    ensure(late_renewal(servers, Renewal::Blind).await?, "PEXPIRE has renewed nothing")?;
    ensure(!late_renewal(servers, Renewal::Lesson).await?, "redis-watchdog has renewed another's lock")
}

/// What the timer of the first sends.
enum Renewal {
    /// What the strategy sends.
    Lesson,
    /// What the text's timer sends in its place: it has no owner to look for.
    Blind,
}

/// Whether the second loses its lock by the timer of the first, so that a third gets in beside it.
async fn late_renewal(servers: &Servers, renewal: Renewal) -> Result<bool, String> {
    let stage = Stage::new(servers, "redis-watchdog", SHORT_MS).await;
    let mut job = stage.hasty.job(&stage, LONG);
    let (working, renew, renewed) = (job.pause_at("written"), job.pause_at("renew"), job.pause_at("renewed"));
    let first = stage.start(&stage.hasty, Arc::new(job));
    stage.at(&working, "written").await?;
    stage.at(&renew, "renew").await?;
    stage.free().await?;
    let second = stage.stopped(&stage.steady, "read").await?;
    match renewal {
        Renewal::Lesson => {
            renew.go_on();
            stage.at(&renewed, "renewed").await?;
        }
        Renewal::Blind => stage.redis("PEXPIRE", &[&SHORT_MS.to_string()]).await?,
    }
    let lost = stage.redis::<i64>("PTTL", &[]).await? <= SHORT_MS as i64;
    let beside = stage.gets_in(if lost { LONG } else { NOW }).await?;
    ensure(lost == beside, "the second's lease is not what lets a third in")?;
    renewed.go_on();
    finish((first, working)).await?;
    finish(second).await?;
    stage.sold(2 + i64::from(beside), 2).await?;
    Ok(beside)
}

/// §2.4.1. Two clients each set a counter to 0, count to three and look. In every order in which their five commands
/// can come, what they see is anything from 0 to 6; as scripts they come one after the other, and see 3.
pub(crate) async fn five_commands_see_0_to_6_and_one_script_always_sees_3(servers: &Servers) -> Outcome {
    let site = servers.site().await;
    let (ctx, counter) = (&site.ctxs[0], format!("counter:{}", site.id));
    let mut redis = ctx.redis.connection();
    let mut seen = std::collections::BTreeSet::new();
    // Bit n says whose command comes n-th.
    let orders: Vec<u32> = (0..1_u32 << 10).filter(|order| order.count_ones() == 5).collect();
    for order in &orders {
        let mut commands = redis::pipe();
        let mut done = [0, 0];
        for n in 0..10 {
            let client = (order >> n & 1) as usize;
            match done[client] {
                0 => commands.cmd("SET").arg(&counter).arg(0).ignore(),
                4 => commands.cmd("GET").arg(&counter),
                _ => commands.cmd("INCR").arg(&counter).ignore(),
            };
            done[client] += 1;
        }
        let both: [i64; 2] = commands.query_async(&mut redis).await.map_err(|e| e.to_string())?;
        seen.extend(both);
    }
    ensure(seen.iter().copied().eq(0..=6), format!("in {} orders they have seen {seen:?}", orders.len()))?;

    let script = redis::Script::new(include_str!("lua/count_to_three.lua"));
    let clients = (0..100).map(|_| {
        let (mut redis, invocation) = (ctx.redis.connection(), script.key(&counter));
        async move { invocation.invoke_async::<i64>(&mut redis).await }
    });
    let seen = futures::future::try_join_all(clients).await.map_err(|e| e.to_string())?;
    redis::cmd("DEL").arg(&counter).exec_async(&mut redis).await.map_err(|e| e.to_string())?;
    ensure(seen.iter().all(|n| *n == 3), format!("as a script they have seen {seen:?}"))
}

/// Who hangs up leaves no key, in every stage: inside, while it waits, and before it knows that it has the lock.
pub(crate) async fn a_stage_that_is_given_up_leaves_no_key(servers: &Servers) -> Outcome {
    for slug in
        ["redis-setnx", "redis-setnx-ttl", "redis-setnx-owner", "redis-setnx-lua", "redis-reentrant", "redis-watchdog"]
    {
        let stage = Stage::new(servers, slug, SHORT_MS).await;
        let (inside, _pause) = stage.stopped(&stage.steady, "read").await?;
        for _ in 0..5 {
            let (waiting, refused) = stage.stopped(&stage.steady, "refused").await?;
            refused.go_on();
            waiting.abort();
        }
        inside.abort();
        stage.free().await?;

        let (unaware, taken) = stage.stopped(&stage.steady, "taken").await?;
        unaware.abort();
        ensure(!stage.gets_in(NOW).await?, format!("{slug}: was not taken"))?;
        taken.go_on();
        stage.free().await?;
        ensure(stage.gets_in(NOW).await?, format!("{slug}: the lock is not free"))?;
        stage.sold(1, 1).await?;
    }
    Ok(())
}

/// `lease_ms`: every lock of Redis that has a lease has the one that was asked for, and without asking a longer one.
pub(crate) async fn a_lease_that_is_asked_for_replaces_the_strategys_own(servers: &Servers) -> Outcome {
    const ASKED: Duration = Duration::from_millis(1500);
    for strategy in stock::ALL.iter().filter(|strategy| strategy.slug != "redis-setnx") {
        let Some(Name::Redis(name) | Name::RedisFor(name, _) | Name::RedisNodes(name)) = strategy.names.first() else {
            continue;
        };
        for lease in [Some(ASKED), None] {
            let site = servers.site().await;
            site.put_stock(STOCK).await;
            let job = Arc::new(Job::new(site.id, LONG, LONG).asked(lease, None));
            let (ctx, inside) = (Arc::clone(&site.ctxs[0]), Arc::clone(&job));
            let running = tokio::spawn(async move { (strategy.deduct)(&ctx, &inside).await });
            while !job.has_entered() && !running.is_finished() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let mut pttl = redis::cmd("PTTL");
            pttl.arg(job.redis_name(name));
            let left: i64 = pttl.query_async(&mut site.ctxs[1].redis.connection()).await.map_err(|e| e.to_string())?;
            running.abort();
            ensure(left > 0, format!("{} has no lease: {left}", strategy.slug))?;
            let short = left <= ASKED.as_millis() as i64;
            ensure(short == lease.is_some(), format!("{}: {left} ms are left of {lease:?}", strategy.slug))?;
        }
    }
    Ok(())
}
