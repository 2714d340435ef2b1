//! Finds the primary, at one address or through Sentinels, and connects to it.
//!
//! 1. Each new connection asks the Sentinels in turn (`SENTINEL GET-MASTER-ADDR-BY-NAME`), beginning with the last
//!    useful one, or with the next one after a search that failed.
//! 2. The server at that address must say that it is a primary (`ROLE`), on the connection that is then used: a
//!    Sentinel may not have noticed yet that it was demoted or died. If it is none, or does not answer within half of
//!    the time left, the next Sentinel is asked.
//! 3. If a connection leads to another server than the one before, `disconnects` is notified, as after a break.
//!
//! It survives Sentinels that are down, silent, or behind.
//!
//! Source: the Redis documentation, "Sentinel client spec".

use crate::time_left;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, RedisError, RedisResult, Role, aio::MultiplexedConnection,
};
use std::{
    fmt,
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// The longest wait for one Sentinel, or its equal share of the time limit if that is less; then the next one is asked.
const MAX_SENTINEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Host and port, as a Sentinel reports them.
pub(super) type Address = (String, u16);

/// How to find the primary of one Redis, by its address or by Sentinels, and to connect to it. Cloning it is cheap.
#[derive(Clone)]
pub(super) struct Primary(Arc<PrimaryState>);

/// What all clones of one [`Primary`] share.
struct PrimaryState {
    /// Says how to connect. With Sentinels, the host and port that they name replace those in it.
    client: Client,
    sentinels: Option<Sentinels>,
    timeout: Duration,
    /// The server to which the last connection was made; `None` without Sentinels.
    connected_to: watch::Sender<Option<Address>>,
    /// Notified when the primary moved.
    disconnects: watch::Sender<()>,
}

/// The Sentinels that watch the primary.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) clients: Vec<Client>,
    /// Their name for the primary and its replicas.
    pub(super) master: String,
    /// The index of the Sentinel that the next search asks first.
    pub(super) first_asked: AtomicUsize,
}

impl Primary {
    /// Connects to nothing yet. `timeout` limits each connection attempt, Sentinels included, and each answer.
    pub(super) fn new(client: Client, sentinels: Option<Sentinels>, timeout: Duration, disconnects: watch::Sender<()>) -> Self {
        Self(Arc::new(PrimaryState { client, sentinels, timeout, connected_to: watch::Sender::new(None), disconnects }))
    }

    pub(super) fn db(&self) -> i64 {
        self.0.client.get_connection_info().redis_settings().db()
    }

    /// Returns the settings of every connection: its time limits.
    pub(super) fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new().set_connection_timeout(Some(self.0.timeout)).set_response_timeout(Some(self.0.timeout))
    }

    /// Makes a connection to the primary, and returns its address if Sentinels named it. If that is another server than before,
    /// `disconnects` is notified.
    pub(super) async fn connect(&self, config: &AsyncConnectionConfig) -> RedisResult<(MultiplexedConnection, Option<Address>)> {
        let PrimaryState { client, sentinels, timeout: limit, .. } = &*self.0;
        let Some(sentinels) = sentinels else {
            let connection = client.get_multiplexed_async_connection_with_config(config);
            return Ok((connection.await?, None));
        };
        let found = within_limit(*limit, self.find_and_connect(sentinels, config, Instant::now() + *limit));
        let (connection, address) = found.await?;
        let before = self.0.connected_to.send_replace(Some(address.clone()));
        if let Some(before) = before.filter(|before| *before != address) {
            tracing::info!(?before, now = ?address, "another redis is the primary");
            self.0.disconnects.send_replace(());
        }
        Ok((connection, Some(address)))
    }

    /// Completes once a connection has been made to another primary than `here`; never without Sentinels.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn wait_until_moved_from(&self, here: &Option<Address>) {
        let mut at = self.0.connected_to.subscribe();
        // The sender lives as long as `self`.
        drop(at.wait_for(|at| at != here).await);
    }

    /// Asks the Sentinels in turn, and connects to the first address of theirs that is a primary; each address is tried once. The
    /// next search begins with the useful Sentinel, or after a failure, whose last error is returned, with the next one.
    async fn find_and_connect(
        &self,
        sentinels: &Sentinels,
        config: &AsyncConnectionConfig,
        end: Instant,
    ) -> RedisResult<(MultiplexedConnection, Address)> {
        let (number, first) = (sentinels.clients.len(), sentinels.first_asked.load(Ordering::Relaxed));
        sentinels.first_asked.store((first + 1) % number, Ordering::Relaxed);
        let sentinel_timeout = MAX_SENTINEL_TIMEOUT.min(self.0.timeout / (1 + u32::try_from(number).unwrap_or(u32::MAX - 1)));
        let (mut tried, mut last_error) = (Vec::new(), no_sentinel_error());
        for index in (0..number).map(|n| (first + n) % number) {
            let address = match sentinels.ask_for_primary(&sentinels.clients[index], sentinel_timeout).await {
                Ok(address) => address,
                Err(error) => {
                    last_error = error;
                    continue;
                }
            };
            if tried.contains(&address) {
                continue;
            }
            // The other half of the time is left for the other Sentinels.
            match within_limit(time_left(end) / 2, self.connect_if_primary(&address, config)).await {
                Ok(connection) => {
                    sentinels.first_asked.store(index, Ordering::Relaxed);
                    return Ok((connection, address));
                }
                Err(error) => last_error = error,
            }
            tried.push(address);
        }
        Err(last_error)
    }

    /// Connects to this server; fails if it does not say that it is a primary.
    async fn connect_if_primary(&self, address: &Address, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        let mut connection = client_at(&self.0.client, address)?.get_multiplexed_async_connection_with_config(config).await?;
        match redis::cmd("ROLE").query_async(&mut connection).await? {
            Role::Primary { .. } => Ok(connection),
            _ => Err(io::Error::other("whom the Sentinel names is no primary").into()),
        }
    }
}

impl Sentinels {
    /// Returns the primary's address, according to this Sentinel; fails if it knows no primary of this name.
    async fn ask_for_primary(&self, sentinel: &Client, sentinel_timeout: Duration) -> RedisResult<Address> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(sentinel_timeout))
            .set_response_timeout(Some(sentinel_timeout));
        let mut connection = sentinel.get_multiplexed_async_connection_with_config(&config).await?;
        let address: Option<Address> =
            redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master).query_async(&mut connection).await?;
        address.ok_or_else(|| {
            let kind = ErrorKind::MasterNameNotFoundBySentinel;
            RedisError::from((kind, "no primary of this name", self.master.clone()))
        })
    }
}

/// The client of a server at this address, with everything else as in the template.
pub(super) fn client_at(template: &Client, (host, port): &Address) -> RedisResult<Client> {
    let info = template.get_connection_info().clone();
    let (host, port) = (host.clone(), *port);
    let address = match info.addr().clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls { host, port, insecure, tls_params },
        _ => ConnectionAddr::Tcp(host, port),
    };
    Client::open(info.set_addr(address))
}

/// Returns the answer, or the error of a timeout if it takes longer than `limit`.
async fn within_limit<T>(limit: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    timeout(limit, answer).await.unwrap_or_else(late)
}

fn no_sentinel_error() -> RedisError {
    io::Error::other("no Sentinel to ask").into()
}

/// The address may hold a password, so it is not shown.
impl fmt::Debug for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Primary").field("at", &*self.0.connected_to.borrow()).finish_non_exhaustive()
    }
}
