//! This process's handle on its ZooKeeper session.
//!
//! 1. [`ZkClient::new`] starts the session's supervisor (`engine/session.rs`), which tells how the session stands.
//! 2. What a caller asks for while the connection is lost waits for half of [`ZkOptions::timeout`] at most. Who waits for
//!    a lock by then goes on as long as the session is sure, and so keeps its turn through the election of a leader.
//! 3. [`ZkClient::close`] waits for the last releases and ends the session.
//!
//! What it survives: a server that is down when it is made, lost connections, sessions that end. **What breaks it**: a
//! runtime that is stopped before [`ZkClient::close`]: its nodes then stay until its session times out.
//!
//! Next to read: `options.rs`.

use super::ZkOptions;
use super::engine::session::{Connection, Disconnection, Session, Supervisor};
use super::engine::{Wait, unavailable};
use crate::{LockError, Owner, Process, local::ByType, tasks::Tasks};
use std::{fmt, future::pending, sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use zookeeper_client::Client;

/// How long [`ZkClient::close`] waits for what is held to be released.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// One process's session. Cloning it is cheap; the session is closed with the last clone and the last guard.
///
/// It connects in the background and goes on as long as it takes, survives a restart of the server that the session
/// survives, and begins a new session where it does not.
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// let guard = zk.lock("/curator/lock").acquire(Duration::from_secs(5)).await?;
/// guard.release().await?;
/// zk.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ZkClient(pub(super) Arc<Inner>);

pub(super) struct Inner {
    connection: watch::Receiver<Connection>,
    timeout: Duration,
    process: Process,
    pub(super) shared: ByType,
    tasks: Tasks,
    supervisor: Tasks,
    closing: CancellationToken,
    end: CancellationToken,
    _end_with_the_last_clone: DropGuard,
}

impl ZkClient {
    /// Starts to connect, in the background, and goes on as long as it takes. A call before it is
    /// connected waits for at most half of [`ZkOptions::timeout`], and is then told [`LockError::Unavailable`]. Its session and tasks
    /// live in the tokio runtime in which it is made: locks may be used in another one, but while that first one does not run the
    /// session is not kept, and nothing is given back.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), oversell_lock::LockError> {
    /// use oversell_lock::zk::{ZkClient, ZkOptions};
    ///
    /// let zk = ZkClient::new(ZkOptions::new("127.0.0.1:2181").chroot("/shop"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] for options with which it could never connect, or where there is no runtime.
    pub fn new(options: ZkOptions) -> Result<Self, LockError> {
        options.check()?;
        let timeout = options.timeout;
        let (sender, connection) = watch::channel(Connection::new());
        let (end, tasks) = (CancellationToken::new(), Tasks::in_current_runtime()?);
        let supervisor = Tasks::in_current_runtime()?;
        supervisor.spawn(
            Supervisor {
                options,
                connection: sender,
                tasks: tasks.clone(),
                end: end.clone(),
            }
            .run(),
        );
        Ok(Self(Arc::new(Inner {
            connection,
            timeout,
            process: Process::new(),
            shared: ByType::default(),
            tasks,
            supervisor,
            closing: CancellationToken::new(),
            _end_with_the_last_clone: end.clone().drop_guard(),
            end,
        })))
    }

    /// Returns the live session's client, for other requests than locks. Its paths are below the chroot. It is the one
    /// item here that shows the crate `zookeeper-client`, whose next major version may change it.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let children = zk.session()?.list_children("/curator/lock").await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] while there is no connection.
    pub fn session(&self) -> Result<Client, LockError> {
        if self.0.closing.is_cancelled() {
            return Err(closed());
        }
        match self.0.connection.borrow().session() {
            Ok(session) => Ok(Client::clone(session)),
            Err(lost) => Err(unavailable(lost.reason.as_str())),
        }
    }

    /// Makes an owner that nobody had before, for handles whose holds belong together.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let mine = zk.lock("/curator/lock").owner(zk.owner());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.process.owner()
    }

    /// Waits for what is held to be released (3 s at most) and ends the session: nothing of it is left on the
    /// server, and holders that are still there are told that their lock is lost. Locks are no longer given from
    /// when it is called. The server has [`ZkOptions::timeout`] to delete what is left, and 2 s to confirm the end; without an answer
    /// it goes when the session ends. Where a caller has kept what [`session`](Self::session) gave, the session lasts as long as that,
    /// without the nodes that it had.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// zk.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Once polled, locks are no longer given. Dropped, it leaves the session to the last clone and guard.
    pub async fn close(&self) {
        self.0.closing.cancel();
        if timeout(CLOSE_TIMEOUT, self.0.tasks.ended()).await.is_err() {
            tracing::warn!(
                held = self.0.tasks.len(),
                "closing the zookeeper session under its holders"
            );
        }
        self.0.end.cancel();
        self.0.supervisor.ended().await;
    }

    /// The live session, waiting for a connection that was just lost.
    pub(super) async fn connected(&self, deadline: Instant) -> Result<Arc<Session>, LockError> {
        tokio::select! {
            biased;
            error = self.given_up(false) => Err(error),
            up = self.up() => Ok(up),
            () = sleep_until(deadline) => Err(self.session().err().unwrap_or_else(|| unavailable("the session is over"))),
        }
    }

    /// The live session, however long it takes.
    pub(super) async fn up(&self) -> Arc<Session> {
        let mut up = None;
        let live = |connection: &Connection| {
            up = connection.up().cloned();
            up.is_some()
        };
        drop(self.0.connection.clone().wait_for(live).await);
        match up {
            Some(session) => session,
            None => pending().await,
        }
    }

    /// What `future` comes to, as long as there is reason to wait for it: a session that is sure or a connection, and not
    /// longer than [`ZkOptions::timeout`] after the wait.
    pub(super) async fn answered<T>(
        &self,
        wait: Wait,
        future: impl Future<Output = T>,
    ) -> Result<T, LockError> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            error = self.given_up(true) => Err(error),
            () = sleep_until(wait.end + self.timeout()) => Err(unavailable("no answer")),
        }
    }

    /// Why it was not acquired in all of the wait.
    pub(super) fn late(&self, wait: Wait, name: &str) -> LockError {
        self.session().err().unwrap_or_else(|| wait.taken(name))
    }

    /// Completes once waiting is in vain: there has been no connection for half of the time-out or, where something
    /// `stands` in the session (a waiter has its turn there), the session is no longer sure, either; or the client is closed.
    async fn given_up(&self, stands: bool) -> LockError {
        let mut connection = self.0.connection.clone();
        let in_vain = async |lost: &Disconnection| {
            sleep_until(lost.since + self.timeout() / 2).await;
            if let Some(sure_until) = lost.sure_until.as_ref().filter(|_| stands) {
                sure_until.over().await;
            }
        };
        let cut = async {
            loop {
                let lost = connection.borrow_and_update().session().err().cloned();
                let changed = match lost {
                    None => connection.changed().await,
                    Some(lost) => tokio::select! {
                        () = in_vain(&lost) => return unavailable(lost.reason),
                        changed = connection.changed() => changed,
                    },
                };
                if changed.is_err() {
                    return closed();
                }
            }
        };
        tokio::select! {
            biased;
            () = self.0.closing.cancelled() => closed(),
            error = cut => error,
        }
    }

    /// How long an answer is waited for.
    pub(super) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Completes when the client has been closed.
    pub(super) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    /// Its tasks: [`close`](Self::close) waits for those that are spawned by themselves.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }
}

fn closed() -> LockError {
    unavailable("the client was closed")
}

impl fmt::Debug for ZkClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZkClient")
            .field(&self.0.connection.borrow())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_outside_a_runtime_is_refused() {
        let made = ZkClient::new(ZkOptions::new("127.0.0.1:2181"));
        assert!(matches!(made, Err(LockError::Invalid { name, .. }) if name == "runtime"));
    }
}
