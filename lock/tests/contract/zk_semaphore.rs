//! What the semaphore in ZooKeeper promises, and the twin that breaks it.

use super::{
    family::Server,
    mute::Mute,
    support::*,
    zookeeper::{JAVA, ZooKeeper, patient, shape},
};
use oversell_lock::{Guard, zk::ZkSemaphore};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};
use tokio::task::JoinSet;

/// What a semaphore at `name` has on the server.
async fn nodes(zookeeper: &ZooKeeper, name: &str) -> Vec<String> {
    let mut nodes = Vec::new();
    for part in ["leases", "locks"] {
        let children = zookeeper.left(&format!("{name}/{part}")).await;
        nodes.extend(children.into_iter().map(|child| format!("{part}/{child}")));
    }
    nodes
}

async fn until_nodes(zookeeper: &ZooKeeper, name: &str, n: usize) -> Result<()> {
    until(&format!("{n} nodes are there"), || async {
        nodes(zookeeper, name).await.len() == n
    })
    .await
}

async fn release(leases: Vec<Guard>) -> Result<()> {
    for lease in leases {
        lease.release().await?;
    }
    Ok(())
}

async fn none_left(zookeeper: &ZooKeeper, name: &str) -> Result<()> {
    until_nodes(zookeeper, name, 0).await
}

/// All three are out: a fourth must not be given, and what waited for it must have gone.
async fn three_and_no_more(
    zookeeper: &ZooKeeper,
    one: &ZkSemaphore,
    other: &ZkSemaphore,
) -> Result<()> {
    let two = one.acquire(2, SOON).await?;
    let third = other.acquire(1, SOON).await?;
    let before = nodes(zookeeper, one.name()).await;
    ensure!(before.len() == 3, "three leases are {before:?}");
    taken("a fourth", other.acquire(1, SHORT).await)?;
    taken("a fourth at once", one.try_acquire(1).await)?;
    taken("two more", one.acquire(2, SHORT).await)?;
    let after = nodes(zookeeper, one.name()).await;
    ensure!(before == after, "there was {before:?} and is {after:?}");
    release(two).await?;
    taken(
        "three of the two that are back",
        one.acquire(3, SHORT).await,
    )?;
    release(third).await?;
    release(one.acquire(3, SOON).await.context("all three")?).await
}

#[apply(test!)]
async fn there_are_no_more_leases_than_the_semaphore_has(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, other) = (name(), zookeeper.client().await, zookeeper.client().await);
    three_and_no_more(
        zookeeper,
        &process.client.semaphore(&name, 3),
        &other.client.semaphore(&name, 3),
    )
    .await?;
    none_left(zookeeper, &name).await
}

#[apply(test!)]
async fn a_semaphore_that_gives_one_too_many_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, other) = (name(), zookeeper.client().await, zookeeper.client().await);
    let (one, twin) = (
        process.client.semaphore(&name, 3),
        other.client.semaphore(&name, 4),
    );
    caught(
        three_and_no_more(zookeeper, &one, &twin).await,
        "a fourth: Ok",
    )
}

/// Three processes of six, four times each, some of them with two leases: never more than three are out, and three at
/// once are. The first ones stay until that was so.
#[apply(test!)]
async fn a_crowd_is_let_in_by_threes(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, out, most) = (
        name(),
        Arc::new(AtomicI64::new(0)),
        Arc::new(AtomicI64::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let process = Arc::new(zookeeper.client().await);
        for n in 0..6 {
            let (process, out, most) = (process.clone(), out.clone(), most.clone());
            let semaphore = process.client.semaphore(&name, 3);
            tasks.spawn(async move {
                // Its way to the server ends with it.
                let _process = process;
                for round in 0..4 {
                    let wanted = if round == 0 { 1 } else { 1 + n % 2 };
                    let leases = semaphore.acquire(wanted, SOON * 3).await?;
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
                anyhow::Ok(())
            });
        }
    }
    for result in tasks.join_all().await {
        result?;
    }
    let most = most.load(SeqCst);
    ensure!(most == 3, "{most} leases of 3 were out at most");
    none_left(zookeeper, &name).await
}

#[apply(test!)]
async fn leases_that_cannot_be_given_are_refused_at_once(zookeeper: &ZooKeeper) -> Result<()> {
    let process = zookeeper.client().await;
    let semaphore = process.client.semaphore(&name(), 3);
    for wanted in [0, 4] {
        invalid(
            &format!("{wanted} of 3"),
            semaphore.acquire(wanted, SOON).await,
        )?;
    }
    Ok(())
}

/// A waiter holds the mutex and has a node among the leases, as in Curator.
#[apply(test!)]
async fn the_nodes_of_a_semaphore_are_curators(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let semaphore = process.client.semaphore(&name, 1);
    let lease = semaphore.acquire(1, SOON).await?;
    let waiting = tokio::spawn(async move { semaphore.acquire(1, SOON).await });
    until_nodes(zookeeper, &name, 3).await?;
    let mut shapes = nodes(zookeeper, &name)
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
    ensure!(
        shapes == expected,
        "Curator's names would be {expected:?}: {shapes:?}"
    );
    waiting.abort();
    until_nodes(zookeeper, &name, 1).await?;
    release(lease).await?;
    none_left(zookeeper, &name).await
}

#[apply(test!)]
async fn leases_and_mutex_of_other_implementations_are_respected(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let lease = zookeeper
        .node(&format!("{name}/leases/{JAVA}lease-"))
        .await?;
    let locks = zookeeper.node(&format!("{name}/locks/{JAVA}lock-")).await?;
    let semaphore = process.client.semaphore(&name, 2);
    taken(
        "behind the holder of the mutex",
        semaphore.acquire(1, SHORT).await,
    )?;
    zookeeper.delete(&locks).await?;
    taken(
        "two of the one that is left",
        semaphore.acquire(2, SHORT).await,
    )?;
    let one = semaphore.acquire(1, SOON).await?;
    zookeeper.delete(&lease).await?;
    release(one).await?;
    release(semaphore.acquire(2, SOON).await?).await?;
    none_left(zookeeper, &name).await
}

/// Its session ends, and its leases with it; it is told before. It knows by the clock, and so whatever stood still.
#[apply(test!)]
async fn the_leases_of_a_dead_holder_come_back(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, other) = (name(), zookeeper.brief().await, zookeeper.client().await);
    let leases = process
        .client
        .semaphore(&name, 2)
        .acquire(2, SOON)
        .await
        .context("both")?;
    let semaphore = other.client.semaphore(&name, 2);
    let waiting = tokio::spawn(async move { semaphore.acquire(1, SOON).await });
    until_nodes(zookeeper, &name, 4).await?;
    process.way.cut();
    let next = waiting.await?.context("the next")?;
    for lease in &leases {
        ensure!(
            lease.is_lost(),
            "the next had a lease before its holder was told"
        );
        told(lease).await?;
    }
    release(next).await?;
    none_left(zookeeper, &name).await
}

/// The answer to one request is lost: that for the mutex, or that for the lease itself. What comes after it goes through.
#[apply(test!)]
async fn a_request_for_the_mutex_that_is_not_answered_leaves_no_orphan(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    a_request_that_is_not_answered_leaves_no_orphan(zookeeper, "-lock-").await
}

#[apply(test!)]
async fn a_request_for_a_lease_that_is_not_answered_leaves_no_orphan(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    a_request_that_is_not_answered_leaves_no_orphan(zookeeper, "-lease-").await
}

async fn a_request_that_is_not_answered_leaves_no_orphan(
    zookeeper: &ZooKeeper,
    asks_for: &'static str,
) -> Result<()> {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let semaphore = patient(mute.address()).await?.semaphore(&name, 2);
    release(semaphore.acquire(1, SOON).await?).await?;
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
        mute.heal();
        if let Ok(leases) = waiting.await {
            let leases = leases.context("both")?;
            let left = nodes(zookeeper, &name).await;
            ensure!(left.len() == 2, "two leases have {left:?}");
            release(leases).await?;
        }
        none_left(zookeeper, &name).await?;
    }
    Ok(())
}

/// A waiter for a lease loses its way to the server, and its session with it; the lease that it waited for comes back.
#[apply(test!)]
async fn a_waiter_for_a_lease_that_is_cut_off_leaves_nothing(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, holder, process) = (name(), zookeeper.client().await, zookeeper.brief().await);
    let lease = holder.client.semaphore(&name, 1).acquire(1, SOON).await?;
    let semaphore = process.client.semaphore(&name, 1);
    let waiting = tokio::spawn(async move { semaphore.acquire(1, SOON * 3).await });
    until_nodes(zookeeper, &name, 3).await?;
    process.way.cut();
    until_nodes(zookeeper, &name, 1).await?;
    release(lease).await?;
    unavailable("the waiter that was cut off", waiting.await?)?;
    none_left(zookeeper, &name).await
}
