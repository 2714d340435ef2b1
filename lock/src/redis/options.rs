//! How a Redis is reached, and what is checked before any command is sent.
//!
//! Next to read: `client.rs`.

use crate::{FOR_EVER, LockError, Process};
use redis::{
    Client, IntoConnectionInfo, ProtocolVersion, RedisError,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use std::{fmt, time::Duration};

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
#[derive(Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    pub(super) process: Process,
    pub(super) prefix: String,
    pub(super) lease: Duration,
    pub(super) java_watchdog: Duration,
    pub(super) timeout: Duration,
    url: String,
    #[cfg(feature = "tls")]
    authorities: Option<Vec<u8>>,
}

impl RedisOptions {
    /// Starts from `redis://[user:password@]host:port[/database]`, or `rediss://` for TLS, with the feature `tls`. No
    /// prefix, a lease of 30 s, 3 s for a command, a process of its own.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            process: Process::new(),
            prefix: String::new(),
            lease: Duration::from_secs(30),
            java_watchdog: Duration::from_secs(30),
            timeout: Duration::from_secs(3),
            url: url.into(),
            #[cfg(feature = "tls")]
            authorities: None,
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
    /// an hour.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
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
    pub fn authorities(self, pem: impl Into<Vec<u8>>) -> Self {
        Self {
            authorities: Some(pem.into()),
            ..self
        }
    }

    /// What all connections are made with, once the options have been checked.
    pub(super) fn client(&self) -> Result<Client, LockError> {
        let leases = [("lease", self.lease), ("java_watchdog", self.java_watchdog)];
        for (option, lease) in leases {
            if lease < Duration::from_millis(100) || lease > FOR_EVER {
                return Err(invalid(option, "must be 100 ms to ten years"));
            }
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_secs(3600) {
            return Err(invalid("timeout", "must be 1 ms to an hour"));
        }
        let info = self
            .url
            .as_str()
            .into_connection_info()
            .map_err(bad_address)?;
        // RESP3 tells of a lost connection at once, and carries the wake-ups.
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let info = info
            .set_redis_settings(settings)
            .set_tcp_settings(tcp_settings(self.timeout));
        #[cfg(feature = "tls")]
        if let redis::ConnectionAddr::TcpTls { .. } = info.addr() {
            // Where the program has chosen none: if it has two built in, there would be no default.
            drop(rustls::crypto::ring::default_provider().install_default());
            let certificates = redis::TlsCertificates {
                client_tls: None,
                root_cert: self.authorities.clone(),
            };
            return Client::build_with_tls(info, certificates)
                .map_err(|_| invalid("authorities", "must be certificates in PEM"));
        }
        Client::open(info).map_err(bad_address)
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
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

pub(super) fn invalid(name: &str, rule: &'static str) -> LockError {
    LockError::invalid(name, rule)
}

/// The address may hold a password, and is not repeated.
pub(super) fn bad_address(_: RedisError) -> LockError {
    invalid(
        "url",
        "must be redis://[user:password@]host:port[/database], or rediss:// with the feature tls",
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
