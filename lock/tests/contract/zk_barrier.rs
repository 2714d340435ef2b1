//! What the barrier in ZooKeeper promises, and the twin that sleeps through its opening.

use super::{
    family::Server,
    support::*,
    zookeeper::{LONG, Member, ZooKeeper, connected},
};
use futures::{FutureExt, future::BoxFuture};
use oversell::lab::Proxy;
use oversell_lock::{LockError, zk::ZkClient};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::timeout};
use zookeeper_client::{Acls, CreateMode, Error};

const SHORT: Duration = Duration::from_millis(200);
/// How long the twin waits: for longer than a busy machine takes to see that it does.
const LOOKS: Duration = Duration::from_secs(5);

/// Opens the barrier and closes it again in one transaction: nobody can look in between.
async fn open_and_close(zookeeper: &ZooKeeper, name: &str) -> Result<()> {
    let outsider = zookeeper.outsider().await;
    let mut both = outsider.new_multi_writer();
    both.add_delete(name, None)?;
    both.add_create(
        name,
        &[],
        &CreateMode::Persistent.with_acls(Acls::anyone_all()),
    )?;
    Ok(both.commit().await.map(|_| ())?)
}

#[apply(test!)]
async fn a_closed_barrier_is_a_persistent_node(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let barrier = process.client.barrier(&name);
    ensure!(barrier.set().await?, "it was closed before");
    ensure!(!barrier.set().await?, "closed twice");
    process.client.close().await;
    let stat = outsider
        .check_stat(&name)
        .await?
        .context("nothing is left of it")?;
    ensure!(stat.ephemeral_owner == 0, "it goes with its session");
    let other = zookeeper.client().await;
    let barrier = other.client.barrier(&name);
    ensure!(barrier.remove().await?, "it was open before");
    ensure!(!barrier.remove().await?, "opened twice");
    ensure!(
        outsider.check_stat(&name).await?.is_none(),
        "the node is left"
    );
    Ok(())
}

#[apply(test!)]
async fn fifty_wait_and_go_together(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, opened) = (name(), Arc::new(AtomicBool::new(false)));
    let processes = [zookeeper.client().await, zookeeper.client().await];
    let barrier = processes[0].client.barrier(&name);
    barrier.set().await?;
    let mut waiters = Vec::new();
    for process in &processes {
        let session = connected(process).await?;
        for _ in 0..25 {
            let (barrier, opened) = (process.client.barrier(&name), opened.clone());
            let mut waiter = async move { (barrier.wait(SOON).await, opened.load(SeqCst)) }.boxed();
            // It asks for its watch when it is polled.
            ensure!(futures::poll!(&mut waiter).is_pending(), "it did not ask");
            waiters.push(waiter);
        }
        // The server answers a session in order, so it has set the watches before this.
        session.check_stat(&name).await?;
    }
    for waiter in &mut waiters {
        ensure!(futures::poll!(waiter).is_pending(), "one did not wait");
    }
    let waiters = waiters.into_iter().map(tokio::spawn).collect::<Vec<_>>();
    opened.store(true, SeqCst);
    barrier.remove().await?;
    for waiter in waiters {
        let (waited, after) = waiter.await?;
        waited.context("the barrier is open")?;
        ensure!(after, "one went before it was opened");
    }
    Ok(())
}

#[apply(test!)]
async fn a_wait_at_a_barrier_ends_and_leaves_nothing(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let barrier = process.client.barrier(&name);
    barrier.wait(SHORT).await.context("an open one")?;
    barrier.set().await?;
    let before = outsider.check_stat(&name).await?;
    for wait in [Duration::ZERO, SHORT] {
        taken(&format!("after {wait:?}"), barrier.wait(wait).await)?;
    }
    let (session, mut waiter) = (connected(&process).await?, barrier.wait(SOON).boxed());
    ensure!(futures::poll!(&mut waiter).is_pending(), "it did not ask");
    session.check_stat(&name).await?;
    ensure!(futures::poll!(&mut waiter).is_pending(), "it is open");
    drop(waiter);
    let after = outsider.check_stat(&name).await?;
    ensure!(before == after, "there was {before:?} and is {after:?}");
    Ok(())
}

type Wait = fn(ZkClient, String) -> BoxFuture<'static, Result<(), LockError>>;

fn honest(client: ZkClient, name: String) -> BoxFuture<'static, Result<(), LockError>> {
    async move { client.barrier(&name).wait(SOON).await }.boxed()
}

/// The twin, which is Curator's way, looks whether there is a node whenever it hears of one.
fn looks_for_a_node(client: ZkClient, name: String) -> BoxFuture<'static, Result<(), LockError>> {
    let broken = |e: Error| LockError::Unavailable {
        server: "zookeeper",
        reason: e.into(),
    };
    let looks = async move {
        let client = client.session()?;
        // Here the honest one remembers which node it saw, and goes when that was deleted.
        while let (Some(_), watch) = client.check_and_watch_stat(&name).await.map_err(broken)? {
            watch.changed().await;
        }
        Ok(())
    };
    async move {
        let taken = || LockError::Taken {
            name: "the twin".into(),
            waited: LOOKS,
        };
        timeout(LOOKS, looks).await.unwrap_or_else(|_| Err(taken()))
    }
    .boxed()
}

/// A waiter that the server knows of.
async fn waits(
    process: &Member,
    name: &str,
    wait: Wait,
) -> Result<JoinHandle<Result<(), LockError>>> {
    let session = connected(process).await?;
    let mut waiter = wait(process.client.clone(), name.to_owned());
    ensure!(futures::poll!(&mut waiter).is_pending(), "it did not ask");
    session.check_stat(name).await?;
    ensure!(futures::poll!(&mut waiter).is_pending(), "it did not wait");
    Ok(tokio::spawn(waiter))
}

async fn goes_through_a_moment(zookeeper: &ZooKeeper, wait: Wait) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    process.client.barrier(&name).set().await?;
    let waiter = waits(&process, &name, wait).await?;
    open_and_close(zookeeper, &name).await?;
    waiter.await?.context("it was open")
}

#[apply(test!)]
async fn a_barrier_that_is_closed_again_at_once_lets_its_waiters_go(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    goes_through_a_moment(zookeeper, honest).await
}

#[apply(test!)]
async fn a_waiter_that_only_looks_for_a_node_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    caught(
        goes_through_a_moment(zookeeper, looks_for_a_node).await,
        "it was open: lock the twin not had",
    )
}

#[apply(test!)]
async fn a_barrier_that_was_opened_during_a_cut_lets_its_waiters_go(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, way) = (name(), Proxy::to(zookeeper.address())?);
    let process = zookeeper.process_with(&way.address(), LONG).await;
    connected(&process).await?;
    process.client.barrier(&name).set().await?;
    let waiter = waits(&process, &name, |client, name| {
        async move { client.barrier(&name).wait(SOON).await }.boxed()
    });
    let waiter = waiter.await?;
    way.cut();
    open_and_close(zookeeper, &name).await?;
    way.mend();
    waiter.await?.context("it was open")
}
