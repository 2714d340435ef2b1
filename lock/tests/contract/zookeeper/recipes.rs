//! What re-entry, readers and writers in ZooKeeper promise beyond the contract.

use crate::{support::*, zookeeper::*};

/// The short beginning, as of every client.
#[apply(test!)]
async fn a_client_is_connected_or_says_that_nobody_answers(zookeeper: &ZooKeeper) -> Result {
    let client = ZkClient::connect(zookeeper.address()).await?;
    client.session().context("it is connected")?;
    client.close().await;
    ensure_unavailable("no server", ZkClient::connect("127.0.0.1:1").await)
}

/// Curator reports success here: its re-entry does not ask the server.
#[apply(test!)]
async fn an_owner_that_lost_the_lock_does_not_come_in_again(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let lock = process.lock(&name).owner(process.client.owner());
    let guard = take(&lock).await?;
    zookeeper.take_away(&process, &name).await;
    connected(&process).await?;
    ensure_lost("after the session", lock.acquire(SOON).await)?;
    ensure_lost("a lost lock was released", guard.release().await)?;
    pass(&lock).await
}

#[apply(test!)]
async fn a_reader_stands_behind_a_writer_that_waits(zookeeper: &ZooKeeper) -> Result {
    let name = name();
    let (process, other) = (zookeeper.client().await, zookeeper.client().await);
    let (lock, there) = (process.client.rw_lock(&name), other.client.rw_lock(&name));
    let reader = take(&lock.read()).await?;
    let writer = zookeeper.queued(there.write()).await?;
    let tried = lock.read().acquire(SHORT).await;
    ensure_taken("a reader behind a waiting writer", tried)?;
    reader.release().await?;
    writer.await??.release().await?;
    zookeeper.gone(&name).await
}

/// That a writer that keeps reading excludes others is checked by `programs.rs`.
#[apply(test!)]
async fn a_writer_may_read_and_a_reader_may_not_write(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let (owner, lock) = (process.client.owner(), process.client.rw_lock(&name));
    let (read, write) = (lock.read().owner(owner), lock.write().owner(owner));
    let writing = take(&write).await?;
    let waiter = zookeeper.queued(lock.write()).await?;
    let reading = take(&read).await?;
    pass(&write).await.context("writing once more")?;
    let left = zookeeper.left(&name).await;
    let mut shapes: Vec<_> = left.iter().map(|node| shape(node)).collect::<Result<_>>()?;
    shapes.sort();
    let curators = ["|-__READ__0000000000", "|-__WRIT__0000000000", "|-__WRIT__0000000001"];
    ensure_equal("Curator's names", shapes, curators)?;
    writing.release().await?;
    ensure_invalid("an upgrade", write.acquire(SOON).await)?;
    reading.release().await?;
    waiter.await?.context("a waiter")?.release().await?;
    zookeeper.gone(&name).await
}

/// The first call's node comes before the other reader's, and its answer after. The owner's second call begins when the
/// other reads already, and still has the token of the node that its owner has had all the time.
#[apply(test!)]
async fn a_reader_that_comes_in_again_has_its_nodes_token(zookeeper: &ZooKeeper) -> Result {
    let (name, slow, reader) = (name(), zookeeper.client().await, zookeeper.client().await);
    let owned = slow.client.rw_lock(&name).read().owner(slow.client.owner());
    pass(&owned).await.context("the directory")?;
    slow.way.set_condition(Condition::Slow(SHORT));
    let first = zookeeper.queued(owned.clone()).await?;
    let other = take(&reader.client.rw_lock(&name).read()).await?;
    ensure!(!first.is_finished(), "the first call is answered too early");
    let again = take(&owned).await?;
    let first = first.await??;
    ensure_equal("the same node's", again.fence(), first.fence())?;
    ensure!(again.fence() < other.fence(), "the other's node is older");
    slow.way.set_condition(Condition::Open);
    for reader in [first, again, other] {
        reader.release().await?;
    }
    zookeeper.gone(&name).await
}
