//! What the semaphore in ZooKeeper promises beyond the random programs (`programs.rs`).

use crate::{support::*, zookeeper::*};

#[apply(test!)]
async fn leases_that_cannot_be_given_are_refused_at_once(zookeeper: &ZooKeeper) -> Result {
    let process = zookeeper.client().await;
    let semaphore = process.client.semaphore(&name(), 3);
    for wanted in [0, 4] {
        let leases = semaphore.acquire(wanted, SOON).await;
        ensure_invalid(&format!("{wanted} of 3"), leases)?;
    }
    Ok(())
}

/// A waiter holds the mutex and has a node among the leases, as in Curator.
#[apply(test!)]
async fn the_nodes_of_a_semaphore_are_curators(zookeeper: &'static ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let semaphore = process.client.semaphore(&name, 1);
    let mut leases = semaphore.acquire(1, SOON).await?;
    let waits = semaphore.clone();
    let waiting = tokio::spawn(async move { waits.acquire(1, SOON * 3).await });
    let family = zookeeper.family("zookeeper_semaphore_mutex");
    family.until_queued(&name, 3).await?;
    let nodes = family.left(&name).await;
    let mut shapes: Vec<_> = nodes.iter().map(|node| shape(node)).collect::<Result<_>>()?;
    shapes.sort();
    let curators = ["|-lease-0000000000", "|-lease-0000000001", "|-lock-0000000001"];
    ensure_equal("Curator's names", shapes, curators)?;
    waiting.abort();
    let one = async || family.left(&name).await.len() == 1;
    until("the waiter has left", one).await?;
    leases.remove(0).release().await?;
    family.nothing_left(&name).await
}
