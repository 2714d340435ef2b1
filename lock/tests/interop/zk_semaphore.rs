//! `ZkSemaphore` and Curator's `InterProcessSemaphoreV2`.

use super::{
    support::{SOON, Verdict, ensure, is_taken, says},
    zk_sections::{Outcome, THREADS, Theirs, crowd},
    zk_sides::{ZkSides, ours_sleeps_on, they_sleep_on},
};
use oversell_lock::{Guard, LockError, zk::ZkSemaphore};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

const MAX: u32 = 3;
const SHORT: Duration = Duration::from_millis(200);

fn waiting(semaphore: &ZkSemaphore, leases: u32) -> JoinHandle<Result<Vec<Guard>, LockError>> {
    let semaphore = semaphore.clone();
    tokio::spawn(async move { semaphore.acquire(leases, SOON).await })
}

async fn give_back(guards: Vec<Guard>) -> Verdict {
    for guard in guards {
        says("release", guard.release().await)?;
    }
    Ok(())
}

pub(crate) async fn leases_are_seen_by_both(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let semaphore = ours.semaphore(&name, MAX);
    java.must("a", format!("lease try {name} {MAX} 2 5000"), "true")
        .await?;
    is_taken(semaphore.try_acquire(2).await)?;
    let one = says("the third", semaphore.try_acquire(1).await)?;
    java.must(
        "b",
        format!("lease try {name} {MAX} 1 {}", SHORT.as_millis()),
        "false",
    )
    .await?;
    let seen = java
        .ask("b", format!("lease participants {name} {MAX}"))
        .await?;
    let (mut seen, mut there): (Vec<&str>, _) = (
        seen.split(' ').collect(),
        sides.children(&format!("{name}/leases")).await,
    );
    seen.sort_unstable();
    there.sort_unstable();
    ensure(seen.len() == 3 && seen == there, || {
        format!("java sees {seen:?}, and there are {there:?}")
    })?;
    give_back(one).await?;
    java.ask("a", format!("lease return {name}")).await?;
    let all = says("all", semaphore.try_acquire(MAX).await)?;
    java.must("b", format!("lease try {name} {MAX} 1 0"), "false")
        .await?;
    give_back(all).await?;
    java.must("b", format!("lease try {name} {MAX} {MAX} 5000"), "true")
        .await?;
    is_taken(semaphore.try_acquire(1).await)?;
    java.ask("b", format!("lease return {name}")).await?;
    sides.until_there(&format!("{name}/leases"), 0).await
}

pub(crate) async fn each_waits_for_the_leases_of_the_other(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let (semaphore, leases) = (ours.semaphore(&name, MAX), format!("{name}/leases"));
    java.ask("a", format!("lease take {name} {MAX} 1")).await?;
    java.ask("b", format!("lease take {name} {MAX} 2")).await?;
    let waiter = waiting(&semaphore, 2);
    sides.until_there(&leases, 5).await?;
    java.ask("a", format!("lease return {name}")).await?;
    sides.until_there(&leases, 4).await?;
    ours_sleeps_on(&ours, &waiter).await?;
    java.ask("b", format!("lease return {name}")).await?;
    let two = says("two", waiter.await.map_err(|e| e.to_string())?)?;

    let one = says("the third", semaphore.try_acquire(1).await)?;
    // Curator makes its second node once its first is a lease.
    let mut waiter = java.tell("waiter", format!("lease take {name} {MAX} 2"));
    sides.until_there(&leases, 4).await?;
    they_sleep_on(java, &mut waiter).await?;
    give_back(one).await?;
    sides.until_there(&leases, 4).await?;
    they_sleep_on(java, &mut waiter).await?;
    give_back(two).await?;
    waiter.answer().await?;
    sides.until_there(&leases, 2).await?;
    is_taken(semaphore.try_acquire(2).await)?;
    java.ask("waiter", format!("lease return {name}")).await?;
    sides.until_there(&leases, 0).await
}

/// Who does not wait long enough leaves no node behind, which would be a lease for ever.
pub(crate) async fn a_wait_that_ends_leaves_nothing(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let (semaphore, leases) = (ours.semaphore(&name, MAX), format!("{name}/leases"));
    java.ask("a", format!("lease take {name} {MAX} 2")).await?;
    is_taken(semaphore.acquire(2, SHORT).await)?;
    sides.until_there(&leases, 2).await?;
    java.ask("a", format!("lease return {name}")).await?;
    let two = says("free", semaphore.try_acquire(2).await)?;
    java.must(
        "b",
        format!("lease try {name} {MAX} 2 {}", SHORT.as_millis()),
        "false",
    )
    .await?;
    sides.until_there(&leases, 2).await?;
    give_back(two).await?;
    sides.until_there(&leases, 0).await?;
    sides.until_there(&format!("{name}/locks"), 0).await
}

/// As many may be inside at once: few, for the sections are short beside what it takes to get in.
const INSIDE: u32 = 2;

fn curator(sides: &ZkSides, each: i64) -> [Theirs<'_>; 1] {
    [Theirs {
        peer: &sides.curator,
        kind: "leases",
        threads: THREADS,
        each,
        leases: Some(INSIDE),
    }]
}

pub(crate) async fn no_more_are_inside_than_there_are_leases(sides: Arc<ZkSides>) -> Verdict {
    let (name, processes) = (sides.name(), [sides.ours().await?, sides.ours().await?]);
    let semaphores = processes
        .each_ref()
        .map(|process| process.semaphore(&name, INSIDE));
    let enter = |n: usize| {
        let semaphore = &semaphores[n % 2];
        async move { says("a turn", semaphore.acquire(1, SOON).await) }
    };
    let Outcome { most, .. } =
        crowd(&sides, &name, &curator(&sides, 100), 100, enter, give_back).await?;
    ensure(most == INSIDE as usize, || {
        format!("{most} of {INSIDE} were inside at once")
    })?;
    sides.until_there(&format!("{name}/leases"), 0).await
}

/// The twin comes in without a lease.
pub(crate) async fn a_side_without_leases_is_caught(sides: Arc<ZkSides>) -> Verdict {
    let name = sides.name();
    let Outcome { most, .. } = crowd(
        &sides,
        &name,
        &curator(&sides, 50),
        50,
        async |_| Ok(()),
        async |()| Ok(()),
    )
    .await?;
    ensure(most > INSIDE as usize, || "the twin was not seen".into())
}
