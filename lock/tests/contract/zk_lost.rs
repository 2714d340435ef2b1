//! Answers, sessions and callers that are lost, for the recipes in ZooKeeper.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    mute::Mute,
    zk_losses::patient,
    zk_recipes::{JAVA, gone, node, take},
    zookeeper::{LONG, ZooKeeper},
};
use oversell_lock::{Guard, Lock, LockError, zk::ZkClient};
use std::{sync::Arc, time::Duration};

/// The node is made, its answer is lost, and the connection with it.
async fn made_without_an_answer<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    name: &str,
    nodes: usize,
    mute: &Mute,
    lock: L,
) -> Verdict {
    mute.mute();
    let taking = tokio::spawn(async move { lock.acquire(SOON).await });
    until("the node is made", || async {
        zookeeper.left(name).await.len() == nodes
    })
    .await?;
    mute.heal().await;
    let guard = says("the lock", taking.await.map_err(|e| e.to_string())?)?;
    let left = zookeeper.left(name).await;
    ensure(left.len() == nodes, || {
        format!("an orphan is left: {left:?}")
    })?;
    says("release", guard.release().await)
}

pub(crate) async fn a_creation_that_is_not_answered_leaves_no_orphan(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let mute = Mute::to(zookeeper.server()).await;
    let client = patient(mute.address()).await?;
    let name = name();
    says("warm", take(&client.lock(&name)).await?.release().await)?;
    made_without_an_answer(&zookeeper, &name, 1, &mute, client.lock(&name)).await?;
    gone(&zookeeper, &name).await?;
    let (lock, owner) = (client.rw_lock(&name), client.owner());
    made_without_an_answer(&zookeeper, &name, 1, &mute, lock.write()).await?;
    made_without_an_answer(&zookeeper, &name, 1, &mute, lock.read()).await?;
    gone(&zookeeper, &name).await?;
    let writing = take(&lock.write().owner(owner)).await?;
    made_without_an_answer(&zookeeper, &name, 2, &mute, lock.read().owner(owner)).await?;
    says("release", writing.release().await)?;
    gone(&zookeeper, &name).await
}

/// A lock that asks for its node anew, without looking whether it has one.
struct Forgetful(ZkClient, String);

impl Lock for Forgetful {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
        let client = self.0.session()?;
        // Here the honest lock looks for its uuid.
        while node(&client, &format!("{}/{JAVA}lock-", self.1))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
        Ok(Guard::new(self.name(), None).0)
    }
}

pub(crate) async fn a_creation_that_is_blindly_repeated_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, mute) = (name(), Mute::to(zookeeper.server()).await);
    let process = zookeeper.process_with(&mute.address(), LONG).await;
    says("warm", take(&process.lock(&name)).await?.release().await)?;
    let twin = Forgetful(process.client.clone(), name.clone());
    match made_without_an_answer(&zookeeper, &name, 1, &mute, twin).await {
        Err(broken) if broken.contains("an orphan is left") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// The holder of a read lock is told before the server lets a writer in.
pub(crate) async fn a_reader_learns_of_a_long_cut_before_its_node_goes(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let name = name();
    let process = zookeeper.brief().await;
    let guard = take(&process.client.rw_lock(&name).read()).await?;
    process.cut().await;
    zookeeper
        .is_told_before_its_node_goes(&name, &guard)
        .await?;
    gone(&zookeeper, &name).await
}

pub(crate) async fn a_reader_that_goes_away_leaves_no_node(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let lock = process.client.rw_lock(&name);
    let writing = take(&lock.write()).await?;
    let reader = lock.read();
    let waiting = tokio::spawn(async move { reader.acquire(SOON).await });
    until("the reader is queued", || async {
        zookeeper.left(&name).await.len() == 2
    })
    .await?;
    waiting.abort();
    until("the reader has gone", || async {
        zookeeper.left(&name).await.len() == 1
    })
    .await?;
    says("release", writing.release().await)
}
