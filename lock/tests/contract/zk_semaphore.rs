//! What the semaphore in ZooKeeper promises beyond what `programs.rs` finds out.

use super::{support::*, zookeeper::*};

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
    let mut leases = semaphore.acquire(1, SOON).await?;
    let waits = semaphore.clone();
    let waiting = tokio::spawn(async move { waits.acquire(1, SOON * 3).await });
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
    leases.remove(0).release().await?;
    until_nodes(zookeeper, &name, 0).await
}
