//! How a Redis is reached, and what is checked before any command is sent.
//!
//! Next to read: `client.rs`.

use super::primary::{Primary, Sentinels};
use crate::{FOR_EVER, LockError, Process};
use redis::{
    Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use std::{fmt, time::Duration};
use tokio::sync::watch;

/// How many replicas must have a lock before it is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// This many; 0: none is waited for.
    AtLeast(u32),
    /// As many as the primary knows, and at least one. It forgets one whose connection is closed: for a lock that outlives
    /// every promotion say how many there are.
    All,
}

/// How to reach Redis, and how long things take.
///
/// ```
/// # use oversell_lock::redis::RedisOptions;
/// # use std::time::Duration;
/// let options = RedisOptions::new("redis://shop:secret@127.0.0.1:6379")
///     .prefix("shop:")
///     .lease(Duration::from_secs(10))
///     .timeout(Duration::from_secs(1));
/// ```
///
/// # Rights
///
/// A user other than `default` needs the keys and channels of the locks, and commands of these categories; `ROLE` where there are
/// Sentinels or replicas:
///
/// ```text
/// ACL SETUSER app on >secret ~* &* +@read +@write +@scripting +@pubsub +@connection +time +role
/// ```
///
/// `&redisson*` in place of `&*` is enough for all but fair locks, whose waiters listen by a pattern. Since Redis 7 a user has no
/// channel unless it is given some. Without channels every lock works, but waiters look twice a second instead of being woken.
#[derive(Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    pub(super) process: Process,
    pub(super) prefix: String,
    pub(super) lease: Duration,
    pub(super) java_watchdog: Duration,
    pub(super) timeout: Duration,
    pub(super) replicas: Replicas,
    /// `None` where the address was none.
    server: Option<ConnectionInfo>,
    /// Those that say where the server is, `None` where the address was none; and what they call it.
    sentinels: Vec<Option<ConnectionInfo>>,
    master: String,
    #[cfg(feature = "tls")]
    certificates: redis::TlsCertificates,
}

/// Starts from what the `redis` crate knows a server by, for what an address cannot say: certificates that a program keeps
/// elsewhere, say (`redis::Client::build_with_tls(…)?.get_connection_info().clone()`). RESP3 and TCP are set as the locks
/// need them.
///
/// ```
/// # use oversell_lock::redis::RedisOptions;
/// # fn example() -> redis::RedisResult<()> {
/// use redis::IntoConnectionInfo;
///
/// let options = RedisOptions::from(("127.0.0.1", 6379).into_connection_info()?);
/// # Ok(())
/// # }
/// ```
impl From<ConnectionInfo> for RedisOptions {
    fn from(server: ConnectionInfo) -> Self {
        Self::to(Some(server))
    }
}

impl RedisOptions {
    /// Starts from `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS, with the feature `tls`. No
    /// prefix, a lease of 30 s, 3 s for a command, a process of its own.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self::to(url.into().into_connection_info().ok())
    }

    fn to(server: Option<ConnectionInfo>) -> Self {
        Self {
            process: Process::new(),
            prefix: String::new(),
            lease: Duration::from_secs(30),
            java_watchdog: Duration::from_secs(30),
            timeout: Duration::from_secs(3),
            replicas: Replicas::AtLeast(0),
            server,
            sentinels: Vec::new(),
            master: String::new(),
            #[cfg(feature = "tls")]
            certificates: redis::TlsCertificates {
                client_tls: None,
                root_cert: None,
            },
        }
    }

    /// Sets what stands before every key and channel, as `shop:`; empty for none.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            ..self
        }
    }

    /// Sets the lease of a lock, renewed every third while its holder lives: 100 ms to ten years. A dead holder blocks
    /// the others for as long.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the shortest `lockWatchdogTimeout` of the Java processes that read under the same read-write locks, 100 ms to ten
    /// years; without this 30 s, as in Redisson. Their watchdog sets the lease of every reader to it, and a reader of
    /// ours that is renewed never relies on more.
    #[must_use]
    pub fn java_watchdog(self, java_watchdog: Duration) -> Self {
        Self {
            java_watchdog,
            ..self
        }
    }

    /// Sets how long an answer is waited for: a command without one by then is given up, and may have run. From 1 ms to
    /// an hour. With Sentinels, half of it is for each server that may be the primary. A connection that has fallen silent is
    /// known by this alone: a lease of less than twice of it may be lost with that connection, though the server is there.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Has these Sentinels, each as `redis://[user:password@]host:port`, say where the primary is that they call `master`.
    /// They are asked for each new connection, and so again after one was lost, or was answered `READONLY`. Of the address
    /// of these options user, password, database and TLS count, and host and port do not.
    ///
    /// ```
    /// # use oversell_lock::redis::{RedisOptions, Replicas};
    /// let options = RedisOptions::new("redis://shop:secret@primary")
    ///     .sentinels(["redis://10.0.0.1:26379", "redis://10.0.0.2:26379", "redis://10.0.0.3:26379"], "main")
    ///     .wait_replicas(Replicas::AtLeast(2));
    /// ```
    #[must_use]
    pub fn sentinels(
        self,
        urls: impl IntoIterator<Item = impl Into<String>>,
        master: impl Into<String>,
    ) -> Self {
        let urls = urls.into_iter().map(Into::into);
        Self {
            sentinels: urls.map(|url| url.into_connection_info().ok()).collect(),
            master: master.into(),
            ..self
        }
    }

    /// Sets how many replicas must have a lock (plain, fenced, fair, read or write) before it is had; without this none. Where
    /// fewer have it within a second, or half of [`timeout`](Self::timeout), it is given back, and the acquire ends with
    /// [`LockError::Unavailable`]; so it does where the lease has ended by then. It costs two or three commands more for each acquire.
    /// Redlock, semaphores, latches and rates do not wait. `WAIT` is no consensus: a replica that was not among those, and is
    /// promoted, does not have the lock.
    #[must_use]
    pub fn wait_replicas(self, replicas: Replicas) -> Self {
        Self { replicas, ..self }
    }

    /// Sets this process, after which owners are named. What an owner holds is known to the client by which it took it, and
    /// by that one it takes it again.
    #[must_use]
    pub fn process(self, process: Process) -> Self {
        Self { process, ..self }
    }

    /// Sets the authorities that a server's certificate must come from, in PEM, instead of the system's.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.root_cert = Some(pem.into());
        self
    }

    /// Sets the certificate that this client shows, and its key, each in PEM: a server with `tls-auth-clients yes` lets
    /// nobody in without one.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn certificate(mut self, pem: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.client_tls = Some(redis::ClientTlsConfig {
            client_cert: pem.into(),
            client_key: key.into(),
        });
        self
    }

    /// What all connections are made by, once the options have been checked; `disconnects` is told where it is elsewhere.
    pub(super) fn primary(&self, disconnects: watch::Sender<()>) -> Result<Primary, LockError> {
        let leases = [("lease", self.lease), ("java_watchdog", self.java_watchdog)];
        for (option, lease) in leases {
            if lease < Duration::from_millis(100) || lease > FOR_EVER {
                return Err(invalid(option, "must be 100 ms to ten years"));
            }
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_secs(3600) {
            return Err(invalid("timeout", "must be 1 ms to an hour"));
        }
        let info = self.server.clone().ok_or_else(bad_address)?;
        // RESP3 tells of a lost connection at once, and carries the wake-ups.
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let client = self.client(info.set_redis_settings(settings), bad_address)?;
        let each = self.sentinels.iter();
        let clients =
            each.map(|url| self.client(url.clone().ok_or_else(bad_sentinel)?, bad_sentinel));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let sentinels = (!clients.is_empty()).then(|| Sentinels {
            clients,
            master: self.master.clone(),
            first: Default::default(),
        });
        if sentinels.is_some() && self.master.is_empty() {
            return Err(invalid(
                "master",
                "must be what the Sentinels call the primary",
            ));
        }
        Ok(Primary::new(client, sentinels, self.timeout, disconnects))
    }

    fn client(&self, info: ConnectionInfo, bad: fn() -> LockError) -> Result<Client, LockError> {
        let info = info.set_tcp_settings(tcp_settings(self.timeout));
        #[cfg(feature = "tls")]
        // What the user has described has its certificates already.
        if let redis::ConnectionAddr::TcpTls {
            tls_params: None, ..
        } = info.addr()
        {
            // Where the program has chosen none: if it has two built in, there would be no default.
            drop(rustls::crypto::ring::default_provider().install_default());
            let unusable = || invalid("certificates", "must be in PEM, each with its key");
            let redis::TlsCertificates {
                client_tls,
                root_cert,
            } = &self.certificates;
            let own = client_tls.as_ref().map(|own| &own.client_cert);
            // The client takes what has none in it for an empty list.
            if root_cert.iter().chain(own).any(|pem| !has_certificate(pem)) {
                return Err(unusable());
            }
            return Client::build_with_tls(info, self.certificates.clone()).map_err(|_| unusable());
        }
        Client::open(info).map_err(|_| bad())
    }
}

/// The address is not shown: it may hold a password.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("lease", &self.lease)
            .field("java_watchdog", &self.java_watchdog)
            .field("timeout", &self.timeout)
            .field("master", &self.master)
            .field("replicas", &self.replicas)
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

pub(super) fn invalid(name: &str, rule: &'static str) -> LockError {
    LockError::invalid(name, rule)
}

#[cfg(feature = "tls")]
fn has_certificate(pem: &[u8]) -> bool {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    CertificateDer::from_pem_slice(pem).is_ok()
}

/// The address may hold a password, and is not repeated.
fn bad_address() -> LockError {
    invalid(
        "url",
        "must be redis://[user:password@]host:port[/database], or rediss:// with the feature tls",
    )
}

fn bad_sentinel() -> LockError {
    invalid(
        "sentinels",
        "must each be redis://[user:password@]host:port, or rediss:// with the feature tls",
    )
}

/// Small commands go out at once, and a peer that has vanished is found, also while nothing is sent.
fn tcp_settings(timeout: Duration) -> TcpSettings {
    let probe = timeout.max(Duration::from_secs(1));
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(
        TcpKeepalive::new()
            .with_time(probe)
            .with_interval(probe)
            .with_retries(2),
    );
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = settings.set_user_timeout(2 * timeout);
    settings
}
