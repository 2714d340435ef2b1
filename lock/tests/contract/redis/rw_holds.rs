//! What a read-write lock writes in Redis: each hold as a Java process expects it, with its own end. Renewals of
//! readers are checked by `programs.rs`.

use crate::{
    redis::read_write::{ensure_still_taken, owner, reading, writing},
    support::*,
};
use futures::StreamExt;
use oversell_lock::redis::{Lease, RedisClient, RedisReadLock, RedisWriteLock};
use std::{collections::BTreeMap, ops::RangeInclusive};

const LONG_LEASE: Lease = Lease::Fixed(SOON);
const LONGER: Lease = Lease::Fixed(Duration::from_secs(60));

/// The hash, sorted, as `field=value`.
async fn fields(redis: &Redis, name: &str) -> Result<Vec<String>> {
    let all: BTreeMap<String, String> = redis.ask(&["HGETALL", name]).await?;
    Ok(all.iter().map(|(field, value)| format!("{field}={value}")).collect())
}

async fn pttl(redis: &Redis, key: &str) -> Result<i64> {
    redis.ask(&["PTTL", key]).await
}

pub(crate) fn hold(name: &str, field: &str, at: u32) -> String {
    format!("{{{name}}}:{field}:rwlock_timeout:{at}")
}

fn sorted<const N: usize>(mut words: [&str; N]) -> [&str; N] {
    words.sort_unstable();
    words
}

/// The rest of the longest hold, in ms.
async fn lasts(redis: &Redis, name: &str, ms: RangeInclusive<i64>) -> Result {
    let lasts = pttl(redis, name).await?;
    ensure!(ms.contains(&lasts), "the longest hold lasts {lasts} ms");
    Ok(())
}

/// Both halves, for one owner.
fn halves(process: &RedisClient, name: &str, owner: Owner) -> (RedisReadLock, RedisWriteLock) {
    let (read, write) = (reading(process, name), writing(process, name));
    (read.owner(owner), write.owner(owner))
}

/// The messages of the lock's channel from now on.
async fn hear(redis: &Redis, name: &str) -> Result<impl futures::Stream<Item = String> + Unpin> {
    let channel = format!("redisson_rwlock:{{{name}}}");
    let heard = redis.listener(&channel).await?;
    let said = |message: redis::Msg| message.get_payload().unwrap_or_default();
    Ok(heard.into_on_message().map(said).boxed())
}

/// The identities in the hash, without `:write`.
async fn ids(redis: &Redis, name: &str) -> Result<Vec<String>> {
    let fields = fields(redis, name).await?;
    let holds = fields.iter().filter(|field| !field.starts_with("mode="));
    Ok(holds.map(|field| field.trim_end_matches("=1").replace(":write", "")).collect())
}

#[apply(test!)]
async fn holds_are_written_as_a_java_process_expects(redis: &Redis) -> Result {
    let (name, process, owner, other) = (name(), redis.client().await, owner(), owner());
    let heard = hear(redis, &name).await?;
    let (read, write) = halves(&process, &name, owner);
    let beside = reading(&process, &name).owner(other);

    let (first, again, third) = (take(&read).await?, take(&read).await?, take(&beside).await?);
    let ids_now = ids(redis, &name).await?;
    ensure!(ids_now.len() == 2, "two owners' holds are {ids_now:?}");
    let [one, other] = [0, 1].map(|n| format!("{}=1", ids_now[n]));
    let expected = sorted([&one, &other, "mode=read"]);
    ensure_equal("two read holds", fields(redis, &name).await?, expected)?;
    let [one, other] = [0, 1].map(|n| hold(&name, &ids_now[n], 1));
    let expected = sorted([&name, &one, &other]);
    ensure_equal("their keys", redis.keys(&name).await, expected)?;
    let value: String = redis.ask(&["GET", &one]).await?;
    ensure_equal("a read hold's string", value, "1")?;
    for guard in [first, third, again] {
        guard.release().await?;
    }
    ensure_none(redis.keys(&name).await)?;

    let (first, again) = (take(&write).await?, take(&write).await?);
    let writer = ids(redis, &name).await?.concat();
    ensure_equal("a write hold's keys", redis.keys(&name).await, [&*name])?;
    let expected = [&format!("{writer}:write=1"), "mode=write"];
    ensure_equal("one write hold", fields(redis, &name).await?, expected)?;
    let below = take(&read).await?;
    let found = fields(redis, &name).await?;
    let both = found.len() == 3 && found[2] == "mode=write";
    ensure!(both, "a write and a read hold: {found:?}");
    // The writer continues as a reader, and lets other readers in.
    for guard in [again, first] {
        guard.release().await?;
    }
    let found = fields(redis, &name).await?;
    let reads = found.len() == 2 && found[1] == "mode=read";
    ensure!(reads, "a read hold: {found:?}");
    below.release().await?;
    ensure_none(redis.keys(&name).await)?;
    let heard: Vec<_> = heard.take(3).collect().await;
    ensure_equal("what the channel said", heard, ["0", "1", "0"])
}

pub(crate) const JAVA: &str = "0b5c3b9e-3b0f-4a35-9c5c-2f7a3f0d1e11:61";

#[apply(test!)]
async fn each_read_hold_expires_by_itself(redis: &Redis) -> Result {
    let (name, process, owner) = (name(), redis.client().await, owner());
    let read = reading(&process, &name).owner(owner);
    let longer = take(&reading(&process, &name).lease(LONGER)).await?;
    let long = take(&reading(&process, &name).lease(LONG_LEASE)).await?;
    // Much shorter than the Java lease, but long enough to be seen.
    let short = Lease::Fixed(Duration::from_secs(3));
    let brief = take(&read.clone().lease(short)).await?;
    let mut own = None;
    for key in redis.keys(&name).await {
        if (1..=3_000).contains(&pttl(redis, &key).await?) {
            own = Some(key);
        }
    }
    let own = own.context("no hold lasts 3 s")?;
    lasts(redis, &name, 20_001..=i64::MAX).await?;
    brief.lost().await;
    let has_gone = async || !redis.keys(&name).await.contains(&own);
    until("the short hold has gone", has_gone).await?;
    ensure_still_taken("a writer beside the others", &writing(&process, &name)).await?;
    longer.release().await?;
    lasts(redis, &name, 1..=20_000).await?;
    ensure_lost("a hold that had ended", brief.release().await)?;
    ensure_still_taken("a writer beside the last", &writing(&process, &name)).await?;
    long.release().await?;
    ensure_none(redis.keys(&name).await)
}
