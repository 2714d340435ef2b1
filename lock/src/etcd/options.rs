//! How to reach etcd, and how long its locks outlast a dead holder.

use crate::{LockError, LockObserver, Process, events::Observer};
use std::{num::NonZeroU16, time::Duration};
use tokio::runtime::Handle;

/// The longest lease and the longest time limit that an option may set; more is refused, as a mistake in the unit.
const MAX_TIME_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The shortest lease: a server with the default election timeout makes 2 s of a shorter one.
const MIN_LEASE: Duration = Duration::from_secs(2);

/// How to reach etcd. [`EtcdClient::new`](super::EtcdClient::new) checks it.
///
/// ```
/// # use oversell_lock::etcd::EtcdOptions;
/// # use std::time::Duration;
/// let options = EtcdOptions::new("http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379")
///     .lease(Duration::from_secs(20))
///     .timeout(Duration::from_secs(5));
/// ```
///
/// # Security
///
/// The connection is not encrypted, and no user logs in: let a proxy beside each process do both where that matters. Whoever
/// reaches etcd may delete a holder's key, and lets the next one in beside it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EtcdOptions {
    pub(super) endpoints: String,
    pub(super) lease: Duration,
    pub(super) timeout: Duration,
    pub(super) process: Process,
    pub(super) observer: Observer,
    pub(super) runtime: Option<Handle>,
}

impl EtcdOptions {
    /// Starts from the nodes' client addresses, `http://host:port[,http://host:port…]`, of which each may leave out `http://`; a
    /// lease of 10 s, 3 s for an answer.
    #[must_use]
    pub fn new(endpoints: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into(),
            lease: Duration::from_secs(10),
            timeout: Duration::from_secs(3),
            process: Process::new(),
            observer: Observer::default(),
            runtime: None,
        }
    }

    /// Sets the lease of each hold, in whole seconds from 2 s to an hour; it is renewed every third. A dead holder blocks the
    /// others for as long, and once more from each change of the leader and each restart on: etcd then gives every lease its
    /// whole time again.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the time limit of an answer, from 10 ms to an hour, which the nodes share: one that does not answer within its part
    /// is abandoned for the next. What is not answered by any may have been carried out, and is undone in the background. It should
    /// be longer than the election of a leader, 1 to 2 s by default, and than the slowest write to the nodes' disks.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the identity of this process, which the value of each key shows.
    #[must_use]
    pub fn process(self, process: Process) -> Self {
        Self { process, ..self }
    }

    /// Sets the observer of the locks, for metrics and logs.
    #[must_use]
    pub fn observer(self, observer: impl LockObserver) -> Self {
        let observer = Observer::new(observer);
        Self { observer, ..self }
    }

    /// Sets the tokio runtime of the client's connections and tasks, instead of the one in which the client is made. Its I/O and
    /// time drivers must be enabled.
    #[must_use]
    pub fn runtime(self, runtime: Handle) -> Self {
        let runtime = Some(runtime);
        Self { runtime, ..self }
    }

    /// Returns the nodes as `host:port`; fails with [`LockError::Invalid`] for an option that can be refused without a server.
    pub(super) fn check(&self) -> Result<Vec<String>, LockError> {
        let endpoints = self.endpoints.split(',').map(|endpoint| {
            let endpoint = endpoint.trim();
            endpoint.strip_prefix("http://").unwrap_or(endpoint).trim_end_matches('/').to_owned()
        });
        let endpoints: Vec<_> = endpoints.collect();
        let rules = [
            (!self.endpoints.contains("https://"), "endpoints: https is not known here; let a proxy beside this process encrypt"),
            (endpoints.iter().all(|endpoint| is_address(endpoint)), "endpoints: http://host:port[,http://host:port…]"),
            ((Duration::from_millis(10)..=MAX_TIME_LIMIT).contains(&self.timeout), "timeout: from 10 ms to an hour"),
        ];
        match rules.into_iter().find(|(kept, _)| !kept) {
            Some((_, rule)) => Err(LockError::invalid(&self.endpoints, rule)),
            None => check_lease(&self.endpoints, self.lease).map(|()| endpoints),
        }
    }
}

/// Fails with [`LockError::Invalid`], named `of`, for a lease that etcd cannot have or that is a mistake in the unit.
pub(super) fn check_lease(of: &str, lease: Duration) -> Result<(), LockError> {
    let is_kept = (MIN_LEASE..=MAX_TIME_LIMIT).contains(&lease) && lease.subsec_nanos() == 0;
    is_kept.then_some(()).ok_or_else(|| LockError::invalid(of, "lease: whole seconds, from 2 s to an hour"))
}

/// Whether it is `host:port` with a port that is not 0, as a URI can have it.
fn is_address(address: &str) -> bool {
    let has_port = address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<NonZeroU16>().is_ok());
    has_port && address.parse::<http::uri::Authority>().is_ok_and(|authority| !authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_work_are_refused() {
        let options = |endpoints: &str| EtcdOptions::new(endpoints);
        let nodes = options("http://a:1/, b:2,http://[::1]:3").check().unwrap();
        assert_eq!(nodes, ["a:1", "b:2", "[::1]:3"]);
        for endpoints in ["", "a", "a:0", "a:99999", "a:1,", ":1", "a:1/x", "u@a:1", "https://a:1", "unix://a:1", "a b:1"] {
            let refused = options(endpoints).check();
            assert!(matches!(&refused, Err(LockError::Invalid { rule, .. }) if rule.starts_with("endpoints")), "{endpoints}");
        }
        for millis in [1_999, 2_500, 3_600_001] {
            let refused = options("a:1").lease(Duration::from_millis(millis)).check();
            assert!(matches!(&refused, Err(LockError::Invalid { rule, .. }) if rule.starts_with("lease")), "{millis}");
        }
        assert!(options("a:1").timeout(Duration::ZERO).check().is_err());
    }
}
