//! `ZkSharedCount`, `ZkAtomicLong` and Curator's `SharedCount`, `DistributedAtomicLong`.

use super::{
    support::{SOON, Verdict, ensure, says, until},
    zk_sections::THREADS,
    zk_sides::ZkSides,
};
use futures::future::{try_join, try_join_all};
use std::sync::Arc;
use tokio::time::timeout;

/// Increments of each thread and of each task.
const EACH: i64 = 50;

/// Increments of all.
const ALL: i64 = 2 * EACH * THREADS as i64;

/// Of more than four bytes.
const BIG: i64 = 1 << 40;

pub(crate) async fn a_count_set_by_one_is_heard_by_the_other(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let count = ours.shared_count(&name, 0);
    java.must("a", format!("count get {name}"), "0").await?;
    let mut heard = says("listen", count.listen().await)?;
    for round in [1, 1_000_000, -2] {
        says("set", count.set(round).await)?;
        let next = java
            .ask("a", format!("count heard {name} {}", SOON.as_millis() / 2))
            .await?;
        ensure(next == round.to_string(), || {
            format!("ours set {round}, and java heard {next}")
        })?;
        java.must("a", format!("count get {name}"), &round.to_string())
            .await?;

        java.ask("a", format!("count set {name} {}", round + 7))
            .await?;
        let next = timeout(SOON, heard.wait_for(|now| now.value == round + 7)).await;
        ensure(next.is_ok_and(|told| told.is_ok()), || {
            format!("java set {}, and ours did not hear", round + 7)
        })?;
        let now = says("get", count.get().await)?;
        ensure(now.value == round + 7, || {
            format!("java set {}, and it is {now:?}", round + 7)
        })?;
        java.must(
            "a",
            format!("count heard {name} {}", SOON.as_millis() / 2),
            &(round + 7).to_string(),
        )
        .await?;
    }
    Ok(())
}

pub(crate) async fn a_stale_count_is_refused_both_ways(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let count = ours.shared_count(&name, 0);
    java.must("a", format!("count see {name}"), "0").await?;
    // Another version of the same number.
    says("set", count.set(0).await)?;
    java.must("a", format!("count tryset {name} 5"), "false")
        .await?;
    let seen = says("get", count.get().await)?;
    ensure(seen.value == 0, || format!("a refused set left {seen:?}"))?;
    until("java may set it", || async {
        java.ask("a", format!("count see {name}")).await.is_ok()
            && java
                .ask("a", format!("count tryset {name} 5"))
                .await
                .is_ok_and(|set| set == "true")
    })
    .await?;
    let latest = match says("try", count.try_set(seen, 6).await)? {
        Err(latest) if latest.value == 5 => latest,
        other => return Err(format!("our stale set came to {other:?}")),
    };
    let set = says("try", count.try_set(latest, 6).await)?;
    ensure(set.is_ok(), || format!("our fresh set came to {set:?}"))?;
    until("java sees it", || async {
        java.ask("a", format!("count get {name}"))
            .await
            .is_ok_and(|now| now == "6")
    })
    .await
}

pub(crate) async fn an_atomic_long_tells_both_the_same(sides: Arc<ZkSides>) -> Verdict {
    let (java, ours) = (&sides.curator, sides.ours().await?);
    // Each side makes one.
    for made_by_java in [true, false] {
        let name = sides.name();
        let number = ours.atomic_long(&name);
        if made_by_java {
            java.must("a", format!("atomic increment {name}"), "true 0 1")
                .await?;
        } else {
            let made = says("increment", number.increment().await)?;
            ensure(
                (made.succeeded, made.before, made.after) == (true, 0, 1),
                || format!("{made:?}"),
            )?;
        }
        java.must("a", format!("atomic get {name}"), "true 1 1")
            .await?;
        let added = says("add", number.add(BIG).await)?;
        ensure(added.before == 1, || {
            format!("java left 1, and ours added to {added:?}")
        })?;
        let now = BIG + 1;
        java.must(
            "a",
            format!("atomic add {name} -2"),
            &format!("true {now} {}", now - 2),
        )
        .await?;
        let now = says("get", number.get().await)?;
        ensure(now == BIG - 1, || format!("{now}"))?;

        java.must(
            "a",
            format!("atomic cas {name} {now} -5"),
            &format!("true {now} -5"),
        )
        .await?;
        let stale = says("compare", number.compare_and_set(now, 9).await)?;
        ensure(!stale.succeeded && stale.before == -5, || {
            format!("ours expected {now}: {stale:?}")
        })?;
        let fresh = says("compare", number.compare_and_set(-5, 9).await)?;
        ensure(fresh.succeeded, || format!("ours expected -5: {fresh:?}"))?;
        let stale = java.ask("a", format!("atomic cas {name} -5 1")).await?;
        ensure(stale.starts_with("false 9 "), || {
            format!("java expected -5: {stale}")
        })?;
        java.must("a", format!("atomic get {name}"), "true 9 9")
            .await?;
    }
    Ok(())
}

/// The number after a crowd of both sides, who made [`ALL`] increments.
async fn crowd<F: Future<Output = Verdict>>(
    sides: &ZkSides,
    name: &str,
    ours: impl Fn() -> F,
) -> Result<i64, String> {
    let java = (0..THREADS).map(async |n| {
        sides
            .curator
            .ask_long(&format!("java{n}"), format!("atomic adds {name} {EACH}"))
            .await
            .map(|_| ())
    });
    let ours = (0..THREADS).map(async |_| {
        for _ in 0..EACH {
            ours().await?;
        }
        Ok(())
    });
    try_join(try_join_all(java), try_join_all(ours)).await?;
    says("get", sides.ours().await?.atomic_long(name).get().await)
}

pub(crate) async fn no_increment_of_either_is_lost(sides: Arc<ZkSides>) -> Verdict {
    let (name, process) = (sides.name(), sides.ours().await?);
    let number = process.atomic_long(&name);
    let now = crowd(&sides, &name, async || {
        let made = says("increment", number.increment().await)?;
        ensure(made.succeeded, || format!("{made:?}"))
    })
    .await?;
    ensure(now == ALL, || format!("{ALL} increments came to {now}"))
}

/// The twin reads, and writes one more whatever has happened meanwhile.
pub(crate) async fn a_side_that_asks_for_no_version_is_caught(sides: Arc<ZkSides>) -> Verdict {
    let (name, outside) = (sides.name(), sides.outside().await);
    says(
        "make",
        sides.ours().await?.atomic_long(&name).force_set(0).await,
    )?;
    let now = crowd(&sides, &name, async || {
        let (bytes, _) = outside.get_data(&name).await.map_err(|e| e.to_string())?;
        let before = i64::from_be_bytes(bytes.try_into().map_err(|_| "8 bytes")?);
        let after = (before + 1).to_be_bytes();
        outside
            .set_data(&name, &after, None)
            .await
            .map(|_| ())
            .map_err(|e| e.to_string())
    })
    .await?;
    ensure(now != ALL, || "the twin was not seen".into())
}
