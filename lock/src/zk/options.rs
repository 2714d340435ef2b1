//! How to reach ZooKeeper, as whom, and for whom the nodes are that are made there.
//!
//! What it survives: an ensemble some of whose servers are down: they are tried in turn. **What breaks it**: nodes that
//! anybody may change ([`ZkOptions::only_for_ourselves`] is not the default, because Curator's is not): a stranger who
//! deletes a holder's node lets the next one in beside it. A network that others can read: the way to the server is not
//! encrypted, and a password of [`ZkOptions::auth`] goes over it as it is. The client crate's own TLS brings a second
//! implementation of its algorithms (`aws-lc-rs` beside `ring`, and nobody chooses between them) and a parser that is no
//! longer kept (RUSTSEC-2025-0134); until that has changed, let a proxy beside each process encrypt the way.
//!
//! Next to read: `read_write.rs`.

use super::engine::valid;
use crate::LockError;
use std::{fmt, num::NonZeroU16, time::Duration};
use zookeeper_client::{Acls, Client, Connector};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// How to reach ZooKeeper, and what to make there. [`ZkClient::new`](super::ZkClient::new) checks it.
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
}

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
    /// Starts from `host:port[,host:port…]`; no chroot, a session of 10 s, 2 s for an answer, nodes that anybody may
    /// change.
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
        }
    }

    /// Sets what stands before every path, as `/oversell`; empty for none. It is made where it is missing.
    #[must_use]
    pub fn chroot(self, chroot: impl Into<String>) -> Self {
        Self {
            chroot: chroot.into(),
            ..self
        }
    }

    /// Sets the session time-out that is asked for, from 100 ms to an hour; the server sets bounds to it (2 to 20 ticks unless
    /// it is told otherwise). A dead holder blocks the others for as long. Four ticks or more leave room for a leader
    /// that has been cut off from its followers and still answers; `syncLimit` does not matter, as every heartbeat goes
    /// to the leader.
    #[must_use]
    pub fn session(self, session: Duration) -> Self {
        Self { session, ..self }
    }

    /// Sets how long an answer is waited for: a request without one by then is given up, and may have been carried out.
    /// Where a lock is waited for, this begins when that wait is over; a release that is given up goes on in the
    /// background. While there is no connection, half of it is waited for one, and a waiter stays in its queue for as long as
    /// its session is sure: two thirds of it. From 1 ms to an hour.
    ///
    /// It should be longer than the slowest write to the servers' disks: a busy disk may take seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets what connections are made with, for what cannot be said here: the client crate's TLS or SASL, say, for which the
    /// program enables its features. Session, time-outs and [`auth`](Self::auth) are set on it as they are here.
    ///
    /// ```
    /// # use oversell_lock::zk::ZkOptions;
    /// let connector = zookeeper_client::Client::connector().with_server_version(3, 6, 0);
    /// let options = ZkOptions::new("127.0.0.1:2181").connector(connector);
    /// ```
    #[must_use]
    pub fn connector(self, connector: Connector) -> Self {
        Self {
            connector: Some(connector),
            ..self
        }
    }

    /// Sets who this is, in a scheme of the server: `digest` and `user:password`, say.
    #[must_use]
    pub fn auth(self, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            auth: Some(Auth {
                scheme: scheme.into(),
                id: id.into(),
            }),
            ..self
        }
    }

    /// Keeps the nodes that are made for those who say that they are the same ([`auth`](Self::auth)), and not for
    /// anybody: a stranger could delete a holder's node, and would let the next one in beside it.
    #[must_use]
    pub fn only_for_ourselves(self) -> Self {
        Self {
            only_for_ourselves: true,
            ..self
        }
    }

    /// Sets what stands in the nodes of locks, for those that ask for the [holder](super::ZkLock::holder): the name of
    /// a host or an instance, say (Curator writes its host's address). Nothing unless it is given; at most a few
    /// hundred bytes, as every waiter's node has them.
    #[must_use]
    pub fn data(self, data: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            ..self
        }
    }

    pub(super) fn acls(&self) -> Acls<'static> {
        if self.only_for_ourselves {
            Acls::creator_all()
        } else {
            Acls::anyone_all()
        }
    }

    /// A connection that is silent for a fifth of the session is given up.
    pub(super) fn connector_with_options(&self) -> Connector {
        let connector = self.connector.clone().unwrap_or_else(Client::connector);
        let connector = connector
            .with_session_timeout(self.session)
            .with_connection_timeout(self.session / 5)
            .with_fail_eagerly();
        match &self.auth {
            Some(Auth { scheme, id }) => connector.with_auth(scheme, id.as_bytes()),
            None => connector,
        }
    }

    /// What no server needs to be asked about.
    pub(super) fn check(&self) -> Result<(), LockError> {
        let rules = [
            (
                self.connect.split(',').all(is_address),
                "connect: host:port[,host:port…], no chroot",
            ),
            (
                self.chroot.is_empty() || valid(&self.chroot).is_ok(),
                "chroot: empty, or an absolute path",
            ),
            (
                (Duration::from_millis(100)..=HOUR).contains(&self.session),
                "session: from 100 ms to an hour",
            ),
            (
                (Duration::from_millis(1)..=HOUR).contains(&self.timeout),
                "timeout: from 1 ms to an hour",
            ),
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

/// Whether it is `host:port`, a server's own address.
fn is_address(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        let port = port.parse::<NonZeroU16>();
        port.is_ok() && !host.is_empty() && !host.contains('/')
    })
}
