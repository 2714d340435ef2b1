//! A TCP proxy before a server: the network between client and server can fail while both run.
//!
//! 1. It listens on a port of its own and forwards each connection in both directions.
//! 2. Cut: it closes all connections, and new ones at once. Later bytes do not pass.
//! 3. Slow: it delays what the server sends, in order.
//! 4. A filter sees each piece and decides whether it passes. So a request can arrive while its answer is lost.
//!
//! **What it costs**: two more copies of each byte.

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The bytes read at once: more than most commands and answers have, so that each passes as one piece.
const MAX_PIECE_BYTES: usize = 16 * 1024;

/// What a proxy does with its connections: forwards them, closes them at once, or forwards with slow answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Open,
    Cut,
    /// Delays the server's answers.
    Slow(Duration),
}

/// Bytes that were read at once.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// Connections are numbered from 0.
    pub connection: u64,
    pub from_server: bool,
    /// The first piece of this connection in this direction.
    pub first: bool,
    /// Not always one whole message.
    pub bytes: &'a [u8],
}

/// Decides whether a piece passes; one that does not is dropped.
type Filter = Arc<dyn Fn(Piece<'_>) -> bool + Send + Sync>;

/// A proxy before a server. Dropping it closes its connections and its port.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<ProxyState>,
    _serving: DropGuard,
}

/// The state of a proxy, which its connections watch.
#[derive(Debug)]
struct ProxyState {
    server: String,
    condition: Condition,
    /// Grows with each cut or redirection. Connections of an older generation are closed.
    generation: u64,
}

impl Proxy {
    /// A proxy before the server at `server` (`host:port`), on a free port of loopback. Panics outside of a tokio runtime.
    pub fn to(server: impl Into<String>) -> io::Result<Self> {
        Self::filtered(server, |_| true)
    }

    /// As [`to`](Self::to), with a filter: a piece passes if it returns `true`.
    pub fn filtered(server: impl Into<String>, passes: impl Fn(Piece<'_>) -> bool + Send + Sync + 'static) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let (state, stop) = (
            watch::Sender::new(ProxyState { server: server.into(), condition: Condition::Open, generation: 0 }),
            CancellationToken::new(),
        );
        let serving = serve(listener, state.clone(), Arc::new(passes));
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Ok(Self { address, state, _serving: stop.drop_guard() })
    }

    /// The proxy's own `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes every connection, and new ones at once.
    pub fn cut(&self) {
        self.set_condition(Condition::Cut);
    }

    /// Ends a cut or a delay. Connections that were cut stay closed, and bytes that are delayed already keep their delay.
    pub fn mend(&self) {
        self.set_condition(Condition::Open);
    }

    /// Sets the condition; [`Condition::Cut`] closes every connection.
    pub fn set_condition(&self, condition: Condition) {
        self.state.send_modify(|state| {
            state.condition = condition;
            state.generation += u64::from(condition == Condition::Cut);
        });
    }

    pub fn condition(&self) -> Condition {
        self.state.borrow().condition
    }

    /// `host:port` of the server.
    pub fn target(&self) -> String {
        self.state.borrow().server.clone()
    }

    /// Forwards to another server from now on, and closes all connections. A cut or a delay stays.
    pub fn redirect(&self, server: &str) {
        self.state.send_modify(|state| {
            state.server = server.to_owned();
            state.generation += 1;
        });
    }

    /// Waits until the proxy forwards to another server than now.
    pub async fn wait_until_redirected(&self) {
        let (mut state, now) = (self.state.subscribe(), self.target());
        // The sender lives in `self`, so this cannot fail.
        drop(state.wait_for(|state| state.server != now).await);
    }
}

/// Accepts connections and forwards each in a task of its own; while the proxy is cut, it closes them at once.
async fn serve(listener: TcpListener, state: watch::Sender<ProxyState>, passes: Filter) {
    for connection in 0.. {
        let Ok((client, _)) = listener.accept().await else {
            return;
        };
        let (server, generation) = {
            let state = state.borrow();
            if state.condition == Condition::Cut {
                continue;
            }
            (state.server.clone(), state.generation)
        };
        let (state, passes) = (state.subscribe(), Arc::clone(&passes));
        tokio::spawn(async move {
            let mut watched = state.clone();
            let forward = forward(client, &server, |from_server| Direction {
                connection,
                from_server,
                generation,
                state: &state,
                passes: &passes,
            });
            tokio::select! {
                // An error ends the connection for both sides.
                _ = forward => {}
                _ = watched.wait_for(|state| state.generation != generation) => {}
            }
        });
    }
}

/// Connects to the server, and forwards in both directions until one of them ends.
async fn forward<'a>(client: TcpStream, server: &str, direction: impl Fn(bool) -> Direction<'a>) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        end = direction(false).copy(from_client, to_server) => end,
        end = direction(true).copy(from_server, to_client) => end,
    }
}

/// One direction of a connection: from the client to the server, or back.
struct Direction<'a> {
    connection: u64,
    from_server: bool,
    generation: u64,
    state: &'a watch::Receiver<ProxyState>,
    passes: &'a Filter,
}

impl Direction<'_> {
    /// Copies until the end of the stream, or until the connection is cut; then sends what is still delayed.
    async fn copy(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let (mut buffer, mut first) = (vec![0; MAX_PIECE_BYTES], true);
        let mut delayed = VecDeque::<(Instant, Vec<u8>)>::new();
        loop {
            let due = delayed.front().map(|(due, _)| *due);
            let read = tokio::select! {
                read = from.read(&mut buffer) => read?,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some((_, piece)) = delayed.pop_front() {
                        to.write_all(&piece).await?;
                    }
                    continue;
                }
            };
            let Some(delay) = self.delay().filter(|_| read > 0) else {
                break;
            };
            let piece = Piece { connection: self.connection, from_server: self.from_server, first, bytes: &buffer[..read] };
            first = false;
            if !(self.passes)(piece) {
                continue;
            }
            if delay.is_zero() && delayed.is_empty() {
                to.write_all(piece.bytes).await?;
            } else {
                delayed.push_back((Instant::now() + delay, piece.bytes.to_owned()));
            }
        }
        for (due, piece) in delayed {
            sleep_until(due).await;
            to.write_all(&piece).await?;
        }
        to.shutdown().await
    }

    /// The delay for a piece. `None` if the connection is closed.
    fn delay(&self) -> Option<Duration> {
        let state = self.state.borrow();
        match state.condition {
            _ if state.generation != self.generation => None,
            Condition::Slow(by) if self.from_server => Some(by),
            _ => Some(Duration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the generation a connection would miss a cut that is mended at once.
    #[tokio::test]
    async fn a_cut_that_is_mended_at_once_still_closes_every_connection() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = Proxy::to(server.local_addr().unwrap().to_string()).unwrap();
        let connect = async || {
            let client = TcpStream::connect(proxy.address()).await.unwrap();
            (client, server.accept().await.unwrap().0)
        };
        let (mut before, _served) = connect().await;
        proxy.cut();
        proxy.mend();
        assert_eq!(before.read(&mut [0]).await.unwrap_or(0), 0, "it is open");
        let (mut after, mut served) = connect().await;
        served.write_all(b"x").await.unwrap();
        assert_eq!(after.read_u8().await.unwrap(), b'x');
    }
}
