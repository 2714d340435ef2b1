//! What the barrier in ZooKeeper promises, and the twin that sleeps through its opening.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    proxy::Proxy,
    zookeeper::{Member, ZooKeeper},
};
use futures::FutureExt;
use oversell_lock::LockError;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use zookeeper_client::{Acls, Client, CreateMode};

const SHORT: Duration = Duration::from_millis(200);

pub(crate) fn text(error: impl ToString) -> String {
    error.to_string()
}

pub(crate) async fn connected(process: &Member) -> Result<Client, String> {
    until("connected", || async { process.client.session().is_ok() }).await?;
    says("a session", process.client.session())
}

/// Opens the barrier and closes it again in one transaction: nobody can look in between.
async fn open_and_close(zookeeper: &ZooKeeper, name: &str) -> Verdict {
    let outsider = zookeeper.outsider().await;
    let mut both = outsider.new_multi_writer();
    both.add_delete(name, None).map_err(text)?;
    both.add_create(name, &[], &CreateMode::Persistent.with_acls(Acls::anyone_all())).map_err(text)?;
    both.commit().await.map(|_| ()).map_err(text)
}

pub(crate) async fn a_closed_barrier_is_a_persistent_node(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process, outsider) = (name(), zookeeper.process().await, zookeeper.outsider().await);
    let barrier = process.client.barrier(&name);
    ensure(says("set", barrier.set().await)?, || "it was closed before".into())?;
    ensure(!says("set", barrier.set().await)?, || "closed twice".into())?;
    process.close().await;
    let stat = outsider.check_stat(&name).await.map_err(text)?.ok_or("nothing is left of it")?;
    ensure(stat.ephemeral_owner == 0, || "it goes with its session".into())?;
    let other = zookeeper.process().await;
    let barrier = other.client.barrier(&name);
    ensure(says("remove", barrier.remove().await)?, || "it was open before".into())?;
    ensure(!says("remove", barrier.remove().await)?, || "opened twice".into())?;
    ensure(outsider.check_stat(&name).await.map_err(text)?.is_none(), || "the node is left".into())
}

pub(crate) async fn fifty_wait_and_go_together(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, opened) = (name(), Arc::new(AtomicBool::new(false)));
    let processes = [zookeeper.process().await, zookeeper.process().await];
    let barrier = processes[0].client.barrier(&name);
    says("set", barrier.set().await)?;
    let mut waiters = Vec::new();
    for process in &processes {
        let session = connected(process).await?;
        for _ in 0..25 {
            let (barrier, opened) = (process.client.barrier(&name), opened.clone());
            let mut waiter = async move { (barrier.wait(SOON).await, opened.load(SeqCst)) }.boxed();
            // It asks for its watch when it is polled.
            ensure(futures::poll!(&mut waiter).is_pending(), || "one did not wait".into())?;
            waiters.push(waiter);
        }
        // The server answers a session in order, so it has set the watches before this.
        session.check_stat(&name).await.map_err(text)?;
    }
    let waiters = waiters.into_iter().map(tokio::spawn).collect::<Vec<_>>();
    opened.store(true, SeqCst);
    says("remove", barrier.remove().await)?;
    for waiter in waiters {
        let (waited, after) = waiter.await.map_err(text)?;
        says("the barrier is open", waited)?;
        ensure(after, || "one went before it was opened".into())?;
    }
    Ok(())
}

pub(crate) async fn a_wait_at_a_barrier_ends_and_leaves_nothing(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process, outsider) = (name(), zookeeper.process().await, zookeeper.outsider().await);
    let barrier = process.client.barrier(&name);
    says("an open one", barrier.wait(SHORT).await)?;
    says("set", barrier.set().await)?;
    let before = outsider.check_stat(&name).await.map_err(text)?;
    for wait in [Duration::ZERO, SHORT] {
        match barrier.wait(wait).await {
            Err(LockError::Taken { .. }) => {}
            other => return Err(format!("after {wait:?}: {other:?}")),
        }
    }
    ensure(futures::poll!(barrier.wait(SOON).boxed()).is_pending(), || "it is open".into())?;
    let after = outsider.check_stat(&name).await.map_err(text)?;
    ensure(before == after, || format!("there was {before:?} and is {after:?}"))
}

/// A waiter that the server knows of.
async fn waits(process: &Member, name: &str) -> Result<JoinHandle<Result<(), LockError>>, String> {
    let session = connected(process).await?;
    let barrier = process.client.barrier(name);
    let mut waiter = async move { barrier.wait(SOON).await }.boxed();
    ensure(futures::poll!(&mut waiter).is_pending(), || "it did not wait".into())?;
    session.check_stat(name).await.map_err(text)?;
    Ok(tokio::spawn(waiter))
}

pub(crate) async fn a_barrier_that_is_closed_again_at_once_lets_its_waiters_go(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    says("set", process.client.barrier(&name).set().await)?;
    let waiter = waits(&process, &name).await?;
    open_and_close(&zookeeper, &name).await?;
    says("it was open", waiter.await.map_err(text)?)
}

pub(crate) async fn a_barrier_that_was_opened_during_a_cut_lets_its_waiters_go(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, way) = (name(), Proxy::to(zookeeper.server()).await);
    let process = zookeeper.process_at(&way.address()).await;
    says("set", process.client.barrier(&name).set().await)?;
    let waiter = waits(&process, &name).await?;
    way.cut().await;
    open_and_close(&zookeeper, &name).await?;
    way.mend().await;
    says("it was open", waiter.await.map_err(text)?)
}

/// The twin, which is Curator's way, looks whether there is a node.
pub(crate) async fn a_waiter_that_only_looks_for_a_node_is_caught(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    says("set", process.client.barrier(&name).set().await)?;
    open_and_close(&zookeeper, &name).await?;
    let there = zookeeper.outsider().await.check_stat(&name).await.map_err(text)?;
    ensure(there.is_some(), || "the twin saw it open".into())
}
