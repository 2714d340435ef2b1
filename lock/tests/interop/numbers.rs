//! `ZkSharedCount`, `ZkAtomicLong` and Curator's `SharedCount`, `DistributedAtomicLong`.

use super::support::*;
use futures::future::{try_join, try_join_all};
use oversell_lock::zk::ZkClient;
use std::fmt::Display;
use tokio::time::timeout;

/// Curator's threads, and our tasks.
const THREADS: i64 = 4;
/// Increments of each.
const EACH: i64 = 50;
/// Increments of all.
const ALL: i64 = 2 * EACH * THREADS;
/// A number of more than four bytes.
const BIG: i64 = 1 << 40;

impl Pair {
    fn numbers(&self) -> (&str, &ZkClient) {
        match &self.processes[0] {
            Process::ZooKeeper(ours) => (&self.name, ours),
            _ => unreachable!("a clause of ZooKeeper"),
        }
    }

    /// Curator's answer to `count VERB NAME ARGUMENT…` or `atomic …`; all come from one thread.
    async fn java(&self, verb: &str, arguments: impl Display) -> Result<String> {
        self.peer.ask("numbers", format!("{verb} {} {arguments}", self.name)).await
    }

    async fn java_says(&self, verb: &str, arguments: impl Display, expected: impl Display) -> Result<()> {
        let command = format!("{verb} {} {arguments}", self.name);
        self.peer.must("numbers", command, expected).await
    }
}

#[apply(clause!)]
#[over(curator, Once)]
async fn a_count_set_by_one_is_heard_by_the_other(pair: Pair) -> Result<()> {
    let (name, ours) = pair.numbers();
    let (count, patience) = (ours.shared_count(name, 0), SOON.as_millis() / 2);
    pair.java_says("count get", "", 0).await?;
    let mut heard = count.listen().await?;
    for round in [1, 1_000_000, -2] {
        count.set(round).await?;
        pair.java_says("count heard", patience, round).await?;
        pair.java_says("count get", "", round).await?;

        let next = round + 7;
        pair.java("count set", next).await?;
        timeout(SOON, heard.wait_for(|now| now.value == next))
            .await
            .with_context(|| format!("java set {next}, and ours did not hear"))??;
        let now = count.get().await?;
        ensure!(now.value == next, "java set {next}, and it is {now:?}");
        pair.java_says("count heard", patience, next).await?;
    }
    Ok(())
}

#[apply(clause!)]
#[over(curator, Once)]
async fn a_stale_count_is_refused_both_ways(pair: Pair) -> Result<()> {
    let (name, ours) = pair.numbers();
    let count = ours.shared_count(name, 0);
    pair.java_says("count see", "", 0).await?;
    // Another version of the same number.
    count.set(0).await?;
    pair.java_says("count tryset", 5, false).await?;
    let seen = count.get().await?;
    ensure!(seen.value == 0, "a refused set left {seen:?}");
    until("java may set it", async || {
        pair.java("count see", "").await?;
        Ok(pair.java("count tryset", 5).await? == "true")
    })
    .await?;
    let latest = match count.try_set(seen, 6).await? {
        Err(latest) if latest.value == 5 => latest,
        other => bail!("our stale set came to {other:?}"),
    };
    let set = count.try_set(latest, 6).await?;
    ensure!(set.is_ok(), "our fresh set came to {set:?}");
    until("java sees it", async || Ok(pair.java("count get", "").await? == "6")).await
}

/// Either side may create the node.
#[apply(clause!)]
#[over(curator, Both)]
async fn an_atomic_long_tells_both_the_same(pair: Pair) -> Result<()> {
    let (name, ours) = pair.numbers();
    let number = ours.atomic_long(name);
    if pair.ours_first {
        let made = number.increment().await?;
        ensure!((made.succeeded, made.before, made.after) == (true, 0, 1), "{made:?}");
    } else {
        pair.java_says("atomic increment", "", "true 0 1").await?;
    }
    pair.java_says("atomic get", "", "true 1 1").await?;
    let added = number.add(BIG).await?;
    ensure!(added.before == 1, "it was 1, and ours added to {added:?}");
    let sum = BIG + 1;
    pair.java_says("atomic add", -2, format!("true {sum} {}", sum - 2)).await?;
    let now = number.get().await?;
    ensure!(now == sum - 2, "{now}");

    pair.java_says("atomic cas", format!("{now} -5"), format!("true {now} -5")).await?;
    let stale = number.compare_and_set(now, 9).await?;
    ensure!(!stale.succeeded && stale.before == -5, "ours expected {now}: {stale:?}");
    let fresh = number.compare_and_set(-5, 9).await?;
    ensure!(fresh.succeeded, "ours expected -5: {fresh:?}");
    let stale = pair.java("atomic cas", "-5 1").await?;
    ensure!(stale.starts_with("false 9 "), "java expected -5: {stale}");
    pair.java_says("atomic get", "", "true 9 9").await
}

/// The number after both sides made [`ALL`] increments.
async fn crowd(pair: &Pair, ours: impl AsyncFn() -> Result<()>) -> Result<i64> {
    let threads = (0..THREADS).map(async |_| {
        let command = format!("atomic adds {} {EACH}", pair.name);
        pair.peer.count(&pair.peer.new_thread(), command).await
    });
    let tasks = (0..THREADS).map(async |_| {
        for _ in 0..EACH {
            ours().await?;
        }
        Ok(())
    });
    try_join(try_join_all(threads), try_join_all(tasks)).await?;
    let (name, process) = pair.numbers();
    Ok(process.atomic_long(name).get().await?)
}

#[apply(clause!)]
#[over(curator, Once)]
async fn no_increment_of_either_is_lost(pair: Pair) -> Result<()> {
    let (name, process) = pair.numbers();
    let number = process.atomic_long(name);
    let now = crowd(&pair, async || {
        let made = number.increment().await?;
        ensure!(made.succeeded, "{made:?}");
        Ok(())
    })
    .await?;
    ensure!(now == ALL, "{ALL} increments came to {now}");
    Ok(())
}

/// The twin reads and writes unconditionally.
#[apply(clause!)]
#[over(curator, Once)]
async fn a_side_that_asks_for_no_version_is_caught(pair: Pair) -> Result<()> {
    let (name, process) = pair.numbers();
    let outside = process.session()?;
    process.atomic_long(name).force_set(0).await?;
    let now = crowd(&pair, async || {
        let (bytes, _) = outside.get_data(name).await?;
        let before = i64::from_be_bytes(bytes[..].try_into()?);
        outside.set_data(name, &(before + 1).to_be_bytes(), None).await?;
        Ok(())
    })
    .await?;
    ensure!(now != ALL, "the twin was not seen");
    Ok(())
}
