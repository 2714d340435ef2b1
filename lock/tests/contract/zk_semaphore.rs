//! What the semaphore in ZooKeeper promises beyond what `programs.rs` finds out.

use super::{support::*, zookeeper::*};
use oversell_lock::zk::ZkSemaphore;

/// What a semaphore at `name` has on the server.
async fn nodes(zookeeper: &ZooKeeper, name: &str) -> Vec<String> {
    let mut nodes = Vec::new();
    for part in ["leases", "locks"] {
        let children = zookeeper.left(&format!("{name}/{part}")).await;
        nodes.extend(children.into_iter().map(|child| format!("{part}/{child}")));
    }
    nodes.sort();
    nodes
}

async fn until_nodes(zookeeper: &ZooKeeper, name: &str, n: usize) -> Result {
    let are = async || nodes(zookeeper, name).await.len() == n;
    until(&format!("{n} nodes are there"), are).await
}

async fn none_left(zookeeper: &ZooKeeper, name: &str) -> Result {
    until_nodes(zookeeper, name, 0).await
}

async fn release(leases: Vec<Guard>) -> Answer {
    for lease in leases {
        lease.release().await?;
    }
    Ok(())
}

/// A waiter for so many leases.
fn waiter(semaphore: &ZkSemaphore, leases: u32) -> JoinHandle<Answer<Vec<Guard>>> {
    let semaphore = semaphore.clone();
    tokio::spawn(async move { semaphore.acquire(leases, SOON * 3).await })
}

#[apply(test!)]
async fn leases_that_cannot_be_given_are_refused_at_once(zookeeper: &ZooKeeper) -> Result {
    let process = zookeeper.client().await;
    let semaphore = process.client.semaphore(&name(), 3);
    for wanted in [0, 4] {
        let leases = semaphore.acquire(wanted, SOON).await;
        invalid(&format!("{wanted} of 3"), leases)?;
    }
    Ok(())
}

/// A waiter holds the mutex and has a node among the leases, as in Curator.
#[apply(test!)]
async fn the_nodes_of_a_semaphore_are_curators(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let semaphore = process.client.semaphore(&name, 1);
    let lease = semaphore.acquire(1, SOON).await?;
    let waiting = waiter(&semaphore, 1);
    until_nodes(zookeeper, &name, 3).await?;
    let nodes = nodes(zookeeper, &name).await;
    let mut shapes: Vec<_> = nodes
        .iter()
        .map(|node| shape(node))
        .collect::<Result<_>>()?;
    shapes.sort();
    let curators = [
        "leases|-lease-0000000000",
        "leases|-lease-0000000001",
        "locks|-lock-0000000001",
    ];
    is("Curator's names", shapes, curators)?;
    waiting.abort();
    until_nodes(zookeeper, &name, 1).await?;
    release(lease).await?;
    none_left(zookeeper, &name).await
}

/// The answer to one request is lost: that for the mutex, or that for the lease itself. What comes after it goes through.
#[apply(test!)]
async fn a_request_that_is_not_answered_leaves_no_orphan(zookeeper: &ZooKeeper) -> Result {
    for (asks_for, gives_up) in [
        ("-lock-", false),
        ("-lock-", true),
        ("-lease-", false),
        ("-lease-", true),
    ] {
        let (name, mute) = (name(), Mute::to(zookeeper.address())?);
        let semaphore = patient(mute.address()).await?.semaphore(&name, 2);
        release(semaphore.acquire(1, SOON).await?).await?;
        mute.mute_at(asks_for);
        let waiting = waiter(&semaphore, 2);
        let is_made = async || {
            let nodes = nodes(zookeeper, &name).await;
            nodes.iter().any(|node| node.contains(asks_for))
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
