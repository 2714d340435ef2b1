//! The holds of a fair lock: re-entry, leases, and what an unanswered command leaves.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    fair::{Fair, had, hold, wait_for, waiting},
    family::{Family, Process, name, until},
    mute::Mute,
};
use oversell_lock::{Lock, LockError, redis::Lease};
use redis::AsyncCommands;
use std::{sync::Arc, time::Duration};

/// Long enough for a machine that stands still for a while to renew it in time.
const LEASE: Duration = Duration::from_secs(6);

/// Another process, the same kind of lock.
async fn is_taken(fair: &Fair, name: &str) -> Verdict {
    match fair.process().await.lock(name).try_acquire().await {
        Err(LockError::Taken { .. }) => Ok(()),
        other => Err(format!("while it is held: {other:?}")),
    }
}

/// How many owners the lock has in Redis.
async fn holds(fair: &Fair, name: &str) -> Result<i64, String> {
    fair.0
        .outsider()
        .await
        .hlen(name)
        .await
        .map_err(|e| e.to_string())
}

async fn nothing_left(fair: &Fair, name: &str) -> Verdict {
    until("nothing is left", || async {
        fair.left(name).await.is_empty()
    })
    .await
}

pub(crate) async fn an_owner_takes_it_again_and_releases_it_as_often(fair: Arc<Fair>) -> Verdict {
    let (name, client) = (name(), fair.0.process().await);
    let owner = client.owner();
    let ours = || client.fair_lock(&name).owner(owner);
    let outer = says("it is free", ours().try_acquire().await)?;
    let inner = says("it is ours", ours().try_acquire().await)?;
    ensure(holds(&fair, &name).await? == 1, || {
        "two guards are not one hold".into()
    })?;
    match client.fair_lock(&name).try_acquire().await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("another owner of the same process: {other:?}")),
    }
    says("the first release", inner.release().await)?;
    is_taken(&fair, &name).await?;
    says("the last release", outer.release().await)?;
    nothing_left(&fair, &name).await
}

pub(crate) async fn a_lost_hold_does_not_release_the_next_of_its_owner(fair: Arc<Fair>) -> Verdict {
    let (name, client) = (name(), fair.0.process().await);
    let lock = client.fair_lock(&name).owner(client.owner());
    let lost = says("it is free", lock.try_acquire().await)?;
    fair.0.take_away(&client, &name).await;
    let held = says("it is free again", lock.try_acquire().await)?;
    let refused = lost.release().await;
    ensure(matches!(refused, Err(LockError::Lost { .. })), || {
        format!("a lost hold was released: {refused:?}")
    })?;
    is_taken(&fair, &name).await?;
    says("release", held.release().await)?;
    nothing_left(&fair, &name).await
}

pub(crate) async fn a_fixed_lease_ends_and_its_holder_is_told_first(fair: Arc<Fair>) -> Verdict {
    let (name, client) = (name(), fair.0.process().await);
    let holder = says(
        "it is free",
        client
            .fair_lock(&name)
            .lease(Lease::Fixed(LEASE))
            .try_acquire()
            .await,
    )?;
    let next = says(
        "after the lease",
        fair.process().await.lock(&name).acquire(SOON).await,
    )?;
    ensure(holder.is_lost(), || {
        "the next one has it, and the first was not told".into()
    })?;
    let refused = holder.release().await;
    ensure(matches!(refused, Err(LockError::Lost { .. })), || {
        format!("a lost lock was released: {refused:?}")
    })?;
    says("release", next.release().await)?;
    nothing_left(&fair, &name).await
}

pub(crate) async fn a_watchdog_keeps_it_beyond_its_lease(fair: Arc<Fair>) -> Verdict {
    let (name, client) = (name(), fair.0.process().await);
    let holder = says(
        "it is free",
        client
            .fair_lock(&name)
            .lease(Lease::Watchdog(LEASE))
            .try_acquire()
            .await,
    )?;
    match fair
        .process()
        .await
        .lock(&name)
        .acquire(LEASE * 4 / 3)
        .await
    {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("while it is held: {other:?}")),
    }
    says("release", holder.release().await)?;
    nothing_left(&fair, &name).await
}

pub(crate) async fn a_short_lease_within_a_long_one_does_not_cut_it(fair: Arc<Fair>) -> Verdict {
    let (name, client) = (name(), fair.0.process().await);
    let lock = client.fair_lock(&name).owner(client.owner());
    let outer = says(
        "it is free",
        lock.clone()
            .lease(Lease::Fixed(SOON * 3))
            .try_acquire()
            .await,
    )?;
    let inner = says(
        "it is ours",
        lock.lease(Lease::Watchdog(LEASE)).try_acquire().await,
    )?;
    let left: i64 = fair
        .0
        .outsider()
        .await
        .pttl(&name)
        .await
        .map_err(|e| e.to_string())?;
    let short = LEASE.as_millis() as i64;
    ensure(left > short, || {
        format!("the outer lease was cut to {left} ms")
    })?;
    says("release", inner.release().await)?;
    let left: i64 = fair
        .0
        .outsider()
        .await
        .pttl(&name)
        .await
        .map_err(|e| e.to_string())?;
    ensure(left > short, || {
        format!("the release cut the outer lease to {left} ms")
    })?;
    says("release", outer.release().await)?;
    nothing_left(&fair, &name).await
}

/// The leases and the waits are so long that only the undo can help.
pub(crate) async fn an_unanswered_acquire_leaves_neither_hold_nor_place(
    fair: Arc<Fair>,
) -> Verdict {
    let name = name();
    let mute = Mute::to(fair.server()).await;
    let client = fair.0.process_at(&mute.address()).await;
    let lock = client.fair_lock(&name).lease(Lease::Fixed(SOON * 10));
    says(
        "warm",
        says("it is free", lock.try_acquire().await)?
            .release()
            .await,
    )?;
    for held in [false, true] {
        let holder = match held {
            true => Some(says(
                "it is free",
                fair.process().await.lock(&name).try_acquire().await,
            )?),
            false => None,
        };
        let before = fair.left(&name).await;
        mute.mute();
        let lost = lock.acquire(SOON * 5).await;
        ensure(matches!(lost, Err(LockError::Unavailable { .. })), || {
            format!("without an answer: {lost:?}")
        })?;
        mute.heal().await;
        until("what it took is given back", || async {
            fair.left(&name).await == before
        })
        .await?;
        if let Some(holder) = holder {
            says("release", holder.release().await)?;
        }
    }
    nothing_left(&fair, &name).await
}

pub(crate) async fn an_unanswered_second_hold_leaves_the_first(fair: Arc<Fair>) -> Verdict {
    let name = name();
    let mute = Mute::to(fair.server()).await;
    let client = fair.0.process_at(&mute.address()).await;
    let owner = client.owner();
    let lock = client
        .fair_lock(&name)
        .owner(owner)
        .lease(Lease::Fixed(SOON * 10));
    let first = says("it is free", lock.try_acquire().await)?;
    mute.mute();
    let lost = lock.try_acquire().await;
    ensure(matches!(lost, Err(LockError::Unavailable { .. })), || {
        format!("without an answer: {lost:?}")
    })?;
    mute.heal().await;
    let one = || async { matches!(holds(&fair, &name).await, Ok(1)) };
    until("only the first hold is left", one).await?;
    let again = || async {
        match lock.try_acquire().await {
            Ok(second) => second.release().await.is_ok(),
            Err(_) => false,
        }
    };
    until("the lock works again", again).await?;
    says("release", first.release().await)?;
    nothing_left(&fair, &name).await
}

pub(crate) async fn an_unanswered_release_frees_it_and_wakes_the_next(fair: Arc<Fair>) -> Verdict {
    let name = name();
    let mute = Mute::to(fair.server()).await;
    let client = fair.0.process_at(&mute.address()).await;
    let holder = says(
        "it is free",
        client
            .fair_lock(&name)
            .lease(Lease::Fixed(SOON * 10))
            .try_acquire()
            .await,
    )?;
    mute.mute();
    let unknown = holder.release().await;
    ensure(
        matches!(unknown, Err(LockError::Unavailable { .. })),
        || format!("without an answer: {unknown:?}"),
    )?;
    mute.heal().await;
    let next = says(
        "it was freed",
        fair.process().await.lock(&name).acquire(SOON).await,
    )?;
    says("release", next.release().await)?;
    nothing_left(&fair, &name).await
}

pub(crate) async fn a_lock_that_is_free_without_a_message_is_found(fair: Arc<Fair>) -> Verdict {
    let (name, redis, process) = (name(), &fair.0, fair.process().await);
    hold(redis, &name, SOON * 10).await?;
    let waiter = wait_for(process.lock(&name));
    waiting(redis, &name, 1).await?;
    redis
        .outsider()
        .await
        .del::<_, ()>(&name)
        .await
        .map_err(|e| e.to_string())?;
    says("release", had(waiter).await?.release().await)?;
    nothing_left(&fair, &name).await
}
