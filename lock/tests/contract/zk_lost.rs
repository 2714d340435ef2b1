//! Answers, sessions and callers that are lost, for the recipes in ZooKeeper.

use super::{
    family::Server,
    mute::Mute,
    support::*,
    zookeeper::{JAVA, LONG, ZooKeeper, node, patient},
};
use oversell_lock::{Guard, Lock, LockError, zk::ZkClient};
use std::time::Duration;

/// The node is made, its answer is lost, and the connection with it.
async fn made_without_an_answer<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    name: &str,
    nodes: usize,
    mute: &Mute,
    lock: L,
) -> Result<()> {
    mute.mute();
    let taking = acquiring(lock);
    zookeeper.until_nodes(name, nodes).await?;
    mute.heal();
    let guard = taking.await??;
    let left = zookeeper.left(name).await;
    ensure!(left.len() == nodes, "an orphan is left: {left:?}");
    Ok(guard.release().await?)
}

#[apply(test!)]
async fn a_creation_that_is_not_answered_leaves_no_orphan(zookeeper: &ZooKeeper) -> Result<()> {
    let mute = Mute::to(zookeeper.address())?;
    let client = patient(mute.address()).await?;
    let name = name();
    pass(&client.lock(&name)).await?;
    made_without_an_answer(zookeeper, &name, 1, &mute, client.lock(&name)).await?;
    zookeeper.gone(&name).await?;
    let (lock, owner) = (client.rw_lock(&name), client.owner());
    made_without_an_answer(zookeeper, &name, 1, &mute, lock.write()).await?;
    made_without_an_answer(zookeeper, &name, 1, &mute, lock.read()).await?;
    zookeeper.gone(&name).await?;
    let writing = take(&lock.write().owner(owner)).await?;
    made_without_an_answer(zookeeper, &name, 2, &mute, lock.read().owner(owner)).await?;
    writing.release().await?;
    zookeeper.gone(&name).await
}

/// A lock that asks for its node again, without looking whether it has one.
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

#[apply(test!)]
async fn a_creation_that_is_blindly_repeated_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let process = zookeeper.process_with(&mute.address(), LONG).await;
    pass(&process.lock(&name)).await?;
    let twin = Forgetful(process.client.clone(), name.clone());
    caught(
        made_without_an_answer(zookeeper, &name, 1, &mute, twin).await,
        "an orphan is left",
    )
}

#[apply(test!)]
async fn a_reader_that_goes_away_leaves_no_node(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let lock = process.client.rw_lock(&name);
    let writing = take(&lock.write()).await?;
    let reader = lock.read();
    let waiting = acquiring(reader);
    zookeeper.until_nodes(&name, 2).await?;
    waiting.abort();
    zookeeper.until_nodes(&name, 1).await?;
    Ok(writing.release().await?)
}
