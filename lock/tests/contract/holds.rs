//! What re-entrant locks and locks with a lease keep. Whatever is repeated or late, a guard that is not lost excludes
//! everybody else.

use super::{
    register::{leased, leased_by_owner, reentrant},
    support::*,
};
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::sync::Barrier;

/// Another cannot acquire a held lock. No answer proves nothing.
pub(crate) async fn ensure_held(what: &str, held: &Guard, other: &impl Lock) -> Result {
    loop {
        match other.try_acquire().await {
            Err(LockError::Taken { .. }) => return Ok(()),
            Err(LockError::Unavailable { .. }) => {}
            _ if held.is_lost() => return Ok(()),
            other => bail!("{what}: held, not lost, and another has {other:?}"),
        }
    }
}

/// Three guards of one owner, from two handles, taken ahead of waiters of the same process and of another, released in
/// any order: the server sees one hold, and only the last release frees it.
pub(crate) async fn only_the_last_release_frees<S: Server>(
    family: Family<S>,
    process: &Contender<S>,
    lock: [impl Lock; 2],
) -> Result {
    let name = lock[0].name().to_owned();
    let other = family.process().await;
    let first = take(&lock[0]).await?;
    let hold = family.until_shown(&name).await?;
    let waiters = [process, &other].map(|other| spawn_acquire(other.lock(&name)));
    family.until_queued(&name, 3).await?;
    until("both processes wait", || family.server.is_waited_for(&name)).await?;
    let seen = family.left(&name).await.len();
    let at_once = "past the waiters";
    let second = lock[1].try_acquire().await.context(at_once)?;
    let third = lock[0].try_acquire().await.context(at_once)?;
    let left = family.left(&name).await;
    ensure_equal("three holds beside two waiters", left.len(), seen)?;
    for guard in [first, third] {
        guard.release().await?;
        let tried = process.owned(&name, process.owner()).try_acquire().await;
        ensure_taken("another owner beside the hold", tried)?;
        let left = family.left(&name).await;
        let gone = hold.iter().any(|part| !left.contains(part));
        ensure!(!gone, "{hold:?} has gone beside the last guard: {left:?}");
        let early = waiters.iter().any(|waiter| waiter.is_finished());
        ensure!(!early, "somebody got in beside the owner");
    }
    ensure_kept("the last hold", &second)?;
    second.release().await?;
    // Either process may be first.
    let mut waiters = FuturesUnordered::from_iter(waiters);
    while let Some(guard) = waiters.next().await {
        guard??.release().await?;
    }
    family.nothing_left(&name).await
}

#[apply(reentrant!)]
async fn an_owner_takes_its_lock_again_past_the_waiters<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    let owner = process.owner();
    let handles = [process.owned(&name, owner), process.owned(&name, owner)];
    only_the_last_release_frees(family, &process, handles).await
}

/// Two tasks of one owner wait for another's lock, and each continues only when both are inside.
#[apply(reentrant!)]
async fn tasks_of_one_owner_come_in_together<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    let held = take(&process.lock(&name)).await?;
    let (owner, both) = (process.owner(), Arc::new(Barrier::new(2)));
    let tasks = [(), ()].map(|()| {
        let (lock, both) = (process.owned(&name, owner), Arc::clone(&both));
        tokio::spawn(async move {
            let guard = lock.acquire(SOON).await?;
            both.wait().await;
            guard.release().await
        })
    });
    let stranger = spawn_pass(process.lock(&name));
    held.release().await?;
    for task in tasks {
        let inside = timeout(SOON * 2, task).await.context("both inside")?;
        inside?.context("both inside")?;
    }
    stranger.await??;
    family.nothing_left(&name).await
}

/// The lock was lost and its owner does not know yet: a re-entry finds that out. The old guard is lost, and the new one
/// is not.
#[apply(leased_by_owner!)]
async fn a_re_entry_does_not_hide_a_loss<S: Server>(family: Family<S>) -> Result {
    let (name, process, other) = (name(), family.process().await, family.process().await);
    let lock = process.owned(&name, process.owner());
    let before = take(&lock).await?;
    // Taken away, held by another, and free again, all between two renewals.
    family.take_away(&process, &name).await;
    pass(&other.lock(&name)).await?;
    let after = take(&lock).await?;
    wait_until_lost(&before).await?;
    ensure_lost("the hold from before", before.release().await)?;
    ensure_held("after the loss", &after, &other.lock(&name)).await?;
    ensure_kept("the new hold", &after)?;
    after.release().await?;
    family.nothing_left(&name).await
}

/// `extend` makes a fixed lease longer, never shorter; a lease that has ended is lost, and stays lost.
#[apply(leased!)]
async fn a_fixed_lease_is_extended<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    let held = take(&process.leased(&name, Lease::Fixed(SOON))).await?;
    let sure = held.sure_for();
    let bounds = Duration::from_millis(1)..=SOON;
    ensure!(sure.is_some_and(|sure| bounds.contains(&sure)), "at first sure for {sure:?}");
    for length in [SOON * 30, S::BRIEF] {
        held.extend(length).await.context("it is not extended")?;
        let sure = held.sure_for();
        ensure!(sure.is_some_and(|sure| sure > SOON * 20), "by {length:?}: sure for {sure:?}");
        let ends = family.ends_in(&name).await;
        ensure!(ends.is_none_or(|ends| ends > SOON * 20), "by {length:?}: it ends in {ends:?}");
    }
    family.take_away(&process, &name).await;
    ensure_lost("one that is gone", held.extend(SOON * 30).await)?;
    wait_until_lost(&held).await?;
    ensure_lost("the late release", held.release().await)?;
    family.nothing_left(&name).await
}

#[apply(leased!)]
async fn a_renewed_lease_outlives_its_length<S: Server>(family: Family<S>) -> Result {
    let (name, process, other) = (name(), family.process().await, family.process().await);
    let renewed = process.leased(&name, Lease::Watchdog(S::RENEWED));
    let held = take(&renewed).await?;
    let tried = other.lock(&name).acquire(S::RENEWED * 3 / 2).await;
    ensure_taken("beyond the lease", tried)?;
    ensure_kept("the renewed hold", &held)?;
    held.release().await?;
    family.nothing_left(&name).await
}

/// Leases that no server can keep are refused before anything is written.
#[apply(leased!)]
async fn a_lease_without_end_or_length_is_refused<S: Server>(family: Family<S>) -> Result {
    let (name, process) = (name(), family.process().await);
    for length in [Duration::MAX, Duration::ZERO, Duration::from_micros(10)] {
        for lease in [Lease::Fixed(length), Lease::Watchdog(length)] {
            let (owner, lease) = (None, Some(lease));
            for lock in process.halves(&name, Ask { owner, lease }) {
                let tried = lock.acquire(SOON).await;
                let named = matches!(&tried, Err(LockError::Invalid { rule, .. }) if rule.contains("lease"));
                ensure!(named, "for {length:?}: {tried:?}");
            }
        }
    }
    ensure_none(family.left(&name).await)
}

/// A short lease inside a longer one does not end the lock earlier, and ends for its own guard alone.
#[apply(leased_by_owner!)]
async fn a_short_lease_of_an_inner_hold_ends_that_hold_alone<S: Server>(family: Family<S>) -> Result {
    let (name, process, other) = (name(), family.process().await, family.process().await);
    let owner = process.owner();
    let ask = |lease| process.held(&name, owner, lease);
    let outer = take(&ask(Lease::Fixed(SOON * 3))).await?;
    let inner = take(&ask(Lease::Fixed(S::BRIEF))).await?;
    wait_until_lost(&inner).await?;
    for released in [None, Some(inner)] {
        if let Some(inner) = released {
            ensure_lost("the hold that had ended", inner.release().await)?;
        }
        ensure_kept("the outer hold", &outer)?;
        let ends = family.ends_in(&name).await;
        let late = ends.is_none_or(|ends| ends > S::BRIEF * 2);
        ensure!(late, "the outer hold ends in {ends:?}");
        ensure_held("beside the outer hold", &outer, &other.lock(&name)).await?;
    }
    outer.release().await?;
    family.nothing_left(&name).await
}
