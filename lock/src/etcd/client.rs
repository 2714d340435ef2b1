//! This process's handle on etcd. Next to read: `gateway.rs`, how it asks.

use super::{
    EtcdOptions, SERVER,
    gateway::{CallFailure, Gateway, base64, number_of},
};
use crate::{LockError, Owner, Process, events::Observer, local::ByType, tasks::Tasks};
use serde_json::{Value, json};
use std::{fmt, future::Future, sync::Arc, time::Duration};

/// How long [`EtcdClient::connect`] waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The key that [`EtcdClient::check`] reads; it need not exist.
const CHECKED_KEY: &[u8] = b"/";

/// One process's client of etcd. Cloning it is cheap. It keeps no session: each hold has a lease of its own.
///
/// It asks the node that answered last, and goes on with the next one if that stands still or is down.
///
/// # What breaks it
///
/// A tokio runtime that does not run, as a `current_thread` one outside `block_on`: its connections and tasks are in the
/// runtime in which the client was made, or that its options name. Nothing is taken, renewed or released meanwhile, and a wait
/// does not end, whatever its limit.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, etcd::EtcdClient};
/// # use std::time::Duration;
/// # async fn example() -> Result<(), LockError> {
/// let etcd = EtcdClient::connect("http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379").await?;
/// let guard = etcd.lock("/shop/door").acquire(Duration::from_secs(5)).await?;
/// guard.release().await?;
/// etcd.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EtcdClient(Arc<ClientState>);

/// What all clones of one client share.
struct ClientState {
    gateway: Arc<Gateway>,
    lease: Duration,
    timeout: Duration,
    process: Process,
    observer: Observer,
    shared: ByType,
    tasks: Tasks,
}

impl EtcdClient {
    /// Makes a client of the nodes at `http://host:port[,http://host:port…]`, with the defaults of [`EtcdOptions`]; returns once
    /// etcd answers.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`LockError::Unavailable`] if no node answers within 5 s.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn connect(endpoints: impl Into<String>) -> Result<Self, LockError> {
        let etcd = Self::new(EtcdOptions::new(endpoints))?;
        etcd.check_within(CONNECT_TIMEOUT).await?;
        Ok(etcd)
    }

    /// Makes a client, which connects when it is used. Its connections and tasks live in the tokio runtime in which it is made,
    /// or that [`EtcdOptions::runtime`] names; locks may be used in any runtime.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), oversell_lock::LockError> {
    /// use oversell_lock::etcd::{EtcdClient, EtcdOptions};
    ///
    /// let etcd = EtcdClient::new(EtcdOptions::new("http://127.0.0.1:2379"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] for options that cannot work, or outside a runtime.
    pub fn new(options: EtcdOptions) -> Result<Self, LockError> {
        let nodes = options.check()?;
        let EtcdOptions { lease, timeout, process, observer, runtime, .. } = options;
        let tasks = Tasks::in_runtime(runtime)?;
        let gateway = Arc::new(Gateway::new(nodes, tasks.runtime().clone()));
        Ok(Self(Arc::new(ClientState { gateway, lease, timeout, process, observer, shared: ByType::default(), tasks })))
    }

    /// Checks that a majority of the nodes answers, and returns the version of the one that was asked, as `3.4.23`.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, etcd::EtcdClient};
    /// # async fn example(etcd: EtcdClient) -> Result<(), LockError> {
    /// println!("etcd {}", etcd.check().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`], [`LockError::Refused`].
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn check(&self) -> Result<String, LockError> {
        self.check_within(self.timeout()).await
    }

    async fn check_within(&self, limit: Duration) -> Result<String, LockError> {
        let status = self.call("maintenance/status", json!({}), limit);
        let read = self.call("kv/range", json!({"key": base64(CHECKED_KEY), "count_only": true}), limit);
        let (status, _) = tokio::try_join!(status, read)?;
        Ok(status["version"].as_str().unwrap_or_default().to_owned())
    }

    /// Makes a new owner, for handles whose holds belong together.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0.process.owner()
    }

    /// Ends the use of locks, as `close` of every client does. From the call on, waiters and later calls get
    /// [`LockError::Unavailable`]. It waits, 3 s at most, until every hold is released. Holders that are left are then told that
    /// their lock is lost; what they have goes when they release it, or with its lease.
    ///
    /// # Cancel safety
    ///
    /// It may be called again. Once polled, locks are refused.
    pub async fn close(&self) {
        self.0.tasks.close(SERVER).await;
    }

    /// Returns the result of `future`, or an error once the client is being closed.
    pub(super) async fn while_open<T>(&self, future: impl Future<Output = Result<T, LockError>>) -> Result<T, LockError> {
        self.0.tasks.while_open(SERVER, future).await
    }

    /// Sends a request, as `kv/txn`, for `limit` at most; see [`Gateway::call`].
    pub(super) async fn call(&self, path: &'static str, body: Value, limit: Duration) -> Result<Value, CallFailure> {
        self.0.gateway.call(path, body, limit).await.map(|(answer, _)| answer)
    }

    /// Sends a deletion, whose answer has `deleted` keys; returns whether it deleted any. What is gone after an attempt without an
    /// answer was deleted by that attempt.
    pub(super) async fn delete(&self, path: &'static str, body: Value) -> Result<bool, CallFailure> {
        let (answer, is_repeated) = self.0.gateway.call(path, body, self.timeout()).await?;
        let deleted = [&answer, &answer["responses"][0]["response_delete_range"]];
        Ok(is_repeated || deleted.into_iter().any(|answer| number_of(&answer["deleted"]) > 0))
    }

    /// See [`Gateway::wait_until_deleted`].
    pub(super) async fn wait_until_deleted(&self, key: &[u8]) {
        self.0.gateway.wait_until_deleted(key, self.timeout()).await;
    }

    pub(super) fn lease(&self) -> Duration {
        self.0.lease
    }

    /// Returns the time limit of an answer: [`EtcdOptions::timeout`].
    pub(super) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    pub(super) fn observer(&self) -> &Observer {
        &self.0.observer
    }

    /// The values of this process's locks, by type.
    pub(super) fn shared(&self) -> &ByType {
        &self.0.shared
    }

    /// The tasks that [`close`](Self::close) waits for.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }
}

impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EtcdClient").field(&self.0.gateway).finish()
    }
}
