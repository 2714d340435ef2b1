//! The global ids of [002] at midnight, at the end of the count, and with clocks that disagree. That 300 tasks get each once and in order
//! is lesson 002.ids.

use crate::support::*;
use futures::future::try_join_all;
use oversell::{
    ctx::Ctx,
    error::Error,
    seckill::id_worker::{Id, next_ids_at},
};
use std::{collections::HashSet, ops::RangeInclusive, sync::Arc};

type Ids = RangeInclusive<i64>;

/// 2026-03-01T00:00:00Z.
const MIDNIGHT: i64 = 1_772_323_200;

/// Anybody may ask for any prefix, and each leaves a key: a thousand are begun on a day, and those go on.
#[apply(test!)]
async fn a_thousand_prefixes_are_begun_on_a_day(servers: &Servers) -> Result<()> {
    let (_, prefix) = fresh(servers).await;
    // Its prefixes are counted apart from those of the other tests.
    let ctx = servers.with(|config| config.redis.prefix = format!("{prefix}:"));
    try_join_all((0..1000).map(async |n| take_ids(&ctx, &format!("{prefix}-{n}"), 1, MIDNIGHT).await)).await?;
    let one_more = format!("{prefix}-more");
    ensure_refused(next_ids_at(&ctx, &one_more, 1, MIDNIGHT).await, "1000 prefixes")?;
    let left: bool =
        redis::cmd("EXISTS").arg(ctx.redis_key(&day(&one_more, "2026:03:01"))).query_async(&mut ctx.redis.connection()).await?;
    ensure!(!left, "a refused prefix has left its key");
    take_ids(&ctx, &format!("{prefix}-7"), 1, MIDNIGHT).await?;
    take_ids(&ctx, "order", 1, MIDNIGHT).await?;
    Ok(())
}

/// At midnight UTC the count restarts under a new key.
#[apply(test!)]
async fn at_midnight_the_count_starts_again_and_no_id_comes_twice(servers: &Servers) -> Result<()> {
    let (ctx, prefix) = fresh(servers).await;
    let before = take_ids(&ctx, &prefix, 3, MIDNIGHT - 1).await?;
    let after = take_ids(&ctx, &prefix, 3, MIDNIGHT).await?;
    for (number, at, count, date) in [(*before.end(), MIDNIGHT - 1, 3, "2026:02:28"), (*after.start(), MIDNIGHT, 1, "2026:03:01")]
    {
        let id = Id::from(number);
        let parts = (id.seconds, id.count, id.date.as_str());
        ensure!(parts == (seconds(at), count, date), "{id:?}");
    }
    ensure!(before.end() < after.start(), "the later second has the lesser id");
    Ok(())
}

/// After 2^32 - 1 ids a day has no more: the count never overflows into the seconds.
#[apply(test!)]
async fn a_count_that_is_used_up_is_refused_until_midnight(servers: &Servers) -> Result<()> {
    let (ctx, prefix) = fresh(servers).await;
    let key = day(&prefix, "2026:02:28");
    let almost = redis::cmd("SET").arg(&key).arg(u32::MAX - 1).to_owned();
    almost.exec_async(&mut ctx.redis.connection()).await?;
    let last = take_ids(&ctx, &prefix, 1, MIDNIGHT - 1).await?;
    ensure!(Id::from(*last.end()).count == i64::from(u32::MAX), "the last id of the day is {last:?}");
    for count in [1, 1000] {
        ensure_refused(next_ids_at(&ctx, &prefix, count, MIDNIGHT - 1).await, &key)?;
    }
    take_ids(&ctx, &prefix, 1, MIDNIGHT).await.map(drop)
}

/// With a clock that goes back, on one instance or between two, no id repeats, and one instance never goes back.
#[apply(test!)]
async fn a_clock_that_went_back_gives_no_id_twice(servers: &Servers) -> Result<()> {
    let (ctx, prefix) = fresh(servers).await;
    let mut all = vec![take_ids(&ctx, &prefix, 5, MIDNIGHT + 2).await?];
    // By a little: ids go on from the last second.
    all.push(take_ids(&ctx, &prefix, 5, MIDNIGHT - 2).await?);
    ensure!(all[1].start() == &(all[0].end() + 1), "after {:?} came {:?}", all[0], all[1]);
    // By much: the same, until the clock has caught up.
    for back in [3600, 30 * 86_400] {
        let more = take_ids(&ctx, &prefix, 5, MIDNIGHT - back).await?;
        ensure!(more.start() > all[all.len() - 1].end(), "a clock that went back by {back} s gives {more:?} after {all:?}");
        all.push(more);
    }
    let later = take_ids(&ctx, &prefix, 1, MIDNIGHT + 3).await?;
    ensure!(
        Id::from(*later.end()).seconds == seconds(MIDNIGHT + 3),
        "the clock is there again, and its second is not taken: {later:?}"
    );
    all.push(later);
    // Another instance cannot know. Its ids are smaller: clocks that disagree give no order.
    let behind = servers.with(|_| ());
    all.push(take_ids(&behind, &prefix, 5, MIDNIGHT - 3600).await?);
    ensure!(all[all.len() - 1].end() < all[0].start(), "the clock that is behind has the greater ids");
    // Back over midnight: the old day's count goes on, even within the same second.
    all.push(take_ids(&servers.with(|_| ()), &prefix, 5, MIDNIGHT - 3600).await?);
    match count_doubled(&all.iter().cloned().flatten().collect::<Vec<_>>()) {
        0 => Ok(()),
        doubled => bail!("{doubled} ids twice in {all:?}"),
    }
}

/// A count of a future day is kept until that day; so is that of a day long past.
#[apply(test!)]
async fn a_count_is_kept_until_its_day_is_over(servers: &Servers) -> Result<()> {
    let (ctx, prefix) = fresh(servers).await;
    let now = chrono::Utc::now().timestamp();
    for at in [now - 30 * 86_400, now, now + 30 * 86_400] {
        let id = Id::from(*take_ids(&ctx, &prefix, 1, at).await?.end());
        let key = day(&prefix, &id.date);
        let left: i64 = redis::cmd("TTL").arg(&key).query_async(&mut ctx.redis.connection()).await?;
        let (kept, ahead) = (4 * 86_400, at - now);
        ensure!(left > kept - 60 && left > kept + ahead - 60, "{key} is kept for {left} s");
    }
    Ok(())
}

/// 31 bits of seconds end in 2090; a later id, or one before 2022, would be negative.
#[apply(test!)]
async fn a_clock_that_the_seconds_cannot_tell_is_refused(servers: &Servers) -> Result<()> {
    let (ctx, prefix) = fresh(servers).await;
    let (first, end) = (MIDNIGHT - seconds(MIDNIGHT), MIDNIGHT - seconds(MIDNIGHT) + (1 << 31));
    for beyond in [first - 1, end] {
        ensure_refused(next_ids_at(&ctx, &prefix, 1, beyond).await, "2090")?;
    }
    for within in [first, end - 1] {
        let id = *take_ids(&ctx, &prefix, 1, within).await?.end();
        ensure!(id > 0, "{id} at {within}");
    }
    Ok(())
}

/// Another instance with its own clock and prefix.
async fn fresh(servers: &Servers) -> (Arc<Ctx>, String) {
    (servers.with(|_| ()), format!("test-{}", servers.site().await.id))
}

async fn take_ids(ctx: &Ctx, prefix: &str, count: u32, now: i64) -> Result<Ids> {
    Ok(next_ids_at(ctx, prefix, count, now).await?)
}

fn ensure_refused(given: Result<Ids, Error>, why: &str) -> Result<()> {
    match given {
        Err(Error::NoId(reason)) if reason.contains(why) => Ok(()),
        other => bail!("{other:?}, and not refused for {why}"),
    }
}

fn day(prefix: &str, date: &str) -> String {
    format!("icr:{prefix}:{date}")
}

fn seconds(unix: i64) -> i64 {
    unix - 1_640_995_200
}

fn count_doubled(ids: &[i64]) -> usize {
    ids.len() - ids.iter().collect::<HashSet<_>>().len()
}
