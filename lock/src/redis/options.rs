//! How to reach Redis, and the checks before any command is sent.
//!
//! Next to read: `servers.rs`, which makes the servers of the options.

use super::primary::{Address, Sentinels};
use crate::{LockError, LockObserver, MAX_DURATION, Process, events::Observer};
use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use std::{fmt, time::Duration};
use tokio::runtime::Handle;

/// How many replicas must have a lock before it counts as acquired. See [`RedisOptions::wait_replicas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// This many; 0: do not wait.
    AtLeast(u32),
    /// All that the primary knows, and at least one. It forgets a replica whose connection is closed: for a lock that
    /// must outlive every promotion use `AtLeast`.
    All,
}

/// How to reach Redis, its time limits, and the defaults of its locks; checked when a client is made.
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
/// Sentinels or replicas, and in a cluster `CLUSTER SLOTS` and `ASKING`:
///
/// ```text
/// ACL SETUSER app on >secret ~* &* +@read +@write +@scripting +@pubsub +@connection +time +role
/// ```
///
/// `&redisson*` instead of `&*` is enough for all but fair locks, whose waiters listen by a pattern. Since Redis 7 a user has no
/// channels by default. Without channels every lock works, but waiters look twice a second instead of being woken.
#[derive(Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    pub(super) process: Process,
    pub(super) prefix: String,
    pub(super) lease: Duration,
    pub(super) java_watchdog: Duration,
    pub(super) timeout: Duration,
    pub(super) replicas: Replicas,
    pub(super) waits_while_unavailable: bool,
    pub(super) observer: Observer,
    pub(super) runtime: Option<Handle>,
    /// `None` if the address was invalid.
    server: Option<ConnectionInfo>,
    /// The Sentinels (`None` for an invalid address), and their name for the primary.
    sentinels: Vec<Option<ConnectionInfo>>,
    master: String,
    /// The other nodes of a cluster (`None` for an invalid address); `None`: no cluster.
    cluster: Option<Vec<Option<ConnectionInfo>>>,
    #[cfg(feature = "tls")]
    certificates: redis::TlsCertificates,
}

/// Where the options lead.
pub(super) struct ServerAddresses {
    /// Says how to connect.
    pub(super) client: Client,
    pub(super) sentinels: Option<Sentinels>,
    /// The nodes of a cluster that the options name; `None`: no cluster.
    pub(super) seeds: Option<Vec<Address>>,
}

/// Starts from a connection's description of the `redis` crate, for what an address cannot say: certificates that the
/// program keeps elsewhere, for example (`redis::Client::build_with_tls(…)?.get_connection_info().clone()`). RESP3 and
/// TCP are set as the locks need them.
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
        Self::to_server(Some(server))
    }
}

impl RedisOptions {
    /// Starts from `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS, with the feature `tls`. No
    /// prefix, a lease of 30 s, 3 s for a command, a process of its own.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self::to_server(url.into().into_connection_info().ok())
    }

    /// The defaults, with this server; `None` is an invalid address, which is reported when the client is made.
    fn to_server(server: Option<ConnectionInfo>) -> Self {
        Self {
            process: Process::new(),
            prefix: String::new(),
            lease: Duration::from_secs(30),
            java_watchdog: Duration::from_secs(30),
            timeout: Duration::from_secs(3),
            replicas: Replicas::AtLeast(0),
            waits_while_unavailable: false,
            observer: Observer::default(),
            runtime: None,
            server,
            sentinels: Vec::new(),
            master: String::new(),
            cluster: None,
            #[cfg(feature = "tls")]
            certificates: redis::TlsCertificates { client_tls: None, root_cert: None },
        }
    }

    /// Sets the prefix of every name, as `shop:`; empty for none. Keys and channels have it with the name:
    /// `redisson_lock__channel:{shop:lock}`.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Sets the default lease, renewed every third while its holder lives: 100 ms to ten years. A dead holder blocks
    /// the others for as long.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the shortest `lockWatchdogTimeout` of the Java processes that use the same read-write locks: 100 ms to ten
    /// years, 30 s by default, as in Redisson. Redisson's watchdog sets the leases of all readers of a lock to its own
    /// timeout, also those that were longer. So a reader of this client with a lease that is renewed relies on this time at
    /// most. Without Java readers it has no effect.
    #[must_use]
    pub fn java_watchdog(self, java_watchdog: Duration) -> Self {
        Self { java_watchdog, ..self }
    }

    /// Sets the time limit of a command, from 1 ms to an hour: a command without an answer by then is abandoned, and
    /// may have run. With Sentinels, half of it is for each server that may be the primary. A renewal has a third of its
    /// lease, if that is less (but at least 100 ms): after that it is repeated by a new connection, so that a silent one
    /// does not cost a lease whose server can be reached.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Asks these Sentinels, each as `redis://[user:password@]host:port`, for the primary that they call `master`: for
    /// each new connection, and so again after a disconnect or an answer `READONLY`. Of these options' address, user,
    /// password, database and TLS count, but not host and port. A primary that is cut off from replicas and Sentinels,
    /// but not from us, keeps being used until it refuses writes (`min-replicas-to-write`) or closes the connection.
    ///
    /// ```
    /// # use oversell_lock::redis::{RedisOptions, Replicas};
    /// let sentinels = ["redis://10.0.0.1:26379", "redis://10.0.0.2:26379", "redis://10.0.0.3:26379"];
    /// let options = RedisOptions::new("redis://shop:secret@primary")
    ///     .sentinels(sentinels, "main")
    ///     .wait_replicas(Replicas::AtLeast(2));
    /// ```
    #[must_use]
    pub fn sentinels(self, urls: impl IntoIterator<Item = impl Into<String>>, master: impl Into<String>) -> Self {
        let urls = urls.into_iter().map(Into::into);
        Self { sentinels: urls.map(|url| url.into_connection_info().ok()).collect(), master: master.into(), ..self }
    }

    /// Treats the address as that of a node of a Redis Cluster, and these, each as `redis://host:port`, as further nodes,
    /// which are asked if it is down; there may be none. Of these options, user, password and TLS count for every node.
    ///
    /// A lock with its keys and its channel is in one slot, by its name, and so is a semaphore, a latch or a rate
    /// limiter; a [`MultiLock`](crate::MultiLock) may have parts in several. The client keeps a map of the slots, and
    /// sends each command to the node that has its key. Waiters are woken as by Redisson 3.22 and later, with
    /// `SPUBLISH` where the nodes know it (Redis 7), and with `PUBLISH` for older versions of Redisson, whose own
    /// messages are not heard there: our waiters then look twice a second.
    ///
    /// Source: the Redis documentation, "Redis cluster specification".
    ///
    /// # Survives
    ///
    /// - a slot that moves (`MOVED`, `ASK`): a plain lock goes on; what has several keys (fenced, fair and read-write
    ///   locks, semaphores, latches) waits until all have moved, for the [`timeout`](Self::timeout) at most; if the move
    ///   ends a script half-way, the caller gets [`Unavailable`](crate::LockError::Unavailable) and what it took is undone;
    /// - a replica that is promoted, planned or not: commands that did not go out are sent to it;
    /// - a broken or silent connection: a command that may have run is **never sent again**. Its caller is told, and what
    ///   it may have taken is undone.
    ///
    /// # What breaks it
    ///
    /// A primary that fails before its replica has the key, unless [`wait_replicas`](Self::wait_replicas) is set. One that is cut
    /// off from the others grants locks for up to the cluster's `cluster-node-timeout`, which the promoted replica does not have.
    ///
    /// # Cost
    ///
    /// Two connections to each node that is used. `CLUSTER SLOTS` after each change and each failed command. A release
    /// publishes twice, and the cluster sends the second message to all of its nodes.
    ///
    /// # Example
    ///
    /// ```
    /// # use oversell_lock::redis::{RedisOptions, Replicas};
    /// let options = RedisOptions::new("redis://shop:secret@10.0.0.1:6379")
    ///     .cluster(["redis://10.0.0.2:6379", "redis://10.0.0.3:6379"])
    ///     .wait_replicas(Replicas::AtLeast(1));
    /// ```
    #[must_use]
    pub fn cluster(self, urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls = urls.into_iter().map(Into::into);
        let further = urls.map(|url: String| url.into_connection_info().ok());
        Self { cluster: Some(further.collect()), ..self }
    }

    /// Sets how many replicas must have a lock (plain, fenced, fair, read or write) before it counts as acquired; none
    /// by default. If fewer have it within a second (half of [`timeout`](Self::timeout) if that is less), or the lease has
    /// ended by then, it is released and the acquire returns [`LockError::Unavailable`]. It costs two or three more commands
    /// per acquire. Redlock, semaphores, latches and rate limiters do not wait. `WAIT` is no consensus: a replica that was
    /// not among those that answered, and is promoted, does not have the lock; nor is a renewal waited for.
    #[must_use]
    pub fn wait_replicas(self, replicas: Replicas) -> Self {
        Self { replicas, ..self }
    }

    /// Lets waiters go on while Redis is unavailable (down, silent, read-only, loading its data), until their wait is
    /// over: in `acquire` of every lock, semaphore and rate limiter, and in `wait` of a latch. By default each of them
    /// returns [`LockError::Unavailable`] at once, and so do all waiters of the process.
    ///
    /// They try again every 100 ms, keep their turn in the process's line, and return `Unavailable` if Redis is still
    /// unavailable at the end. `try_acquire`, and a wait of zero, ask once. A command whose answer did not come is never
    /// repeated: what it may have taken is undone, and the next try has another identity. So a waiter for a fair lock
    /// keeps its place in the queue through a connection that cannot be made, and loses it with one that breaks under its
    /// command; a rate limiter may spend an admission twice. A latch that Redis lost meanwhile is open.
    ///
    /// ```
    /// # use oversell_lock::redis::RedisOptions;
    /// let options = RedisOptions::new("redis://127.0.0.1:6379").wait_while_unavailable(true);
    /// ```
    #[must_use]
    pub fn wait_while_unavailable(self, waits: bool) -> Self {
        Self { waits_while_unavailable: waits, ..self }
    }

    /// Sets the observer of the locks, for metrics and logs.
    #[must_use]
    pub fn observer(self, observer: impl LockObserver) -> Self {
        let observer = Observer::new(observer);
        Self { observer, ..self }
    }

    /// Sets the tokio runtime of the client's connections and tasks, instead of the one in which the client is made. Its I/O
    /// and time drivers must be enabled.
    #[must_use]
    pub fn runtime(self, runtime: Handle) -> Self {
        let runtime = Some(runtime);
        Self { runtime, ..self }
    }

    /// Sets the process that owners are named after. An owner's holds are known only to the client that took them, so
    /// take it again by that client.
    #[must_use]
    pub fn process(self, process: Process) -> Self {
        Self { process, ..self }
    }

    /// Sets the certificate authorities for the server's certificate, in PEM, instead of the system's.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.root_cert = Some(pem.into());
        self
    }

    /// Sets this client's certificate and key, each in PEM, for a server with `tls-auth-clients yes`.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn certificate(mut self, pem: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.client_tls = Some(redis::ClientTlsConfig { client_cert: pem.into(), client_key: key.into() });
        self
    }

    /// Checks the options ([`LockError::Invalid`]), and returns where they lead; connects to nothing.
    pub(super) fn addresses(&self) -> Result<ServerAddresses, LockError> {
        let leases = [("lease", self.lease), ("java_watchdog", self.java_watchdog)];
        for (option, lease) in leases {
            if lease < Duration::from_millis(100) || lease > MAX_DURATION {
                return Err(invalid_error(option, "must be 100 ms to ten years"));
            }
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_secs(3600) {
            return Err(invalid_error("timeout", "must be 1 ms to an hour"));
        }
        let info = self.server.clone().ok_or_else(bad_address_error)?;
        // RESP3 reports a lost connection at once, and carries the wake-ups.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = self.client(info.set_redis_settings(settings), bad_address_error)?;
        let each = self.sentinels.iter();
        let clients = each.map(|url| self.client(url.clone().ok_or_else(bad_sentinel_error)?, bad_sentinel_error));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let sentinels =
            (!clients.is_empty()).then(|| Sentinels { clients, master: self.master.clone(), first_asked: Default::default() });
        if sentinels.is_some() && self.master.is_empty() {
            return Err(invalid_error("master", "must be what the Sentinels call the primary"));
        }
        let mut seeds = None;
        if let Some(further) = &self.cluster {
            if sentinels.is_some() || client.get_connection_info().redis_settings().db() != 0 {
                let rule = "must have neither Sentinels nor a database but 0";
                return Err(invalid_error("cluster", rule));
            }
            let first = Some(client.get_connection_info());
            let nodes = first.into_iter().chain(further.iter().flatten());
            let nodes: Vec<_> = nodes.filter_map(address).collect();
            if nodes.len() <= further.len() {
                return Err(invalid_error("cluster", "must each be redis://host:port"));
            }
            seeds = Some(nodes);
        }
        Ok(ServerAddresses { client, sentinels, seeds })
    }

    /// Makes the client of one address, with its TCP settings and certificates; `bad` makes the error of an invalid address.
    fn client(&self, info: ConnectionInfo, bad: fn() -> LockError) -> Result<Client, LockError> {
        let info = info.set_tcp_settings(tcp_settings(self.timeout));
        #[cfg(feature = "tls")]
        // A connection that the user described has its certificates already.
        if let redis::ConnectionAddr::TcpTls { tls_params: None, .. } = info.addr() {
            // If the program has chosen none and has two built in, there would be no default.
            drop(rustls::crypto::ring::default_provider().install_default());
            let unusable = || invalid_error("certificates", "must be in PEM, each with its key");
            let redis::TlsCertificates { client_tls, root_cert } = &self.certificates;
            let own = client_tls.as_ref().map(|own| &own.client_cert);
            // The client would take a text without certificates for an empty list.
            if root_cert.iter().chain(own).any(|pem| !has_certificate(pem)) {
                return Err(unusable());
            }
            return Client::build_with_tls(info, self.certificates.clone()).map_err(|_| unusable());
        }
        Client::open(info).map_err(|_| bad())
    }
}

/// The address may hold a password, so it is not shown.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("lease", &self.lease)
            .field("java_watchdog", &self.java_watchdog)
            .field("timeout", &self.timeout)
            .field("master", &self.master)
            .field("replicas", &self.replicas)
            .field("waits_while_unavailable", &self.waits_while_unavailable)
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

fn invalid_error(name: &str, rule: &'static str) -> LockError {
    LockError::invalid(name, rule)
}

/// Whether a certificate can be read from this PEM.
#[cfg(feature = "tls")]
fn has_certificate(pem: &[u8]) -> bool {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    CertificateDer::from_pem_slice(pem).is_ok()
}

/// Returns host and port; `None` for a Unix socket.
fn address(info: &ConnectionInfo) -> Option<Address> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => Some((host.clone(), *port)),
        _ => None,
    }
}

/// The address may hold a password, so it is not repeated.
fn bad_address_error() -> LockError {
    invalid_error("url", "must be redis://[user:password@]host:port[/database], or rediss:// with the feature tls")
}

/// [`LockError::Invalid`]: an address in `sentinels` cannot be used.
fn bad_sentinel_error() -> LockError {
    invalid_error("sentinels", "must each be redis://[user:password@]host:port, or rediss:// with the feature tls")
}

/// TCP_NODELAY, and keep-alive probes after `timeout`, 1 s at least: a vanished peer is found even while nothing is sent. On
/// Linux what is sent must be acknowledged within twice `timeout`.
fn tcp_settings(timeout: Duration) -> TcpSettings {
    let probe = timeout.max(Duration::from_secs(1));
    let settings = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(TcpKeepalive::new().with_time(probe).with_interval(probe).with_retries(2));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let settings = settings.set_user_timeout(2 * timeout);
    settings
}
