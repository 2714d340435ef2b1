//! What re-entry, readers and writers in ZooKeeper promise beyond the contract.

use crate::{support::*, zookeeper::*};

/// Curator reports success here: its re-entry does not ask the server.
#[apply(test!)]
async fn an_owner_that_lost_the_lock_does_not_come_in_again(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let lock = process.lock(&name).owner(process.client.owner());
    let guard = take(&lock).await?;
    zookeeper.take_away(&process, &name).await;
    connected(&process).await?;
    lost("after the session", lock.acquire(SOON).await)?;
    lost("a lost lock was released", guard.release().await)?;
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
    taken("a reader behind a waiting writer", tried)?;
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
    let curators = [
        "|-__READ__0000000000",
        "|-__WRIT__0000000000",
        "|-__WRIT__0000000001",
    ];
    is("Curator's names", shapes, curators)?;
    writing.release().await?;
    invalid("an upgrade", write.acquire(SOON).await)?;
    reading.release().await?;
    waiter.await?.context("a waiter")?.release().await?;
    zookeeper.gone(&name).await
}
