//! What the semaphore in ZooKeeper promises, and the twin that breaks it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    zk_families::Semaphore,
    zk_losses::patient,
    zk_recipes::{JAVA, SHORT, node, refused, shape},
    zookeeper::ZooKeeper,
};
use oversell_lock::{Guard, LockError, zk::ZkSemaphore};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};
use tokio::task::JoinSet;

async fn nodes(zookeeper: &ZooKeeper, name: &str) -> Vec<String> {
    Semaphore::nodes(zookeeper, name).await
}

async fn release(leases: Vec<Guard>) -> Verdict {
    for lease in leases {
        says("release", lease.release().await)?;
    }
    Ok(())
}

async fn none_left(zookeeper: &ZooKeeper, name: &str) -> Verdict {
    until("nothing is left", || async {
        nodes(zookeeper, name).await.is_empty()
    })
    .await
}

/// All three are out: a fourth must not be had, and what waited for it must have gone.
async fn three_and_no_more(
    zookeeper: &ZooKeeper,
    one: &ZkSemaphore,
    other: &ZkSemaphore,
) -> Verdict {
    let two = says("two", one.acquire(2, SOON).await)?;
    let third = says("the third", other.acquire(1, SOON).await)?;
    let before = nodes(zookeeper, one.name()).await;
    ensure(before.len() == 3, || format!("three leases are {before:?}"))?;
    refused("a fourth", &other.acquire(1, SHORT).await)?;
    refused("a fourth at once", &one.try_acquire(1).await)?;
    refused("two more", &one.acquire(2, SHORT).await)?;
    let after = nodes(zookeeper, one.name()).await;
    ensure(before == after, || {
        format!("there was {before:?} and is {after:?}")
    })?;
    release(two).await?;
    refused(
        "three of the two that are back",
        &one.acquire(3, SHORT).await,
    )?;
    release(third).await?;
    release(says("all three", one.acquire(3, SOON).await)?).await
}

pub(crate) async fn there_are_no_more_leases_than_the_semaphore_has(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, other) = (name(), zookeeper.process().await, zookeeper.process().await);
    three_and_no_more(
        &zookeeper,
        &process.client.semaphore(&name, 3),
        &other.client.semaphore(&name, 3),
    )
    .await?;
    none_left(&zookeeper, &name).await
}

pub(crate) async fn a_semaphore_that_gives_one_too_many_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, other) = (name(), zookeeper.process().await, zookeeper.process().await);
    let (one, twin) = (
        process.client.semaphore(&name, 3),
        other.client.semaphore(&name, 4),
    );
    match three_and_no_more(&zookeeper, &one, &twin).await {
        Err(broken) if broken.contains("a fourth: was let in") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// Three processes of six, four times each, some of them with two leases: never more than three are out, and three at
/// once are. The first ones stay until that was so.
pub(crate) async fn a_crowd_is_let_in_by_threes(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, out, most) = (
        name(),
        Arc::new(AtomicI64::new(0)),
        Arc::new(AtomicI64::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let process = Arc::new(zookeeper.process().await);
        for n in 0..6 {
            let (process, out, most) = (process.clone(), out.clone(), most.clone());
            let semaphore = process.client.semaphore(&name, 3);
            tasks.spawn(async move {
                // Its way to the server ends with it.
                let _process = process;
                for round in 0..4 {
                    let wanted = if round == 0 { 1 } else { 1 + n % 2 };
                    let leases = says("a turn", semaphore.acquire(wanted, SOON * 3).await)?;
                    most.fetch_max(
                        out.fetch_add(wanted.into(), SeqCst) + i64::from(wanted),
                        SeqCst,
                    );
                    if round == 0 {
                        until("three are out", || async { most.load(SeqCst) >= 3 }).await?;
                    }
                    tokio::task::yield_now().await;
                    out.fetch_sub(wanted.into(), SeqCst);
                    release(leases).await?;
                }
                Ok::<_, String>(())
            });
        }
    }
    for result in tasks.join_all().await {
        result?;
    }
    let most = most.load(SeqCst);
    ensure(most == 3, || format!("{most} leases of 3 were out at most"))?;
    none_left(&zookeeper, &name).await
}

pub(crate) async fn leases_that_cannot_be_had_are_refused_at_once(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let process = zookeeper.process().await;
    let semaphore = process.client.semaphore(&name(), 3);
    for wanted in [0, 4] {
        match semaphore.acquire(wanted, SOON).await {
            Err(LockError::Invalid { .. }) => {}
            other => return Err(format!("{wanted} of 3: {other:?}")),
        }
    }
    Ok(())
}

/// Who waits holds the mutex and has a node among the leases, as in Curator.
pub(crate) async fn the_nodes_of_a_semaphore_are_curators(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let semaphore = process.client.semaphore(&name, 1);
    let lease = says("a lease", semaphore.acquire(1, SOON).await)?;
    let waiting = tokio::spawn(async move { semaphore.acquire(1, SOON).await });
    until("one waits", || async {
        nodes(&zookeeper, &name).await.len() == 3
    })
    .await?;
    let mut shapes = nodes(&zookeeper, &name)
        .await
        .iter()
        .map(|n| shape(n))
        .collect::<Result<Vec<_>, _>>()?;
    shapes.sort();
    let expected = [
        "leases|-lease-0000000000",
        "leases|-lease-0000000001",
        "locks|-lock-0000000001",
    ];
    ensure(shapes == expected, || {
        format!("Curator's names would be {expected:?}: {shapes:?}")
    })?;
    waiting.abort();
    until("who waited has gone", || async {
        nodes(&zookeeper, &name).await.len() == 1
    })
    .await?;
    release(lease).await?;
    none_left(&zookeeper, &name).await
}

pub(crate) async fn leases_and_mutex_of_other_implementations_are_respected(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, outsider) = (
        name(),
        zookeeper.process().await,
        zookeeper.outsider().await,
    );
    let lease = node(&outsider, &format!("{name}/leases/{JAVA}lease-")).await?;
    let locks = node(&outsider, &format!("{name}/locks/{JAVA}lock-")).await?;
    let semaphore = process.client.semaphore(&name, 2);
    refused(
        "behind the holder of the mutex",
        &semaphore.acquire(1, SHORT).await,
    )?;
    outsider
        .delete(&locks, None)
        .await
        .map_err(|e| e.to_string())?;
    refused(
        "two of the one that is left",
        &semaphore.acquire(2, SHORT).await,
    )?;
    let one = says("the one that is left", semaphore.acquire(1, SOON).await)?;
    outsider
        .delete(&lease, None)
        .await
        .map_err(|e| e.to_string())?;
    release(one).await?;
    release(says("both", semaphore.acquire(2, SOON).await)?).await?;
    none_left(&zookeeper, &name).await
}

/// Its session ends, and its leases with it; it is told before. It knows by the clock, and so whatever stood still.
pub(crate) async fn the_leases_of_a_dead_holder_come_back(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process, other) = (name(), zookeeper.brief().await, zookeeper.process().await);
    let leases = says(
        "both",
        process.client.semaphore(&name, 2).acquire(2, SOON).await,
    )?;
    let semaphore = other.client.semaphore(&name, 2);
    let waiting = tokio::spawn(async move { semaphore.acquire(1, SOON).await });
    until("one waits", || async {
        nodes(&zookeeper, &name).await.len() == 4
    })
    .await?;
    process.cut().await;
    let next = says("the next", waiting.await.map_err(|e| e.to_string())?)?;
    for lease in &leases {
        ensure(lease.is_lost(), || {
            "the next had a lease before its holder was told".into()
        })?;
        tokio::time::timeout(SOON, lease.lost())
            .await
            .map_err(|_| "who waits for the loss was never told")?;
    }
    release(next).await?;
    none_left(&zookeeper, &name).await
}

/// The answer to one request is lost: that for the mutex, or that for the lease itself. What comes after it goes through.
pub(crate) async fn a_request_for_the_mutex_that_is_not_answered_leaves_no_orphan(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    a_request_that_is_not_answered_leaves_no_orphan(&zookeeper, "-lock-").await
}

pub(crate) async fn a_request_for_a_lease_that_is_not_answered_leaves_no_orphan(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    a_request_that_is_not_answered_leaves_no_orphan(&zookeeper, "-lease-").await
}

async fn a_request_that_is_not_answered_leaves_no_orphan(
    zookeeper: &ZooKeeper,
    asks_for: &'static str,
) -> Verdict {
    let (name, mute) = (name(), Mute::to(zookeeper.server()).await);
    let semaphore = patient(mute.address()).await?.semaphore(&name, 2);
    release(says("warm", semaphore.acquire(1, SOON).await)?).await?;
    for gives_up in [false, true] {
        mute.mute_at(asks_for);
        let waiter = semaphore.clone();
        let waiting = tokio::spawn(async move { waiter.acquire(2, SOON).await });
        let is_made = || async {
            nodes(zookeeper, &name)
                .await
                .iter()
                .any(|node| node.contains(asks_for))
        };
        until("the node is made", is_made).await?;
        if gives_up {
            waiting.abort();
        }
        mute.heal().await;
        if let Ok(leases) = waiting.await {
            let leases = says("both", leases)?;
            let left = nodes(zookeeper, &name).await;
            ensure(left.len() == 2, || format!("two leases have {left:?}"))?;
            release(leases).await?;
        }
        none_left(zookeeper, &name).await?;
    }
    Ok(())
}

/// Who waits for a lease loses its way to the server, and its session with it; the lease that it waited for comes back.
pub(crate) async fn a_waiter_for_a_lease_that_is_cut_off_leaves_nothing(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, holder, process) = (name(), zookeeper.process().await, zookeeper.brief().await);
    let lease = says(
        "the one",
        holder.client.semaphore(&name, 1).acquire(1, SOON).await,
    )?;
    let semaphore = process.client.semaphore(&name, 1);
    let waiting = tokio::spawn(async move { semaphore.acquire(1, SOON * 3).await });
    until("one waits", || async {
        nodes(&zookeeper, &name).await.len() == 3
    })
    .await?;
    process.cut().await;
    until("the server has let its session go", || async {
        nodes(&zookeeper, &name).await.len() == 1
    })
    .await?;
    release(lease).await?;
    match waiting.await.map_err(|e| e.to_string())? {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("who was cut off: {other:?}")),
    }
    none_left(&zookeeper, &name).await
}
