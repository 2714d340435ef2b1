//! What the semaphores promise, and the twins that break it.

use super::support::*;
use oversell_lock::redis::{RedisClient, RedisSemaphore};
use redis::AsyncCommands;

const PERMITS: i64 = 3;

/// Three processes of eight take five turns each: never more than three are inside.
async fn no_more_than_three<F>(
    redis: &Redis,
    turn: fn(Arc<RedisClient>, String, usize, Arc<Room>) -> F,
) -> Result
where
    F: Future<Output = Result> + Send + 'static,
{
    let (name, processes) = (name(), redis.clients(3).await);
    let semaphore = processes[0].semaphore(&name);
    semaphore.try_set_permits(3).await?;
    let most = crowd(processes, &name, [24, 5], turn).await?.most();
    ensure!(most <= PERMITS, "{most} were inside with {PERMITS} permits");
    all_are_back(redis, &semaphore).await
}

#[apply(test!)]
async fn no_more_are_inside_than_there_are_permits(redis: &Redis) -> Result {
    no_more_than_three(redis, |process, name, _, room| async move {
        let permit = process.semaphore(&name).acquire(1, SOON * 3).await?;
        room.visit(1).await;
        Ok(permit.release().await?)
    })
    .await
}

/// The twin looks and then takes, in two steps.
#[apply(test!)]
async fn a_semaphore_that_looks_before_it_takes_is_caught(redis: &Redis) -> Result {
    let verdict = no_more_than_three(redis, |process, name, _, room| async move {
        let mut redis = process.connection();
        while redis.get::<_, i64>(&name).await? < 1 {
            yield_now().await;
        }
        redis.decr::<_, _, i64>(&name, 1).await?;
        room.visit(1).await;
        redis.incr::<_, _, i64>(&name, 1).await?;
        Ok(())
    });
    caught(verdict.await, "were inside")
}

async fn all_are_back(redis: &Redis, semaphore: &RedisSemaphore) -> Result {
    let back = async || matches!(semaphore.available_permits().await, Ok(PERMITS));
    until("all permits are back", back).await?;
    let alone = async || redis.keys(semaphore.name()).await == [semaphore.name()];
    until("the count alone is left", alone).await
}

#[apply(test!)]
async fn permits_are_set_once(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name);
    let before = semaphore.try_acquire(1).await.map(|_| ());
    ensure!(before.is_err(), "a semaphore that is not set has permits");
    ensure!(semaphore.try_set_permits(3).await?, "not set");
    let all = semaphore.acquire(3, SOON).await?;
    let again = semaphore.try_set_permits(3).await?;
    ensure!(!again, "set again though none is free");
    all.release().await?;
    all_are_back(redis, &semaphore).await
}

/// What was taken before a reset is not given back to the new semaphore.
#[apply(test!)]
async fn permits_of_a_deleted_semaphore_are_not_given_to_the_next(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name);
    semaphore.try_set_permits(3).await?;
    let early = semaphore.acquire(1, SOON).await?;
    let late = semaphore.acquire(2, SOON).await?;
    redis.delete(&name).await;
    lost("released before the new one was set", early.release().await)?;
    semaphore.try_set_permits(3).await?;
    lost("released after that", late.release().await)?;
    all_are_back(redis, &semaphore).await
}

/// Tries at the same moment do not refuse each other what is free.
#[apply(test!)]
async fn tries_at_once_of_one_process_all_have_their_permit(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).initially(3);
    let tries = (0..3).map(|_| semaphore.try_acquire(1));
    let all = try_join_all(tries).await?;
    drop(all);
    all_are_back(redis, &semaphore).await
}

/// A waiter for a semaphore that is deleted goes on with the new one.
#[apply(test!)]
async fn a_waiter_goes_on_after_a_reset(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name).initially(3);
    let old = semaphore.acquire(3, SOON).await?;
    let waiter = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire(3, SOON).await?.release().await }
    });
    redis.delete(&name).await;
    waiter.await??;
    drop(old);
    all_are_back(redis, &semaphore).await
}

#[apply(test!)]
async fn a_wait_for_a_permit_ends_and_leaves_nothing(redis: &Redis) -> Result {
    let (name, holder, other) = (name(), redis.client().await, redis.client().await);
    holder.semaphore(&name).try_set_permits(3).await?;
    let permit = holder.semaphore(&name).acquire(3, SOON).await?;
    let before = redis.keys(&name).await;
    let waited = other.semaphore(&name).acquire(1, SHORT).await;
    taken("after the wait", waited)?;
    is("the keys", redis.keys(&name).await, before)?;
    drop(permit);
    all_are_back(redis, &holder.semaphore(&name)).await
}

/// Callers that go away at any point of the acquire.
#[apply(test!)]
async fn a_dropped_acquire_gives_its_permits_back(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let semaphore = process.semaphore(&name);
    semaphore.try_set_permits(3).await?;
    for awaits in 0..12 {
        drop_after(awaits, semaphore.acquire(2, SOON)).await;
    }
    all_are_back(redis, &semaphore).await
}

/// The acquire runs, and its answer is lost; says what it came to, and gives the way, which is mended.
async fn unanswered<T>(
    redis: &Redis,
    name: &str,
    take: impl AsyncFnOnce(RedisClient) -> T,
) -> Result<(T, Mute)> {
    let mute = Mute::to(redis.host())?;
    let process = redis.client_at(&mute.address()).await;
    process.semaphore(name).try_set_permits(3).await?;
    // The script is known to the server: the next one is a single command.
    let warm = process.semaphore(name).acquire(1, SOON).await?;
    warm.release().await?;
    mute.mute();
    let taken = take(process).await;
    mute.heal();
    Ok((taken, mute))
}

#[apply(test!)]
async fn an_unanswered_acquire_gives_its_permits_back(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let take = async |process: RedisClient| process.semaphore(&name).acquire(2, SOON).await;
    let (taken, _way) = unanswered(redis, &name, take).await?;
    unavailable("without an answer", taken)?;
    let semaphore = process.semaphore(&name);
    let back = async || matches!(semaphore.available_permits().await, Ok(PERMITS));
    until("all permits are back", back).await?;
    let left = redis.keys(&name).await;
    let claims = left.contains(&format!("{{{name}}}:claims"));
    ensure!(!claims, "left: {left:?}");
    Ok(())
}

/// The twin leaves it at that.
#[apply(test!)]
async fn an_unanswered_acquire_that_is_forgotten_is_caught(redis: &Redis) -> Result {
    let name = name();
    let take = async |process: RedisClient| {
        let taken = process.connection().decr::<_, _, i64>(&name, 2).await;
        taken.is_ok()
    };
    let (answered, _way) = unanswered(redis, &name, take).await?;
    ensure!(!answered, "it was answered");
    let free: i64 = redis.outsider().await.get(&name).await?;
    is("permits that are free where it did run", free, 1)
}
