//! `ZkLock` under the contract, and what only it promises.

use super::{
    Verdict,
    clauses::{SOON, ensure},
    family::{Family, Process, name, until},
    proxy::Proxy,
};
use oversell_lock::{
    Guard, Lock, LockError,
    zk::{ZkClient, ZkLock, ZkOptions},
};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::sync::OnceCell;
use zookeeper_client::{Client, Error};

/// Short, so that a test that waits for its end need not wait long, and only for such a test: a busy machine is silent for
/// the 0.8 s after which its connection is given up, and what is then under way may come to "not known".
pub(crate) const SESSION: Duration = Duration::from_secs(4);
/// So long that a busy machine ends neither it nor its connection, which is given up after 8 s of silence.
pub(crate) const LONG: Duration = Duration::from_secs(40);
pub(crate) const CHROOT: &str = "/tests";

pub(crate) struct ZooKeeper {
    connect: String,
    outsider: OnceCell<Client>,
}

impl ZooKeeper {
    pub(crate) fn at(connect: String) -> Self {
        Self {
            connect,
            outsider: OnceCell::new(),
        }
    }

    /// A client that looks at the server from outside, in the clients' chroot. There is one: each more would cost the
    /// server under test two transactions.
    pub(crate) async fn outsider(&self) -> Client {
        let connect = || async {
            let client = Client::connector()
                .with_session_timeout(LONG)
                .connect(&self.connect)
                .await;
            client
                .expect("zookeeper is there")
                .chroot(CHROOT)
                .expect("an absolute path")
        };
        self.outsider.get_or_init(connect).await.clone()
    }

    /// A process that reaches the server at `address`, and has a session of this length.
    pub(crate) async fn process_with(&self, address: &str, session: Duration) -> Member {
        let way = Proxy::to(address.into());
        let client = ZkClient::new(
            ZkOptions::new(way.address())
                .chroot(CHROOT)
                .session(session),
        )
        .expect("options");
        // A client waits for its first connection no longer than for a lost one; a busy machine may need more.
        until("connected", || async { client.session().is_ok() })
            .await
            .expect("zookeeper is there");
        Member { client, way }
    }

    /// A process whose session ends soon after its way was cut.
    pub(crate) async fn brief(&self) -> Member {
        self.process_with(&self.connect, SESSION).await
    }

    /// Its holder's way was cut: it knows that its lock is lost by the time that its node has gone. It knows that by the
    /// clock, and so whatever stood still meanwhile, the test or the server.
    pub(crate) async fn is_told_before_its_node_goes(&self, name: &str, guard: &Guard) -> Verdict {
        // First the node, then the guard: what has gone at the look had gone before the guard is asked.
        let either = || async { self.left(name).await.is_empty() || guard.is_lost() };
        until("the holder is told, or its node goes", either).await?;
        ensure(guard.is_lost(), || {
            "the node had gone before the holder was told".into()
        })?;
        tokio::time::timeout(SOON, guard.lost())
            .await
            .map_err(|_| "who waits for the loss was never told".into())
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

    /// Ends its session: another connection to the same session may close it, as long as the first does not take it
    /// back.
    pub(crate) async fn end_session(&self, zookeeper: &ZooKeeper) {
        let session = connected(self)
            .await
            .expect("it has a session")
            .into_session();
        self.way.cut().await;
        let usurper = Client::connector()
            .with_session(session)
            .connect(&zookeeper.connect)
            .await;
        let usurper = usurper.expect("the same session");
        let mut states = usurper.state_watcher();
        drop(usurper);
        while !states.changed().await.is_terminated() {}
        self.way.mend();
    }
}

pub(crate) fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The session of a process that is connected, or soon will be.
pub(crate) async fn connected(process: &Member) -> Result<Client, String> {
    let session = Mutex::new(None);
    let connects = || async {
        process
            .client
            .session()
            .is_ok_and(|now| session.lock().replace(now).is_none())
    };
    until("connected", connects).await?;
    session.into_inner().ok_or_else(|| "no session".to_owned())
}

impl Family for ZooKeeper {
    const NAME: &'static str = "zookeeper";
    const QUEUES: bool = true;
    type Process = Member;

    fn server(&self) -> String {
        self.connect.clone()
    }

    /// On a way of the test's own, which it may cut or mute for good, a session that ends within the test.
    async fn process_at(&self, address: &str) -> Member {
        let session = if address == self.connect {
            LONG
        } else {
            SESSION
        };
        self.process_with(address, session).await
    }

    async fn left(&self, name: &str) -> Vec<String> {
        match self.outsider().await.list_children(name).await {
            Err(Error::NoNode) => Vec::new(),
            children => children.expect("a list"),
        }
    }

    async fn take_away(&self, holder: &Member, name: &str) {
        holder.end_session(self).await;
        until("the node is gone", || async {
            self.left(name).await.is_empty()
        })
        .await
        .expect("the session is closed");
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
    let guard = process
        .lock(&name)
        .acquire(SOON)
        .await
        .map_err(|e| e.to_string())?;
    let session = process
        .client
        .session()
        .map_err(|e| e.to_string())?
        .session_id();
    process.way.cut().await;
    process.way.mend();
    guard
        .release()
        .await
        .map_err(|e| format!("the release goes through after the cut: {e}"))?;
    // The release may be answered before the client is said to be connected again.
    let after = connected(&process).await?.session_id();
    if session == after {
        Ok(())
    } else {
        Err("the session did not survive".into())
    }
}

pub(crate) async fn a_holder_learns_of_a_long_cut_before_its_node_goes(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let name = name();
    let process = zookeeper.brief().await;
    let guard = process
        .lock(&name)
        .acquire(SOON)
        .await
        .map_err(|e| e.to_string())?;
    process.way.cut().await;
    zookeeper
        .is_told_before_its_node_goes(&name, &guard)
        .await?;
    match guard.release().await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("a release after the loss was told: {other:?}")),
    }
    until("the session ends, and the node with it", || async {
        zookeeper.left(&name).await.is_empty()
    })
    .await
}

pub(crate) async fn close_leaves_no_node_even_under_a_holder(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let name = name();
    let process = zookeeper.process().await;
    let guard = process
        .lock(&name)
        .acquire(SOON)
        .await
        .map_err(|e| e.to_string())?;
    let waiter = process.lock(&name);
    let waiter = tokio::spawn(async move { waiter.acquire(SOON).await });
    until("the waiter is queued", || async {
        zookeeper.left(&name).await.len() == 2
    })
    .await?;
    process.close().await;
    let left = zookeeper.left(&name).await;
    if !left.is_empty() || !guard.is_lost() {
        return Err(format!(
            "left: {left:?}; the holder was told: {}",
            guard.is_lost()
        ));
    }
    match (waiter.await, process.lock(&name).try_acquire().await) {
        (Ok(Err(LockError::Unavailable { .. })), Err(LockError::Unavailable { .. })) => Ok(()),
        other => Err(format!("a closed client: {other:?}")),
    }
}

pub(crate) async fn a_deleted_directory_is_made_again(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let name = name();
    let (process, outsider) = (zookeeper.process().await, zookeeper.outsider().await);
    for _ in 0..3 {
        let guard = process
            .lock(&name)
            .acquire(SOON)
            .await
            .map_err(|e| e.to_string())?;
        guard.release().await.map_err(|e| e.to_string())?;
        outsider
            .delete(&name, None)
            .await
            .map_err(|e| e.to_string())?;
    }
    Ok(())
}
