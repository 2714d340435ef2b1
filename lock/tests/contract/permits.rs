//! What the semaphores promise, and the twins that break it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    redis::Redis,
};
use oversell_lock::{
    LockError,
    redis::{Permit, RedisClient, RedisSemaphore},
};
use redis::AsyncCommands;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::{JoinSet, yield_now};

const SHORT: Duration = Duration::from_millis(200);
const PERMITS: i64 = 3;

/// Counts who is inside.
#[derive(Default)]
pub(crate) struct Hall {
    inside: AtomicI64,
    most: AtomicI64,
}

impl Hall {
    pub(crate) async fn visit(&self) {
        self.most
            .fetch_max(self.inside.fetch_add(1, SeqCst) + 1, SeqCst);
        for _ in 0..20 {
            yield_now().await;
        }
        self.inside.fetch_sub(1, SeqCst);
    }
}

/// Three processes of eight, five times each: never more than three inside, and everybody has a turn.
pub(crate) async fn crowd<F, V>(
    processes: Vec<Arc<RedisClient>>,
    name: &str,
    visit: fn(Arc<RedisClient>, String, Arc<Hall>) -> F,
) -> Verdict
where
    F: Future<Output = Result<V, String>> + Send + 'static,
    V: Send + 'static,
{
    let hall = Arc::new(Hall::default());
    let mut tasks = JoinSet::new();
    for process in &processes {
        for _ in 0..8 {
            let (process, name, hall) = (process.clone(), name.to_owned(), hall.clone());
            tasks.spawn(async move {
                for _ in 0..5 {
                    visit(process.clone(), name.clone(), hall.clone()).await?;
                }
                Ok::<_, String>(())
            });
        }
    }
    for result in tasks.join_all().await {
        result?;
    }
    let most = hall.most.load(SeqCst);
    ensure(most <= PERMITS, || {
        format!("{most} were inside with {PERMITS} permits")
    })
}

async fn three(redis: &Redis, name: &str) -> Result<Vec<Arc<RedisClient>>, String> {
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(Arc::new(redis.process().await));
    }
    says("set", processes[0].semaphore(name).try_set_permits(3).await)?;
    Ok(processes)
}

pub(crate) async fn no_more_are_inside_than_there_are_permits(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let processes = three(&redis, &name).await?;
    crowd(processes.clone(), &name, |process, name, hall| async move {
        let permit = says(
            "a turn",
            process.semaphore(&name).acquire(1, SOON * 3).await,
        )?;
        hall.visit().await;
        says("release", permit.release().await)
    })
    .await?;
    all_are_back(&redis, &processes[0].semaphore(&name)).await
}

/// The twin looks and then takes, in two steps.
pub(crate) async fn a_semaphore_that_looks_before_it_takes_is_caught(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let processes = three(&redis, &name).await?;
    let verdict = crowd(processes, &name, |process, name, hall| async move {
        let mut redis = process.connection();
        let broken = |e: redis::RedisError| e.to_string();
        while redis.get::<_, i64>(&name).await.map_err(broken)? < 1 {
            yield_now().await;
        }
        redis.decr::<_, _, i64>(&name, 1).await.map_err(broken)?;
        hall.visit().await;
        redis.incr::<_, _, i64>(&name, 1).await.map_err(broken)
    })
    .await;
    match verdict {
        Err(broken) if broken.contains("were inside") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

async fn all_are_back(redis: &Redis, semaphore: &RedisSemaphore) -> Verdict {
    until("all permits are back", || async {
        matches!(semaphore.available_permits().await, Ok(PERMITS))
    })
    .await?;
    let name = semaphore.name();
    until("the count alone is left", || async {
        redis.left(name).await == [name]
    })
    .await
}

pub(crate) async fn permits_are_set_once(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let semaphore = process.semaphore(&name);
    let before = says("try", semaphore.try_acquire(1).await.map(|_| ()));
    ensure(before.is_err(), || {
        "a semaphore that is not set has permits".into()
    })?;
    ensure(says("set", semaphore.try_set_permits(3).await)?, || {
        "not set".into()
    })?;
    let all = says("three", semaphore.acquire(3, SOON).await)?;
    ensure(!says("set", semaphore.try_set_permits(3).await)?, || {
        "set anew though none is free".into()
    })?;
    says("release", all.release().await)?;
    all_are_back(&redis, &semaphore).await
}

/// What was taken before a reset is not given back to the new semaphore.
pub(crate) async fn permits_of_a_deleted_semaphore_are_not_given_to_the_next(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let semaphore = process.semaphore(&name);
    says("set", semaphore.try_set_permits(3).await)?;
    let (early, late) = (
        semaphore.acquire(1, SOON).await,
        semaphore.acquire(2, SOON).await,
    );
    let (early, late) = (says("one", early)?, says("two", late)?);
    let _: () = redis
        .outsider()
        .await
        .del(&name)
        .await
        .map_err(|e| e.to_string())?;
    for (permit, when) in [(early, "before"), (late, "after")] {
        match permit.release().await {
            Err(LockError::Lost { .. }) => {}
            other => return Err(format!("released {when} the new one was set: {other:?}")),
        }
        says("set", semaphore.try_set_permits(3).await)?;
    }
    all_are_back(&redis, &semaphore).await
}

/// Tries at the same moment do not refuse each other what is free.
pub(crate) async fn tries_at_once_of_one_process_all_have_their_permit(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let semaphore = process.semaphore(&name).initially(3);
    let tries = (0..3).map(|_| semaphore.try_acquire(1));
    let all = futures::future::try_join_all(tries)
        .await
        .map_err(|e| format!("three of three: {e}"))?;
    drop(all);
    all_are_back(&redis, &semaphore).await
}

/// Who waits for a semaphore that is deleted goes on with the new one.
pub(crate) async fn a_waiter_goes_on_after_a_reset(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let semaphore = process.semaphore(&name).initially(3);
    let old = says("three", semaphore.acquire(3, SOON).await)?;
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire(3, SOON).await?.release().await }
    });
    let _: () = redis
        .outsider()
        .await
        .del(&name)
        .await
        .map_err(|e| e.to_string())?;
    says("a turn", waiter.await.map_err(|e| e.to_string())?)?;
    drop(old);
    all_are_back(&redis, &semaphore).await
}

pub(crate) async fn a_wait_for_a_permit_ends_and_leaves_nothing(redis: Arc<Redis>) -> Verdict {
    let (name, holder, other) = (name(), redis.process().await, redis.process().await);
    says("set", holder.semaphore(&name).try_set_permits(3).await)?;
    let permit = says("three", holder.semaphore(&name).acquire(3, SOON).await)?;
    let before = redis.left(&name).await;
    match other.semaphore(&name).acquire(1, SHORT).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("after the wait: {other:?}")),
    }
    let after = redis.left(&name).await;
    ensure(before == after, || {
        format!("there was {before:?} and is {after:?}")
    })?;
    drop(permit);
    all_are_back(&redis, &holder.semaphore(&name)).await
}

/// Callers that go away at any point of the acquire.
pub(crate) async fn a_dropped_acquire_gives_its_permits_back(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let semaphore = process.semaphore(&name);
    says("set", semaphore.try_set_permits(3).await)?;
    for polls in 0..30 {
        let mut acquire = Box::pin(semaphore.acquire(2, SOON));
        for _ in 0..polls {
            if futures::poll!(&mut acquire).is_ready() {
                break;
            }
            yield_now().await;
        }
    }
    all_are_back(&redis, &semaphore).await
}

/// One process's thousand waiters are one contender: Redis sees few tries, however many wait.
pub(crate) async fn a_thousand_waiters_are_one_contender(redis: Arc<Redis>) -> Verdict {
    let (name, holder, crowded) = (name(), redis.process().await, redis.process().await);
    says("set", holder.semaphore(&name).try_set_permits(3).await)?;
    let all = says("three", holder.semaphore(&name).acquire(3, SOON).await)?;
    let semaphore = crowded.semaphore(&name);
    let waiters: Vec<_> = (0..1000)
        .map(|_| {
            let semaphore = semaphore.clone();
            tokio::spawn(async move { semaphore.acquire(1, SOON * 3).await?.release().await })
        })
        .collect();
    let channel = format!("redisson_sc:{{{name}}}");
    let mut outsider = redis.outsider().await;
    let mut told = 0_i64;
    for _ in 0..400 {
        told = redis::cmd("PUBLISH")
            .arg(&channel)
            .arg(0)
            .query_async(&mut outsider)
            .await
            .map_err(|e| e.to_string())?;
        if told > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ensure(told == 1, || format!("{told} subscriptions"))?;
    says("release", all.release().await)?;
    for waiter in waiters {
        says("a turn", waiter.await.map_err(|e| e.to_string())?)?;
    }
    all_are_back(&redis, &semaphore).await
}

/// The acquire runs, and its answer is lost.
async fn unanswered<T>(
    redis: &Redis,
    name: &str,
    take: impl AsyncFnOnce(RedisClient) -> T,
) -> Result<(T, Mute), String> {
    let mute = Mute::to(redis.host()).await;
    let process = redis.process_at(&mute.address()).await;
    says("set", process.semaphore(name).try_set_permits(3).await)?;
    // The script is known to the server: the next one is a single command.
    let warm: Permit = says("warm", process.semaphore(name).acquire(1, SOON).await)?;
    says("warm", warm.release().await)?;
    mute.mute();
    let taken = take(process).await;
    Ok((taken, mute))
}

pub(crate) async fn an_unanswered_acquire_gives_its_permits_back(redis: Arc<Redis>) -> Verdict {
    let name = name();
    let (taken, mute) = unanswered(&redis, &name, async |process| {
        process.semaphore(&name).acquire(2, SOON).await
    })
    .await?;
    match taken {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("without an answer: {other:?}")),
    }
    mute.heal().await;
    let process = redis.process().await;
    all_are_back_or_marked(&redis, &process.semaphore(&name)).await
}

/// The twin leaves it at that.
pub(crate) async fn an_unanswered_acquire_that_is_forgotten_is_caught(
    redis: Arc<Redis>,
) -> Verdict {
    let name = name();
    let (_, mute) = unanswered(&redis, &name, async |process| {
        let taken: redis::RedisResult<i64> = process.connection().decr(&name, 2).await;
        taken
    })
    .await?;
    mute.heal().await;
    let free: i64 = redis
        .outsider()
        .await
        .get(&name)
        .await
        .map_err(|e| e.to_string())?;
    ensure(free == 1, || {
        format!("{free} are free: the command did not run, and the test shows nothing")
    })
}

async fn all_are_back_or_marked(redis: &Redis, semaphore: &RedisSemaphore) -> Verdict {
    until("all permits are back", || async {
        matches!(semaphore.available_permits().await, Ok(PERMITS))
    })
    .await?;
    let claims = format!("{{{}}}:claims", semaphore.name());
    let left = redis.left(semaphore.name()).await;
    ensure(!left.contains(&claims), || format!("left: {left:?}"))
}
