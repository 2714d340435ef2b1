//! Readers together, writers alone. The write half by itself is under `exclusion.rs`, as every lock is.

use super::support::*;

/// Both sides read together, and the writers of both wait for the last reader, whoever it is.
#[apply(clause!)]
#[over(readers, Both)]
async fn readers_of_both_are_together(pair: Pair) -> Result<()> {
    let [mut writer, mut other] = [pair.first(), pair.second()];
    let [mut early, mut last] = [
        pair.first().with(Kind::Read),
        pair.second().with(Kind::Read),
    ];
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
        ensure!(
            holders.len() == 3 && holders["mode"] == "read",
            "{holders:?}"
        );
        let theirs = pair.theirs();
        theirs.with(Kind::Read).says("locked", true).await?;
        theirs.says("locked", false).await?;
    }
    let mut waiting = writer.waits().await?;
    early.release().await?;
    last.sees(1).await?;
    waiting.sleeps().await?;
    pair.lets_in(&mut last, [waiting]).await?;
    refused([&mut early, &mut last]).await?;
    writer.release().await
}

/// A writer keeps the readers of the other side out, and its release lets all of them in together.
#[apply(clause!)]
#[over(readers, Both)]
async fn a_writer_keeps_the_readers_of_the_other_out(pair: Pair) -> Result<()> {
    let [mut writer, mut other] = [pair.first(), pair.second()];
    let [mut one, mut two] = [
        pair.second().with(Kind::Read),
        pair.second().with(Kind::Read),
    ];
    writer.take().await?;
    refused([&mut one, &mut other]).await?;
    let mut one_waits = one.waits().await?;
    let mut two_waits = two.waits().await?;
    one_waits.sleeps().await?;
    two_waits.sleeps().await?;
    pair.lets_in(&mut writer, [one_waits, two_waits]).await?;
    refused([&mut writer]).await?;
    one.release().await?;
    refused([&mut writer]).await?;
    two.release().await?;
    writer.pass().await
}

/// A reader that comes after a waiting writer waits behind it, whoever is inside.
#[apply(clause!)]
#[over(curators_readers, Both)]
async fn a_reader_stands_behind_a_writer_that_waits(pair: Pair) -> Result<()> {
    let [mut writer, mut reader] = [pair.first(), pair.first().with(Kind::Read)];
    let mut late = pair.second().with(Kind::Read);
    reader.take().await?;
    let mut writer_waits = writer.waits().await?;
    let mut late_waits = late.waits().await?;
    late_waits.sleeps().await?;
    writer_waits.sleeps().await?;
    pair.lets_in(&mut reader, [writer_waits]).await?;
    late_waits.sleeps().await?;
    pair.lets_in(&mut writer, [late_waits]).await?;
    late.release().await
}

/// A writer that also reads, and then gives up writing, lets the readers of the other side in and keeps its writers out.
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
    waiting.sleeps().await?;
    pair.lets_in(&mut writing, [waiting]).await?;
    if let Server::Redis(redis) = pair.server {
        let holders = redis.holders(&pair.name).await?;
        ensure!(
            holders["mode"] == "read",
            "it has not stepped down: {holders:?}"
        );
    }
    refused([&mut writer]).await?;
    reader.release().await?;
    refused([&mut writer]).await?;
    let mut waiting = writer.waits().await?;
    waiting.sleeps().await?;
    pair.lets_in(&mut reading, [waiting]).await?;
    writer.release().await
}
