//! What the latch promises, and the twin that misses its opening.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name},
    redis::Redis,
};
use oversell_lock::{LockError, redis::RedisLatch};
use redis::AsyncCommands;
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(200);
const SIX: NonZeroU32 = NonZeroU32::new(6).expect("six");

/// Five of the six.
async fn five_count_down(latch: &RedisLatch) -> Verdict {
    for left in (1..6).rev() {
        let counted = says("count down", latch.count_down().await)?;
        ensure(counted == Some(left), || {
            format!("{counted:?} are left instead of {left}")
        })?;
    }
    Ok(())
}

pub(crate) async fn a_latch_opens_for_all_who_wait_everywhere(redis: Arc<Redis>) -> Verdict {
    let (name, one, two) = (name(), redis.process().await, redis.process().await);
    ensure(
        says("set", one.latch(&name).try_set_count(SIX).await)?,
        || "not set".into(),
    )?;
    ensure(
        !says("set", two.latch(&name).try_set_count(SIX).await)?,
        || "set twice".into(),
    )?;
    let waiters: Vec<_> = (0..200)
        .map(|n| {
            let latch = if n % 2 == 0 {
                one.latch(&name)
            } else {
                two.latch(&name)
            };
            tokio::spawn(async move { latch.wait(SOON).await })
        })
        .collect();
    five_count_down(&one.latch(&name)).await?;
    ensure(
        waiters.iter().all(|w: &JoinHandle<_>| !w.is_finished()),
        || "opened by five".into(),
    )?;
    ensure(
        says("count", two.latch(&name).get_count().await)? == 1,
        || "not one left".into(),
    )?;
    says("count down", two.latch(&name).count_down().await)?;
    for waiter in waiters {
        says("open", waiter.await.map_err(|e| e.to_string())?)?;
    }
    let more = says("count down", one.latch(&name).count_down().await)?;
    ensure(more.is_none(), || {
        format!("an open latch counted to {more:?}")
    })?;
    let (left, opened) = (redis.left(&name).await, format!("{{{name}}}:opened"));
    ensure(left == [opened.as_str()], || format!("left: {left:?}"))?;
    let lives: i64 = redis
        .outsider()
        .await
        .ttl(&opened)
        .await
        .map_err(|e| e.to_string())?;
    ensure((1..=24 * 60 * 60).contains(&lives), || {
        format!("{opened} is to stay for {lives} s")
    })
}

pub(crate) async fn a_wait_for_a_latch_ends(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let latch = process.latch(&name);
    says("one that is not set is open", latch.wait(SHORT).await)?;
    says("set", latch.try_set_count(SIX).await)?;
    let before = redis.left(&name).await;
    match latch.wait(SHORT).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("after the wait: {other:?}")),
    }
    let after = redis.left(&name).await;
    ensure(before == after, || {
        format!("there was {before:?} and is {after:?}")
    })
}

/// The six come and the next class begins in one transaction: no waiter can look in between.
async fn open_and_set_anew(redis: &Redis, name: &str) -> Verdict {
    let script = redis::Script::new(include_str!("../../src/redis/lua/latch_count_down.lua"));
    let mut outsider = redis.outsider().await;
    let load: redis::RedisResult<String> = script.prepare_invoke().load_async(&mut outsider).await;
    load.map_err(|e| e.to_string())?;
    let mut all = redis::pipe();
    all.atomic();
    for _ in 0..6 {
        let channel = format!("redisson_countdownlatch__channel__{{{name}}}");
        all.cmd("EVALSHA")
            .arg(script.get_hash())
            .arg(3)
            .arg(name)
            .arg(format!("{{{name}}}:opened"))
            .arg(channel);
    }
    all.cmd("SET").arg(name).arg(6);
    all.exec_async(&mut outsider)
        .await
        .map_err(|e| e.to_string())
}

async fn subscribed(redis: &Redis, name: &str) -> Verdict {
    let mut outsider = redis.outsider().await;
    for _ in 0..400 {
        let channel = format!("redisson_countdownlatch__channel__{{{name}}}");
        let told: i64 = redis::cmd("PUBLISH")
            .arg(channel)
            .arg(1)
            .query_async(&mut outsider)
            .await
            .map_err(|e| e.to_string())?;
        if told > 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err("nobody waits".into())
}

pub(crate) async fn a_latch_that_is_set_anew_at_once_lets_its_waiters_go(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let latch = process.latch(&name);
    says("set", latch.try_set_count(SIX).await)?;
    let waiter = tokio::spawn({
        let latch = latch.clone();
        async move { latch.wait(SOON).await }
    });
    subscribed(&redis, &name).await?;
    open_and_set_anew(&redis, &name).await?;
    says("open", waiter.await.map_err(|e| e.to_string())?)?;
    ensure(says("count", latch.get_count().await)? == 6, || {
        "the next class's count is not whole".into()
    })
}

/// The twin waits until it sees no count.
pub(crate) async fn a_waiter_that_only_looks_at_the_count_is_caught(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    says("set", process.latch(&name).try_set_count(SIX).await)?;
    open_and_set_anew(&redis, &name).await?;
    let count: Option<i64> = redis
        .outsider()
        .await
        .get(&name)
        .await
        .map_err(|e| e.to_string())?;
    ensure(count == Some(6), || "the twin saw it open".into())
}
