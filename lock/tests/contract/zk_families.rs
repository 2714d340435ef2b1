//! The other locks in ZooKeeper under the contract: one that writes, a semaphore with one lease.

use super::{
    family::{Family, Process},
    zookeeper::{Member, ZooKeeper},
};
use oversell_lock::zk::{ZkSemaphoreMutex, ZkWriteLock};

/// `ZkWriteLock`.
pub(crate) struct Write(pub(crate) ZooKeeper);

/// Its process.
pub(crate) struct Writer(pub(crate) Member);

impl Family for Write {
    const NAME: &'static str = "zookeeper_write";
    const QUEUES: bool = true;
    type Process = Writer;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> Writer {
        Writer(self.0.process_at(address).await)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, holder: &Writer, name: &str) {
        self.0.take_away(&holder.0, name).await;
    }
}

impl Process for Writer {
    type Lock = ZkWriteLock;

    fn lock(&self, name: &str) -> ZkWriteLock {
        // With an owner of its own, so that the suite also runs what re-entry needs.
        self.0.client.rw_lock(name).write().owner(self.0.client.owner())
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

/// `ZkSemaphoreMutex`.
pub(crate) struct Semaphore(pub(crate) ZooKeeper);

/// Its process.
pub(crate) struct SemaphoreMember(Member);

impl Semaphore {
    /// What a semaphore at `name` has on the server.
    pub(crate) async fn nodes(zookeeper: &ZooKeeper, name: &str) -> Vec<String> {
        let mut nodes = Vec::new();
        for part in ["leases", "locks"] {
            let children = zookeeper.left(&format!("{name}/{part}")).await;
            nodes.extend(children.into_iter().map(|child| format!("{part}/{child}")));
        }
        nodes
    }
}

impl Family for Semaphore {
    const NAME: &'static str = "zookeeper_semaphore_mutex";
    // One that waits has two nodes, and those behind it one each: their number does not tell who is there.
    const QUEUES: bool = false;
    type Process = SemaphoreMember;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> SemaphoreMember {
        SemaphoreMember(self.0.process_at(address).await)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        Self::nodes(&self.0, name).await
    }

    async fn take_away(&self, holder: &SemaphoreMember, name: &str) {
        self.0.take_away(&holder.0, &format!("{name}/leases")).await;
    }
}

impl Process for SemaphoreMember {
    type Lock = ZkSemaphoreMutex;

    fn lock(&self, name: &str) -> ZkSemaphoreMutex {
        self.0.client.semaphore_mutex(name)
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
