//! What the fair lock in Redis promises beyond the contract, which has the order of arrival: dead waiters leave, scores
//! do not grow, subscriptions end. `twins.rs` breaks it; random programs check that a waiter that leaves takes its
//! place and score with it.

use crate::{redis::own::OwnRedis, support::*};
use futures::StreamExt;
use redis::AsyncCommands;
use std::collections::{BTreeSet, HashMap};

pub(crate) const JAVA: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:-7";

/// The name in braces, unless it has some, as in the library.
fn in_braces(name: &str) -> String {
    match name.contains('{') {
        true => name.to_owned(),
        false => format!("{{{name}}}"),
    }
}

pub(crate) fn queue_key(name: &str) -> String {
    format!("redisson_lock_queue:{}", in_braces(name))
}

pub(crate) fn scores_key(name: &str) -> String {
    format!("redisson_lock_timeout:{}", in_braces(name))
}

fn channel(name: &str, owner: &str) -> String {
    format!("redisson_lock__channel:{{{name}}}:{owner}")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A fair lock, a contending process, and the test's view of it.
struct Fair {
    redis: &'static Redis,
    process: Contender<Redis>,
    name: String,
}

impl Fair {
    async fn of(family: Family<Redis>) -> Self {
        Self { redis: family.server, process: family.process().await, name: name() }
    }

    async fn on(redis: &'static Redis) -> Self {
        Self::of(redis.family("redis_fair")).await
    }

    fn lock(&self) -> AnyLock {
        self.process.lock(&self.name)
    }

    /// The queue and its scores at one moment.
    async fn line(&self) -> Result<Line> {
        let mut both = redis::pipe();
        both.atomic().lrange(queue_key(&self.name), 0, -1).zrange_withscores(scores_key(&self.name), 0, -1);
        let (queue, scores) = both.query_async(&mut self.redis.outsider().await).await?;
        Ok(Line { queue, scores })
    }

    async fn waiting(&self, n: usize) -> Result {
        let wait = async || self.line().await.is_ok_and(|line| line.queue.len() == n);
        until(&format!("{n} wait"), wait).await
    }

    /// Checks that the queue and the scores have the same owners.
    async fn agree(&self) -> Result<Line> {
        let line = self.line().await?;
        let queued: BTreeSet<_> = line.queue.iter().collect();
        let scored: BTreeSet<_> = line.scores.keys().collect();
        ensure_equal("who is queued, once, and has a score", queued, scored)?;
        ensure_equal("scores", line.scores.len(), line.queue.len())?;
        Ok(line)
    }

    /// The server's clock in epoch ms.
    async fn now(&self) -> Result<f64> {
        let (s, us): (u32, u32) = self.redis.ask(&["TIME"]).await?;
        Ok(f64::from(s) * 1000.0 + f64::from(us) / 1000.0)
    }

    /// Adds a waiter as a Java process would, which may have died since, with a score this far ahead.
    async fn enqueue(&self, owner: &str, ahead: f64) -> Result {
        let score = (self.now().await? + ahead).to_string();
        let (queue, scores) = (queue_key(&self.name), scores_key(&self.name));
        let join = ["RPUSH", &queue, owner];
        let until = ["ZADD", &scores, &score, owner];
        self.redis.run(&[&join, &until]).await
    }

    async fn rescore(&self, owner: &str, ahead: f64) -> Result<f64> {
        let score = self.now().await? + ahead;
        let mut outsider = self.redis.outsider().await;
        let () = outsider.zadd(scores_key(&self.name), owner, score).await?;
        Ok(score)
    }

    /// A holder that sends no messages.
    async fn hold(&self, lease: Duration) -> Result {
        let ms = lease.as_millis().to_string();
        let hold = ["HSET", &self.name, JAVA, "1"];
        let ends = ["PEXPIRE", &self.name, &ms];
        self.redis.run(&[&hold, &ends]).await
    }

    async fn free(&self) {
        self.redis.delete(&self.name).await;
    }

    async fn nothing_left(&self) -> Result {
        self.redis.no_key_left(&self.name).await?;
        let none = async || !self.redis.is_waited_for(&self.name).await;
        until("no subscription is left", none).await
    }

    /// Starts a waiter, and waits until the queue has `n`.
    async fn waiter(&self, n: usize) -> Result<JoinHandle<Answer<Guard>>> {
        let waiter = spawn_acquire(self.lock());
        self.waiting(n).await?;
        Ok(waiter)
    }
}

/// The queue, and the scores.
#[derive(Debug)]
struct Line {
    queue: Vec<String>,
    scores: HashMap<String, f64>,
}

impl Line {
    fn score(&self, owner: &str) -> Result<f64> {
        let score = self.scores.get(owner).copied();
        score.with_context(|| format!("{owner} has no score"))
    }
}

// --- order --------------------------------------------------------------------------------------------------------

#[apply(test!)]
async fn a_java_waiter_before_us_is_respected_and_told(redis: &'static Redis) -> Result {
    let fair = Fair::on(redis).await;
    let name = &fair.name;
    let mut heard = redis.listener(&channel(name, "*")).await?.into_on_message();
    let guard = fair.lock().try_acquire().await?;
    fair.enqueue(JAVA, 300_000.0).await?;
    let ours = fair.waiter(2).await?;
    let queue = fair.line().await?.queue;
    guard.release().await?;
    let message = timeout(SOON, heard.next()).await?;
    let message = message.context("nobody was told")?;
    ensure_equal("the first that is told", message.get_channel_name(), channel(name, JAVA))?;
    ensure_equal("what it is told", message.get_payload::<String>()?, "0")?;
    let early = fair.lock().acquire(SHORT).await;
    ensure_taken("it is the Java waiter's to take", early)?;
    ensure_equal("the queue", &fair.line().await?.queue, &queue)?;
    ensure_equal("its head", &*queue[0], JAVA)?;

    // The Java waiter acquires and releases.
    let turn = ["LPOP", &queue_key(name)];
    let score = ["ZREM", &scores_key(name), JAVA];
    let tell = ["PUBLISH", &channel(name, &queue[1]), "0"];
    redis.run(&[&turn, &score, &tell]).await?;
    ours.await??.release().await?;
    fair.nothing_left().await
}

// --- the dead -----------------------------------------------------------------------------------------------------

#[apply(test!)]
async fn a_dead_waiter_falls_out_when_its_score_has_passed(redis: &'static Redis) -> Result {
    let fair = Fair::on(redis).await;
    fair.enqueue("long dead:1", -1.0).await?;
    let guard = fair.lock().try_acquire().await?;
    fair.enqueue("just dead:1", 300_000.0).await?;
    let next = fair.waiter(2).await?;
    // Not before all are in the queue.
    let ends = fair.rescore("just dead:1", 900.0).await?;
    guard.release().await?;
    let guard = next.await??;
    let too_early = fair.now().await? < ends;
    ensure!(!too_early, "one that might live was passed over");
    guard.release().await?;
    fair.nothing_left().await
}

/// A queue that is never empty, which each waiter leaves after the next has joined.
pub(crate) async fn drift(family: Family<Redis>) -> Result {
    let fair = Fair::of(family).await;
    fair.hold(SOON).await?;
    let mut head = fair.waiter(1).await?;
    for _ in 0..6 {
        let next = fair.waiter(2).await?;
        head.abort();
        head = next;
        fair.waiting(1).await?;
    }
    let seen = fair.agree().await?;
    // The rest of the lease and its own wait are less than three waits; each forgotten waiter would add one.
    let above = seen.score(&seen.queue[0])? - fair.now().await? - millis(SOON * 3);
    ensure!(above <= 0.0, "the last one's score is {above} ms too high");
    fair.free().await;
    head.await??.release().await?;
    fair.nothing_left().await
}

#[apply(test!)]
async fn waiters_that_leave_do_not_make_the_others_wait_longer(redis: &'static Redis) -> Result {
    drift(redis.family("redis_fair")).await
}

#[apply(test!)]
async fn a_waiter_that_has_its_turn_takes_its_wait_off_the_others(redis: &'static Redis) -> Result {
    let fair = Fair::on(redis).await;
    fair.hold(SOON).await?;
    let first = fair.waiter(1).await?;
    fair.enqueue(JAVA, 300_000.0).await?;
    let before = fair.line().await?;
    fair.free().await;
    let guard = first.await??;
    let after = fair.line().await?;
    let taken_off = before.score(JAVA)? - after.score(JAVA)?;
    let is_its_wait = (taken_off - millis(SOON)).abs() < 1.0;
    ensure!(is_its_wait, "{taken_off} ms were taken off of {SOON:?}");
    Ok(guard.release().await?)
}

/// As a Java client's correction leaves it.
#[apply(test!)]
async fn a_living_waiter_keeps_its_score_ahead_of_now(redis: &'static Redis) -> Result {
    let fair = Fair::on(redis).await;
    fair.hold(SOON).await?;
    let waiter = fair.waiter(1).await?;
    let own = fair.line().await?.queue.remove(0);
    let low = fair.rescore(&own, 2_000.0).await?;
    let raised = || async {
        let line = fair.line().await;
        line.and_then(|line| line.score(&own)).is_ok_and(|s| s > low)
    };
    until("it said that it lives", raised).await?;
    waiter.abort();
    fair.waiting(0).await
}

#[apply(test!)]
async fn waiting_keeps_the_queue_from_being_forgotten(redis: &'static Redis) -> Result {
    let fair = Fair::on(redis).await;
    fair.hold(SOON * 2).await?;
    let waiter = fair.waiter(1).await?;
    let seen = format!("{{{}}}:seen", fair.name);
    let keys = [queue_key(&fair.name), scores_key(&fair.name), seen];
    // Moves the expiry as if an hour had nearly passed.
    for key in &keys {
        fair.redis.ask::<i64>(&["PEXPIRE", key, "5000"]).await?;
    }
    let kept = async || {
        let lives = keys.each_ref().map(async |key| {
            let left: Result<i64> = fair.redis.ask(&["PTTL", key]).await;
            left.is_ok_and(|left| left > 60_000)
        });
        join_all(lives).await.into_iter().all(|kept| kept)
    };
    until("all three are kept", kept).await?;
    fair.free().await;
    waiter.await??.release().await?;
    fair.nothing_left().await
}

// --- waiters that go ----------------------------------------------------------------------------------------------

/// The holder has disappeared: the first waiter could take the lock, and leaves.
#[apply(test!)]
async fn when_the_head_goes_the_next_is_told(redis: &'static Redis) -> Result {
    let fair = Fair::on(redis).await;
    fair.hold(SOON).await?;
    let head = fair.waiter(1).await?;
    fair.enqueue(JAVA, 300_000.0).await?;
    let channel = channel(&fair.name, JAVA);
    let mut heard = redis.listener(&channel).await?.into_on_message();
    fair.free().await;
    head.abort();
    let message = timeout(SOON, heard.next()).await;
    ensure!(matches!(message, Ok(Some(_))), "the next one was not told");
    ensure_equal("the queue", fair.agree().await?.queue, [JAVA])
}

/// A waiter whose wait ended leaves the queue, even if it is dropped between a script that the server has forgotten and
/// its repetition.
#[apply(test!)]
async fn a_waiter_that_is_dropped_as_it_leaves_is_out_of_the_queue(_: &Redis) -> Result {
    let own = OwnRedis::start().await?;
    let (name, process, other) = (name(), own.client().await, own.client().await);
    let held = take(&other.fair_lock(&name)).await?;
    let queue = queue_key(&name);
    let queued = async |n: i64| {
        let waiting: Result<i64> = own.ask(&["LLEN", &queue]).await;
        waiting.is_ok_and(|waiting| waiting == n)
    };
    for polls in 2..16 {
        let lock = process.fair_lock(&name);
        let goes = async {
            drop_after(polls, lock.acquire(SHORT)).await;
            Ok(())
        };
        let forgets = async {
            // It may have left before it was in the queue.
            timeout(SHORT, until("it waits", || queued(1))).await.ok();
            own.ask::<()>(&["SCRIPT", "FLUSH"]).await
        };
        futures::try_join!(goes, forgets)?;
        let what = format!("dropped after {polls} polls it has left");
        until(&what, || queued(0)).await?;
    }
    Ok(held.release().await?)
}
