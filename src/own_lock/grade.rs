//! Grades a student's lock: seven trials, each a forced interleaving on a key of its own.
//!
//! 1. Owners A, B and C run the scripts. Each answer is awaited before the next owner asks, so the order is certain.
//! 2. Only trials of the lease depend on time: there the lease is [`TESTED_LEASE`], and a waiter asks until it gets the
//!    lock. All other leases are [`ENDLESS_LEASE`].
//! 3. What the next owner is answered decides a trial, not what the key holds. The key is only shown.
//! 4. A failure is told as the events of a replay.
//!
//! **What it cannot do**: grade more than these seven, or a lease that is not `ARGV[2]`.
//!
//! Next: `stock/strategies/mine.rs`, which sells under such a lock.

use super::script::{MAX_LEASE, Scripts, run_script};
use crate::{
    ctx::Ctx,
    error::Error,
    replay_log::{Log, ReplayEvent},
};
use futures::future::{BoxFuture, join_all};
use oversell_lab::terminal::bilingual::Bilingual;
use oversell_lock::redis::Connection;
use parking_lot::Mutex;
use redis::{AsyncTypedCommands, RedisResult};
use serde::Serialize;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use uuid::Uuid;

/// The lease of the trials, short because they wait for its end.
const TESTED_LEASE: Duration = Duration::from_millis(400);
/// A lease that outlasts a trial.
const ENDLESS_LEASE: Duration = Duration::from_secs(30);
/// How often a waiter asks again: short beside a third of [`TESTED_LEASE`], after which A renews.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long the load waits until somebody gets in, on a slow machine too.
const ENTRY_TIMEOUT: Duration = Duration::from_secs(5);

/// The owners of the load, who ask at the same time.
const LOAD_OWNERS: [char; 8] = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
/// How often each of them must get in.
const LOAD_ROUNDS: usize = 10;
/// How long an owner stays inside: all others ask meanwhile.
const TIME_INSIDE: Duration = Duration::from_millis(2);
/// How many events, the last ones, are shown of a failed trial that has more than four times as many.
const KEPT_LOAD_EVENTS: usize = 12;

/// The function of a trial, which forces one interleaving on the scripts.
type TrialFn = for<'a> fn(&'a Trial) -> BoxFuture<'a, TrialResult>;

/// The load runs first and alone, because it would delay the renewals of the other trials.
const LOAD_TRIAL: (&str, TrialFn) = ("exclusion", |trial| Box::pin(exclusion(trial)));
/// The other trials, by name; they run at the same time.
const OTHER_TRIALS: [(&str, TrialFn); 6] = [
    ("holder-dies", |trial| Box::pin(holder_dies(trial))),
    ("late-release", |trial| Box::pin(late_release(trial))),
    ("foreign-release", |trial| Box::pin(foreign_release(trial))),
    ("re-entry", |trial| Box::pin(re_entry(trial))),
    ("long-job", |trial| Box::pin(long_job(trial))),
    ("fairness", |trial| Box::pin(fairness(trial))),
];

/// The grade of one trial.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Grade {
    /// The trial: `exclusion`, `holder-dies`, `late-release`, `foreign-release`, `re-entry`, `long-job`, `fairness`.
    #[schema(example = "late-release")]
    pub name: &'static str,
    #[schema(inline)]
    pub verdict: Mark,
    /// What happened.
    pub seen: Bilingual,
    /// The error of a script that failed in Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "acquire: user_script:1: attempt to compare nil with number")]
    pub error: Option<String>,
    /// The race that a failed lock lost.
    pub events: Vec<ReplayEvent>,
}

/// The verdict of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// The lock held.
    Passed,
    /// The lock broke.
    Failed,
    /// Another flaw, or a machine that stood still, kept this one from being tried.
    Untried,
}

/// What happened in a trial that was passed, or why it was not passed.
type TrialResult = Result<Bilingual, TrialError>;

/// Why a trial was not passed.
enum TrialError {
    /// The lock broke, as these words say.
    Broken(Bilingual),
    /// Something else kept it from being tried, as these words say.
    Untried(Bilingual),
    /// A script failed in Redis.
    ScriptFailed(String),
    /// Redis is down.
    Redis(Error),
}

const fn broken(zh: &'static str, en: &'static str) -> TrialError {
    TrialError::Broken(Bilingual::of(zh, en))
}

/// Grades the scripts. It takes about two seconds, and leaves nothing in Redis unless it is cancelled.
/// Errors: [`Error::Unavailable`] if Redis is down.
pub async fn grade(ctx: &Ctx, scripts: &Scripts) -> Result<Vec<Grade>, Error> {
    let id = Uuid::new_v4();
    let one = |(name, attempt): (&'static str, TrialFn)| async move {
        let trial = Trial::new(ctx, scripts, format!("mine:grade:{id}:{name}"));
        let found = attempt(&trial).await;
        let cleared = trial.redis().del(&trial.key).await;
        let grade = trial.grade_of(name, found)?;
        cleared?;
        Ok::<_, Error>(grade)
    };
    let mut grades = vec![one(LOAD_TRIAL).await?];
    for grade in join_all(OTHER_TRIALS.map(one)).await {
        grades.push(grade?);
    }
    Ok(grades)
}

/// A trial in progress: the scripts, a key of its own, and what they have answered so far.
struct Trial {
    redis: Connection,
    key: String,
    acquire: String,
    release: String,
    renew: Option<String>,
    log: Log,
    /// The holder by the answers of the scripts, with its holds; `None` if the lock is known to be free.
    holder: Mutex<Option<(char, u32)>>,
    /// The owners that have asked in vain.
    waiting: Mutex<BTreeSet<char>>,
    /// The two owners that were inside at once.
    inside_at_once: Mutex<Vec<char>>,
}

impl Trial {
    /// A trial of these scripts on a new key.
    fn new(ctx: &Ctx, scripts: &Scripts, name: String) -> Self {
        Self {
            redis: ctx.mine.connection(),
            key: ctx.redis_key(&name),
            acquire: scripts.acquire.clone(),
            release: scripts.release.clone(),
            renew: Some(scripts.renew.clone()).filter(|renew| !renew.trim().is_empty()),
            log: Log::default(),
            holder: Mutex::default(),
            waiting: Mutex::default(),
            inside_at_once: Mutex::default(),
        }
    }

    fn redis(&self) -> Connection {
        self.redis.clone()
    }

    /// Runs a script as this owner, and returns whether it answers yes. The error of a script names it; any other error means
    /// that Redis is down.
    async fn run(&self, name: &str, script: &str, who: char, lease: Duration) -> Result<bool, TrialError> {
        let (owner, lease) = (who.to_string(), u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        let ran = run_script(script, &self.key, &owner, lease, &mut self.redis()).await;
        ran.map_err(|error| match error.code() {
            Some("ERR" | "WRONGTYPE") => TrialError::ScriptFailed(format!("{name}: {}", error.detail().unwrap_or_default())),
            _ => TrialError::Redis(error.into()),
        })
    }

    fn log_event(&self, who: impl ToString, event: &str) {
        self.log.add(ReplayEvent::of(who.to_string(), event));
    }

    /// The rest of the lease in milliseconds; -1 without a lease, to which `bounded.lua` gives a day, and -2 without a lock.
    async fn remaining_lease_ms(&self) -> Result<i64, TrialError> {
        let mut pttl = redis::cmd("PTTL");
        let left: RedisResult<i64> = pttl.arg(&self.key).query_async(&mut self.redis()).await;
        let left = left.map_err(|error| TrialError::Redis(error.into()))?;
        // A lease between twice the longest asked for and a day is that of `bounded.lua`.
        let has_none = left > ENDLESS_LEASE.as_millis() as i64 * 2 && left <= MAX_LEASE.as_millis() as i64;
        Ok(if has_none { -1 } else { left })
    }

    /// Logs the lock: its holder by the answers, its lease by Redis.
    async fn log_lock(&self, event: &str) -> Result<(), TrialError> {
        let pttl = self.remaining_lease_ms().await?;
        let (owner, value) = match *self.holder.lock() {
            Some((owner, holds)) => (Some(owner.to_string()), Some(holds.into())),
            None => (None, None),
        };
        self.log.add(ReplayEvent {
            key: Some(self.key.clone()),
            pttl: owner.is_some().then_some(pttl),
            owner,
            value,
            ..ReplayEvent::of("lock", event)
        });
        Ok(())
    }

    /// Runs the acquire script once as `who`, and logs what changes, of refusals in a row the first. Returns the script's answer.
    async fn acquire(&self, who: char, lease: Duration) -> Result<bool, TrialError> {
        let holds = match *self.holder.lock() {
            Some((owner, holds)) if owner == who => holds,
            _ => 0,
        };
        let first = self.waiting.lock().insert(who);
        if first {
            self.log_event(who, if holds > 0 { "waits" } else { "start" });
        }
        let acquired = self.run("acquire", &self.acquire, who, lease).await?;
        if acquired {
            self.waiting.lock().remove(&who);
            *self.holder.lock() = Some((who, holds + 1));
            self.log_event(who, "taken");
            self.log_event(who, "locked");
            self.log_lock("held").await?;
        } else if first {
            self.log_event(who, "refused");
        }
        Ok(acquired)
    }

    /// Asks until `who` gets the lock, or the tested lease should long have ended. Returns whether it got it.
    async fn acquire_after_lease(&self, who: char) -> Result<bool, TrialError> {
        let begun = Instant::now();
        loop {
            let is_last = begun.elapsed() > 3 * TESTED_LEASE;
            let acquired = self.acquire(who, ENDLESS_LEASE).await?;
            if acquired || is_last {
                return Ok(acquired);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// `who` asks and gets in; otherwise the lock is broken, as these words say.
    async fn gets_in(&self, who: char, zh: &'static str, en: &'static str) -> Result<(), TrialError> {
        self.acquire(who, ENDLESS_LEASE).await?.then_some(()).ok_or(broken(zh, en))
    }

    /// `who` asks and is refused; otherwise the lock is broken, as these words say.
    async fn is_refused(&self, who: char, zh: &'static str, en: &'static str) -> Result<(), TrialError> {
        (!self.acquire(who, ENDLESS_LEASE).await?).then_some(()).ok_or(broken(zh, en))
    }

    /// A takes the free lock; one that refuses A is broken.
    async fn acquire_as_a(&self, lease: Duration) -> Result<(), TrialError> {
        let acquired = self.acquire('A', lease).await?;
        acquired.then_some(()).ok_or(broken("锁空着，A 却进不去。", "The lock was free, and A did not get in."))
    }

    /// A takes the free lock with the tested lease; without a lease, or with a longer one, the trial is untried.
    async fn acquire_tested_lease_as_a(&self) -> Result<(), TrialError> {
        self.acquire_as_a(TESTED_LEASE).await?;
        match self.remaining_lease_ms().await? {
            -1 => Err(TrialError::Untried(NO_LEASE)),
            left if u128::from(left.unsigned_abs()) > TESTED_LEASE.as_millis() => Err(TrialError::Untried(LEASE_TOO_LONG)),
            _ => Ok(()),
        }
    }

    /// Runs the release script as `who`, whoever holds the lock, and logs what became of it.
    async fn release(&self, who: char) -> Result<(), TrialError> {
        let holder = *self.holder.lock();
        let released = self.run("release", &self.release, who, ENDLESS_LEASE).await?;
        let there = self.remaining_lease_ms().await? != -2;
        match holder {
            Some((owner, _)) if owner != who && !there => {
                self.log.add(ReplayEvent { owner: Some(owner.to_string()), ..ReplayEvent::of(who, "deleted") })
            }
            Some((owner, _)) if owner == who && released => self.log_event(who, "released"),
            _ => self.log_event(who, "lost"),
        }
        match holder {
            Some(_) if !there => {
                *self.holder.lock() = None;
                self.log_lock("free").await?;
            }
            Some((owner, holds)) if owner == who && holds > 1 => {
                *self.holder.lock() = Some((owner, holds - 1));
                self.log_lock("held").await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Renews the lease for [`TESTED_LEASE`]. Returns whether the script did; `false` without such a script.
    async fn renew(&self, who: char) -> Result<bool, TrialError> {
        let Some(renew) = &self.renew else {
            return Ok(false);
        };
        let renewed = self.run("renew", renew, who, TESTED_LEASE).await?;
        if renewed {
            self.log_event(who, "renewed");
            self.log_lock("renewed").await?;
        }
        Ok(renewed)
    }

    /// The grade of a finished trial: passed, failed or untried. One that failed, also by an error of the script, has its events.
    /// An error if Redis was down.
    fn grade_of(&self, trial: &'static str, found: TrialResult) -> Result<Grade, Error> {
        let mut error = None;
        let (verdict, seen) = match found {
            Ok(seen) => (Mark::Passed, seen),
            Err(TrialError::Broken(seen)) => (Mark::Failed, seen),
            Err(TrialError::Untried(seen)) => (Mark::Untried, seen),
            Err(TrialError::ScriptFailed(said)) => {
                error = Some(said);
                (Mark::Failed, SCRIPT_FAILS)
            }
            Err(TrialError::Redis(down)) => return Err(down),
        };
        let events = match verdict {
            Mark::Failed => self.failure_events(),
            _ => Vec::new(),
        };
        Ok(Grade { name: trial, verdict, seen, error, events })
    }

    /// The events of the two owners that were inside at once; else all events, or the last ones if there are very many.
    fn failure_events(&self) -> Vec<ReplayEvent> {
        let mut events = self.log.events_from(0);
        let inside_at_once = self.inside_at_once.lock();
        let theirs = |event: &ReplayEvent| inside_at_once.iter().any(|who| event.actor == who.to_string());
        if let Some(first) = inside_at_once.first().map(char::to_string) {
            let asked = |event: &ReplayEvent| event.actor == first && event.event == "start";
            events.drain(..events.iter().rposition(asked).unwrap_or_default());
            let owned = |event: &ReplayEvent| inside_at_once.iter().any(|who| event.owner == Some(who.to_string()));
            events.retain(|event| theirs(event) || owned(event));
        } else if events.len() > 4 * KEPT_LOAD_EVENTS {
            events.drain(..events.len() - KEPT_LOAD_EVENTS);
        }
        events
    }
}

const NO_LEASE: Bilingual = Bilingual::of("锁没有租约，不会到期：没法试。", "The lock has no lease that could end: not tried.");
const LEASE_TOO_LONG: Bilingual = Bilingual::of("租约比 ARGV[2] 长：没法试。", "Its lease is longer than ARGV[2]: not tried.");
/// Why a trial of the lease is untried on a machine that was too slow.
const STALLED: Bilingual =
    Bilingual::of("这台机器停顿得比租约还久：没法试。", "This machine stood still for longer than the lease: not tried.");
const SCRIPT_FAILS: Bilingual = Bilingual::of("一段脚本在 Redis 里出错了。", "A script failed in Redis.");

/// Eight owners at once: never two inside, and all get in.
async fn exclusion(trial: &Trial) -> TrialResult {
    let inside = Mutex::new(Vec::new());
    let over = CancellationToken::new();
    let last_entry = Mutex::new(Instant::now());
    let enter_and_leave = async |who| {
        for _ in 0..LOAD_ROUNDS {
            while !trial.acquire(who, ENDLESS_LEASE).await? {
                if over.is_cancelled() {
                    return Ok(());
                }
                if last_entry.lock().elapsed() > ENTRY_TIMEOUT {
                    return Err(broken(
                        "有 5 秒谁也没有进去：有人解锁之后，别人进不去。",
                        "For 5 s nobody got in: after an unlock others did not get in.",
                    ));
                }
                sleep(Duration::from_millis(1)).await;
            }
            *last_entry.lock() = Instant::now();
            let others = {
                let mut inside = inside.lock();
                inside.push(who);
                inside.clone()
            };
            if let [first, .., second] = others[..] {
                if !over.is_cancelled() {
                    over.cancel();
                    *trial.inside_at_once.lock() = vec![first, second];
                }
                return Err(broken("两个同时在临界区。", "Two were inside at once."));
            }
            sleep(TIME_INSIDE).await;
            if over.is_cancelled() {
                return Ok(());
            }
            inside.lock().retain(|one| *one != who);
            trial.release(who).await?;
        }
        Ok(())
    };
    let ended = join_all(LOAD_OWNERS.map(enter_and_leave)).await;
    ended.into_iter().collect::<Result<Vec<()>, TrialError>>()?;
    Ok(Bilingual::of("8 个各进出 10 次，临界区里从来只有一个。", "Eight went in and out ten times each, and never two at once."))
}

/// A takes the lock and dies. B gets in at the end of the lease, not before.
async fn holder_dies(trial: &Trial) -> TrialResult {
    let begun = Instant::now();
    match trial.acquire_tested_lease_as_a().await {
        Err(TrialError::Untried(NO_LEASE)) => {
            log_death(trial);
            trial.acquire('B', ENDLESS_LEASE).await?;
            return Err(broken(
                "A 死了，锁没有租约：B 永远进不去，死锁。",
                "A died, and its lock has no lease: B never gets in, a deadlock.",
            ));
        }
        began => began?,
    }
    log_death(trial);
    if trial.acquire('B', ENDLESS_LEASE).await? {
        return Err(match begun.elapsed() < TESTED_LEASE {
            true => broken("A 的锁还在，B 就进去了。", "B got in while the lock was still A's."),
            false => TrialError::Untried(STALLED),
        });
    }
    match trial.acquire_after_lease('B').await? {
        true => Ok(Bilingual::of("A 死了；租约一到期，B 就进去了。", "A died; once its lease had ended, B got in.")),
        false => Err(broken(
            "A 死了，租约早该到期，B 还是进不去。",
            "A died, its lease should long have ended, and B does not get in.",
        )),
    }
}

/// Logs that A has died; nothing happens to the lock.
fn log_death(trial: &Trial) {
    let death = ReplayEvent::of('A', "failed").with_value("dead");
    trial.log.add(death);
}

/// A outlives its lease, B gets in, and then A unlocks: B's lock stays.
async fn late_release(trial: &Trial) -> TrialResult {
    trial.acquire_tested_lease_as_a().await?;
    if !trial.acquire_after_lease('B').await? {
        return Err(TrialError::Untried(Bilingual::of(
            "A 的租约早该到期，B 还是进不去：没法试。",
            "A's lease should long have ended, and B does not get in: not tried.",
        )));
    }
    trial.release('A').await?;
    trial
        .is_refused(
            'C',
            "A 的租约到期，B 进去了；A 迟到的解锁删掉了 B 的锁，C 也进去了。",
            "A's lease ended and B got in; A's late unlock deleted B's lock, and C got in too.",
        )
        .await?;
    Ok(Bilingual::of(
        "A 的租约到期，B 进去了；A 迟到的解锁没有动 B 的锁，C 进不去。",
        "A's lease ended and B got in; A's late unlock left B's lock alone, and C did not get in.",
    ))
}

/// B unlocks A's lock: it stays.
async fn foreign_release(trial: &Trial) -> TrialResult {
    trial.acquire_as_a(ENDLESS_LEASE).await?;
    trial.release('B').await?;
    trial.is_refused('C', "A 持有锁，B 去解锁，解掉了：C 也进去了。", "B unlocked what A holds, and C got in too.").await?;
    Ok(Bilingual::of(
        "A 持有锁，B 去解锁：解不掉，C 进不去。",
        "B tried to unlock what A holds: it stayed locked, and C did not get in.",
    ))
}

/// A takes its lock again; only its second unlock frees it.
async fn re_entry(trial: &Trial) -> TrialResult {
    trial.acquire_as_a(ENDLESS_LEASE).await?;
    trial
        .gets_in(
            'A',
            "A 持有锁，再要一次就进不去：它等的是自己。",
            "A holds the lock, and does not get it again: it waits for itself.",
        )
        .await?;
    trial.release('A').await?;
    trial.is_refused('B', "A 进了两次，只解锁一次，B 就进去了。", "A went in twice and unlocked once, and B got in.").await?;
    trial.release('A').await?;
    trial
        .gets_in('B', "A 进了两次，解锁两次，B 还是进不去。", "A went in twice and unlocked twice, and B does not get in.")
        .await?;
    Ok(Bilingual::of(
        "A 进了两次，解锁两次；第二次之后 B 才进去。",
        "A went in twice and unlocked twice; only after the second B got in.",
    ))
}

/// A works for three leases and renews. B gets in after A's unlock, and then A's renewal is refused.
async fn long_job(trial: &Trial) -> TrialResult {
    // Whether the lease may have ended before its renewal came: a lock that is never renewed has no such excuse.
    let may_have_ended = |renewed: Instant| trial.renew.is_some() && renewed.elapsed() >= TESTED_LEASE;
    let begun = Instant::now();
    let mut renewed = begun;
    trial.acquire_tested_lease_as_a().await?;
    loop {
        // B asks once more after the three leases, however long the machine stood still before.
        let is_last = begun.elapsed() >= 3 * TESTED_LEASE;
        if trial.acquire('B', ENDLESS_LEASE).await? {
            return Err(match may_have_ended(renewed) {
                true => TrialError::Untried(STALLED),
                false => {
                    broken("A 还在临界区，租约到期了，B 也进去了。", "A was still inside when its lease ended, and B got in too.")
                }
            });
        }
        if is_last {
            break;
        }
        if renewed.elapsed() >= TESTED_LEASE / 3 {
            let asked = Instant::now();
            trial.renew('A').await?;
            if may_have_ended(renewed) {
                return Err(TrialError::Untried(STALLED));
            }
            renewed = asked;
        }
        sleep(POLL_INTERVAL).await;
    }
    trial.release('A').await?;
    trial.gets_in('B', "A 做完解锁了，B 还是进不去。", "A was done and unlocked, and B does not get in.").await?;
    if may_have_ended(renewed) {
        // The end of the lease may have let B in, instead of the unlock.
        return Err(TrialError::Untried(STALLED));
    }
    match trial.renew('A').await? {
        false => Ok(Bilingual::of(
            "A 做了三个租约那么久，一直在续期：B 等它解锁才进去；之后 A 再续期，被拒绝。",
            "A worked for three leases and renewed: B got in once A had unlocked, and then A's renewal was refused.",
        )),
        true => Err(broken("A 早已解锁，却给 B 的锁续了期。", "A had unlocked, and renewed the lease of B's lock.")),
    }
}

/// B asks before C. After A's unlock C asks first, and B gets in.
async fn fairness(trial: &Trial) -> TrialResult {
    trial.acquire_as_a(ENDLESS_LEASE).await?;
    for who in ['B', 'C'] {
        trial.is_refused(who, "A 的锁还在，别人就进去了。", "Another got in while the lock was still A's.").await?;
    }
    trial.release('A').await?;
    trial
        .is_refused(
            'C',
            "B 先来，C 后来；A 解锁后 C 碰巧先问，就先进去了。",
            "B came before C; after A's unlock C happened to ask first, and got in first.",
        )
        .await?;
    trial.gets_in('B', "A 解锁后，谁也进不去。", "After A's unlock nobody got in.").await?;
    Ok(Bilingual::of(
        "B 先来，C 后来；A 解锁后 C 先问也进不去，先进去的是 B。",
        "B came before C; after A's unlock C asked first in vain, and B got in first.",
    ))
}
