//! The holder of a lock in ZooKeeper, as anybody may ask for it.

use super::{support::*, zookeeper::*};
use oversell_lock::{
    Holder,
    zk::{ZkClient, ZkOptions},
};

/// One holds it, another waits, and `ask` is somebody else's question: it names the first in `directory`, then the next.
async fn is_told<L: Lock + 'static, F>(
    zookeeper: &ZooKeeper,
    directory: &str,
    [one, other]: [L; 2],
    ask: impl Fn() -> F,
) -> Result
where
    F: Future<Output = Result<Option<Holder>, LockError>>,
{
    let nobody = ask().await?;
    ensure!(nobody.is_none(), "nobody holds it: {nobody:?}");
    let first = take(&one).await?;
    let held = zookeeper.left(directory).await;
    let waiting = acquiring(other);
    // Where it waits behind a semaphore's mutex it has a node here too: that of the lease that it wants.
    zookeeper.until_nodes(directory, 2).await?;
    let told = ask().await?;
    let expected = held.first().map(|id| Holder {
        id: id.clone(),
        remaining: None,
    });
    ensure!(told.is_some(), "nobody holds it");
    is("the holder", told, expected)?;
    first.release().await?;
    let next = waiting.await??;
    let left = zookeeper.left(directory).await;
    let told = ask().await?.map(|holder| holder.id);
    is("the next holder", Vec::from_iter(told), left)?;
    next.release().await?;
    zookeeper.gone(directory).await
}

#[apply(test!)]
async fn anybody_may_ask_who_holds_a_lock(zookeeper: &ZooKeeper) -> Result {
    let members = zookeeper.clients(3).await;
    let [one, other, third] = [0, 1, 2].map(|n| &members[n].client);
    let path = name();
    let asked = &third.lock(&path);
    let locks = [one.lock(&path), other.lock(&path)];
    is_told(zookeeper, &path, locks, || asked.holder()).await?;
    let path = name();
    let asked = &third.rw_lock(&path).read();
    let writers = [one.rw_lock(&path).write(), other.rw_lock(&path).write()];
    is_told(zookeeper, &path, writers, || asked.holder()).await?;
    let path = name();
    let asked = &third.semaphore_mutex(&path);
    let mutexes = [one.semaphore_mutex(&path), other.semaphore_mutex(&path)];
    let leases = format!("{path}/leases");
    is_told(zookeeper, &leases, mutexes, || asked.holder()).await
}

/// Curator writes its host's address into the node, and ours what it is told to.
#[apply(test!)]
async fn a_holder_that_says_where_it_is_is_shown_with_that(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let shows = async |data: &str| {
        let told = process.lock(&name).holder().await?.map(|holder| holder.id);
        let node = zookeeper.left(&name).await.pop();
        is(
            "the holder",
            told,
            node.map(|node| format!("{node} {data}")),
        )
    };
    let java = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    zookeeper.set_data(&java, b"10.0.0.7").await?;
    shows("10.0.0.7").await?;
    zookeeper.delete(&java).await?;
    let options = ZkOptions::new(zookeeper.address()).chroot(CHROOT);
    let named = ZkClient::new(options.data("8100"))?;
    until("connected", || async { named.session().is_ok() }).await?;
    let guard = take(&named.lock(&name)).await?;
    shows("8100").await?;
    Ok(guard.release().await?)
}

/// An operator frees a lock: a waiter of another process comes in, and the holder hears of it when it releases.
async fn is_freed<L: Lock + 'static, F>(
    zookeeper: &ZooKeeper,
    queue: &str,
    [held, waits]: [L; 2],
    free: impl Fn() -> F,
) -> Result
where
    F: Future<Output = Result<bool, LockError>>,
{
    ensure!(!free().await?, "{queue}: nobody had it");
    let held = take(&held).await?;
    let waiter = acquiring(waits);
    zookeeper.until_nodes(queue, 2).await?;
    ensure!(free().await?, "{queue}: it was held");
    let next = waiter.await?.context("it was not let in")?;
    lost("the late release", held.release().await)?;
    kept("the next hold", &next)?;
    next.release().await?;
    ensure!(!free().await?, "{queue}: it was free");
    Ok(())
}

#[apply(test!)]
async fn a_lock_is_freed_by_force_and_no_other(zookeeper: &ZooKeeper) -> Result {
    let members = zookeeper.clients(3).await;
    let [one, other, operator] = [0, 1, 2].map(|n| &members[n].client);
    let path = name();
    let locks = [one.lock(&path), other.lock(&path)];
    let asked = operator.lock(&path);
    is_freed(zookeeper, &path, locks, || asked.force_unlock()).await?;
    let path = name();
    let writers = [one.rw_lock(&path).write(), other.rw_lock(&path).write()];
    let asked = operator.rw_lock(&path).write();
    is_freed(zookeeper, &path, writers, || asked.force_unlock()).await?;
    let path = name();
    let mutexes = [one.semaphore_mutex(&path), other.semaphore_mutex(&path)];
    let asked = operator.semaphore_mutex(&path);
    let leases = format!("{path}/leases");
    is_freed(zookeeper, &leases, mutexes, || asked.force_unlock()).await?;
    // Readers are freed together, as readers, and not as a writer.
    let path = name();
    let (lock, asked) = (one.rw_lock(&path), operator.rw_lock(&path));
    let readers = [take(&lock.read()).await?, take(&lock.read()).await?];
    ensure!(!asked.write().force_unlock().await?, "nobody writes");
    kept("a reader", &readers[0])?;
    let writer = acquiring(other.rw_lock(&path).write());
    zookeeper.until_nodes(&path, 3).await?;
    ensure!(asked.read().force_unlock().await?, "two read");
    let writer = writer.await?.context("the writer was not let in")?;
    for reader in readers {
        lost("a reader", reader.release().await)?;
    }
    ensure!(!asked.read().force_unlock().await?, "nobody reads");
    kept("the writer", &writer)?;
    Ok(writer.release().await?)
}
