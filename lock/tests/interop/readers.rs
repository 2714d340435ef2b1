//! Readers together, writers alone. The write half alone is in `exclusion.rs`, as every lock is.

use super::support::*;
use oversell_lock::LockError;
use std::time::Duration;

/// Both sides read together, and both sides' writers wait for the last reader of either.
#[apply(clause!)]
#[over(readers, Both)]
async fn readers_of_both_are_together(pair: Pair) -> Result<()> {
    let [mut writer, mut other] = [pair.first(), pair.second()];
    let [mut early, mut last] = [pair.first().with(Kind::Read), pair.second().with(Kind::Read)];
    early.take().await?;
    last.take().await?;
    for side in [pair.first(), pair.second()] {
        side.with(Kind::Read).pass().await?;
    }
    refused([&mut writer, &mut other]).await?;
    for reader in [&early, &last] {
        pair.shows(reader, 1).await?;
    }
    if let Server::Redis(redis) = pair.server {
        let holders = redis.holders(&pair.name).await?;
        ensure!(holders.len() == 3 && holders["mode"] == "read", "{holders:?}");
        let theirs = pair.theirs();
        theirs.with(Kind::Read).ensure_says("locked", true).await?;
        theirs.ensure_says("locked", false).await?;
    }
    let mut waiting = writer.waits().await?;
    early.release().await?;
    last.ensure_sees(1).await?;
    waiting.ensure_sleeping().await?;
    pair.lets_in(&mut last, [waiting]).await?;
    refused([&mut early, &mut last]).await?;
    writer.release().await
}

/// A writer excludes the other side's readers, and its release lets all of them in together.
#[apply(clause!)]
#[over(readers, Both)]
async fn a_writer_keeps_the_readers_of_the_other_out(pair: Pair) -> Result<()> {
    let [mut writer, mut other] = [pair.first(), pair.second()];
    let [mut one, mut two] = [pair.second().with(Kind::Read), pair.second().with(Kind::Read)];
    writer.take().await?;
    refused([&mut one, &mut other]).await?;
    let mut one_waits = one.waits().await?;
    let mut two_waits = two.waits().await?;
    one_waits.ensure_sleeping().await?;
    two_waits.ensure_sleeping().await?;
    pair.lets_in(&mut writer, [one_waits, two_waits]).await?;
    refused([&mut writer]).await?;
    one.release().await?;
    refused([&mut writer]).await?;
    two.release().await?;
    writer.pass().await
}

/// A reader behind a waiting writer waits, whoever is inside.
#[apply(clause!)]
#[over(curators_readers, Both)]
async fn a_reader_stands_behind_a_writer_that_waits(pair: Pair) -> Result<()> {
    let [mut writer, mut reader] = [pair.first(), pair.first().with(Kind::Read)];
    let mut late = pair.second().with(Kind::Read);
    reader.take().await?;
    let mut writer_waits = writer.waits().await?;
    let mut late_waits = late.waits().await?;
    late_waits.ensure_sleeping().await?;
    writer_waits.ensure_sleeping().await?;
    pair.lets_in(&mut reader, [writer_waits]).await?;
    late_waits.ensure_sleeping().await?;
    pair.lets_in(&mut writer, [late_waits]).await?;
    late.release().await
}

/// A writer that also reads and then releases its write hold admits the other side's readers and excludes its writers.
#[apply(clause!)]
#[over(readers, Both)]
async fn a_writer_that_steps_down_lets_readers_of_the_other_in(pair: Pair) -> Result<()> {
    let mut writing = pair.first();
    let mut reading = writing.with(Kind::Read);
    let [mut reader, mut writer] = [pair.second().with(Kind::Read), pair.second()];
    writing.take().await?;
    reading.take().await?;
    refused([&mut reader]).await?;
    let mut waiting = reader.waits().await?;
    waiting.ensure_sleeping().await?;
    pair.lets_in(&mut writing, [waiting]).await?;
    if let Server::Redis(redis) = pair.server {
        let holders = redis.holders(&pair.name).await?;
        ensure!(holders["mode"] == "read", "it has not stepped down: {holders:?}");
    }
    refused([&mut writer]).await?;
    reader.release().await?;
    refused([&mut writer]).await?;
    let mut waiting = writer.waits().await?;
    waiting.ensure_sleeping().await?;
    pair.lets_in(&mut reading, [waiting]).await?;
    writer.release().await
}

/// The watchdog lease of one Java process; ours is nine times longer.
const JAVA: Duration = Duration::from_secs(2);

/// Java reads beside ours, and its watchdog shortens the lease of all readers. It is then killed: a writer must not be
/// beside our reader, which may have reported its loss.
async fn nobody_writes_beside_our_reader(pair: &Pair, java: Option<Duration>) -> Result<()> {
    let (redis, name) = (pair.redis(), pair.server.name());
    // It is up before we read, so that our lease is not renewed again while its own runs out.
    let peer = pair.stage.start(pair.peer.library, "short", Some(JAVA)).await?;
    peer.ask("reads", format!("locked read {name}")).await?;
    let lock = redis.reader(JAVA * 9, java)?.rw_lock(&name);
    let reader = lock.read().acquire(SOON).await?;
    peer.ask("reads", format!("acquire read {name}")).await?;
    let is_short = async || Ok(redis.lease(&name).await? <= JAVA.as_millis() as i64);
    until("its watchdog has renewed", is_short).await?;
    drop(peer);
    let writer = redis.reader(JAVA, Some(JAVA))?.rw_lock(&name).write();
    match writer.acquire(JAVA * 2).await {
        Ok(writer) => {
            ensure!(reader.is_lost(), "a writer beside a reader");
            writer.release().await?;
        }
        Err(LockError::Taken { .. }) => reader.release().await?,
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

#[apply(clause!)]
#[over(redissons_readers, Once)]
async fn a_java_watchdog_that_is_shorter_lets_nobody_in(pair: Pair) -> Result<()> {
    nobody_writes_beside_our_reader(&pair, Some(JAVA)).await
}

/// The twin does not know the Java lease.
#[apply(clause!)]
#[over(redissons_readers, Once)]
async fn one_that_takes_a_java_watchdog_for_longer_is_caught(pair: Pair) -> Result<()> {
    caught(nobody_writes_beside_our_reader(&pair, None).await, "a writer beside a reader")
}
