//! One ZooKeeper, the kinds of locks on it, and what its sessions mean for them.

pub(crate) mod barrier;
pub(crate) mod counts;
pub(crate) mod double_barrier;
pub(crate) mod double_barrier_rounds;
pub(crate) mod ensemble;
pub(crate) mod losses;
pub(crate) mod queue;
pub(crate) mod recipes;
pub(crate) mod semaphore;
pub(crate) mod wire;

use crate::{
    family::{Capability::*, operator},
    multi::{in_any_order, parts},
    support::*,
};
use oversell_lock::zk::{ZkClient, ZkLock, ZkOptions};
use tokio::sync::OnceCell;
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// Short, for tests that wait for its end. A busy machine may be silent for the 0.8 s after which its connection is
/// abandoned, and a pending change is then unknown.
pub(crate) const SESSION: Duration = Duration::from_secs(4);
/// The default time limit of an answer.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// A busy machine ends neither this session nor its connection, which is abandoned after 8 s of silence.
pub(crate) const LONG_SESSION: Duration = Duration::from_secs(40);
/// Ends within a test whose process stands still, but not on a busy machine.
const STALL_SESSION: Duration = Duration::from_secs(10);
pub(crate) const CHROOT: &str = "/tests";

/// A Java process's uuid.
pub(crate) const JAVA: &str = "_c_3f0c9a52-6f0e-4d0b-9a43-0d0c8f6a7b11-";

static KINDS: &[Kind<ZooKeeper>] = &[
    Kind::new("zookeeper", &[Contract, OneServer, Losable, Reentrant, InTurn, Layered, Shown], |member: &Member, name, ask| {
        let lock = member.client.lock(name);
        match ask.owner {
            Some(owner) => lock.owner(owner).boxed(),
            None => lock.boxed(),
        }
    })
    .shows(|member: &Member, name| operator!(member.client.lock(name)))
    .queues(),
    // With an owner of its own, so that re-entry is tested too.
    Kind::once_more("zookeeper_write", &[Contract, OneServer, Losable, Reentrant, InTurn, Shown], write)
        .shows(|member: &Member, name| operator!(member.client.rw_lock(name).write()))
        .reads(|member: &Member, name, ask| {
            let owner = ask.owner.unwrap_or_else(|| member.client.owner());
            member.client.rw_lock(name).read().owner(owner).boxed()
        })
        .queues(),
    Kind::once_more("zookeeper_multi", &[Contract, OneServer, Losable], |member: &Member, name, _| {
        in_any_order(parts(name).map(|part| member.client.lock(&part))).boxed()
    })
    .parts(|name| parts(name).into()),
    // A waiter has two nodes, and those behind it one each: their number only shows that somebody waits.
    Kind::once_more("zookeeper_semaphore_mutex", &[Contract, OneServer, Losable, Shown], |member: &Member, name, _| {
        member.client.semaphore_mutex(name).boxed()
    })
    .shows(|member: &Member, name| operator!(member.client.semaphore_mutex(name)))
    .queues()
    .parts(semaphore_parts),
];

pub(crate) fn semaphore_parts(name: &str) -> Vec<String> {
    let parts = ["leases", "locks"].map(|part| format!("{name}/{part}"));
    parts.into()
}

pub(crate) fn write(member: &Member, name: &str, ask: Ask) -> AnyLock {
    let owner = ask.owner.unwrap_or_else(|| member.client.owner());
    member.client.rw_lock(name).write().owner(owner).boxed()
}

pub(crate) struct ZooKeeper {
    connect: String,
    outsider: OnceCell<Client>,
}

impl ZooKeeper {
    pub(crate) const fn at(connect: String) -> Self {
        let outsider = OnceCell::const_new();
        Self { connect, outsider }
    }

    /// The test's own client in the clients' chroot, which it creates for everybody. There is one, because each further
    /// one would cost the server two transactions.
    pub(crate) async fn outsider(&self) -> Client {
        let connect = || async {
            let connector = Client::connector().with_session_timeout(LONG_SESSION);
            let client = connector.connect(&self.connect).await;
            let client = client.expect("zookeeper is there");
            let everybodys = CreateMode::Persistent.with_acls(Acls::anyone_all());
            let made = client.mkdir(CHROOT, &everybodys).await;
            made.expect("it may be made");
            client.chroot(CHROOT).expect("an absolute path")
        };
        self.outsider.get_or_init(connect).await.clone()
    }

    /// A process with a client at `address` and a session of this length.
    pub(crate) async fn process_with(&self, address: &str, session: Duration) -> Member {
        let way = Proxy::to(address).expect("a free port");
        // A session that outlasts the test is for tests that are not about time limits.
        let answer = if session == LONG_SESSION { SOON } else { REPLY_TIMEOUT };
        let client = client_at(way.address(), session, answer).await;
        Member { client: client.expect("zookeeper is there"), way }
    }

    /// A process whose session ends within the test.
    pub(crate) async fn brief_session(&self) -> Member {
        self.process_with(&self.connect, SESSION).await
    }

    pub(crate) async fn until_nodes(&self, name: &str, nodes: usize) -> Result {
        let there = format!("{nodes} nodes are there");
        until(&there, || async { self.left(name).await.len() == nodes }).await
    }

    /// Starts a waiter, and waits until its node is in the queue.
    pub(crate) async fn queued<L: Lock + 'static>(&self, lock: L) -> Result<JoinHandle<Answer<Guard>>> {
        let name = lock.name().to_owned();
        let before = self.left(&name).await.len();
        let waiting = spawn_acquire(lock);
        self.until_nodes(&name, before + 1).await?;
        Ok(waiting)
    }

    pub(crate) async fn gone(&self, name: &str) -> Result {
        self.until_nodes(name, 0).await
    }

    /// A node of another implementation.
    pub(crate) async fn node(&self, path: &str) -> Result<String> {
        node(&self.outsider().await, path).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result {
        Ok(self.outsider().await.delete(path, None).await?)
    }

    pub(crate) async fn set_data(&self, path: &str, data: &[u8]) -> Result {
        self.outsider().await.set_data(path, data, None).await?;
        Ok(())
    }
}

/// A connected client: before the first connection a call waits no longer than for a lost one, and a busy machine may
/// need more.
pub(crate) async fn client_of(options: ZkOptions) -> Result<ZkClient> {
    let client = ZkClient::new(options)?;
    until("connected", || async { client.session().is_ok() }).await?;
    Ok(client)
}

pub(crate) async fn client_at(address: String, session: Duration, answer: Duration) -> Result<ZkClient> {
    let options = ZkOptions::new(address).chroot(CHROOT);
    client_of(options.session(session).timeout(answer)).await
}

/// A session that outlasts the test, as does a silent connection.
const MAX_SESSION: Duration = Duration::from_secs(120);

/// A client that abandons neither a silent connection nor a request within a test.
pub(crate) async fn patient(address: String) -> Result<ZkClient> {
    client_at(address, MAX_SESSION, SOON).await
}

/// A client that abandons a request long before its connection.
pub(crate) async fn hasty(address: String) -> Result<ZkClient> {
    client_at(address, MAX_SESSION, REPLY_TIMEOUT).await
}

/// A container, which is deleted with its last node.
pub(crate) async fn directory(client: &Client, path: &str) -> Result<(), Error> {
    let container = CreateMode::Container.with_acls(Acls::anyone_all());
    client.mkdir(path, &container).await
}

pub(crate) async fn make(client: &Client, path: &str, mode: CreateMode) -> Result<(), Error> {
    let options = mode.with_acls(Acls::anyone_all());
    client.create(path, &[], &options).await.map(drop)
}

/// A node as another implementation creates it: ephemeral and numbered.
pub(crate) async fn node(client: &Client, path: &str) -> Result<String> {
    let ephemeral = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let mut made = client.create(path, &[], &ephemeral).await;
    if let Err(Error::NoNode) = made {
        let (parent, _) = path.rsplit_once('/').context("no directory")?;
        directory(client, parent).await?;
        made = client.create(path, &[], &ephemeral).await;
    }
    let (_, sequence) = made?;
    Ok(format!("{path}{sequence}"))
}

/// The name without its uuid, which is checked.
pub(crate) fn shape(node: &str) -> Result<String> {
    let (directory, node) = node.rsplit_once('/').unwrap_or(("", node));
    let rest = node.strip_prefix("_c_").context("not protected")?;
    let (uuid, rest) = rest.split_at_checked(36).context("no uuid")?;
    uuid::Uuid::parse_str(uuid).with_context(|| node.to_owned())?;
    Ok(format!("{directory}|{rest}"))
}

/// A twin's error for a failed request.
pub(crate) fn broken(error: Error) -> oversell_lock::LockError {
    oversell_lock::LockError::Unavailable { server: "zookeeper", reason: error.into() }
}

/// A client with a proxy of its own, which can be cut.
pub(crate) struct Member {
    pub(crate) client: ZkClient,
    pub(crate) way: Proxy,
}

impl Member {
    pub(crate) fn lock(&self, name: &str) -> ZkLock {
        self.client.lock(name)
    }

    /// Ends its session: another connection to it may close it, until the first takes it back.
    pub(crate) async fn end_session(&self, zookeeper: &ZooKeeper) {
        let session = connected(self).await.expect("it has a session");
        let session = session.into_session();
        self.way.cut();
        let connector = Client::connector().with_session(session);
        let usurper = connector.connect(&zookeeper.connect).await;
        let usurper = usurper.expect("the same session");
        let mut states = usurper.state_watcher();
        drop(usurper);
        while !states.changed().await.is_terminated() {}
        self.way.mend();
    }
}

/// The session of a process that is or will be connected.
pub(crate) async fn connected(process: &Member) -> Result<Client> {
    process.client.wait_until_connected(SOON).await?;
    Ok(process.client.session()?)
}

/// Polls the future until the server has its request, and it waits.
pub(crate) async fn asked(process: &Member, name: &str, waiter: &mut (impl Future + Unpin)) -> Result {
    let session = connected(process).await?;
    ensure!(futures::poll!(&mut *waiter).is_pending(), "it did not ask");
    // The server answers a session in order, so it has set the earlier watches.
    session.check_stat(name).await?;
    ensure!(futures::poll!(waiter).is_pending(), "it did not wait");
    Ok(())
}

impl Server for ZooKeeper {
    type Client = Member;

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }

    fn address(&self) -> String {
        self.connect.clone()
    }

    /// Over a proxy that the test may cut or mute for good, with a session that ends within the test.
    async fn client_at(&self, address: &str) -> Member {
        let straight = address == self.connect;
        let session = if straight { LONG_SESSION } else { SESSION };
        self.process_with(address, session).await
    }

    async fn brief_client(&self) -> Member {
        self.process_with(&self.connect, STALL_SESSION).await
    }

    fn owner(member: &Member) -> Owner {
        member.client.owner()
    }

    async fn left(&self, name: &str) -> Vec<String> {
        let look = async {
            loop {
                match self.outsider().await.list_children(name).await {
                    Err(Error::NoNode) => return Vec::new(),
                    Ok(children) => return children,
                    // During a leader election, for example, the look says nothing.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        timeout(SOON, look).await.expect("a list")
    }

    async fn take_away(&self, holder: &Member, name: &str) {
        holder.end_session(self).await;
        self.gone(name).await.expect("the session is closed");
    }
}

#[apply(test!)]
async fn a_short_cut_is_survived(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let guard = take(&process.client.lock(&name)).await?;
    let session = process.client.session()?.session_id();
    process.way.cut();
    process.way.mend();
    guard.release().await.context("after the cut")?;
    // The release may be answered before the client reports the reconnection.
    let after = connected(&process).await?.session_id();
    ensure!(session == after, "the session did not survive");
    Ok(())
}

/// With a holder, a waiter and a kept session client, on a slow server: before it lists the nodes, the session could
/// have ended.
#[apply(test!)]
async fn close_leaves_no_node(zookeeper: &ZooKeeper) -> Result {
    let (name, way) = (name(), Proxy::to(&zookeeper.connect)?);
    let client = patient(way.address()).await?;
    let kept = client.session()?;
    let guard = take(&client.lock(&name)).await?;
    let waiter = zookeeper.queued(client.lock(&name)).await?;
    way.set_condition(Condition::Slow(Duration::from_secs(3)));
    client.close().await;
    ensure_none(zookeeper.left(&name).await)?;
    ensure!(guard.is_lost(), "the holder was not told");
    ensure_unavailable("a waiter of a closed client", waiter.await?)?;
    let tried = client.lock(&name).try_acquire().await;
    ensure_unavailable("a closed client", tried)?;
    drop(kept);
    Ok(())
}

#[apply(test!)]
async fn a_deleted_directory_is_made_again(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    for _ in 0..3 {
        pass(&process.client.lock(&name)).await?;
        zookeeper.delete(&name).await?;
    }
    Ok(())
}
