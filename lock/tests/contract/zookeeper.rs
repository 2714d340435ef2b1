//! `ZkLock` under the contract, and what only it promises.

use super::{
    Verdict,
    clauses::SOON,
    family::{Family, Process, name, until},
    proxy::Proxy,
};
use oversell_lock::{
    Lock, LockError,
    zk::{ZkClient, ZkLock, ZkOptions},
};
use std::{sync::Arc, time::Duration};
use zookeeper_client::{Client, Error};

/// Short, so that a test that waits for its end need not wait long: the least that the server allows.
const SESSION: Duration = Duration::from_secs(4);
const CHROOT: &str = "/tests";

pub(crate) struct ZooKeeper {
    connect: String,
}

impl ZooKeeper {
    pub(crate) fn at(connect: String) -> Self {
        Self { connect }
    }

    /// A client that looks at the server from outside, in the clients' chroot.
    pub(crate) async fn outsider(&self) -> Client {
        let client = Client::connect(&self.connect).await.expect("zookeeper is there");
        client.chroot(CHROOT).expect("an absolute path")
    }
}

/// A client with a way to the server of its own, which can be cut.
pub(crate) struct Member {
    pub(crate) client: ZkClient,
    way: Proxy,
}

impl Member {
    /// Cuts its way to the server, for good.
    pub(crate) async fn cut(&self) {
        self.way.cut().await;
    }
}

impl Family for ZooKeeper {
    const NAME: &'static str = "zookeeper";
    const QUEUES: bool = true;
    type Process = Member;

    fn server(&self) -> String {
        self.connect.clone()
    }

    async fn process_at(&self, address: &str) -> Member {
        let way = Proxy::to(address.into()).await;
        let client = ZkClient::new(ZkOptions { connect: way.address(), chroot: CHROOT.into(), session: SESSION });
        Member { client, way }
    }

    async fn left(&self, name: &str) -> Vec<String> {
        match self.outsider().await.list_children(name).await {
            Err(Error::NoNode) => Vec::new(),
            children => children.expect("a list"),
        }
    }

    /// Another connection to the same session may close it, as long as the first does not take it back.
    async fn take_away(&self, holder: &Member, name: &str) {
        let session = holder.client.session().expect("it holds the lock").into_session();
        holder.way.cut().await;
        let usurper = Client::connector().with_session(session).connect(&self.connect).await.expect("the same session");
        let mut states = usurper.state_watcher();
        drop(usurper);
        while !states.changed().await.is_terminated() {}
        until("the node is gone", || async { self.left(name).await.is_empty() }).await.expect("the session is closed");
        holder.way.mend().await;
    }
}

impl Process for Member {
    type Lock = ZkLock;

    fn lock(&self, name: &str) -> ZkLock {
        self.client.lock(name)
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

pub(crate) async fn a_short_cut_is_survived(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let name = name();
    let process = zookeeper.process().await;
    let guard = process.lock(&name).acquire(SOON).await.map_err(|e| e.to_string())?;
    let session = process.client.session().map_err(|e| e.to_string())?.session_id();
    process.way.cut().await;
    process.way.mend().await;
    guard.release().await.map_err(|e| format!("the release goes through after the cut: {e}"))?;
    let after = process.client.session().map_err(|e| e.to_string())?.session_id();
    if session == after { Ok(()) } else { Err("the session did not survive".into()) }
}

pub(crate) async fn a_holder_learns_of_a_long_cut_before_its_node_goes(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let name = name();
    let process = zookeeper.process().await;
    let guard = process.lock(&name).acquire(SOON).await.map_err(|e| e.to_string())?;
    process.way.cut().await;
    guard.lost().await;
    if zookeeper.left(&name).await.is_empty() {
        return Err("the node had gone before the holder was told".into());
    }
    match guard.release().await {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("a release without a connection: {other:?}")),
    }
    until("the session ends, and the node with it", || async { zookeeper.left(&name).await.is_empty() }).await
}

pub(crate) async fn close_leaves_no_node_even_under_a_holder(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let name = name();
    let process = zookeeper.process().await;
    let guard = process.lock(&name).acquire(SOON).await.map_err(|e| e.to_string())?;
    let waiter = process.lock(&name);
    let waiter = tokio::spawn(async move { waiter.acquire(SOON).await });
    until("the waiter is queued", || async { zookeeper.left(&name).await.len() == 2 }).await?;
    process.close().await;
    let left = zookeeper.left(&name).await;
    if !left.is_empty() || !guard.is_lost() {
        return Err(format!("left: {left:?}; the holder was told: {}", guard.is_lost()));
    }
    match (waiter.await, process.lock(&name).try_acquire().await) {
        (Ok(Err(LockError::Unavailable { .. })), Err(LockError::Unavailable { .. })) => Ok(()),
        other => Err(format!("a closed client: {other:?}")),
    }
}

/// The requests of two processes, in turn: as many nodes as they are, and they get in as they came.
pub(crate) async fn each_waiting_request_is_a_node_and_the_first_comes_first(zookeeper: Arc<ZooKeeper>) -> Verdict {
    const WAITERS: usize = 20;
    let name = name();
    let processes = [zookeeper.process().await, zookeeper.process().await];
    let guard = processes[0].lock(&name).acquire(SOON).await.map_err(|e| e.to_string())?;
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for n in 0..WAITERS {
        let (lock, order) = (processes[n % 2].lock(&name), Arc::clone(&order));
        waiters.push(tokio::spawn(async move {
            let guard = lock.acquire(SOON).await?;
            order.lock().push(n);
            guard.release().await
        }));
        until("it is a node", || async { zookeeper.left(&name).await.len() == n + 2 }).await?;
    }
    guard.release().await.map_err(|e| e.to_string())?;
    for waiter in waiters {
        waiter.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    }
    let order = order.lock().clone();
    if order.iter().copied().eq(0..WAITERS) { Ok(()) } else { Err(format!("they got in as {order:?}")) }
}

pub(crate) async fn a_deleted_directory_is_made_again(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let name = name();
    let (process, outsider) = (zookeeper.process().await, zookeeper.outsider().await);
    for _ in 0..3 {
        let guard = process.lock(&name).acquire(SOON).await.map_err(|e| e.to_string())?;
        guard.release().await.map_err(|e| e.to_string())?;
        outsider.delete(&name, None).await.map_err(|e| e.to_string())?;
    }
    Ok(())
}
