//! Who holds a lock in ZooKeeper, as anybody may ask.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    zk_recipes::{JAVA, gone, node, take},
    zookeeper::{CHROOT, ZooKeeper, connected, text},
};
use oversell_lock::{
    Holder, Lock, LockError,
    zk::{ZkClient, ZkOptions},
};
use std::sync::Arc;

/// One holds it, another waits, and `ask` is somebody else's question: it names the first in `directory`, then the next.
async fn is_told<L: Lock + 'static, F>(
    zookeeper: &ZooKeeper,
    directory: &str,
    [one, other]: [L; 2],
    ask: impl Fn() -> F,
) -> Verdict
where
    F: Future<Output = Result<Option<Holder>, LockError>>,
{
    let nobody = says("nobody", ask().await)?;
    ensure(nobody.is_none(), || format!("nobody holds it: {nobody:?}"))?;
    let first = take(&one).await?;
    let held = zookeeper.left(directory).await;
    let waiting = tokio::spawn(async move { other.acquire(SOON).await });
    // Where it waits behind a semaphore's mutex it has a node here too: that of the lease that it wants.
    until("the other waits", || async {
        zookeeper.left(directory).await.len() == 2
    })
    .await?;
    let told = says("the holder", ask().await)?;
    let expected = held.first().map(|id| Holder {
        id: id.clone(),
        remaining: None,
    });
    ensure(told.is_some() && told == expected, || {
        format!("{expected:?} holds it, and not {told:?}")
    })?;
    says("release", first.release().await)?;
    let next = says("the next", waiting.await.map_err(text)?)?;
    let left = zookeeper.left(directory).await;
    let told = says("the next holder", ask().await)?.map(|holder| holder.id);
    ensure(told.as_ref() == left.first() && left.len() == 1, || {
        format!("{left:?} holds it, and not {told:?}")
    })?;
    says("release", next.release().await)?;
    gone(zookeeper, directory).await
}

pub(crate) async fn anybody_may_ask_who_holds_a_lock(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let [one, other, third] = [
        zookeeper.process().await,
        zookeeper.process().await,
        zookeeper.process().await,
    ];
    let [one, other, third] = [one.client, other.client, third.client];
    let path = name();
    let asked = &third.lock(&path);
    is_told(
        &zookeeper,
        &path,
        [one.lock(&path), other.lock(&path)],
        || asked.holder(),
    )
    .await?;
    let path = name();
    let asked = &third.rw_lock(&path).read();
    let writers = [one.rw_lock(&path).write(), other.rw_lock(&path).write()];
    is_told(&zookeeper, &path, writers, || asked.holder()).await?;
    let path = name();
    let asked = &third.semaphore_mutex(&path);
    let mutexes = [one.semaphore_mutex(&path), other.semaphore_mutex(&path)];
    is_told(&zookeeper, &format!("{path}/leases"), mutexes, || {
        asked.holder()
    })
    .await
}

/// Curator writes its host's address into the node, and ours what it is told to.
pub(crate) async fn a_holder_that_says_where_it_is_is_shown_with_that(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, outsider) = (
        name(),
        zookeeper.process().await,
        zookeeper.outsider().await,
    );
    connected(&process).await?;
    let java = node(&outsider, &format!("{name}/{JAVA}lock-")).await?;
    outsider
        .set_data(&java, b"10.0.0.7", None)
        .await
        .map_err(text)?;
    let told = says("the holder", process.lock(&name).holder().await)?.map(|holder| holder.id);
    let expected = java
        .rsplit_once('/')
        .map(|(_, node)| format!("{node} 10.0.0.7"));
    ensure(told == expected, || {
        format!("{expected:?} holds it, and not {told:?}")
    })?;
    outsider.delete(&java, None).await.map_err(text)?;
    let options = ZkOptions::new(zookeeper.server())
        .chroot(CHROOT)
        .data("8100");
    let named = says("options", ZkClient::new(options))?;
    until("connected", || async { named.session().is_ok() }).await?;
    let guard = take(&named.lock(&name)).await?;
    let told = says("the holder", process.lock(&name).holder().await)?.map(|holder| holder.id);
    let expected = zookeeper
        .left(&name)
        .await
        .first()
        .map(|node| format!("{node} 8100"));
    ensure(told == expected, || {
        format!("{expected:?} holds it, and not {told:?}")
    })?;
    says("release", guard.release().await)
}
