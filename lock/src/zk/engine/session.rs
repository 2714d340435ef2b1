//! Keeps one session to ZooKeeper, and reports its state.
//!
//! 1. Connect, with a capped and random back-off, for as long as it takes.
//! 2. Send a heartbeat every eighth of the session `S`. An answer says that the session lasts `S` from when the
//!    heartbeat was sent; holders rely on two thirds of that, so that a third is left to stop in.
//! 3. While the connection is lost the client reconnects by itself and the session may live on; the pending heartbeat
//!    is the first request of the new connection.
//! 4. A session that is over never comes back: begin a new one.
//!
//! The heartbeat is a `sync`, which a follower passes on to its leader. The client's own pings are answered by the
//! follower alone, which may be cut off from its leader for `syncLimit * tickTime` without knowing it.
//!
//! **What breaks it**: see `sure_until.rs`; and a leader that is cut off from the others answers for a moment longer,
//! for which a session of at least four ticks leaves room.
//!
//! Next to read: `../../sure_until.rs`.
//!
//! # Nagle's algorithm
//!
//! The client does not set TCP_NODELAY, so a request waits in the kernel until the one before it is acknowledged.
//! That costs nothing here: the server answers every request of a session, in order and with TCP_NODELAY, and the
//! answer carries the acknowledgement. Measured: 5,000 cycles of lock and unlock, half of them contended, with 1
//! delayed acknowledgement; one cycle alone takes 0.4 ms.

use super::{errors_to_none, is_session_over, is_unanswered, repeat_until_answered};
use crate::{local::ByType, sure_until::SureUntil, tasks::Tasks, zk::ZkOptions};
use futures::future::join_all;
use parking_lot::Mutex;
use std::{ops::Deref, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, MultiReadResult, SessionState, Stat};

/// The first pause between attempts to connect; each further one is twice as long.
const FIRST_RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts to connect: a server that is back is found within it.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait for the server to confirm the end of the session; then its nodes are left to its timeout.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// One session at the server, live or over. It dereferences to its client, whose paths are below the chroot.
#[derive(Debug)]
pub(in crate::zk) struct Session {
    client: Client,
    /// The same client, with paths from the server's root.
    server: Client,
    chroot: String,
    acls: Acls<'static>,
    /// The data of the queue's nodes.
    pub(super) data: String,
    /// The time limit of an answer: `ZkOptions::timeout`.
    pub(in crate::zk) timeout: Duration,
    sure_until: Mutex<SureUntil>,
    /// What this process knows of the directories in which it queues.
    pub(super) shared: ByType,
    /// The tasks that delete nodes in the background.
    pub(super) tasks: Tasks,
    /// Cancelled when the session is over and its nodes are gone.
    pub(super) over: CancellationToken,
    /// Cancelled when the client is closed.
    pub(super) end: CancellationToken,
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Session {
    /// Until when the session surely lasts, for a lock that is taken now; an earlier one may keep an end that has passed.
    pub(in crate::zk) fn sure_until(&self) -> SureUntil {
        self.sure_until.lock().clone()
    }

    /// The options for a node of this mode, with the configured ACL.
    pub(in crate::zk) fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.acls)
    }

    /// Creates a directory and its parents as containers, which the server removes once they are empty again. The empty
    /// path is the chroot, which somebody may have deleted.
    ///
    /// # Errors
    ///
    /// The server's error, or that the session is over.
    pub(in crate::zk) async fn make_directory(&self, path: &str) -> Result<(), Error> {
        if path.is_empty() {
            return self.make_chroot().await;
        }
        let options = self.options(CreateMode::Container);
        loop {
            match repeat_until_answered(|| self.mkdir(path, &options)).await {
                Err(Error::NoNode) => self.make_chroot().await?,
                made => return made,
            }
        }
    }

    /// Creates a missing chroot as a persistent node: ZooKeeper would delete an empty container.
    async fn make_chroot(&self) -> Result<(), Error> {
        // Checks first: below a parent that belongs to others, reading may be allowed where creating is not.
        if self.chroot.is_empty() || repeat_until_answered(|| self.server.check_stat(&self.chroot)).await?.is_some() {
            return Ok(());
        }
        let options = self.options(CreateMode::Persistent);
        repeat_until_answered(|| self.server.mkdir(&self.chroot, &options)).await
    }

    /// Reads the stats of several nodes in one request; `None` for each that is missing.
    ///
    /// # Errors
    ///
    /// The server's error, or that the session is over.
    pub(in crate::zk) async fn stats(&self, paths: &[String]) -> Result<Vec<Option<Stat>>, Error> {
        let looks = repeat_until_answered(async || {
            let mut looks = self.new_multi_reader();
            for path in paths {
                looks.add_get_data(path)?;
            }
            looks.commit().await
        });
        let stat = |look| match look {
            MultiReadResult::Data { stat, .. } => Ok(Some(stat)),
            MultiReadResult::Error { err: Error::NoNode } => Ok(None),
            MultiReadResult::Error { err } => Err(err),
            _ => Err(Error::Unimplemented),
        };
        looks.await?.into_iter().map(stat).collect()
    }

    /// Deletes every ephemeral node of the session, also outside of the chroot.
    async fn delete_ephemerals(&self) -> Result<(), Error> {
        let nodes = self.server.list_ephemerals("/").await?;
        let deletions = nodes.iter().map(|node| self.server.delete(node, None));
        for deleted in join_all(deletions).await {
            errors_to_none(&[Error::NoNode], deleted)?;
        }
        Ok(())
    }

    /// Moves the end of the sure time. Once it has passed, only locks that are taken from now on rely on the new end.
    fn extend(&self, until: Instant) {
        let mut sure = self.sure_until.lock();
        if !sure.extend(until) {
            *sure = SureUntil::new(until);
        }
    }

    /// Sends heartbeats while the session lives, and extends its sure time after each answer; never completes.
    async fn send_heartbeats(&self) {
        let (every, lasts) = (self.session_timeout() / 8, self.session_timeout() * 2 / 3);
        loop {
            let sent = Instant::now();
            match self.sync("/").await {
                Ok(()) => {
                    self.extend(sent + lasts);
                    sleep_until(sent + every).await;
                }
                Err(error) if is_session_over(&error) => return std::future::pending().await,
                Err(error) if is_unanswered(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "zookeeper refused a heartbeat");
                    sleep(every).await;
                }
            }
        }
    }
}

/// The session of a client while it is connected, and the last loss of its connection, as the supervisor reports them.
#[derive(Debug)]
pub(in crate::zk) struct ConnectionState {
    /// The session, while it is connected.
    connected: Option<Arc<Session>>,
    lost: Disconnection,
}

/// Since when and why there is no connection, and until when the last session is sure (`None`: there was none).
#[derive(Debug, Clone)]
pub(in crate::zk) struct Disconnection {
    pub(in crate::zk) since: Instant,
    pub(in crate::zk) reason: String,
    pub(in crate::zk) sure_until: Option<SureUntil>,
}

impl ConnectionState {
    pub(in crate::zk) fn new() -> Self {
        let lost = Disconnection { since: Instant::now(), reason: "not yet connected".into(), sure_until: None };
        Self { connected: None, lost }
    }

    /// Returns the session, if it is connected and not known to be over.
    pub(in crate::zk) fn live_session(&self) -> Option<&Arc<Session>> {
        // The client knows of an end a moment before the supervisor does.
        self.connected.as_ref().filter(|session| !session.state().is_terminated())
    }

    /// Returns the session if it is connected, and the last loss if not.
    pub(in crate::zk) fn session(&self) -> Result<&Arc<Session>, &Disconnection> {
        self.connected.as_ref().ok_or(&self.lost)
    }

    /// Notes a lost connection; of several in a row it keeps the time of the first and the reason of the last.
    fn record_loss(connection: &watch::Sender<Self>, reason: impl ToString) {
        connection.send_modify(|connection| {
            if let Some(session) = connection.connected.take() {
                connection.lost.since = Instant::now();
                connection.lost.sure_until = Some(session.sure_until());
            }
            connection.lost.reason = reason.to_string();
        });
    }
}

/// What the task needs that keeps a client's sessions, one after the other ([`run`](Self::run)).
pub(in crate::zk) struct Supervisor {
    pub(in crate::zk) options: ZkOptions,
    pub(in crate::zk) connection: watch::Sender<ConnectionState>,
    pub(in crate::zk) tasks: Tasks,
    pub(in crate::zk) end: CancellationToken,
}

impl Supervisor {
    /// Keeps a session until the client is closed, then deletes its nodes and closes it. Without an answer in time the
    /// server ends both with the session's timeout.
    pub(in crate::zk) async fn run(self) {
        let mut last = None;
        self.end.clone().run_until_cancelled(self.keep_sessions(&mut last)).await;
        ConnectionState::record_loss(&self.connection, "the client was closed");
        let Some(session) = last else { return };
        session.sure_until().end_now();
        let mut states = session.state_watcher();
        // The session ends with the last clone of its client, which a caller may have kept.
        let cleared = timeout(session.timeout, session.delete_ephemerals()).await;
        if let Ok(Err(error)) = &cleared {
            tracing::debug!(%error, "the session's nodes are left to its end");
        }
        drop(session);
        let closed = async { while !states.state().is_terminated() && !states.changed().await.is_terminated() {} };
        if cleared.is_err() || timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::warn!("zookeeper did not confirm the end of the session: what is left there goes with it");
        }
    }

    /// Opens one session after the other, without end; `last` is the latest one.
    async fn keep_sessions(&self, last: &mut Option<Arc<Session>>) {
        let mut pause = FIRST_RECONNECT_PAUSE;
        loop {
            match self.open_session().await {
                Ok(session) => {
                    pause = FIRST_RECONNECT_PAUSE;
                    *last = Some(session.clone());
                    tracing::info!(session = %session.session_id(), timeout = ?session.session_timeout(), "zookeeper session opened");
                    tokio::select! {
                        () = self.report_states(&session) => {}
                        () = session.send_heartbeats() => {}
                    }
                    session.sure_until().end_now();
                    session.over.cancel();
                }
                Err(error) => {
                    // Logs once per outage, not per attempt.
                    if pause == FIRST_RECONNECT_PAUSE {
                        tracing::warn!(%error, connect = self.options.connect, "zookeeper is not reached");
                    }
                    ConnectionState::record_loss(&self.connection, error);
                    sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                    pause = (pause * 2).min(MAX_RECONNECT_PAUSE);
                }
            }
        }
    }

    /// Connects and makes the chroot, in one try; `keep_sessions` retries.
    async fn open_session(&self) -> Result<Arc<Session>, Error> {
        let sent = Instant::now();
        let server = self.options.connector_with_options().connect(&self.options.connect).await?;
        let sure_until = SureUntil::new(sent + server.session_timeout() * 2 / 3);
        let chroot = self.options.chroot.clone();
        let client = if chroot.is_empty() {
            server.clone()
        } else {
            let below = server.clone().chroot(chroot.clone());
            below.map_err(|_| Error::BadArguments(&"chroot is not an absolute path"))?
        };
        let session = Session {
            client,
            server,
            chroot,
            acls: self.options.acls(),
            data: self.options.data.clone(),
            timeout: self.options.timeout,
            sure_until: Mutex::new(sure_until),
            shared: ByType::default(),
            tasks: self.tasks.clone(),
            over: CancellationToken::new(),
            end: self.end.clone(),
        };
        session.make_chroot().await?;
        Ok(Arc::new(session))
    }

    /// Reports a session's state until it is over.
    async fn report_states(&self, session: &Arc<Session>) {
        let mut states = session.state_watcher();
        let mut state = session.state();
        loop {
            match state {
                SessionState::SyncConnected => {
                    self.connection.send_modify(|connection| connection.connected = Some(session.clone()))
                }
                SessionState::Disconnected | SessionState::ConnectedReadOnly => {
                    ConnectionState::record_loss(&self.connection, "the connection was lost");
                }
                SessionState::AuthFailed | SessionState::Expired | SessionState::Closed => {
                    tracing::warn!(session = %session.session_id(), %state, "zookeeper session over");
                    return ConnectionState::record_loss(&self.connection, format!("the session is over: {state}"));
                }
            }
            state = states.changed().await;
        }
    }
}
