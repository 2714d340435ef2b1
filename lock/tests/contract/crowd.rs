//! Many waiters of one process are one contender to the server, and those that can share a lock enter together, without
//! a round trip each.

use super::{
    redis::patient,
    redis::read_write::{reading, writing},
    redis::redlock::{LONG_LEASE, redlock},
    support::*,
};
use futures::StreamExt;
use oversell_lock::redis::{RECHECK_INTERVAL, RedisClient};

const CROWD: usize = 300;
/// Each of these holds the lock in its turn, which takes a busy machine a fifth of a second.
const IN_TURN: usize = 75;

/// One permit of a semaphore, as a lock.
fn permit(client: &RedisClient, name: &str, permits: u32) -> AnyLock {
    let semaphore = client.semaphore(name).initially(permits);
    fixed_lock(name, semaphore, |semaphore, name, wait| async move {
        let permit = semaphore.acquire(1, wait).await?;
        Ok(guard(&name, None, permit.release()))
    })
}

/// A crowd in the second process waits for the first process's hold: one subscription and one contender, which asks and
/// then pauses, so that `scripts` take at least this long.
async fn ensure_one_contender(
    redis: &Redis,
    name: &str,
    channel: Option<&str>,
    (scripts, least): (usize, Duration),
    lock: impl Fn(usize) -> AnyLock,
) -> Result {
    let held = take(&lock(0)).await?;
    let mut commands = redis.monitor().await?.into_on_message::<String>();
    let waiters: Vec<_> = (0..IN_TURN).map(|_| spawn_pass(lock(1))).collect();
    // The times of the scripts with this key; they may be reported late.
    let mut ran = Vec::new();
    while ran.len() < scripts {
        let command = timeout(SOON, commands.next()).await;
        let command = command.context("nobody looks again")?;
        let command = command.context("the monitor ended")?;
        let words: Vec<_> = command.split('"').skip(1).step_by(2).collect();
        if words[0].eq_ignore_ascii_case("evalsha") && words.get(3) == Some(&name) {
            let at = command.split(' ').next().context("no time")?;
            ran.push(at.parse::<f64>()?);
        }
    }
    let took = ran[scripts - 1] - ran[0];
    let pauses = took >= least.as_secs_f64();
    ensure!(pauses, "the crowd storms: {scripts} scripts in {took} s");
    if let Some(channel) = channel {
        redis.until_heard_by(channel, 1).await?;
    }
    held.release().await?;
    for waiter in waiters {
        waiter.await??;
    }
    match channel {
        Some(channel) => redis.until_heard_by(channel, 0).await,
        None => Ok(()),
    }
}

#[apply(test!)]
async fn a_crowd_of_one_process_is_one_contender(redis: &Redis) -> Result {
    // One try, a subscription, and another try.
    const PAUSES: (usize, Duration) = (6, RECHECK_INTERVAL);
    let clients = redis.clients(2).await;
    let n = name();
    let channel = format!("redisson_lock__channel:{{{n}}}");
    let lock = |of: usize| clients[of].lock(&n).boxed();
    ensure_one_contender(redis, &n, Some(&channel), PAUSES, lock).await?;
    let n = name();
    let channel = format!("redisson_rwlock:{{{n}}}");
    let lock = |of: usize| writing(&clients[of], &n).boxed();
    ensure_one_contender(redis, &n, Some(&channel), PAUSES, lock).await?;
    let n = name();
    let channel = format!("redisson_sc:{{{n}}}");
    let lock = |of: usize| permit(&clients[of], &n, 1);
    ensure_one_contender(redis, &n, Some(&channel), PAUSES, lock).await
}

/// A Redlock node gets each try and its release, and then nothing for a fortieth of a second on average.
const TRIES: (usize, Duration) = (80, Duration::from_millis(300));

#[apply(test!)]
async fn a_crowd_of_one_process_is_one_contender_for_a_redlock(five: &Five) -> Result {
    let (name, clients) = (name(), five.clients(2).await);
    let lock = |of: usize| redlock(&clients[of], &name).lease(LONG_LEASE).boxed();
    ensure_one_contender(&five.0[4], &name, None, TRIES, lock).await
}

/// In the twin each waiter asks for itself.
#[apply(test!)]
async fn a_crowd_without_a_line_is_caught(five: &Five) -> Result {
    let storm = async || {
        let (name, clients) = (name(), five.clients(2).await);
        let lock = |of: usize| {
            let lock = redlock(&clients[of], &name).lease(LONG_LEASE);
            fixed_lock(&name, lock, |lock, _, _| async move {
                loop {
                    match lock.try_acquire().await {
                        Err(LockError::Taken { .. } | LockError::Unavailable { .. }) => {
                            tokio::time::sleep(Duration::from_millis(60)).await;
                        }
                        had => return had,
                    }
                }
            })
        };
        ensure_one_contender(&five.0[4], &name, None, TRIES, lock).await
    };
    caught(in_some_try(storm).await, "the crowd storms")
}

/// The delay of each answer: in sequence, all answers together exceed the wait.
const REPLY_DELAY: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_secs(4);

/// A crowd waits in one line and enters when `release` lets it, except those for whom there is no place.
async fn go_in_together(
    redis: &Redis,
    channel: &str,
    [waiters, outside]: [usize; 2],
    lock: impl Fn(&RedisClient) -> AnyLock,
    release: impl Future<Output = Answer>,
) -> Result {
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let waiting = (0..waiters).map(|_| {
        let lock = lock(&process);
        tokio::spawn(async move { lock.acquire(WAIT).await })
    });
    let waiting: Vec<_> = waiting.collect();
    redis.until_heard_by(channel, 1).await?;
    mute.delay(REPLY_DELAY);
    release.await?;
    let (mut inside, mut late) = (Vec::new(), 0);
    for waiter in waiting {
        match waiter.await? {
            Ok(guard) => inside.push(guard),
            Err(LockError::Taken { .. }) => late += 1,
            Err(other) => return Err(other.into()),
        }
    }
    ensure_equal("those for whom there is no place", late, outside)?;
    mute.delay(Duration::ZERO);
    try_join_all(inside.into_iter().map(Guard::release)).await?;
    Ok(())
}

#[apply(test!)]
async fn readers_that_waited_for_a_writer_go_in_together(redis: &Redis) -> Result {
    let (name, other) = (name(), redis.client().await);
    let channel = format!("redisson_rwlock:{{{name}}}");
    let writer = take(&writing(&other, &name)).await?;
    let lock = |process: &RedisClient| reading(process, &name).boxed();
    go_in_together(redis, &channel, [CROWD, 0], lock, writer.release()).await?;
    redis.no_key_left(&name).await
}

#[apply(test!)]
async fn those_for_whom_there_are_permits_take_them_together(redis: &Redis) -> Result {
    const PERMITS: u32 = CROWD as u32;
    let (name, other) = (name(), redis.client().await);
    let channel = format!("redisson_sc:{{{name}}}");
    let semaphore = other.semaphore(&name).initially(PERMITS);
    let all = semaphore.acquire(PERMITS, SOON).await?;
    let lock = |process: &RedisClient| permit(process, &name, PERMITS);
    go_in_together(redis, &channel, [CROWD + 1, 1], lock, all.release()).await?;
    let free = semaphore.available_permits().await?;
    ensure_equal("permits", free, i64::from(PERMITS))
}
