//! How to reach ZooKeeper, as which user, and who may change the nodes.

use super::engine::{MAX_PATH_LENGTH, check_path};
use crate::{LockError, LockObserver, events::Observer};
use std::{fmt, num::NonZeroU16, time::Duration};
use tokio::runtime::Handle;
use zookeeper_client::{Acls, Client, Connector};

/// The longest session and the longest time limit that an option may set; more is refused, as a mistake in the unit.
const MAX_TIME_LIMIT: Duration = Duration::from_secs(60 * 60);

/// How to reach ZooKeeper, and the nodes to make there. [`ZkClient::new`](super::ZkClient::new) checks it.
///
/// ```
/// # use oversell_lock::zk::ZkOptions;
/// # use std::time::Duration;
/// let options = ZkOptions::new("127.0.0.1:2181")
///     .chroot("/shop")
///     .session(Duration::from_secs(20))
///     .auth("digest", "shop:secret")
///     .only_for_ourselves()
///     .data("10.0.0.7");
/// ```
///
/// # Security
///
/// - By default anybody may change the nodes, as in Curator: a stranger that deletes a holder's node lets the next one in
///   beside it. [`only_for_ourselves`](Self::only_for_ourselves) prevents that.
/// - The connection is not encrypted, and a password of [`auth`](Self::auth) is sent in plain text. The client crate's TLS
///   would bring a second implementation of its algorithms (`aws-lc-rs` beside `ring`) and an unmaintained parser
///   (RUSTSEC-2025-0134); until that has changed, let a proxy beside each process encrypt the connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ZkOptions {
    pub(super) connect: String,
    pub(super) chroot: String,
    pub(super) session: Duration,
    pub(super) timeout: Duration,
    connector: Option<Connector>,
    auth: Option<Auth>,
    only_for_ourselves: bool,
    pub(super) data: String,
    pub(super) observer: Observer,
    pub(super) runtime: Option<Handle>,
}

/// As whom the client logs in: a scheme of the server and an identity in it, with its password.
#[derive(Clone)]
struct Auth {
    scheme: String,
    id: String,
}

/// The password is not shown.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)
    }
}

impl ZkOptions {
    /// Starts from `host:port[,host:port…]`; no chroot, a session of 10 s, 2 s for an answer, nodes that anybody may change.
    #[must_use]
    pub fn new(connect: impl Into<String>) -> Self {
        let session = Duration::from_secs(10);
        let (chroot, data) = (String::new(), String::new());
        Self {
            connect: connect.into(),
            chroot,
            session,
            timeout: Duration::from_secs(2),
            connector: None,
            auth: None,
            only_for_ourselves: false,
            data,
            observer: Observer::default(),
            runtime: None,
        }
    }

    /// Sets the observer of the locks, for metrics and logs.
    #[must_use]
    pub fn observer(self, observer: impl LockObserver) -> Self {
        let observer = Observer::new(observer);
        Self { observer, ..self }
    }

    /// Sets the tokio runtime of the client's session and tasks, instead of the one in which the client is made. Its I/O and
    /// time drivers must be enabled.
    #[must_use]
    pub fn runtime(self, runtime: Handle) -> Self {
        let runtime = Some(runtime);
        Self { runtime, ..self }
    }

    /// Sets the prefix of every path, as `/oversell`; empty for none. It is created if it is missing.
    #[must_use]
    pub fn chroot(self, chroot: impl Into<String>) -> Self {
        Self { chroot: chroot.into(), ..self }
    }

    /// Sets the requested session timeout, from 100 ms to an hour; the server bounds it (2 to 20 ticks by default). A
    /// dead holder blocks the others for as long. Four ticks or more leave room for a leader that was cut off from its
    /// followers and still answers; `syncLimit` does not matter, because every heartbeat goes to the leader.
    #[must_use]
    pub fn session(self, session: Duration) -> Self {
        Self { session, ..self }
    }

    /// Sets the time limit of an answer, from 1 ms to an hour: a request without one by then is abandoned, and may have
    /// been carried out. For a waiter it begins when the wait is over; an abandoned release continues in the
    /// background. A call waits for a connection until half of it has passed since the last one was lost, and a waiter
    /// keeps its place while its session is sure: two thirds of the session.
    ///
    /// It should be longer than the slowest write to the servers' disks: a busy disk may take seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the connector, for what cannot be said here: the client crate's TLS or SASL for example, for which the
    /// program enables its features. Session, timeouts and [`auth`](Self::auth) are set on it as they are here.
    ///
    /// ```
    /// # use oversell_lock::zk::ZkOptions;
    /// let connector = zookeeper_client::Client::connector().with_server_version(3, 6, 0);
    /// let options = ZkOptions::new("127.0.0.1:2181").connector(connector);
    /// ```
    #[must_use]
    pub fn connector(self, connector: Connector) -> Self {
        Self { connector: Some(connector), ..self }
    }

    /// Sets the identity, in a scheme of the server: `digest` and `user:password`, for example.
    #[must_use]
    pub fn auth(self, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self { auth: Some(Auth { scheme: scheme.into(), id: id.into() }), ..self }
    }

    /// Restricts the nodes to the identity that [`auth`](Self::auth) or the connector gives; one of them must be set.
    /// Otherwise a stranger could delete a holder's node, and would let the next one in beside it.
    #[must_use]
    pub fn only_for_ourselves(self) -> Self {
        Self { only_for_ourselves: true, ..self }
    }

    /// Sets the data of the locks' nodes, which the [holder](super::ZkLock::holder) shows: the name of a host or an
    /// instance, for example (Curator writes its host's address). Empty by default, and 64 KiB at most; a few hundred
    /// bytes are enough, and every waiter's node has them.
    #[must_use]
    pub fn data(self, data: impl Into<String>) -> Self {
        Self { data: data.into(), ..self }
    }

    /// Returns who may change the nodes: only our identity, or anybody.
    pub(super) fn acls(&self) -> Acls<'static> {
        if self.only_for_ourselves { Acls::creator_all() } else { Acls::anyone_all() }
    }

    /// Returns the connector with these options. A connection that is silent for a fifth of the session is abandoned.
    pub(super) fn connector_with_options(&self) -> Connector {
        let connector = self.connector.clone().unwrap_or_else(Client::connector);
        let connector =
            connector.with_session_timeout(self.session).with_connection_timeout(self.session / 5).with_fail_eagerly();
        match &self.auth {
            Some(Auth { scheme, id }) => connector.with_auth(scheme, id.as_bytes()),
            None => connector,
        }
    }

    /// Fails with [`LockError::Invalid`] for an option that can be refused without a server.
    pub(super) fn check(&self) -> Result<(), LockError> {
        let rules = [
            (self.connect.split(',').all(is_address), "connect: host:port[,host:port…], no chroot"),
            (self.chroot.is_empty() || check_path(&self.chroot).is_ok(), "chroot: empty, or an absolute path"),
            (self.data.len() <= MAX_PATH_LENGTH, "data: at most 64 KiB"),
            ((Duration::from_millis(100)..=MAX_TIME_LIMIT).contains(&self.session), "session: from 100 ms to an hour"),
            ((Duration::from_millis(1)..=MAX_TIME_LIMIT).contains(&self.timeout), "timeout: from 1 ms to an hour"),
            (
                !self.only_for_ourselves || self.auth.is_some() || self.connector.is_some(),
                "only_for_ourselves: needs auth or a connector that logs in, or there is no telling who that is",
            ),
        ];
        match rules.into_iter().find(|(kept, _)| !kept) {
            Some((_, rule)) => Err(LockError::invalid(&self.connect, rule)),
            None => Ok(()),
        }
    }
}

/// Whether it is `host:port` with a port that is not 0, and no chroot.
fn is_address(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        let port = port.parse::<NonZeroU16>();
        port.is_ok() && !host.is_empty() && !host.contains('/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_above_64_kib_is_refused() {
        let with = |bytes| ZkOptions::new("127.0.0.1:2181").data("a".repeat(bytes));
        assert!(with(MAX_PATH_LENGTH).check().is_ok());
        let refused = with(MAX_PATH_LENGTH + 1).check();
        assert!(matches!(refused, Err(LockError::Invalid { .. })), "{refused:?}");
    }
}
