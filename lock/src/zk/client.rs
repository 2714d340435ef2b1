//! This process's handle on its ZooKeeper session.

use super::{
    ZkLock, ZkRwLock, ZkSemaphore, ZkSemaphoreMutex,
    hold::{Seat, Seats},
    session::{self, Link, ZkOptions},
    unavailable,
};
use crate::{LockError, Owner, Process};
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use zookeeper_client::{Client, SessionId};

/// A lost connection may come back within this before what waits for it is told [`LockError::Unavailable`].
const GRACE: Duration = Duration::from_secs(1);

/// How long [`ZkClient::close`] waits for what is held to be released.
const LAST_RELEASES: Duration = Duration::from_secs(3);

/// One process's session. Cloning it is cheap; the session is closed with the last clone and the last guard.
///
/// It connects in the background and goes on as long as it takes, survives a restart of the server that the session
/// survives, and begins a new session where it does not.
#[derive(Clone)]
pub struct ZkClient(Arc<Inner>);

struct Inner {
    link: watch::Receiver<Link>,
    process: Process,
    seats: Seats,
    tasks: TaskTracker,
    supervisor: TaskTracker,
    closing: CancellationToken,
    end: CancellationToken,
    _end_with_the_last_clone: DropGuard,
}

impl ZkClient {
    /// Starts to connect, in the background, and goes on as long as it takes.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[must_use]
    pub fn new(options: ZkOptions) -> Self {
        let (sender, link) = watch::channel(Link::new());
        let end = CancellationToken::new();
        let supervisor = TaskTracker::new();
        supervisor.spawn(session::supervise(options, sender, end.clone()));
        Self(Arc::new(Inner {
            link,
            process: Process::new(),
            seats: Seats::default(),
            tasks: TaskTracker::new(),
            supervisor,
            closing: CancellationToken::new(),
            _end_with_the_last_clone: end.clone().drop_guard(),
            end,
        }))
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
            Link::Up(client) => Ok(client.clone()),
            Link::Cut { reason, .. } => Err(unavailable(reason)),
            Link::Ended => Err(closed()),
        }
    }

    /// An owner that nobody had before, for handles whose holds belong together.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.process.owner()
    }

    /// A contender for the lock at `path`, as `/curator/lock`. Its parents are made where they are missing.
    #[must_use]
    pub fn lock(&self, path: &str) -> ZkLock {
        ZkLock::new(self.clone(), path)
    }

    /// The read lock and the write lock at `path`.
    #[must_use]
    pub fn rw_lock(&self, path: &str) -> ZkRwLock {
        ZkRwLock::new(self.clone(), path)
    }

    /// The semaphore at `path`, with `max` leases. Every process must say the same number: it is nowhere on the server.
    #[must_use]
    pub fn semaphore(&self, path: &str, max: u32) -> ZkSemaphore {
        ZkSemaphore::new(self.clone(), path, max)
    }

    /// The semaphore at `path` with one lease, as a lock that is not re-entrant.
    #[must_use]
    pub fn semaphore_mutex(&self, path: &str) -> ZkSemaphoreMutex {
        ZkSemaphoreMutex::new(self.clone(), path)
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

    /// The live session's client, waiting for a connection that was just lost.
    pub(super) async fn connected(&self, deadline: Instant) -> Result<Client, LockError> {
        let mut link = self.0.link.clone();
        // The session knows that it is over a moment before its supervisor does.
        let usable = |link: &Link| matches!(link, Link::Up(client) if !client.state().is_terminated());
        tokio::select! {
            biased;
            error = self.given_up() => Err(error),
            _ = link.wait_for(usable) => self.session(),
            () = sleep_until(deadline) => Err(self.session().err().unwrap_or_else(closed)),
        }
    }

    /// The live session's client, however long it takes; none once the client has been closed.
    pub(super) async fn up(&self) -> Option<Client> {
        let mut link = self.0.link.clone();
        let usable = |link: &Link| match link {
            Link::Up(client) => !client.state().is_terminated(),
            Link::Cut { .. } => false,
            Link::Ended => true,
        };
        match &*link.wait_for(usable).await.ok()? {
            Link::Up(client) => Some(client.clone()),
            _ => None,
        }
    }

    /// Completes once there has been no connection for [`GRACE`], or the client is closed: waiting is then in vain.
    pub(super) async fn given_up(&self) -> LockError {
        let mut link = self.0.link.clone();
        loop {
            let grace = match &*link.borrow_and_update() {
                Link::Up(_) => None,
                Link::Cut { since, reason, .. } => Some((*since + GRACE, reason.clone())),
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

    /// Completes when this session is over or in doubt.
    pub(super) async fn in_doubt(&self, id: SessionId) {
        self.0.link.clone().wait_for(|link| !link.lives(id)).await.ok();
    }

    /// Whether this session surely lives.
    pub(super) fn lives(&self, id: SessionId) -> bool {
        self.0.link.borrow().lives(id)
    }

    /// Where one owner's holds of the lock at `path` are noted.
    pub(super) fn seat(&self, kind: &'static str, path: &str, owner: Owner) -> Arc<Seat> {
        self.0.seats.of(kind, path, owner)
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
        f.debug_tuple("ZkClient").field(&*self.0.link.borrow()).finish()
    }
}
