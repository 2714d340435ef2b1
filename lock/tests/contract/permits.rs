//! What the semaphores promise, and the twins that break it.

use super::{family::Server, mute::Mute, redis::Redis, support::*};
use oversell_lock::redis::{Permit, RedisClient, RedisSemaphore};
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

/// Counts those inside.
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
) -> Result<()>
where
    F: Future<Output = Result<V>> + Send + 'static,
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
                anyhow::Ok(())
            });
        }
    }
    for result in tasks.join_all().await {
        result?;
    }
    let most = hall.most.load(SeqCst);
    ensure!(most <= PERMITS, "{most} were inside with {PERMITS} permits");
    Ok(())
}

async fn three(redis: &Redis, name: &str) -> Result<Vec<Arc<RedisClient>>> {
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(Arc::new(redis.client().await));
    }
    processes[0].semaphore(name).try_set_permits(3).await?;
    Ok(processes)
}

#[apply(test!)]
async fn no_more_are_inside_than_there_are_permits(redis: &Redis) -> Result<()> {
    let name = name();
    let processes = three(redis, &name).await?;
    crowd(processes.clone(), &name, |process, name, hall| async move {
        let permit = process.semaphore(&name).acquire(1, SOON * 3).await?;
        hall.visit().await;
        Ok(permit.release().await?)
    })
    .await?;
    all_are_back(redis, &processes[0].semaphore(&name)).await
}

/// The twin looks and then takes, in two steps.
#[apply(test!)]
async fn a_semaphore_that_looks_before_it_takes_is_caught(redis: &Redis) -> Result<()> {
    let name = name();
    let processes = three(redis, &name).await?;
    let verdict = crowd(processes, &name, |process, name, hall| async move {
        let mut redis = process.connection();
        while redis.get::<_, i64>(&name).await? < 1 {
            yield_now().await;
        }
        redis.decr::<_, _, i64>(&name, 1).await?;
        hall.visit().await;
        Ok(redis.incr::<_, _, i64>(&name, 1).await?)
    })
    .await;
    caught(verdict, "were inside")
}

async fn all_are_back(redis: &Redis, semaphore: &RedisSemaphore) -> Result<()> {
    until("all permits are back", || async {
        matches!(semaphore.available_permits().await, Ok(PERMITS))
    })
    .await?;
    let name = semaphore.name();
    until("the count alone is left", || async {
        redis.keys(name).await == [name]
    })
    .await
}

#[apply(test!)]
async fn permits_are_set_once(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name);
    let before = semaphore.try_acquire(1).await.map(|_| ());
    ensure!(before.is_err(), "a semaphore that is not set has permits");
    ensure!(semaphore.try_set_permits(3).await?, "not set");
    let all = semaphore.acquire(3, SOON).await?;
    ensure!(
        !semaphore.try_set_permits(3).await?,
        "set again though none is free"
    );
    all.release().await?;
    all_are_back(redis, &semaphore).await
}

/// What was taken before a reset is not given back to the new semaphore.
#[apply(test!)]
async fn permits_of_a_deleted_semaphore_are_not_given_to_the_next(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name);
    semaphore.try_set_permits(3).await?;
    let (early, late) = (
        semaphore.acquire(1, SOON).await,
        semaphore.acquire(2, SOON).await,
    );
    let (early, late) = (early?, late?);
    let _: () = redis.outsider().await.del(&name).await?;
    for (permit, when) in [(early, "before"), (late, "after")] {
        lost(
            &format!("released {when} the new one was set"),
            permit.release().await,
        )?;
        semaphore.try_set_permits(3).await?;
    }
    all_are_back(redis, &semaphore).await
}

/// Tries at the same moment do not refuse each other what is free.
#[apply(test!)]
async fn tries_at_once_of_one_process_all_have_their_permit(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).initially(3);
    let tries = (0..3).map(|_| semaphore.try_acquire(1));
    let all = futures::future::try_join_all(tries).await?;
    drop(all);
    all_are_back(redis, &semaphore).await
}

/// A waiter for a semaphore that is deleted goes on with the new one.
#[apply(test!)]
async fn a_waiter_goes_on_after_a_reset(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).initially(3);
    let old = semaphore.acquire(3, SOON).await?;
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire(3, SOON).await?.release().await }
    });
    let _: () = redis.outsider().await.del(&name).await?;
    waiter.await??;
    drop(old);
    all_are_back(redis, &semaphore).await
}

#[apply(test!)]
async fn a_wait_for_a_permit_ends_and_leaves_nothing(redis: &Redis) -> Result<()> {
    let (name, holder, other) = (name(), redis.client().await, redis.client().await);
    holder.semaphore(&name).try_set_permits(3).await?;
    let permit = holder.semaphore(&name).acquire(3, SOON).await?;
    let before = redis.keys(&name).await;
    taken(
        "after the wait",
        other.semaphore(&name).acquire(1, SHORT).await,
    )?;
    let after = redis.keys(&name).await;
    ensure!(before == after, "there was {before:?} and is {after:?}");
    drop(permit);
    all_are_back(redis, &holder.semaphore(&name)).await
}

/// Callers that go away at any point of the acquire.
#[apply(test!)]
async fn a_dropped_acquire_gives_its_permits_back(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name);
    semaphore.try_set_permits(3).await?;
    for polls in 0..30 {
        let mut acquire = Box::pin(semaphore.acquire(2, SOON));
        for _ in 0..polls {
            if futures::poll!(&mut acquire).is_ready() {
                break;
            }
            yield_now().await;
        }
    }
    all_are_back(redis, &semaphore).await
}

/// One process's thousand waiters are one contender: Redis sees few tries, however many wait.
#[apply(test!)]
async fn a_thousand_waiters_are_one_contender(redis: &Redis) -> Result<()> {
    let (name, holder, crowded) = (name(), redis.client().await, redis.client().await);
    holder.semaphore(&name).try_set_permits(3).await?;
    let all = holder.semaphore(&name).acquire(3, SOON).await?;
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
            .await?;
        if told > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ensure!(told == 1, "{told} subscriptions");
    all.release().await?;
    for waiter in waiters {
        waiter.await??;
    }
    all_are_back(redis, &semaphore).await
}

/// The acquire runs, and its answer is lost.
async fn unanswered<T>(
    redis: &Redis,
    name: &str,
    take: impl AsyncFnOnce(RedisClient) -> T,
) -> Result<(T, Mute)> {
    let mute = Mute::to(redis.host())?;
    let process = redis.client_at(&mute.address()).await;
    process.semaphore(name).try_set_permits(3).await?;
    // The script is known to the server: the next one is a single command.
    let warm: Permit = process.semaphore(name).acquire(1, SOON).await?;
    warm.release().await?;
    mute.mute();
    let taken = take(process).await;
    Ok((taken, mute))
}

#[apply(test!)]
async fn an_unanswered_acquire_gives_its_permits_back(redis: &Redis) -> Result<()> {
    let name = name();
    let (taken, mute) = unanswered(redis, &name, async |process| {
        process.semaphore(&name).acquire(2, SOON).await
    })
    .await?;
    unavailable("without an answer", taken)?;
    mute.heal();
    let process = redis.client().await;
    all_are_back_or_marked(redis, &process.semaphore(&name)).await
}

/// The twin leaves it at that.
#[apply(test!)]
async fn an_unanswered_acquire_that_is_forgotten_is_caught(redis: &Redis) -> Result<()> {
    let name = name();
    let (_, mute) = unanswered(redis, &name, async |process| {
        let taken: redis::RedisResult<i64> = process.connection().decr(&name, 2).await;
        taken
    })
    .await?;
    mute.heal();
    let free: i64 = redis.outsider().await.get(&name).await?;
    ensure!(
        free == 1,
        "{free} are free: the command did not run, and the test shows nothing"
    );
    Ok(())
}

async fn all_are_back_or_marked(redis: &Redis, semaphore: &RedisSemaphore) -> Result<()> {
    until("all permits are back", || async {
        matches!(semaphore.available_permits().await, Ok(PERMITS))
    })
    .await?;
    let claims = format!("{{{}}}:claims", semaphore.name());
    let left = redis.keys(semaphore.name()).await;
    ensure!(!left.contains(&claims), "left: {left:?}");
    Ok(())
}
