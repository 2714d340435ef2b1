//! What the barrier in ZooKeeper promises, and the twin that sleeps through its opening.

use crate::{support::*, zookeeper::*};
use oversell_lock::zk::ZkClient;
use zookeeper_client::{Acls, CreateMode};

const SHORT: Duration = Duration::from_millis(200);
/// How long the twin waits: longer than a busy machine needs to show that it does.
const TWIN_WAIT: Duration = Duration::from_secs(5);

/// Opens and closes the barrier in one transaction: nobody can look in between.
async fn open_and_close(zookeeper: &ZooKeeper, name: &str) -> Result {
    let outsider = zookeeper.outsider().await;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let mut both = outsider.new_multi_writer();
    both.add_delete(name, None)?;
    both.add_create(name, &[], &persistent)?;
    Ok(both.commit().await.map(drop)?)
}

#[apply(test!)]
async fn a_closed_barrier_is_a_persistent_node(zookeeper: &ZooKeeper) -> Result {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let barrier = process.client.barrier(&name);
    ensure!(barrier.set().await?, "it was closed before");
    ensure!(!barrier.set().await?, "closed twice");
    process.client.close().await;
    let stat = outsider.check_stat(&name).await?;
    let owner = stat.map(|stat| stat.ephemeral_owner);
    ensure_equal("the session with which it goes", owner, Some(0))?;
    let other = zookeeper.client().await;
    let barrier = other.client.barrier(&name);
    ensure!(barrier.remove().await?, "it was open before");
    ensure!(!barrier.remove().await?, "opened twice");
    ensure_equal("the node", outsider.check_stat(&name).await?, None)
}

#[apply(test!)]
async fn a_wait_at_a_barrier_ends_and_leaves_nothing(zookeeper: &ZooKeeper) -> Result {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let barrier = process.client.barrier(&name);
    barrier.wait(SHORT).await.context("an open one")?;
    barrier.set().await?;
    let before = outsider.check_stat(&name).await?;
    for wait in [Duration::ZERO, SHORT] {
        ensure_timed_out(&format!("after {wait:?}"), barrier.wait(wait).await)?;
    }
    asked(&process, &name, &mut pin!(barrier.wait(SOON))).await?;
    ensure_equal("the node", outsider.check_stat(&name).await?, before)
}

/// Opened and closed again, with the waiter's connection cut or not.
async fn goes_through_a_moment(zookeeper: &ZooKeeper, cuts: bool, wait: impl AsyncFn(&ZkClient, &str) -> Answer) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    process.client.barrier(&name).set().await?;
    let mut waiter = pin!(wait(&process.client, &name));
    asked(&process, &name, &mut waiter).await?;
    if cuts {
        process.way.cut();
    }
    open_and_close(zookeeper, &name).await?;
    if cuts {
        process.way.mend();
    }
    waiter.await.context("it was open")
}

#[apply(test!)]
async fn a_barrier_that_was_open_for_a_moment_lets_its_waiters_go(zookeeper: &ZooKeeper) -> Result {
    let honest = async |client: &ZkClient, name: &str| client.barrier(name).wait(FOR_EVER).await;
    goes_through_a_moment(zookeeper, false, honest).await?;
    goes_through_a_moment(zookeeper, true, honest).await
}

/// The twin, as Curator, only looks whether there is a node.
#[apply(test!)]
async fn a_waiter_that_only_looks_for_a_node_is_caught(zookeeper: &ZooKeeper) -> Result {
    let looks = async |client: &ZkClient, name: &str| {
        let client = client.session()?;
        // The real barrier remembers which node it saw, and goes on when that was deleted.
        while let (Some(_), watch) = client.check_and_watch_stat(name).await.map_err(broken)? {
            watch.changed().await;
        }
        Ok(())
    };
    let twin = async |client: &ZkClient, name: &str| {
        let looked = timeout(TWIN_WAIT, looks(client, name)).await;
        looked.unwrap_or_else(|_| Err(wait_over_error("the twin", TWIN_WAIT)))
    };
    let verdict = goes_through_a_moment(zookeeper, false, twin).await;
    caught(verdict, "it was open: the twin was not acquired")
}
