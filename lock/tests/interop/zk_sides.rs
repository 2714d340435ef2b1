//! What every test of ZooKeeper here needs: a Java process with Curator, a Python process with kazoo, processes of ours,
//! and a look at the server from outside.

use super::{
    peer::{Peer, Pending, Told},
    support::{Verdict, ensure, says, until},
};
use oversell_lock::zk::{ZkClient, ZkOptions};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::task::JoinHandle;
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// The version that `make interop` builds.
const CURATOR: &str = "5.9.0";

/// So long that a busy machine does not end a connection of ours, which is given up after a fifth of it without a word.
const SESSION: Duration = Duration::from_secs(40);

/// How many round trips show that a waiter was not told: the server answers a session in order, and what it had to tell
/// before the first of them has then come.
const ROUND_TRIPS: usize = 50;

pub(crate) struct ZkSides {
    pub(crate) curator: Peer,
    pub(crate) kazoo: Peer,
    connect: String,
}

/// One of the other two, for what both can do.
pub(crate) trait Other {
    fn of(sides: &ZkSides) -> &Peer;
}

pub(crate) struct Curator;

pub(crate) struct Kazoo;

impl Other for Curator {
    fn of(sides: &ZkSides) -> &Peer {
        &sides.curator
    }
}

impl Other for Kazoo {
    fn of(sides: &ZkSides) -> &Peer {
        &sides.kazoo
    }
}

impl Told for ZkSides {
    fn peers(&self) -> impl Iterator<Item = &Peer> {
        [&self.curator, &self.kazoo].into_iter()
    }
}

impl ZkSides {
    pub(crate) async fn start(connect: String) -> Result<Self, String> {
        let curator = Peer::java("curator", "curator", CURATOR, &connect);
        let (curator, kazoo) = futures::future::try_join(curator, Peer::kazoo(&connect)).await?;
        Ok(Self {
            curator,
            kazoo,
            connect,
        })
    }

    /// A new process of ours, connected.
    pub(crate) async fn ours(&self) -> Result<ZkClient, String> {
        let ours = says(
            "options",
            ZkClient::new(ZkOptions::new(&self.connect).session(SESSION)),
        )?;
        until("connected", || async { ours.session().is_ok() }).await?;
        Ok(ours)
    }

    /// A client that looks at the server from outside.
    pub(crate) async fn outside(&self) -> Client {
        let client = Client::connector()
            .with_session_timeout(SESSION)
            .connect(&self.connect)
            .await;
        client.expect("zookeeper is there")
    }

    /// A path that no other test uses.
    pub(crate) fn name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        format!("/interop/{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// What is in a directory.
    pub(crate) async fn children(&self, path: &str) -> Vec<String> {
        match self.outside().await.list_children(path).await {
            Err(Error::NoNode) => Vec::new(),
            children => children.expect("a list"),
        }
    }

    /// Waits until so many are in a directory: who queues there has then made its node.
    pub(crate) async fn until_there(&self, path: &str, nodes: usize) -> Verdict {
        let outside = self.outside().await;
        until(&format!("{nodes} in {path}"), || async {
            match outside.list_children(path).await {
                Err(Error::NoNode) => nodes == 0,
                children => children.expect("a list").len() == nodes,
            }
        })
        .await
    }

    /// Makes what sections are counted in: `{name}-counter` and the directory `{name}-inside`.
    pub(crate) async fn prepare(&self, name: &str) -> Verdict {
        let (outside, persistent) = (
            self.outside().await,
            CreateMode::Persistent.with_acls(Acls::anyone_all()),
        );
        outside
            .mkdir("/interop", &persistent)
            .await
            .map_err(|e| e.to_string())?;
        outside
            .create(&format!("{name}-counter"), b"0", &persistent)
            .await
            .map_err(|e| e.to_string())?;
        outside
            .create(&format!("{name}-inside"), &[], &persistent)
            .await
            .map_err(|e| e.to_string())?;
        Ok(())
    }
}

/// That a thread of `peer` still waits, after its process has heard all that the server had to tell it.
pub(crate) async fn they_sleep_on(peer: &Peer, waiter: &mut Pending) -> Verdict {
    for _ in 0..ROUND_TRIPS {
        peer.ask("bystander", "ping").await?;
    }
    match waiter.came() {
        None => Ok(()),
        Some(answer) => Err(format!("a thread went on: {answer:?}")),
    }
}

/// The same for a task of ours.
pub(crate) async fn ours_sleeps_on<T>(process: &ZkClient, waiter: &JoinHandle<T>) -> Verdict {
    let session = says("a session", process.session())?;
    for _ in 0..ROUND_TRIPS {
        session.check_stat("/").await.map_err(|e| e.to_string())?;
    }
    ensure(!waiter.is_finished(), || "a task of ours went on".into())
}
