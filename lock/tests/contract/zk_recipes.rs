//! What re-entry, readers and writers in ZooKeeper promise beyond the contract.

use super::{support::*, zookeeper::*};
use zookeeper_client::CreateMode;

/// What Curator answers with true: its re-entry does not ask the server.
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

/// Six readers of two processes have a node each.
#[apply(test!)]
async fn each_reader_is_one_node(zookeeper: &ZooKeeper) -> Result {
    let (name, processes, mut readers) = (name(), zookeeper.clients(2).await, Vec::new());
    for n in [0, 0, 0, 0, 0, 1] {
        readers.push(take(&processes[n].client.rw_lock(&name).read()).await?);
    }
    is("nodes", zookeeper.left(&name).await.len(), 6)?;
    let writer = processes[1].client.rw_lock(&name).write();
    taken("a writer beside readers", writer.acquire(SHORT).await)?;
    for reader in readers {
        reader.release().await?;
    }
    zookeeper.gone(&name).await
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

#[apply(test!)]
async fn a_writer_may_read_and_a_reader_may_not_write(zookeeper: &ZooKeeper) -> Result {
    let name = name();
    let (process, other) = (zookeeper.client().await, zookeeper.client().await);
    let owner = process.client.owner();
    let lock = process.client.rw_lock(&name);
    let (read, write) = (lock.read().owner(owner), lock.write().owner(owner));
    let there = other.client.rw_lock(&name);
    let writing = take(&write).await?;
    let waiters: Vec<_> = (0..3).map(|_| passing(lock.write())).collect();
    zookeeper.until_nodes(&name, 4).await?;
    let (reading, again) = (take(&read).await?, take(&read).await?);
    pass(&write).await.context("writing once more")?;
    let left = zookeeper.left(&name).await;
    let mut shapes: Vec<_> = left.iter().map(|node| shape(node)).collect::<Result<_>>()?;
    shapes.sort();
    let mut curators = vec!["|-__READ__0000000000".to_owned()];
    curators.extend((0..4).map(|n| format!("|-__WRIT__{n:010}")));
    is("Curator's names", shapes, curators)?;
    writing.release().await?;
    let tried = there.write().acquire(SHORT).await;
    taken("a writer beside the downgraded one", tried)?;
    invalid("an upgrade", write.acquire(SOON).await)?;
    reading.release().await?;
    let tried = there.write().acquire(SHORT).await;
    taken("a writer beside the last hold", tried)?;
    again.release().await?;
    for waiter in waiters {
        waiter.await?.context("a waiter")?;
    }
    pass(&write).await?;
    zookeeper.gone(&name).await
}

/// Another implementation's downgraded writer: two nodes of one sequence.
#[apply(test!)]
async fn nodes_of_other_implementations_are_respected(zookeeper: &ZooKeeper) -> Result {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let lock = process.client.rw_lock(&name);
    let writer = zookeeper.node(&format!("{name}/{JAVA}__WRIT__")).await?;
    let reader = writer.replace("__WRIT__", "__READ__");
    make(&outsider, &reader, CreateMode::Ephemeral).await?;
    let tried = lock.read().acquire(SHORT).await;
    taken("a reader behind a writer", tried)?;
    zookeeper.delete(&writer).await?;
    let guard = take(&lock.read()).await?;
    let tried = lock.write().acquire(SHORT).await;
    taken("a writer behind a reader", tried)?;
    zookeeper.delete(&reader).await?;
    guard.release().await?;
    pass(&lock.write()).await?;
    zookeeper.gone(&name).await
}
