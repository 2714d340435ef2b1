//! Owners that are named, and commands of theirs that end late: an undo, a release after a loss, a re-entry that goes
//! away. Whatever is repeated or late, a guard that is not lost is a lock that nobody else can have.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    mute::Mute,
    redis::{LIMIT, Redis},
    redlock::{Five, LONG},
};
use oversell_lock::{Guard, Lock, LockError, redis::Lease};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

const BRIEF: Duration = Duration::from_secs(1);

/// Somebody else cannot have what is held.
async fn is_held(what: &str, held: &Guard, other: &impl Lock) -> Verdict {
    loop {
        match other.try_acquire().await {
            Err(LockError::Taken { .. }) => return Ok(()),
            // Silence says nothing of the lock.
            Err(LockError::Unavailable { .. }) => {}
            other => {
                return ensure(held.is_lost(), || {
                    format!("{what}: held, not lost, and another has {other:?}")
                });
            }
        }
    }
}

/// What every kind of lock must bear: the late release of a hold that was lost leaves the owner's newer one alone.
async fn a_late_release_frees_nothing<L: Lock>(brief: &L, lock: &L, other: &impl Lock) -> Verdict {
    let old = says("the first", brief.acquire(SOON).await)?;
    timeout(SOON, old.lost())
        .await
        .map_err(|_| "the fixed lease never ended")?;
    let new = says("the second", lock.acquire(SOON).await)?;
    let late = old.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || {
        format!("the late release: {late:?}")
    })?;
    is_held("after the late release", &new, other).await?;
    says("release", new.release().await)
}

pub(crate) async fn the_late_release_of_a_lost_hold_leaves_its_owners_newer_one(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let (owner, brief) = (process.owner(), Lease::Fixed(BRIEF));
    // Under a long lease: if it renewed what is lost and has not ended yet, it would keep itself out for as long.
    let lock = process.lock(&name).owner(owner).lease(LONG);
    a_late_release_frees_nothing(&lock.clone().lease(brief), &lock, &other.lock(&name)).await?;
    let lock = process.fair_lock(&name).owner(owner).lease(LONG);
    a_late_release_frees_nothing(&lock.clone().lease(brief), &lock, &other.fair_lock(&name))
        .await?;
    let lock = process
        .rw_lock(&format!("{name}-rw"))
        .write()
        .owner(owner)
        .lease(LONG);
    a_late_release_frees_nothing(
        &lock.clone().lease(brief),
        &lock,
        &other.rw_lock(&format!("{name}-rw")).write(),
    )
    .await
}

pub(crate) async fn the_late_release_of_a_lost_redlock_leaves_its_owners_newer_one(
    five: Arc<Five>,
) -> Verdict {
    let (name, process, other) = (name(), five.process().await, five.process().await);
    let owner = oversell_lock::Process::new().owner();
    let (lock, brief) = (
        process.lock(&name).owner(owner),
        process.lock(&name).owner(owner),
    );
    // A node has a tenth of the lease to answer.
    let brief = brief.lease(Lease::Fixed(SOON / 2));
    a_late_release_frees_nothing(&brief, &lock.lease(LONG), &other.lock(&name).lease(LONG)).await?;
    until("nothing is left", || async {
        five.left(&name).await.is_empty()
    })
    .await
}

/// The answer to the release is late and not waited for; the owner takes the lock again meanwhile. What is then sent again
/// frees nothing of it.
pub(crate) async fn an_undo_that_is_late_leaves_its_owners_newer_hold(
    redis: Arc<Redis>,
) -> Verdict {
    let other = redis.process().await;
    for _ in 0..5 {
        let name = name();
        let mute = Mute::to(redis.host()).await;
        let process = redis.process_at(&mute.address()).await;
        let lock = process
            .lock(&name)
            .owner(process.owner())
            .lease(Lease::Watchdog(SOON * 3));
        let first = says("the first", lock.acquire(SOON).await)?;
        // Longer than one command may take, shorter than two.
        mute.delay(LIMIT * 4 / 3);
        drop(first);
        until("the release has come", || async {
            redis.left(&name).await.is_empty()
        })
        .await?;
        mute.delay(Duration::ZERO);
        let again = async {
            loop {
                // Its own answer may come behind the late one.
                match lock.acquire(SOON).await {
                    Err(LockError::Unavailable { .. }) => {}
                    had => return had,
                }
            }
        };
        let again = says(
            "again",
            timeout(SOON, again)
                .await
                .map_err(|_| "it is never had again")?,
        )?;
        for _ in 0..20 {
            is_held("after the undo", &again, &other.lock(&name)).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ensure(!again.is_lost(), || {
            "it was lost: the test shows nothing".into()
        })?;
    }
    Ok(())
}

/// Guards of one owner end by their leases, by release and by drop, while it comes again.
pub(crate) async fn whoever_comes_again_as_the_last_guard_ends_has_the_lock(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    for round in 0..40 {
        let lock = process.lock(&name).owner(process.owner());
        let first = says("the first", lock.acquire(SOON).await)?;
        if round % 2 == 0 {
            let brief = says(
                "brief",
                lock.clone()
                    .lease(Lease::Fixed(Duration::from_millis(30)))
                    .acquire(SOON)
                    .await,
            )?;
            timeout(SOON, brief.lost())
                .await
                .map_err(|_| "the fixed lease never ended")?;
        }
        let ends = tokio::spawn(async move {
            if round % 3 > 0 {
                first.release().await.ok();
            }
        });
        let again = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire(SOON).await }
        });
        ends.await.map_err(|e| e.to_string())?;
        let again = says("again", again.await.map_err(|e| e.to_string())?)?;
        tokio::time::sleep(Duration::from_millis(5)).await;
        is_held("taken again", &again, &other.lock(&name)).await?;
        says("release", again.release().await)?;
    }
    Ok(())
}

/// When the last guard ends nothing is left, though it is the one that was lost.
pub(crate) async fn a_lost_guard_that_ends_last_leaves_nothing(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let lock = process
        .lock(&name)
        .owner(process.owner())
        .lease(Lease::Watchdog(SOON * 10));
    let long = says("long", lock.acquire(SOON).await)?;
    let brief = says(
        "brief",
        lock.clone().lease(Lease::Fixed(BRIEF)).acquire(SOON).await,
    )?;
    says("release", long.release().await)?;
    timeout(SOON, brief.lost())
        .await
        .map_err(|_| "the fixed lease never ended")?;
    let late = brief.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || {
        format!("the late release: {late:?}")
    })?;
    until("the lock is free", || async {
        redis.left(&name).await.is_empty()
    })
    .await
}
