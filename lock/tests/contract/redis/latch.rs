//! What the latch promises beyond the random programs (`gates.rs`), and the twin that misses its opening.

use crate::support::*;
use std::num::NonZeroU32;

const SIX: NonZeroU32 = NonZeroU32::new(6).expect("six");

/// The key that counts its openings.
fn opened(name: &str) -> String {
    format!("{{{name}}}:opened")
}

fn channel(name: &str) -> String {
    format!("redisson_countdownlatch__channel__{{{name}}}")
}

#[apply(test!)]
async fn an_open_latch_leaves_the_number_of_its_openings_for_a_day(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let latch = process.latch(&name);
    ensure!(latch.try_set_count(SIX).await?, "not set");
    ensure!(!latch.try_set_count(SIX).await?, "set twice");
    for left in (0..6).rev() {
        ensure_equal("left", latch.count_down().await?, Some(left))?;
        ensure_equal("left", latch.get_count().await?, left)?;
    }
    ensure_equal("an open latch", latch.count_down().await?, None)?;
    ensure_equal("the keys", redis.keys(&name).await, [opened(&name)])?;
    let lives: i64 = redis.ask(&["TTL", &opened(&name)]).await?;
    let a_day = (1..=24 * 60 * 60).contains(&lives);
    ensure!(a_day, "it is to stay for {lives} s");
    Ok(())
}

/// The six count down and the latch is set again in one transaction: no waiter can look in between.
async fn open_and_set_again(redis: &Redis, name: &str) -> Result {
    let script = redis::Script::new(concat!(
        include_str!("../../../src/redis/lua/tell.lua"),
        include_str!("../../../src/redis/lua/latch_count_down.lua")
    ));
    let mut outsider = redis.outsider().await;
    script.prepare_invoke().load_async(&mut outsider).await?;
    let (hash, opened, channel) = (script.get_hash(), opened(name), channel(name));
    let count_down = ["EVALSHA", hash, "2", name, &opened, &channel];
    let mut all = vec![&count_down[..]; 6];
    let set = ["SET", name, "6"];
    all.push(&set);
    redis.run(&all).await
}

#[apply(test!)]
async fn a_latch_that_is_set_again_at_once_lets_its_waiters_go(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let latch = process.latch(&name);
    latch.try_set_count(SIX).await?;
    let waiter = tokio::spawn({
        let latch = latch.clone();
        async move { latch.wait(FOR_EVER).await }
    });
    redis.until_heard_by(&channel(&name), 1).await?;
    open_and_set_again(redis, &name).await?;
    waiter.await?.context("open")?;
    ensure_equal("the next class's count", latch.get_count().await?, 6)
}

/// The twin only looks whether there is a count.
#[apply(test!)]
async fn a_waiter_that_only_looks_at_the_count_is_caught(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    process.latch(&name).try_set_count(SIX).await?;
    open_and_set_again(redis, &name).await?;
    let count: i64 = redis.ask(&["GET", &name]).await?;
    ensure_equal("the count that the twin sees", count, 6)
}

/// The counter of openings expires a day after the last one, but not while the latch is closed; without it, a closed
/// latch is still closed.
#[apply(test!)]
async fn a_closed_latch_stays_closed_when_its_openings_are_forgotten(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let latch = process.latch(&name);
    latch.try_set_count(NonZeroU32::MIN).await?;
    latch.count_down().await?;
    latch.try_set_count(SIX).await?;
    let ends: i64 = redis.ask(&["TTL", &opened(&name)]).await?;
    ensure_equal("the end of what counts the openings", ends, -1)?;
    let forgotten = async {
        redis.until_heard_by(&channel(&name), 1).await?;
        redis.delete(&opened(&name)).await;
        redis.ask::<i64>(&["PUBLISH", &channel(&name), "1"]).await
    };
    let waited = async { anyhow::Ok(latch.wait(Duration::from_secs(2)).await) };
    let (waited, _) = futures::try_join!(waited, forgotten)?;
    ensure_timed_out("a closed latch", waited)
}

#[apply(test!)]
async fn a_look_at_a_latch_without_a_wait_is_one_request(redis: &Redis) -> Result {
    let name = name();
    let mute = Mute::to(redis.host())?;
    let latch = redis.client_at(&mute.address()).await.latch(&name);
    latch.try_set_count(SIX).await?;
    let before = mute.requests();
    ensure_timed_out("a closed latch", latch.wait(Duration::ZERO).await)?;
    ensure_equal("requests", mute.requests() - before, 1)
}
