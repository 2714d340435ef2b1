//! What the contract needs to know of a lock: its server, how to make it, and its capabilities.

use super::support::{Result, until};
use futures::future::{BoxFuture, join_all};
use oversell_lock::{DynLock, Holder, Lease, LockError, Owner, Process};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capability {
    /// The clauses for every lock.
    Contract,
    /// It is on one server: while that is down, nobody has it.
    OneServer,
    /// It has a lease or a session, so it can be lost.
    Losable,
    Leased,
    /// It takes an owner, and is re-entrant for it.
    Reentrant,
    /// Waiters of all processes are served in order of arrival.
    InTurn,
    /// The layer's tests use it.
    Layered,
    /// Anybody may ask for its holder and free it.
    Shown,
}

/// The owner and lease of a contender.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ask {
    pub(crate) owner: Option<Owner>,
    pub(crate) lease: Option<Lease>,
}

/// One contender's handle.
pub(crate) type AnyLock = Box<dyn DynLock>;

pub(crate) struct Operator {
    pub(crate) holder: OperatorCall<Option<Holder>>,
    pub(crate) force_unlock: OperatorCall<bool>,
}

type OperatorCall<T> = Box<dyn Fn() -> BoxFuture<'static, Result<T, LockError>> + Send + Sync>;

macro_rules! operator {
    ($lock:expr) => {{
        let lock = std::sync::Arc::new($lock);
        let same = lock.clone();
        $crate::family::Operator {
            holder: Box::new(move || {
                let lock = lock.clone();
                Box::pin(async move { lock.holder().await })
            }),
            force_unlock: Box::new(move || {
                let lock = same.clone();
                Box::pin(async move { lock.force_unlock().await })
            }),
        }
    }};
}
pub(crate) use operator;

/// Makes a lock with the owner and the lease of an [`Ask`].
macro_rules! asked {
    ($lock:expr, $ask:expr) => {{
        let mut lock = $lock;
        if let Some(owner) = $ask.owner {
            lock = lock.owner(owner);
        }
        if let Some(lease) = $ask.lease {
            lock = lock.lease(lease);
        }
        lock
    }};
}
pub(crate) use asked;

/// The test's view of a server, or of several.
pub(crate) trait Server: Sized + Send + Sync + 'static {
    /// A process's client.
    type Client: Send + Sync + 'static;
    /// A lease that ends within a test, but not before its holder has learned that it holds it.
    const BRIEF: Duration = Duration::from_millis(300);
    /// A lease that a busy machine renews in time, but that ends within a test.
    const RENEWED: Duration = Duration::from_secs(6);
    /// How many servers have a held lock.
    const COPIES: usize = 1;

    fn kinds() -> &'static [Kind<Self>];

    /// `host:port`.
    fn address(&self) -> String;

    fn client_at(&self, address: &str) -> impl Future<Output = Self::Client> + Send;

    fn client(&self) -> impl Future<Output = Self::Client> + Send {
        async { self.client_at(&self.address()).await }
    }

    fn clients(&self, n: usize) -> impl Future<Output = Vec<Self::Client>> + Send {
        async move { join_all((0..n).map(|_| self.client())).await }
    }

    /// A new process whose locks end within a test if it stands still.
    fn brief_client(&self) -> impl Future<Output = Self::Client> + Send {
        self.client()
    }

    fn owner(_: &Self::Client) -> Owner {
        Process::new().owner()
    }

    /// The entries on the server with this name: nodes, keys, rows, waiters.
    fn left(&self, name: &str) -> impl Future<Output = Vec<String>> + Send;

    /// The holders, by the server's names for them.
    fn holders(&self, name: &str) -> impl Future<Output = Vec<String>> + Send {
        self.left(name)
    }

    /// Takes the lock away from `client`: ends its session, or deletes its entry.
    fn take_away(&self, client: &Self::Client, name: &str) -> impl Future<Output = ()> + Send;

    /// Whether another process is seen to wait; true if that is never visible.
    fn is_waited_for(&self, _: &str) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// When the lock ends on the server, if that is visible.
    fn ends_in(&self, _: &str) -> impl Future<Output = Option<Duration>> + Send {
        async { None }
    }

    fn families(&'static self) -> impl Iterator<Item = Family<Self>> {
        Self::kinds().iter().map(|kind| Family { server: self, kind })
    }

    fn family(&'static self, name: &str) -> Family<Self> {
        self.families().find(|family| family.kind.name == name).expect("a kind of this name")
    }
}

pub(crate) struct Kind<S: Server> {
    /// The prefix of its tests' names.
    pub(crate) name: &'static str,
    pub(crate) can: &'static [Capability],
    /// Whether it shares its hold with another kind of its engine: such a kind only runs the clauses with
    /// `OVERSELL_SOAK=1`; the programs run every kind.
    pub(crate) once_more: bool,
    /// Whether each waiting process is visible on the server.
    pub(crate) queues: bool,
    /// The names of one lock on the server.
    pub(crate) parts: fn(&str) -> Vec<String>,
    pub(crate) make: Make<S>,
    /// Its half for reading.
    pub(crate) read: Option<Make<S>>,
    pub(crate) shown: Option<MakeOperator<S>>,
}

pub(crate) type Make<S> = fn(&<S as Server>::Client, &str, Ask) -> AnyLock;

type MakeOperator<S> = fn(&<S as Server>::Client, &str) -> Operator;

impl<S: Server> Kind<S> {
    pub(crate) const fn new(name: &'static str, can: &'static [Capability], make: Make<S>) -> Self {
        Self { name, can, once_more: false, queues: false, parts: |name| vec![name.to_owned()], make, read: None, shown: None }
    }

    /// A kind that shares another kind's hold.
    pub(crate) const fn once_more(name: &'static str, can: &'static [Capability], make: Make<S>) -> Self {
        let mut kind = Self::new(name, can, make);
        kind.once_more = true;
        kind
    }

    pub(crate) fn can_all(&self, needs: &[Capability]) -> bool {
        needs.iter().all(|need| self.can.contains(need))
    }

    pub(crate) const fn queues(mut self) -> Self {
        self.queues = true;
        self
    }

    pub(crate) const fn reads(mut self, read: Make<S>) -> Self {
        self.read = Some(read);
        self
    }

    pub(crate) const fn shows(mut self, shown: MakeOperator<S>) -> Self {
        self.shown = Some(shown);
        self
    }

    pub(crate) const fn parts(mut self, parts: fn(&str) -> Vec<String>) -> Self {
        self.parts = parts;
        self
    }
}

pub(crate) struct Family<S: Server> {
    pub(crate) server: &'static S,
    pub(crate) kind: &'static Kind<S>,
}

impl<S: Server> Clone for Family<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Server> Copy for Family<S> {}

impl<S: Server> Family<S> {
    pub(crate) async fn process(&self) -> Contender<S> {
        self.of(self.server.client().await)
    }

    pub(crate) async fn process_at(&self, address: &str) -> Contender<S> {
        self.of(self.server.client_at(address).await)
    }

    pub(crate) fn of(&self, client: S::Client) -> Contender<S> {
        Contender { kind: self.kind, client }
    }

    /// The entries on the server of a lock with this name.
    pub(crate) async fn left(&self, name: &str) -> Vec<String> {
        let mut left = Vec::new();
        for part in (self.kind.parts)(name) {
            left.extend(self.server.left(&part).await);
        }
        left.sort_unstable();
        left
    }

    /// The server's names for the holders of a lock with this name.
    pub(crate) async fn holders(&self, name: &str) -> Vec<String> {
        let parts = (self.kind.parts)(name);
        join_all(parts.iter().map(|part| self.server.holders(part))).await.concat()
    }

    /// When a lock with this name ends on the server, if that is visible.
    pub(crate) async fn ends_in(&self, name: &str) -> Option<Duration> {
        let parts = (self.kind.parts)(name);
        let ends = join_all(parts.iter().map(|part| self.server.ends_in(part))).await;
        ends.into_iter().flatten().min()
    }

    /// Waits until nothing is left on the server of a lock with this name.
    pub(crate) async fn nothing_left(&self, name: &str) -> Result {
        let is_empty = async || self.left(name).await.is_empty();
        match until("nothing is left on the server", is_empty).await {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(format!("left: {:?}", self.left(name).await))),
        }
    }

    /// Takes the lock away from its holder: ends its lease or session, or deletes its row.
    pub(crate) async fn take_away(&self, holder: &Contender<S>, name: &str) {
        for part in (self.kind.parts)(name) {
            self.server.take_away(&holder.client, &part).await;
        }
    }

    /// Waits until every server shows the hold, because the last one may lag behind the majority. Returns the holders.
    pub(crate) async fn until_shown(&self, name: &str) -> Result<Vec<String>> {
        let is_shown = async || self.left(name).await.len() >= S::COPIES;
        until("every server shows the holder", is_shown).await?;
        Ok(self.left(name).await)
    }

    /// Waits until `n` entries are on the server, if waiters are visible.
    pub(crate) async fn until_queued(&self, name: &str, n: usize) -> Result {
        let are = async || !self.kind.queues || self.left(name).await.len() >= n;
        until("the waiter is queued", are).await
    }
}

/// A process that contends for locks of one kind.
pub(crate) struct Contender<S: Server> {
    pub(crate) client: S::Client,
    kind: &'static Kind<S>,
}

impl<S: Server> Contender<S> {
    pub(crate) fn lock(&self, name: &str) -> AnyLock {
        self.asked(name, Ask::default())
    }

    pub(crate) fn owned(&self, name: &str, owner: Owner) -> AnyLock {
        let owner = Some(owner);
        self.asked(name, Ask { owner, lease: None })
    }

    pub(crate) fn leased(&self, name: &str, lease: Lease) -> AnyLock {
        let lease = Some(lease);
        self.asked(name, Ask { owner: None, lease })
    }

    pub(crate) fn held(&self, name: &str, owner: Owner, lease: Lease) -> AnyLock {
        let (owner, lease) = (Some(owner), Some(lease));
        self.asked(name, Ask { owner, lease })
    }

    pub(crate) fn asked(&self, name: &str, ask: Ask) -> AnyLock {
        (self.kind.make)(&self.client, name, ask)
    }

    /// The lock, and its reading half if it has one.
    pub(crate) fn halves(&self, name: &str, ask: Ask) -> Vec<AnyLock> {
        let makes = [Some(self.kind.make), self.kind.read];
        let makes = makes.into_iter().flatten();
        makes.map(|make| make(&self.client, name, ask)).collect()
    }

    pub(crate) fn operator(&self, name: &str) -> Operator {
        let operator = self.kind.shown.expect("it shows its holder");
        operator(&self.client, name)
    }

    pub(crate) fn owner(&self) -> Owner {
        S::owner(&self.client)
    }
}
