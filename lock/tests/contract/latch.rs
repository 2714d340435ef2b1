//! What the latch promises, and the twin that misses its opening.

use super::{family::Server, redis::Redis, support::*};
use oversell_lock::redis::RedisLatch;
use redis::AsyncCommands;
use std::{num::NonZeroU32, time::Duration};
use tokio::task::JoinHandle;

const SHORT: Duration = Duration::from_millis(200);
const SIX: NonZeroU32 = NonZeroU32::new(6).expect("six");

/// Five of the six.
async fn five_count_down(latch: &RedisLatch) -> Result<()> {
    for left in (1..6).rev() {
        let counted = latch.count_down().await?;
        ensure!(
            counted == Some(left),
            "{counted:?} are left instead of {left}"
        );
    }
    Ok(())
}

#[apply(test!)]
async fn a_latch_opens_for_all_waiters_everywhere(redis: &Redis) -> Result<()> {
    let (name, one, two) = (name(), redis.client().await, redis.client().await);
    ensure!(one.latch(&name).try_set_count(SIX).await?, "not set");
    ensure!(!two.latch(&name).try_set_count(SIX).await?, "set twice");
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
    ensure!(
        waiters.iter().all(|w: &JoinHandle<_>| !w.is_finished()),
        "opened by five"
    );
    ensure!(two.latch(&name).get_count().await? == 1, "not one left");
    two.latch(&name).count_down().await?;
    for waiter in waiters {
        waiter.await?.context("open")?;
    }
    let more = one.latch(&name).count_down().await?;
    ensure!(more.is_none(), "an open latch counted to {more:?}");
    let (left, opened) = (redis.keys(&name).await, format!("{{{name}}}:opened"));
    ensure!(left == [opened.as_str()], "left: {left:?}");
    let lives: i64 = redis.outsider().await.ttl(&opened).await?;
    ensure!(
        (1..=24 * 60 * 60).contains(&lives),
        "{opened} is to stay for {lives} s"
    );
    Ok(())
}

#[apply(test!)]
async fn a_wait_for_a_latch_ends(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let latch = process.latch(&name);
    latch.wait(SHORT).await?;
    latch.try_set_count(SIX).await?;
    let before = redis.keys(&name).await;
    taken("after the wait", latch.wait(SHORT).await)?;
    let after = redis.keys(&name).await;
    ensure!(before == after, "there was {before:?} and is {after:?}");
    Ok(())
}

/// The six come and the next class begins in one transaction: no waiter can look in between.
async fn open_and_set_again(redis: &Redis, name: &str) -> Result<()> {
    let script = redis::Script::new(include_str!("../../src/redis/lua/latch_count_down.lua"));
    let mut outsider = redis.outsider().await;
    let load: redis::RedisResult<String> = script.prepare_invoke().load_async(&mut outsider).await;
    load?;
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
    Ok(all.exec_async(&mut outsider).await?)
}

async fn subscribed(redis: &Redis, name: &str) -> Result<()> {
    let mut outsider = redis.outsider().await;
    for _ in 0..400 {
        let channel = format!("redisson_countdownlatch__channel__{{{name}}}");
        let told: i64 = redis::cmd("PUBLISH")
            .arg(channel)
            .arg(1)
            .query_async(&mut outsider)
            .await?;
        if told > 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bail!("nobody waits")
}

#[apply(test!)]
async fn a_latch_that_is_set_again_at_once_lets_its_waiters_go(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let latch = process.latch(&name);
    latch.try_set_count(SIX).await?;
    let waiter = tokio::spawn({
        let latch = latch.clone();
        async move { latch.wait(SOON).await }
    });
    subscribed(redis, &name).await?;
    open_and_set_again(redis, &name).await?;
    waiter.await?.context("open")?;
    ensure!(
        latch.get_count().await? == 6,
        "the next class's count is not whole"
    );
    Ok(())
}

/// The twin waits until it sees no count.
#[apply(test!)]
async fn a_waiter_that_only_looks_at_the_count_is_caught(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    process.latch(&name).try_set_count(SIX).await?;
    open_and_set_again(redis, &name).await?;
    let count: Option<i64> = redis.outsider().await.get(&name).await?;
    ensure!(count == Some(6), "the twin saw it open");
    Ok(())
}
