//! What re-entry, readers and writers in ZooKeeper promise beyond the contract, and the twin that breaks it.

use super::{
    family::Server,
    support::*,
    zookeeper::{JAVA, Member, ZooKeeper, make, node, shape},
};
use oversell_lock::{Guard, Lock, LockError, zk::ZkClient};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use zookeeper_client::CreateMode;

/// What Curator answers with true: its re-entry does not ask the server.
#[apply(test!)]
async fn an_owner_that_lost_the_lock_does_not_come_in_again(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let lock = process.lock(&name).owner(process.client.owner());
    let guard = take(&lock).await?;
    zookeeper.take_away(&process, &name).await;
    until("connected again", || async {
        process.client.session().is_ok()
    })
    .await?;
    lost("after the session", lock.acquire(SOON).await)?;
    lost("a lost lock was released", guard.release().await)?;
    pass(&lock).await
}

// --- readers and writers ------------------------------------------------------------------------------------------

/// A writer is inside: no reader may come in.
async fn a_writer_keeps_out(holder: &Member, reader: &impl Lock) -> Result<()> {
    let writer = take(&holder.client.rw_lock(reader.name()).write()).await?;
    let refusal = taken("a reader beside a writer", reader.acquire(SHORT).await);
    writer.release().await?;
    refusal
}

#[apply(test!)]
async fn readers_are_together_and_a_writer_is_alone(zookeeper: &ZooKeeper) -> Result<()> {
    let name = name();
    let (process, other) = (zookeeper.client().await, zookeeper.client().await);
    let lock = process.client.rw_lock(&name);
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push(take(&lock.read()).await?);
    }
    readers.push(take(&other.client.rw_lock(&name).read()).await?);
    let tried = other.client.rw_lock(&name).write().acquire(SHORT).await;
    taken("a writer beside readers", tried)?;
    let left = zookeeper.left(&name).await;
    ensure!(left.len() == 6, "six readers have {left:?}");
    for reader in readers {
        reader.release().await?;
    }
    a_writer_keeps_out(&process, &other.client.rw_lock(&name).read()).await?;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_reader_stands_behind_a_writer_that_waits(zookeeper: &ZooKeeper) -> Result<()> {
    let name = name();
    let (process, other) = (zookeeper.client().await, zookeeper.client().await);
    let (lock, there) = (process.client.rw_lock(&name), other.client.rw_lock(&name));
    let reader = take(&lock.read()).await?;
    let writer = acquiring(there.write());
    zookeeper.until_nodes(&name, 2).await?;
    let tried = lock.read().acquire(SHORT).await;
    taken("a reader behind a waiting writer", tried)?;
    reader.release().await?;
    writer.await??.release().await?;
    zookeeper.gone(&name).await
}

/// A reader that does not look for writers before it.
struct Blind(ZkClient, String);

impl Lock for Blind {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
        let client = self.0.session()?;
        // Here the honest lock lists the directory.
        let made = node(&client, &format!("{}/{JAVA}__READ__", self.1)).await;
        let path = made.map_err(|reason| LockError::Unavailable {
            server: "zookeeper",
            reason: reason.to_string().into(),
        })?;
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            client.delete(&path, None).await.ok();
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

#[apply(test!)]
async fn a_reader_that_ignores_writers_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let (process, other) = (zookeeper.client().await, zookeeper.client().await);
    until("connected", || async { other.client.session().is_ok() }).await?;
    caught(
        a_writer_keeps_out(&process, &Blind(other.client.clone(), name())).await,
        "a reader beside a writer: Ok",
    )
}

#[apply(test!)]
async fn a_writer_may_read_and_a_reader_may_not_write(zookeeper: &ZooKeeper) -> Result<()> {
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
    let shapes = left.iter().map(|node| shape(node));
    let mut shapes = shapes.collect::<Result<Vec<_>>>()?;
    shapes.sort();
    let writers = (0..4).map(|n| format!("|-__WRIT__{n:010}"));
    let expected: Vec<_> = std::iter::once("|-__READ__0000000000".to_owned())
        .chain(writers)
        .collect();
    ensure!(
        shapes == expected,
        "Curator's names would be {expected:?}: {shapes:?}"
    );
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
async fn nodes_of_other_implementations_are_respected(zookeeper: &ZooKeeper) -> Result<()> {
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

/// Three processes, each with readers and writers: a writer is alone, also against readers.
#[apply(test!)]
async fn a_crowd_of_readers_and_writers_keeps_apart(zookeeper: &ZooKeeper) -> Result<()> {
    const WRITER: i64 = 1000;
    let (name, inside, wrong) = (
        name(),
        Arc::new(AtomicI64::new(0)),
        Arc::new(AtomicI64::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let process = Arc::new(zookeeper.client().await);
        for n in 0..6 {
            let (process, name, inside, wrong) =
                (process.clone(), name.clone(), inside.clone(), wrong.clone());
            tasks.spawn(async move {
                let lock = process.client.rw_lock(&name);
                for _ in 0..5 {
                    let writes = n % 3 == 0;
                    let guard = if writes {
                        take(&lock.write()).await?
                    } else {
                        take(&lock.read()).await?
                    };
                    let mine = if writes { WRITER } else { 1 };
                    let before = inside.fetch_add(mine, SeqCst);
                    if before >= WRITER || (writes && before > 0) {
                        wrong.fetch_add(1, SeqCst);
                    }
                    for _ in 0..5 {
                        tokio::task::yield_now().await;
                    }
                    inside.fetch_sub(mine, SeqCst);
                    guard.release().await?;
                }
                anyhow::Ok(())
            });
        }
    }
    for result in tasks.join_all().await {
        result?;
    }
    let wrong = wrong.load(SeqCst);
    ensure!(wrong == 0, "{wrong} were inside with a writer");
    zookeeper.gone(&name).await
}
