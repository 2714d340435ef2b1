//! `ZkLock` and its namesakes: Curator's `InterProcessMutex`, and kazoo's `Lock` with Curator's names.

use super::{
    support::{SEEN, Verdict, ensure, is_taken, says, waiting},
    zk_sides::{Other, ZkSides, ours_sleeps_on, they_sleep_on},
};
use oversell_lock::{Guard, Lock, LockError};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

const SHORT: Duration = Duration::from_millis(200);

/// What a task of ours waited for.
pub(crate) async fn had(
    waiter: JoinHandle<Result<(Guard, Instant), LockError>>,
) -> Result<Guard, String> {
    says("ours", waiter.await.map_err(|e| e.to_string())?).map(|(guard, _)| guard)
}

pub(crate) async fn ours_waits_for_theirs<O: Other>(sides: Arc<ZkSides>) -> Verdict {
    let (name, theirs, ours) = (sides.name(), O::of(&sides), sides.ours().await?);
    theirs
        .ask("holder", format!("acquire mutex {name}"))
        .await?;
    is_taken(ours.lock(&name).try_acquire().await)?;
    let waiter = waiting(ours.lock(&name));
    sides.until_there(&name, 2).await?;
    ours_sleeps_on(&ours, &waiter).await?;
    theirs
        .ask("holder", format!("release mutex {name}"))
        .await?;
    let guard = had(waiter).await?;
    theirs
        .must("other", format!("try mutex {name} 0"), "false")
        .await?;
    theirs
        .must("holder", format!("held mutex {name}"), "false")
        .await?;
    says("release", guard.release().await)?;
    theirs
        .must("other", format!("try mutex {name} 5000"), "true")
        .await?;
    theirs.ask("other", format!("release mutex {name}")).await?;
    sides.until_there(&name, 0).await
}

pub(crate) async fn theirs_waits_for_ours<O: Other>(sides: Arc<ZkSides>) -> Verdict {
    let (name, theirs, ours) = (sides.name(), O::of(&sides), sides.ours().await?);
    let guard = says("free", ours.lock(&name).try_acquire().await)?;
    theirs
        .must("waiter", format!("try mutex {name} 0"), "false")
        .await?;
    let mut waiter = theirs.tell("waiter", format!("acquire mutex {name}"));
    sides.until_there(&name, 2).await?;
    they_sleep_on(theirs, &mut waiter).await?;
    says("release", guard.release().await)?;
    waiter.answer().await?;
    theirs
        .must("waiter", format!("held mutex {name}"), "true")
        .await?;
    is_taken(ours.lock(&name).try_acquire().await)?;
    theirs
        .ask("waiter", format!("release mutex {name}"))
        .await?;
    says("free again", ours.lock(&name).try_acquire().await)?
        .release()
        .await
        .ok();
    sides.until_there(&name, 0).await
}

/// A queue of ours, theirs, ours, theirs: each release lets in the next and nobody else.
pub(crate) async fn turns_come_in_the_order_of_arrival<O: Other>(sides: Arc<ZkSides>) -> Verdict {
    let (name, theirs, ours) = (sides.name(), O::of(&sides), sides.ours().await?);
    let first = says("free", ours.lock(&name).try_acquire().await)?;
    let second = theirs.tell("second", format!("acquire mutex {name}"));
    sides.until_there(&name, 2).await?;
    let other = sides.ours().await?;
    let third = waiting(other.lock(&name));
    sides.until_there(&name, 3).await?;
    let mut fourth = theirs.tell("fourth", format!("acquire mutex {name}"));
    sides.until_there(&name, 4).await?;

    says("release", first.release().await)?;
    second.answer().await?;
    ours_sleeps_on(&other, &third).await?;
    they_sleep_on(theirs, &mut fourth).await?;
    theirs
        .ask("second", format!("release mutex {name}"))
        .await?;
    let third = had(third).await?;
    they_sleep_on(theirs, &mut fourth).await?;
    says("release", third.release().await)?;
    fourth.answer().await?;
    theirs
        .ask("fourth", format!("release mutex {name}"))
        .await?;
    sides.until_there(&name, 0).await
}

/// Neither side's waiter leaves a node behind, and the one after it is not let in early.
pub(crate) async fn a_wait_that_ends_leaves_nothing<O: Other>(sides: Arc<ZkSides>) -> Verdict {
    let (name, theirs, ours) = (sides.name(), O::of(&sides), sides.ours().await?);
    let guard = says("free", ours.lock(&name).try_acquire().await)?;
    let impatient = theirs.tell(
        "impatient",
        format!("try mutex {name} {}", SHORT.as_millis()),
    );
    let answer = impatient.answer().await?;
    ensure(answer == "false", || format!("their wait came to {answer}"))?;
    sides.until_there(&name, 1).await?;
    says("release", guard.release().await)?;

    theirs
        .ask("holder", format!("acquire mutex {name}"))
        .await?;
    let other = sides.ours().await?;
    let impatient = tokio::spawn({
        let lock = other.lock(&name);
        async move { lock.acquire(SEEN).await }
    });
    sides.until_there(&name, 2).await?;
    let mut patient = theirs.tell("patient", format!("acquire mutex {name}"));
    sides.until_there(&name, 3).await?;
    is_taken(impatient.await.map_err(|e| e.to_string())?)?;
    sides.until_there(&name, 2).await?;
    they_sleep_on(theirs, &mut patient).await?;
    theirs
        .ask("holder", format!("release mutex {name}"))
        .await?;
    patient.answer().await?;
    theirs
        .ask("patient", format!("release mutex {name}"))
        .await?;
    sides.until_there(&name, 0).await
}

pub(crate) async fn only_the_last_hold_lets_the_other_in(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    java.ask("holder", format!("acquire mutex {name}")).await?;
    java.ask("holder", format!("acquire mutex {name}")).await?;
    let waiter = waiting(ours.lock(&name));
    sides.until_there(&name, 2).await?;
    java.ask("holder", format!("release mutex {name}")).await?;
    ours_sleeps_on(&ours, &waiter).await?;
    java.ask("holder", format!("release mutex {name}")).await?;
    says("release", had(waiter).await?.release().await)?;

    let lock = ours.lock(&name).owner(ours.owner());
    let outer = says("free", lock.try_acquire().await)?;
    let inner = says("again", lock.try_acquire().await)?;
    let mut waiter = java.tell("waiter", format!("acquire mutex {name}"));
    sides.until_there(&name, 2).await?;
    says("release", inner.release().await)?;
    they_sleep_on(java, &mut waiter).await?;
    says("release", outer.release().await)?;
    waiter.answer().await?;
    java.ask("waiter", format!("release mutex {name}")).await?;
    sides.until_there(&name, 0).await
}

pub(crate) async fn curator_sees_one_queue_of_both(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let guard = says("free", ours.lock(&name).try_acquire().await)?;
    let of_ours = sides.children(&name).await;
    let waiter = java.tell("waiter", format!("acquire mutex {name}"));
    sides.until_there(&name, 2).await?;
    let queue = java.ask("a", format!("participants mutex {name}")).await?;
    let queue: Vec<&str> = queue.split(' ').collect();
    ensure(queue.len() == 2 && queue[0] == of_ours[0], || {
        format!("ours is {of_ours:?}, and java sees {queue:?}")
    })?;
    says("release", guard.release().await)?;
    waiter.answer().await?;
    java.must("a", format!("participants mutex {name}"), queue[1])
        .await?;
    java.ask("waiter", format!("release mutex {name}"))
        .await
        .map(|_| ())
}
