//! Where the primary is, and connections to it: at one address, or where Sentinels say that it is.
//!
//! 1. Each new connection asks the Sentinels in turn (`SENTINEL GET-MASTER-ADDR-BY-NAME`), first the one that was of use
//!    last, or the next one where the last search was in vain.
//! 2. Whoever listens at that address must say that it is a primary (`ROLE`), on the connection that is used then: a
//!    Sentinel may not have noticed yet that it is a replica by now, or dead. Where it is none, or has not answered within half
//!    of the time that is left, the next Sentinel is asked.
//! 3. Where a connection leads elsewhere than the one before, all that rely on the server are told, as after a cut.
//!
//! What it survives: Sentinels that are down, silent, or behind. **What breaks it**: a primary that is cut off from replicas
//! and Sentinels, but not from us. It goes on answering, and is not left before it refuses (`min-replicas-to-write`), or
//! closes the connection.
//!
//! Source: the Redis documentation, "Sentinel client spec". Next to read: `connection.rs`, `replicas.rs`.

use crate::left;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, RedisError, RedisResult, Role,
    aio::MultiplexedConnection,
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

/// A Sentinel that has not answered within this is passed over.
const MAX_SENTINEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Host and port, as a Sentinel says them.
pub(super) type Address = (String, u16);

/// The primary of one Redis. Cloning it is cheap.
#[derive(Clone)]
pub(super) struct Primary(Arc<Inner>);

struct Inner {
    /// How it is reached. Where Sentinels say where it is, they replace host and port.
    client: Client,
    sentinels: Option<Sentinels>,
    timeout: Duration,
    /// Where the last connection was made to, where Sentinels say it.
    at: watch::Sender<Option<Address>>,
    /// Told when it is elsewhere.
    disconnects: watch::Sender<()>,
}

/// Who knows where the primary is.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) clients: Vec<Client>,
    /// What they call the primary and its replicas.
    pub(super) master: String,
    /// Which of them is asked first: the one that was of use last; during a search, and after one in vain, the next.
    pub(super) first: AtomicUsize,
}

impl Primary {
    /// `timeout` is for each connection that is made, Sentinels included.
    pub(super) fn new(
        client: Client,
        sentinels: Option<Sentinels>,
        timeout: Duration,
        disconnects: watch::Sender<()>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            sentinels,
            timeout,
            at: watch::Sender::new(None),
            disconnects,
        }))
    }

    pub(super) fn db(&self) -> i64 {
        self.0.client.get_connection_info().redis_settings().db()
    }

    /// With the time limits of every connection.
    pub(super) fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.0.timeout))
            .set_response_timeout(Some(self.0.timeout))
    }

    /// A new connection, and where it leads to.
    pub(super) async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<(MultiplexedConnection, Option<Address>)> {
        let Inner {
            client,
            sentinels,
            timeout: limit,
            ..
        } = &*self.0;
        let Some(sentinels) = sentinels else {
            let connection = client.get_multiplexed_async_connection_with_config(config);
            return Ok((connection.await?, None));
        };
        let found = in_time(
            *limit,
            self.find(sentinels, config, Instant::now() + *limit),
        );
        let (connection, address) = found.await?;
        let before = self.0.at.send_replace(Some(address.clone()));
        if let Some(before) = before.filter(|before| *before != address) {
            tracing::info!(?before, now = ?address, "another redis is the primary");
            self.0.disconnects.send_replace(());
        }
        Ok((connection, Some(address)))
    }

    /// Waits until a connection was made to another primary than this.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn moved_from(&self, here: &Option<Address>) {
        let mut at = self.0.at.subscribe();
        // The sender lives as long as this.
        drop(at.wait_for(|at| at != here).await);
    }

    async fn find(
        &self,
        sentinels: &Sentinels,
        config: &AsyncConnectionConfig,
        end: Instant,
    ) -> RedisResult<(MultiplexedConnection, Address)> {
        let (number, first) = (
            sentinels.clients.len(),
            sentinels.first.load(Ordering::Relaxed),
        );
        sentinels
            .first
            .store((first + 1) % number, Ordering::Relaxed);
        let sentinel_timeout = MAX_SENTINEL_TIMEOUT
            .min(self.0.timeout / (1 + u32::try_from(number).unwrap_or(u32::MAX - 1)));
        let (mut tried, mut failed) = (Vec::new(), none_of_them());
        for index in (0..number).map(|n| (first + n) % number) {
            let address = match sentinels
                .ask(&sentinels.clients[index], sentinel_timeout)
                .await
            {
                Ok(address) => address,
                Err(error) => {
                    failed = error;
                    continue;
                }
            };
            if tried.contains(&address) {
                continue;
            }
            // A silent one leaves time to ask the others.
            match in_time(left(end) / 2, self.primary_at(&address, config)).await {
                Ok(connection) => {
                    sentinels.first.store(index, Ordering::Relaxed);
                    return Ok((connection, address));
                }
                Err(error) => failed = error,
            }
            tried.push(address);
        }
        Err(failed)
    }

    async fn primary_at(
        &self,
        (host, port): &Address,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let info = self.0.client.get_connection_info().clone();
        let (host, port) = (host.clone(), *port);
        let address = match info.addr().clone() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure,
                tls_params,
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        let mut connection = Client::open(info.set_addr(address))?
            .get_multiplexed_async_connection_with_config(config)
            .await?;
        match redis::cmd("ROLE").query_async(&mut connection).await? {
            Role::Primary { .. } => Ok(connection),
            _ => Err(io::Error::other("whom the Sentinel names is no primary").into()),
        }
    }
}

impl Sentinels {
    /// Where this one says that the primary is.
    async fn ask(&self, sentinel: &Client, sentinel_timeout: Duration) -> RedisResult<Address> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(sentinel_timeout))
            .set_response_timeout(Some(sentinel_timeout));
        let mut connection = sentinel
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let address: Option<Address> = redis::cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.master)
            .query_async(&mut connection)
            .await?;
        address.ok_or_else(|| {
            let kind = ErrorKind::MasterNameNotFoundBySentinel;
            RedisError::from((kind, "no primary of this name", self.master.clone()))
        })
    }
}

async fn in_time<T>(
    limit: Duration,
    answer: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    timeout(limit, answer).await.unwrap_or_else(late)
}

fn none_of_them() -> RedisError {
    io::Error::other("no Sentinel to ask").into()
}

/// The address may hold a password, and is not shown.
impl fmt::Debug for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Primary")
            .field("at", &*self.0.at.borrow())
            .finish_non_exhaustive()
    }
}
