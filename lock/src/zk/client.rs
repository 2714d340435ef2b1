//! This process's handle on its ZooKeeper session.
//!
//! 1. [`ZkClient::new`] starts the session's supervisor (`engine/session.rs`), which reports the session's state.
//! 2. While the connection is lost, a call waits for half of [`ZkOptions::timeout`] at most. A waiter for a lock waits
//!    as long as the session is sure, and so keeps its turn through a leader election.
//! 3. [`ZkClient::close`] waits for the last releases and ends the session.
//!
//! A runtime that is stopped before [`ZkClient::close`] leaves nodes behind until its session times out.
//!
//! Next to read: `engine/session.rs`.

use super::ZkOptions;
use super::engine::session::{ConnectionState, Disconnection, Session, Supervisor};
use super::engine::{SERVER, Wait, unavailable_error};
use crate::{
    LockError, Owner, Process,
    events::Observer,
    local::ByType,
    tasks::{self, Tasks},
};
use std::{fmt, future::pending, sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use zookeeper_client::Client;

/// One process's session. Cloning it is cheap; the session is closed with the last clone and the last guard.
///
/// It connects in the background, for as long as that takes, survives a restart of the server if the session does, and
/// begins a new session if not.
///
/// # What breaks it
///
/// A tokio runtime that does not run, as a `current_thread` one outside `block_on`: its session and its tasks are in the
/// runtime in which the client was made, or that its options name. Nothing is taken, renewed or released meanwhile, and a wait
/// does not end, whatever its limit.
///
/// # Example
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
pub struct ZkClient(pub(super) Arc<ClientState>);

/// What all clones of one client share: the state of its session, the state of its locks, and its tasks.
pub(super) struct ClientState {
    connection: watch::Receiver<ConnectionState>,
    timeout: Duration,
    process: Process,
    observer: Observer,
    pub(super) shared: ByType,
    tasks: Tasks,
    /// The supervisor of the session, alone.
    supervisor: Tasks,
    /// Cancelled when the session is to end.
    end: CancellationToken,
    _end_with_the_last_clone: DropGuard,
}

/// How long [`ZkClient::connect`] waits: a client tries the servers of its list one after the other.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl ZkClient {
    /// Makes a client of the ZooKeeper at `host:port[,host:port…]`, with the defaults of [`ZkOptions`]; returns once it is
    /// connected.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example() -> Result<(), LockError> {
    /// let zk = ZkClient::connect("10.0.0.1:2181,10.0.0.2:2181,10.0.0.3:2181").await?;
    /// let guard = zk.lock("/shop/door").acquire(Duration::from_secs(5)).await?;
    /// guard.release().await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`LockError::Unavailable`] if no server answers within 5 s.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn connect(servers: impl Into<String>) -> Result<Self, LockError> {
        let zk = Self::new(ZkOptions::new(servers))?;
        zk.wait_until_connected(CONNECT_TIMEOUT).await?;
        Ok(zk)
    }

    /// Starts to connect in the background, for as long as that takes. A call before it is connected waits until half of
    /// [`ZkOptions::timeout`] has passed since this one, and then returns [`LockError::Unavailable`]. Its session and tasks live
    /// in the tokio runtime in which it is made, or that [`ZkOptions::runtime`] names; locks may be used in any runtime.
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
    /// [`LockError::Invalid`] for options that can never connect, or outside a runtime.
    pub fn new(options: ZkOptions) -> Result<Self, LockError> {
        options.check()?;
        let (timeout, observer) = (options.timeout, options.observer.clone());
        let (sender, connection) = watch::channel(ConnectionState::new());
        let (end, tasks) = (CancellationToken::new(), Tasks::in_runtime(options.runtime.clone())?);
        let supervisor = Tasks::in_runtime(options.runtime.clone())?;
        supervisor.spawn(Supervisor { options, connection: sender, tasks: tasks.clone(), end: end.clone() }.run());
        Ok(Self(Arc::new(ClientState {
            connection,
            timeout,
            process: Process::new(),
            observer,
            shared: ByType::default(),
            tasks,
            supervisor,
            _end_with_the_last_clone: end.clone().drop_guard(),
            end,
        })))
    }

    /// Returns the live session's client, for other requests than locks. Its paths are below the chroot. It is the only
    /// item here that exposes the crate `zookeeper-client`, whose next major version may change it.
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
    /// [`LockError::Unavailable`] while there is no connection, and once the client is being closed.
    pub fn session(&self) -> Result<Client, LockError> {
        if self.0.tasks.is_closing() {
            return Err(closed_error());
        }
        match self.0.connection.borrow().session() {
            Ok(session) => Ok(Client::clone(session)),
            Err(lost) => Err(unavailable_error(lost.reason.as_str())),
        }
    }

    /// Makes a new owner, for handles whose holds belong together.
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

    /// Ends the use of locks, as `close` of every client does. From the call on, waiters and later calls get
    /// [`LockError::Unavailable`]. It waits, 3 s at most, until every hold is released. Holders that are left are then told that
    /// their lock is lost, and the session ends: here nothing of them is left on the server. The server has
    /// [`ZkOptions::timeout`] to delete what is left, and 2 s to confirm the end; without an answer the nodes go when the session
    /// times out. If a caller keeps what [`session`](Self::session) returned, the session lasts as long, without its nodes.
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
    /// Once polled, locks are refused. If it is dropped, the session ends with the last clone and guard.
    pub async fn close(&self) {
        self.0.tasks.close(SERVER).await;
        self.0.end.cancel();
        self.0.supervisor.wait_until_ended().await;
    }

    /// Waits until it is connected, at most for `wait`.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// zk.wait_until_connected(Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if it is not connected by then, or is being closed.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_until_connected(&self, wait: Duration) -> Result<(), LockError> {
        tokio::select! {
            biased;
            () = self.0.tasks.wait_until_closing() => Err(closed_error()),
            _ = self.wait_until_live() => Ok(()),
            () = sleep(wait) => self.session().map(drop),
        }
    }

    /// Returns the live session, or waits for one: until `deadline`, or until
    /// [`wait_until_useless`](Self::wait_until_useless) gives an error, whichever is earlier.
    pub(super) async fn live_session(&self, deadline: Instant) -> Result<Arc<Session>, LockError> {
        tokio::select! {
            biased;
            error = self.wait_until_useless(false) => Err(error),
            up = self.wait_until_live() => Ok(up),
            () = sleep_until(deadline) => Err(self.session().err().unwrap_or_else(|| unavailable_error("the session is over"))),
        }
    }

    /// Waits for a live session, without a time limit; for ever once the client is closed.
    pub(super) async fn wait_until_live(&self) -> Arc<Session> {
        let mut up = None;
        let live = |connection: &ConnectionState| {
            up = connection.live_session().cloned();
            up.is_some()
        };
        drop(self.0.connection.clone().wait_for(live).await);
        match up {
            Some(session) => session,
            None => pending().await,
        }
    }

    /// Returns the result of `future`; or drops it and returns an error, once waiting for it is
    /// [useless](Self::wait_until_useless) for a caller with a node in the session, or [`ZkOptions::timeout`] after the end of
    /// the wait.
    pub(super) async fn while_alive<T>(&self, wait: Wait, future: impl Future<Output = T>) -> Result<T, LockError> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            error = self.wait_until_useless(true) => Err(error),
            () = sleep_until(wait.end + self.timeout()) => Err(unavailable_error("no answer")),
        }
    }

    /// The error of a lock that was not acquired within the wait: it was taken, or there is no connection now.
    pub(super) fn not_acquired_error(&self, wait: Wait, name: &str) -> LockError {
        self.session().err().unwrap_or_else(|| wait.taken_error(name))
    }

    /// Completes with an error once waiting is useless: the client is being closed; or there was no connection for half of
    /// the timeout and, if the caller `has_node` in the session, the session is not sure any more either.
    async fn wait_until_useless(&self, has_node: bool) -> LockError {
        let mut connection = self.0.connection.clone();
        let in_vain = async |lost: &Disconnection| {
            sleep_until(lost.since + self.timeout() / 2).await;
            if let Some(sure_until) = lost.sure_until.as_ref().filter(|_| has_node) {
                sure_until.wait_until_over().await;
            }
        };
        let cut = async {
            loop {
                let lost = connection.borrow_and_update().session().err().cloned();
                let changed = match lost {
                    None => connection.changed().await,
                    Some(lost) => tokio::select! {
                        () = in_vain(&lost) => return unavailable_error(lost.reason),
                        changed = connection.changed() => changed,
                    },
                };
                if changed.is_err() {
                    return closed_error();
                }
            }
        };
        tokio::select! {
            biased;
            () = self.0.tasks.wait_until_closing() => closed_error(),
            error = cut => error,
        }
    }

    /// Returns the time limit of an answer: [`ZkOptions::timeout`].
    pub(super) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Completes when the session is to end: `close` has waited for the releases, or the last clone is dropped. Tasks in the
    /// background stop then.
    pub(super) async fn wait_until_ending(&self) {
        self.0.end.cancelled().await;
    }

    pub(super) fn observer(&self) -> &Observer {
        &self.0.observer
    }

    /// The tasks that [`close`](Self::close) waits for.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }
}

fn closed_error() -> LockError {
    tasks::closed_error(SERVER)
}

impl fmt::Debug for ZkClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZkClient").field(&self.0.connection.borrow()).finish()
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
