//! `RedisFairLock` under the contract, and what it promises beyond it: order of arrival over processes, dead waiters that
//! fall out, scores that do not grow, a queue and scores that agree, no subscription that stays.
//!
//! Of the contract's clauses one does not apply: it has no fencing token (`fencing_tokens_grow`).

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    redis::Redis,
};
use futures::StreamExt;
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{RedisClient, RedisFairLock},
};
use parking_lot::Mutex;
use redis::{AsyncCommands, RedisError};
use std::{sync::Arc, time::Duration};
use tokio::task::{JoinHandle, JoinSet};

const SHORT: Duration = Duration::from_millis(300);
const JAVA: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:-7";

pub(crate) struct Fair(pub(crate) Redis);

/// Its process.
pub(crate) struct FairProcess(RedisClient);

impl Fair {
    pub(crate) fn at(url: String) -> Self {
        Self(Redis::at(url))
    }
}

impl Family for Fair {
    const NAME: &'static str = "redis_fair";
    const QUEUES: bool = true;
    type Process = FairProcess;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> FairProcess {
        FairProcess(self.0.process_at(address).await)
    }

    /// The lock, each waiter, and each score without a waiter.
    async fn left(&self, name: &str) -> Vec<String> {
        let mut left: Vec<String> = self.0.left(name).await;
        let seen = format!("{{{name}}}:seen");
        left.retain(|key| *key != queue_key(name) && *key != scores_key(name) && *key != seen);
        let (queue, scores) = line(&self.0, name).await.expect("an answer");
        left.extend(
            scores
                .into_iter()
                .map(|(owner, _)| owner)
                .filter(|owner| !queue.contains(owner)),
        );
        left.extend(queue);
        left
    }

    async fn take_away(&self, holder: &FairProcess, name: &str) {
        self.0.take_away(&holder.0, name).await;
    }
}

impl Process for FairProcess {
    type Lock = RedisFairLock;

    fn lock(&self, name: &str) -> RedisFairLock {
        self.0.fair_lock(name)
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

// --- looking at the server ----------------------------------------------------------------------------------------

pub(crate) fn queue_key(name: &str) -> String {
    format!("redisson_lock_queue:{{{name}}}")
}

pub(crate) fn scores_key(name: &str) -> String {
    format!("redisson_lock_timeout:{{{name}}}")
}

fn channel(name: &str, owner: &str) -> String {
    format!("redisson_lock__channel:{{{name}}}:{owner}")
}

type Line = (Vec<String>, Vec<(String, f64)>);

/// The queue and its scores at one moment.
async fn line(redis: &Redis, name: &str) -> Result<Line, String> {
    let mut both = redis::pipe();
    both.atomic()
        .lrange(queue_key(name), 0, -1)
        .zrange_withscores(scores_key(name), 0, -1);
    both.query_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())
}

pub(crate) async fn waiting(redis: &Redis, name: &str, n: usize) -> Verdict {
    until(&format!("{n} wait"), || async {
        line(redis, name).await.is_ok_and(|l| l.0.len() == n)
    })
    .await
}

fn agree((queue, scores): &Line) -> Verdict {
    let (mut queue, mut scored) = (
        queue.clone(),
        scores.iter().map(|s| s.0.clone()).collect::<Vec<_>>(),
    );
    queue.sort();
    scored.sort();
    ensure(queue == scored, || {
        format!("queued are {queue:?}, scores have {scored:?}")
    })
}

fn score((_, scores): &Line, owner: &str) -> Result<f64, String> {
    scores
        .iter()
        .find(|s| s.0 == owner)
        .map(|s| s.1)
        .ok_or_else(|| format!("{owner} has no score"))
}

/// The server's clock in epoch ms.
async fn now(redis: &Redis) -> Result<f64, String> {
    let time: Result<(u32, u32), RedisError> = redis::cmd("TIME")
        .query_async(&mut redis.outsider().await)
        .await;
    time.map(|(s, us)| f64::from(s) * 1000.0 + f64::from(us) / 1000.0)
        .map_err(|e| e.to_string())
}

/// A waiter as a Java process writes it down, or one that has died since.
async fn enqueue(redis: &Redis, name: &str, owner: &str, score: f64) -> Verdict {
    let mut both = redis::pipe();
    both.atomic()
        .rpush(queue_key(name), owner)
        .ignore()
        .zadd(scores_key(name), owner, score)
        .ignore();
    both.exec_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())
}

async fn rescore(redis: &Redis, name: &str, owner: &str, score: f64) -> Verdict {
    redis
        .outsider()
        .await
        .zadd(scores_key(name), owner, score)
        .await
        .map_err(|e| e.to_string())
}

/// A holder that never lets itself be heard of.
pub(crate) async fn hold(redis: &Redis, name: &str, lease: Duration) -> Verdict {
    let mut both = redis::pipe();
    let ms = i64::try_from(lease.as_millis()).map_err(|e| e.to_string())?;
    both.atomic()
        .hset(name, JAVA, 1)
        .ignore()
        .pexpire(name, ms)
        .ignore();
    both.exec_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())
}

async fn nothing_left(redis: &Redis, name: &str) -> Verdict {
    until("no key is left", || async {
        redis.left(name).await.is_empty()
    })
    .await?;
    let subscribed = || async {
        let mut channels = redis::cmd("PUBSUB");
        channels.arg("CHANNELS").arg(format!("*{name}*"));
        channels
            .query_async::<Vec<String>>(&mut redis.outsider().await)
            .await
    };
    until("no subscription is left", || async {
        subscribed().await.is_ok_and(|c| c.is_empty())
    })
    .await
}

pub(crate) fn wait_for(lock: impl Lock + 'static) -> JoinHandle<Result<Guard, LockError>> {
    tokio::spawn(async move { lock.acquire(SOON).await })
}

pub(crate) async fn had(waiter: JoinHandle<Result<Guard, LockError>>) -> Result<Guard, String> {
    says(
        "the lock must be had",
        waiter.await.map_err(|e| e.to_string())?,
    )
}

// --- order --------------------------------------------------------------------------------------------------------

/// Two processes, whose waiters come in turn, each after the last one is in the queue.
pub(crate) async fn order<F: Family>(redis: &Redis, family: &F) -> Verdict {
    const WAITERS: usize = 24;
    let (name, processes) = (name(), [family.process().await, family.process().await]);
    let first = says("it is free", processes[0].lock(&name).acquire(SOON).await)?;
    let (turns, mut waiters) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    for waiter in 0..WAITERS {
        let (lock, turns) = (processes[waiter % 2].lock(&name), turns.clone());
        waiters.spawn(async move {
            let guard = lock.acquire(SOON * 2).await?;
            turns.lock().push(waiter);
            guard.release().await
        });
        waiting(redis, &name, waiter + 1).await?;
    }
    agree(&line(redis, &name).await?)?;
    says("release", first.release().await)?;
    for result in waiters.join_all().await {
        says("every waiter must have its turn", result)?;
    }
    let turns = turns.lock().clone();
    ensure(turns.is_sorted(), || format!("the turns were {turns:?}"))?;
    nothing_left(redis, &name).await
}

pub(crate) async fn who_comes_first_has_it_first_over_two_processes(fair: Arc<Fair>) -> Verdict {
    order(&fair.0, &*fair).await
}

pub(crate) async fn a_java_waiter_before_us_is_respected_and_told(fair: Arc<Fair>) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    let server =
        redis::Client::open(format!("redis://{}", fair.server())).map_err(|e| e.to_string())?;
    let mut listener = server.get_async_pubsub().await.map_err(|e| e.to_string())?;
    listener
        .psubscribe(channel(&name, "*"))
        .await
        .map_err(|e| e.to_string())?;
    let mut told = listener.into_on_message();
    let mut next = async || {
        let message = tokio::time::timeout(SOON, told.next())
            .await
            .ok()
            .flatten()
            .ok_or("nobody was told")?;
        let text: String = message.get_payload().map_err(|e| e.to_string())?;
        Ok::<_, String>((message.get_channel_name().to_owned(), text))
    };

    let guard = says("it is free", process.lock(&name).try_acquire().await)?;
    enqueue(redis, &name, JAVA, now(redis).await? + 300_000.0).await?;
    let ours = wait_for(process.lock(&name));
    waiting(redis, &name, 2).await?;
    let (queue, _) = line(redis, &name).await?;
    says("release", guard.release().await)?;
    ensure(next().await? == (channel(&name, JAVA), "0".into()), || {
        "the head was not told first".into()
    })?;
    let early = process.lock(&name).acquire(SHORT).await;
    ensure(matches!(early, Err(LockError::Taken { .. })), || {
        format!("it is the Java waiter's to take: {early:?}")
    })?;
    let (after, _) = line(redis, &name).await?;
    ensure(queue == after && queue[0] == JAVA, || {
        format!("the queue was {queue:?} and is {after:?}")
    })?;

    // Java has its turn, and unlocks.
    let mut turn = redis::pipe();
    turn.atomic()
        .lpop(queue_key(&name), None)
        .ignore()
        .zrem(scores_key(&name), JAVA)
        .ignore();
    turn.publish(channel(&name, &queue[1]), "0").ignore();
    turn.exec_async(&mut redis.outsider().await)
        .await
        .map_err(|e| e.to_string())?;
    says("release", had(ours).await?.release().await)?;
    nothing_left(redis, &name).await
}

// --- the dead -----------------------------------------------------------------------------------------------------

pub(crate) async fn a_dead_waiter_falls_out_when_its_score_has_passed(fair: Arc<Fair>) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    enqueue(redis, &name, "long dead:1", now(redis).await? - 1.0).await?;
    let guard = says(
        "the dead wait for nothing",
        process.lock(&name).try_acquire().await,
    )?;
    enqueue(redis, &name, "just dead:1", now(redis).await? + 300_000.0).await?;
    let next = wait_for(process.lock(&name));
    waiting(redis, &name, 2).await?;
    // Not before all stand there, however long that took.
    let ends = now(redis).await? + 900.0;
    rescore(redis, &name, "just dead:1", ends).await?;
    says("release", guard.release().await)?;
    let guard = had(next).await?;
    ensure(now(redis).await? >= ends, || {
        "who might live was passed over".into()
    })?;
    says("release", guard.release().await)?;
    nothing_left(redis, &name).await
}

pub(crate) async fn a_dead_first_waiter_does_not_make_the_others_wait_longer(
    fair: Arc<Fair>,
) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    hold(redis, &name, SOON * 3).await?;
    enqueue(
        redis,
        &name,
        "dead:1",
        now(redis).await? + SOON.as_secs_f64() * 1000.0,
    )
    .await?;
    let next = wait_for(process.lock(&name));
    waiting(redis, &name, 2).await?;
    let last = wait_for(process.lock(&name));
    waiting(redis, &name, 3).await?;
    rescore(redis, &name, "dead:1", now(redis).await? + 900.0).await?;
    waiting(redis, &name, 2).await?;
    let seen = line(redis, &name).await?;
    agree(&seen)?;
    let (score, most) = (
        score(&seen, &seen.0[1])?,
        now(redis).await? + (SOON * 5).as_secs_f64() * 1000.0,
    );
    ensure(score <= most, || {
        format!("the last one's score is {} ms too high", score - most)
    })?;
    redis
        .outsider()
        .await
        .del::<_, ()>(&name)
        .await
        .map_err(|e| e.to_string())?;
    says("release", had(next).await?.release().await)?;
    says("release", had(last).await?.release().await)?;
    nothing_left(redis, &name).await
}

/// A queue that is never empty, and from which each waiter goes after the next has come.
pub(crate) async fn drift<F: Family>(redis: &Redis, family: &F) -> Verdict {
    const ROUNDS: usize = 6;
    let (name, process) = (name(), family.process().await);
    hold(redis, &name, SOON).await?;
    let mut head = wait_for(process.lock(&name));
    waiting(redis, &name, 1).await?;
    for _ in 0..ROUNDS {
        let next = wait_for(process.lock(&name));
        waiting(redis, &name, 2).await?;
        head.abort();
        head = next;
        waiting(redis, &name, 1).await?;
    }
    let seen = line(redis, &name).await?;
    agree(&seen)?;
    // What is left of the lease, and its own wait, are less than three waits; each that was forgotten is one more.
    let (score, most) = (
        score(&seen, &seen.0[0])?,
        now(redis).await? + (SOON * 3).as_secs_f64() * 1000.0,
    );
    ensure(score <= most, || {
        format!("the last one's score is {} ms too high", score - most)
    })?;
    redis
        .outsider()
        .await
        .del::<_, ()>(&name)
        .await
        .map_err(|e| e.to_string())?;
    says("release", had(head).await?.release().await)?;
    nothing_left(redis, &name).await
}

pub(crate) async fn waiters_that_leave_do_not_make_the_others_wait_longer(
    fair: Arc<Fair>,
) -> Verdict {
    drift(&fair.0, &*fair).await
}

pub(crate) async fn who_has_its_turn_takes_its_wait_off_the_others(fair: Arc<Fair>) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    hold(redis, &name, SOON).await?;
    let first = wait_for(process.lock(&name));
    waiting(redis, &name, 1).await?;
    enqueue(redis, &name, JAVA, now(redis).await? + 300_000.0).await?;
    let before = line(redis, &name).await?;
    redis
        .outsider()
        .await
        .del::<_, ()>(&name)
        .await
        .map_err(|e| e.to_string())?;
    let guard = had(first).await?;
    let after = line(redis, &name).await?;
    let (taken_off, wait) = (
        score(&before, JAVA)? - score(&after, JAVA)?,
        SOON.as_secs_f64() * 1000.0,
    );
    ensure((taken_off - wait).abs() < 1.0, || {
        format!("{taken_off} ms were taken off, the wait was {wait} ms")
    })?;
    says("release", guard.release().await)
}

/// As a Java client's correction, which knows no mercy, leaves it.
pub(crate) async fn a_living_waiter_keeps_its_score_ahead_of_now(fair: Arc<Fair>) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    hold(redis, &name, SOON).await?;
    let waiter = wait_for(process.lock(&name));
    waiting(redis, &name, 1).await?;
    let (queue, _) = line(redis, &name).await?;
    let low = now(redis).await? + 2_000.0;
    rescore(redis, &name, &queue[0], low).await?;
    let raised = || async {
        line(redis, &name)
            .await
            .and_then(|l| score(&l, &queue[0]))
            .is_ok_and(|s| s > low)
    };
    until("it said that it lives", raised).await?;
    waiter.abort();
    waiting(redis, &name, 0).await
}

// --- those who go -------------------------------------------------------------------------------------------------

pub(crate) async fn who_goes_from_the_middle_leaves_the_order_as_it_was(
    fair: Arc<Fair>,
) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    let guard = says("it is free", process.lock(&name).try_acquire().await)?;
    let mut waiters = Vec::new();
    for n in 1..=3 {
        waiters.push(wait_for(process.lock(&name)));
        waiting(redis, &name, n).await?;
    }
    let before = line(redis, &name).await?;
    waiters.remove(1).abort();
    waiting(redis, &name, 2).await?;
    let after = line(redis, &name).await?;
    agree(&after)?;
    ensure(
        after.0 == [before.0[0].clone(), before.0[2].clone()],
        || format!("{:?} to {:?}", before.0, after.0),
    )?;
    let (was, is) = (score(&before, &before.0[2])?, score(&after, &before.0[2])?);
    ensure(is < was, || {
        format!("the last one still waits for the one that is gone: {was} to {is}")
    })?;
    says("release", guard.release().await)?;
    for waiter in waiters {
        says("release", had(waiter).await?.release().await)?;
    }
    nothing_left(redis, &name).await
}

/// The holder is gone without a word: the head might take the lock, and goes.
pub(crate) async fn when_the_head_goes_the_next_is_told(fair: Arc<Fair>) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    hold(redis, &name, SOON).await?;
    let head = wait_for(process.lock(&name));
    waiting(redis, &name, 1).await?;
    enqueue(redis, &name, JAVA, now(redis).await? + 300_000.0).await?;
    let server =
        redis::Client::open(format!("redis://{}", fair.server())).map_err(|e| e.to_string())?;
    let mut listener = server.get_async_pubsub().await.map_err(|e| e.to_string())?;
    listener
        .subscribe(channel(&name, JAVA))
        .await
        .map_err(|e| e.to_string())?;
    redis
        .outsider()
        .await
        .del::<_, ()>(&name)
        .await
        .map_err(|e| e.to_string())?;
    head.abort();
    let told = tokio::time::timeout(SOON, listener.on_message().next()).await;
    ensure(matches!(told, Ok(Some(_))), || {
        "the next one was not told".into()
    })?;
    let (queue, scores) = line(redis, &name).await?;
    ensure(queue == [JAVA] && scores.len() == 1, || {
        format!("left are {queue:?} with {scores:?}")
    })
}

/// One is in the queue, and goes.
pub(crate) async fn goes<F: Family>(redis: &Redis, family: &F) -> Verdict {
    let (name, process) = (name(), family.process().await);
    hold(redis, &name, SOON).await?;
    let waiter = wait_for(process.lock(&name));
    waiting(redis, &name, 1).await?;
    waiter.abort();
    waiting(redis, &name, 0).await?;
    agree(&line(redis, &name).await?)
}

/// Many come, and most of them go at any moment: at each look the queue and the scores have the same owners.
pub(crate) async fn storm<F: Family>(redis: &Redis, family: Arc<F>) -> Verdict {
    const WAITERS: u64 = 60;
    let (name, processes) = (
        name(),
        [
            Arc::new(family.process().await),
            Arc::new(family.process().await),
        ],
    );
    let mut waiters = JoinSet::new();
    for waiter in 0..WAITERS {
        let (lock, goes) = (
            processes[usize::from(waiter % 2 == 0)].lock(&name),
            waiter % 3 > 0,
        );
        waiters.spawn(async move {
            let turn = async { lock.acquire(SOON * 2).await?.release().await };
            let patience = if goes {
                Duration::from_millis(1 + waiter * 7 % 40)
            } else {
                SOON * 2
            };
            // Those who go are dropped wherever they are.
            tokio::time::timeout(patience, turn).await.ok().transpose()
        });
        agree(&line(redis, &name).await?)?;
    }
    while let Some(result) = waiters.join_next().await {
        says("a turn", result.map_err(|e| e.to_string())?)?;
        agree(&line(redis, &name).await?)?;
    }
    waiting(redis, &name, 0).await?;
    agree(&line(redis, &name).await?)?;
    nothing_left(redis, &name).await
}

pub(crate) async fn queue_and_scores_agree_in_a_storm_of_cancels(fair: Arc<Fair>) -> Verdict {
    goes(&fair.0, &*fair).await?;
    storm(&fair.0, fair.clone()).await
}
