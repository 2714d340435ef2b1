//! The other locks in ZooKeeper under the contract: handles that share one family, and a semaphore with one lease.

use super::{
    family::{Family, Process, Then, Twice, until},
    zookeeper::{Member, ZooKeeper},
};
use oversell_lock::{
    Lock, MultiLock,
    zk::{ZkClient, ZkLock, ZkReadLock, ZkSemaphoreMutex, ZkWriteLock},
};
use std::{marker::PhantomData, time::Duration};

/// A session that ends within those tests of locks with a lease in which a process stands still, and that a busy machine
/// does not end.
const SESSION: Duration = Duration::from_secs(10);

/// A kind of handle.
pub(crate) trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
    /// Whether each process that waits or holds has one node.
    const QUEUES: bool = true;
    type Lock: Lock + 'static;

    fn of(client: &ZkClient, name: &str) -> Self::Lock;

    /// The directories that it has.
    fn directories(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }
}

/// With an owner, who takes it twice.
pub(crate) struct Owned;
pub(crate) struct Write;
/// A reader that was the writer before, and so came in alone.
pub(crate) struct Read;
pub(crate) struct Multi;

impl Kind for Owned {
    const NAME: &'static str = "zookeeper_reentrant";
    type Lock = Twice<ZkLock>;

    fn of(client: &ZkClient, name: &str) -> Self::Lock {
        Twice::of(client.lock(name).owner(client.owner()))
    }
}

impl Kind for Write {
    const NAME: &'static str = "zookeeper_write";
    type Lock = ZkWriteLock;

    fn of(client: &ZkClient, name: &str) -> ZkWriteLock {
        // With an owner of its own, so that the suite also runs what re-entry needs.
        client.rw_lock(name).write().owner(client.owner())
    }
}

impl Kind for Read {
    const NAME: &'static str = "zookeeper_read";
    // While it comes in it has two nodes.
    const QUEUES: bool = false;
    type Lock = Then<ZkWriteLock, ZkReadLock>;

    fn of(client: &ZkClient, name: &str) -> Self::Lock {
        let (lock, owner) = (client.rw_lock(name), client.owner());
        Then(lock.write().owner(owner), lock.read().owner(owner))
    }
}

impl Kind for Multi {
    const NAME: &'static str = "zookeeper_multi";
    const QUEUES: bool = false;
    type Lock = MultiLock<ZkLock>;

    fn of(client: &ZkClient, name: &str) -> Self::Lock {
        MultiLock::new(
            Self::directories(name)
                .iter()
                .map(|part| client.lock(part))
                .collect(),
        )
    }

    fn directories(name: &str) -> Vec<String> {
        [1, 2].map(|part| format!("{name}-{part}")).into()
    }
}

/// One kind on one server.
pub(crate) struct Handles<K>(ZooKeeper, PhantomData<K>);

/// Its process.
pub(crate) struct Holder<K>(Member, PhantomData<K>);

impl<K> Handles<K> {
    pub(crate) fn at(connect: String) -> Self {
        Self(ZooKeeper::at(connect), PhantomData)
    }
}

impl<K: Kind> Family for Handles<K> {
    const NAME: &'static str = K::NAME;
    const QUEUES: bool = K::QUEUES;
    type Process = Holder<K>;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> Holder<K> {
        Holder(self.0.process_with(address, SESSION).await, PhantomData)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        let mut left = Vec::new();
        for directory in K::directories(name) {
            left.extend(self.0.left(&directory).await);
        }
        left
    }

    async fn take_away(&self, holder: &Holder<K>, name: &str) {
        holder.0.end_session(&self.0).await;
        until("the nodes are gone", || async {
            self.left(name).await.is_empty()
        })
        .await
        .expect("the session is closed");
    }
}

impl<K: Kind> Process for Holder<K> {
    type Lock = K::Lock;

    fn lock(&self, name: &str) -> K::Lock {
        K::of(&self.0.client, name)
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
