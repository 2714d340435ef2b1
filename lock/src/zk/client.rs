//! This process's handle on its ZooKeeper session.

use super::engine::{
    hold::Hold,
    session::{Link, Session, Supervisor},
    unavailable, valid,
};
use crate::{LockError, Owner, Process, reentry::Reentry};
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use zookeeper_client::{Acls, Client, Connector};

/// A lost connection may come back within this before what waits for it is told [`LockError::Unavailable`].
const GRACE: Duration = Duration::from_secs(1);

/// How long [`ZkClient::close`] waits for what is held to be released.
const LAST_RELEASES: Duration = Duration::from_secs(3);

/// How to reach ZooKeeper, and what to make there.
///
/// ```
/// # use oversell_lock::zk::ZkOptions;
/// # use std::time::Duration;
/// let options = ZkOptions::new("127.0.0.1:2181")
///     .chroot("/shop")
///     .session(Duration::from_secs(20))
///     .auth("digest", "shop:secret")
///     .only_for_ourselves();
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ZkOptions {
    pub(super) connect: String,
    pub(super) chroot: String,
    pub(super) session: Duration,
    auth: Option<(String, String)>,
    own: bool,
}

impl ZkOptions {
    /// `host:port[,host:port…]`; no chroot, a session of 10 s, nodes that anybody may change.
    #[must_use]
    pub fn new(connect: impl Into<String>) -> Self {
        let session = Duration::from_secs(10);
        Self { connect: connect.into(), chroot: String::new(), session, auth: None, own: false }
    }

    /// What stands before every path, as `/oversell`; empty for none. It is made where it is missing.
    #[must_use]
    pub fn chroot(self, chroot: impl Into<String>) -> Self {
        Self { chroot: chroot.into(), ..self }
    }

    /// The session time-out that is asked for, at least 100 ms; the server sets bounds to it (2 to 20 ticks unless it is
    /// told otherwise). A dead holder blocks the others for as long.
    #[must_use]
    pub fn session(self, session: Duration) -> Self {
        Self { session, ..self }
    }

    /// Who this is, in a scheme of the server: `digest` and `user:password`, say.
    #[must_use]
    pub fn auth(self, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self { auth: Some((scheme.into(), id.into())), ..self }
    }

    /// The nodes that are made are only for those who say that they are the same ([`auth`](Self::auth)), and not for
    /// anybody: a stranger could delete a holder's node, and would let the next one in beside it.
    #[must_use]
    pub fn only_for_ourselves(self) -> Self {
        Self { own: true, ..self }
    }

    pub(super) fn acls(&self) -> Acls<'static> {
        if self.own { Acls::creator_all() } else { Acls::anyone_all() }
    }

    /// A connection that is silent for a fifth of the session is given up.
    pub(super) fn connector(&self) -> Connector {
        let connector = Client::connector()
            .with_session_timeout(self.session)
            .with_connection_timeout(self.session / 5)
            .with_fail_eagerly();
        match &self.auth {
            Some((scheme, id)) => connector.with_auth(scheme, id.as_bytes()),
            None => connector,
        }
    }

    /// What no server needs to be asked about.
    fn check(&self) -> Result<(), LockError> {
        let rules = [
            (
                !self.connect.is_empty() && !self.connect.contains('/'),
                "connect: host:port[,host:port…] without a chroot",
            ),
            (self.chroot.is_empty() || valid(&self.chroot).is_ok(), "chroot: empty, or an absolute path"),
            (self.session >= Duration::from_millis(100), "session: at least 100 ms"),
            (!self.own || self.auth.is_some(), "only_for_ourselves: needs auth, or there is no telling who that is"),
        ];
        match rules.into_iter().find(|(kept, _)| !kept) {
            Some((_, rule)) => Err(LockError::Invalid { name: self.connect.clone(), rule }),
            None => Ok(()),
        }
    }
}

/// The password is not shown.
impl fmt::Debug for ZkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZkOptions")
            .field("connect", &self.connect)
            .field("chroot", &self.chroot)
            .field("session", &self.session)
            .field("auth", &self.auth.as_ref().map(|(scheme, _)| scheme))
            .field("only_for_ourselves", &self.own)
            .finish()
    }
}

/// One process's session. Cloning it is cheap; the session is closed with the last clone and the last guard.
///
/// It connects in the background and goes on as long as it takes, survives a restart of the server that the session
/// survives, and begins a new session where it does not.
#[derive(Clone)]
pub struct ZkClient(pub(super) Arc<Inner>);

pub(super) struct Inner {
    link: watch::Receiver<Link>,
    process: Process,
    /// What owners hold, of mutexes and of read-write locks.
    pub(super) mutexes: Reentry<Hold>,
    pub(super) rw_locks: Reentry<Hold>,
    tasks: TaskTracker,
    supervisor: TaskTracker,
    closing: CancellationToken,
    end: CancellationToken,
    _end_with_the_last_clone: DropGuard,
}

impl ZkClient {
    /// Starts to connect, in the background, and goes on as long as it takes.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] for options with which it could never connect.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn new(options: ZkOptions) -> Result<Self, LockError> {
        options.check()?;
        let (sender, link) = watch::channel(Link::new());
        let (end, tasks, supervisor) = (CancellationToken::new(), TaskTracker::new(), TaskTracker::new());
        supervisor.spawn(Supervisor { options, link: sender, tasks: tasks.clone(), end: end.clone() }.run());
        Ok(Self(Arc::new(Inner {
            link,
            process: Process::new(),
            mutexes: Reentry::default(),
            rw_locks: Reentry::default(),
            tasks,
            supervisor,
            closing: CancellationToken::new(),
            _end_with_the_last_clone: end.clone().drop_guard(),
            end,
        })))
    }

    /// The live session's client, for other requests than locks. Its paths are below the chroot.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] while there is no connection.
    pub fn session(&self) -> Result<Client, LockError> {
        if self.0.closing.is_cancelled() {
            return Err(closed());
        }
        match &*self.0.link.borrow() {
            Link::Up(session) => Ok(Client::clone(session)),
            Link::Cut { reason, .. } => Err(unavailable(reason)),
            Link::Ended => Err(closed()),
        }
    }

    /// An owner that nobody had before, for handles whose holds belong together.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.process.owner()
    }

    /// Waits for what is held to be released (3 s at most) and ends the session: nothing of it is left on the
    /// server, and holders that are still there are told that their lock is lost. Locks are no longer given from
    /// when it is called.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        if timeout(LAST_RELEASES, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(held = self.0.tasks.len(), "closing the zookeeper session under its holders");
        }
        self.0.end.cancel();
        self.0.supervisor.close();
        self.0.supervisor.wait().await;
    }

    /// The live session, waiting for a connection that was just lost.
    pub(super) async fn connected(&self, deadline: Instant) -> Result<Arc<Session>, LockError> {
        let mut link = self.0.link.clone();
        let up = async {
            match link.wait_for(|link| link.up().is_some()).await {
                Ok(link) => link.up().cloned().ok_or_else(closed),
                Err(_) => Err(closed()),
            }
        };
        tokio::select! {
            biased;
            error = self.given_up() => Err(error),
            up = up => up,
            () = sleep_until(deadline) => Err(self.session().err().unwrap_or_else(|| unavailable("the session is over"))),
        }
    }

    /// The live session, however long it takes; none once the client has been closed.
    pub(super) async fn up(&self) -> Option<Arc<Session>> {
        let mut link = self.0.link.clone();
        let up = link.wait_for(|link| link.up().is_some() || matches!(link, Link::Ended)).await.ok()?;
        up.up().cloned()
    }

    /// What `future` comes to, as long as there is reason to wait for it.
    pub(super) async fn while_up<T>(&self, future: impl Future<Output = T>) -> Result<T, LockError> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            error = self.given_up() => Err(error),
        }
    }

    /// Completes once there has been no connection for [`GRACE`], or the client is closed: waiting is then in vain.
    async fn given_up(&self) -> LockError {
        let mut link = self.0.link.clone();
        loop {
            let grace = match &*link.borrow_and_update() {
                Link::Up(_) => None,
                Link::Cut { since, reason } => Some((*since + GRACE, reason.clone())),
                Link::Ended => return closed(),
            };
            let expired = async {
                match grace {
                    Some((end, reason)) => {
                        sleep_until(end).await;
                        unavailable(reason)
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.0.closing.cancelled() => return closed(),
                changed = link.changed() => if changed.is_err() { return closed() },
                error = expired => return error,
            }
        }
    }

    /// Completes when the client has been closed.
    pub(super) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    /// The tasks that [`close`](Self::close) waits for.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }
}

fn closed() -> LockError {
    unavailable("the client was closed")
}

impl fmt::Debug for ZkClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = match &*self.0.link.borrow() {
            Link::Up(session) => session.session_id().to_string(),
            Link::Cut { reason, .. } => reason.clone(),
            Link::Ended => "closed".into(),
        };
        f.debug_tuple("ZkClient").field(&link).finish()
    }
}
