//! A TCP proxy before a server: the network between them can fail while both go on.
//!
//! 1. It listens on a port of its own and forwards each connection, both ways.
//! 2. Cut: its connections are closed, and new ones as soon as they are made. Nothing that arrives later passes.
//! 3. Slow: what the server says is held back for a while, in order; as many bytes are under way as were sent.
//! 4. A filter, if it has one, is shown each piece and says whether it passes: so a request can arrive and its answer not.
//!
//! **What it costs**: two more copies of each byte, in the process that has it.

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

/// The largest piece that is forwarded at once.
const PIECE: usize = 16 * 1024;

/// What a proxy does with its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Forwards them.
    Open,
    /// Closes them.
    Cut,
    /// Holds the server's answers back for so long.
    Slow(Duration),
}

/// What was read at once.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The number of its connection, from 0.
    pub connection: u64,
    /// Whether the server has sent it.
    pub from_server: bool,
    /// Whether nothing came before it on this connection, from this side.
    pub first: bool,
    /// Its bytes: not always one whole message.
    pub bytes: &'a [u8],
}

type Filter = Arc<dyn Fn(Piece<'_>) -> bool + Send + Sync>;

/// A proxy; dropping it closes its connections and its port.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    _serving: DropGuard,
}

#[derive(Debug)]
struct State {
    server: String,
    condition: Condition,
    /// How often all connections had to go: one that was made before the last time is closed.
    closed: u64,
}

impl Proxy {
    /// A proxy before the server at `server` (`host:port`), open. It needs a runtime around it.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn to(server: impl Into<String>) -> io::Result<Self> {
        Self::filtered(server, |_| true)
    }

    /// The same, with a filter: a piece passes if it returns `true`.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn filtered(
        server: impl Into<String>,
        passes: impl Fn(Piece<'_>) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let (state, ends) = (
            watch::Sender::new(State {
                server: server.into(),
                condition: Condition::Open,
                closed: 0,
            }),
            CancellationToken::new(),
        );
        let serving = serve(listener, state.clone(), Arc::new(passes));
        tokio::spawn(ends.clone().run_until_cancelled_owned(serving));
        Ok(Self {
            address,
            state,
            _serving: ends.drop_guard(),
        })
    }

    /// Its own `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Its own port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Closes every connection, and new ones as soon as they are made.
    pub fn cut(&self) {
        self.becomes(Condition::Cut);
    }

    /// Forwards again, on new connections.
    pub fn mend(&self) {
        self.becomes(Condition::Open);
    }

    /// What it does with its connections from now on.
    pub fn becomes(&self, condition: Condition) {
        self.state.send_modify(|state| {
            state.condition = condition;
            state.closed += u64::from(condition == Condition::Cut);
        });
    }

    /// What it does with its connections.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.state.borrow().condition
    }

    /// The server that it leads to: `host:port`.
    #[must_use]
    pub fn leads_to(&self) -> String {
        self.state.borrow().server.clone()
    }

    /// Leads to another server from now on; its connections are closed.
    pub fn lead(&self, server: &str) {
        self.state.send_modify(|state| {
            state.server = server.to_owned();
            state.closed += 1;
        });
    }

    /// Waits until it leads to another server than when this was first polled.
    pub async fn leads_elsewhere(&self) {
        let (mut state, now) = (self.state.subscribe(), self.leads_to());
        // It never fails: the sender is ours.
        drop(state.wait_for(|state| state.server != now).await);
    }
}

async fn serve(listener: TcpListener, state: watch::Sender<State>, passes: Filter) {
    for connection in 0.. {
        let Ok((client, _)) = listener.accept().await else {
            return;
        };
        let (server, closed) = {
            let state = state.borrow();
            if state.condition == Condition::Cut {
                continue;
            }
            (state.server.clone(), state.closed)
        };
        let (state, passes) = (state.subscribe(), Arc::clone(&passes));
        tokio::spawn(async move {
            let mut watched = state.clone();
            let forward = forward(client, &server, |from_server| Side {
                connection,
                from_server,
                closed,
                state: &state,
                passes: &passes,
            });
            tokio::select! {
                // A connection that breaks is broken for both, which is all there is to say.
                _ = forward => {}
                _ = watched.wait_for(|state| state.closed != closed) => {}
            }
        });
    }
}

async fn forward<'a>(
    client: TcpStream,
    server: &str,
    side: impl Fn(bool) -> Side<'a>,
) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((asks, told), (answers, asked)) = (client.into_split(), server.into_split());
    tokio::select! {
        end = side(false).copy(asks, asked) => end,
        end = side(true).copy(answers, told) => end,
    }
}

/// One direction of one connection.
struct Side<'a> {
    connection: u64,
    from_server: bool,
    closed: u64,
    state: &'a watch::Receiver<State>,
    passes: &'a Filter,
}

impl Side<'_> {
    /// Copies until the end, or until the connection is closed.
    async fn copy(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        let (mut buffer, mut first) = (vec![0; PIECE], true);
        let mut held = VecDeque::<(Instant, Vec<u8>)>::new();
        loop {
            let due = held.front().map(|(due, _)| *due);
            let read = tokio::select! {
                read = from.read(&mut buffer) => read?,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some((_, piece)) = held.pop_front() {
                        to.write_all(&piece).await?;
                    }
                    continue;
                }
            };
            let Some(by) = self.delay().filter(|_| read > 0) else {
                break;
            };
            let piece = Piece {
                connection: self.connection,
                from_server: self.from_server,
                first,
                bytes: &buffer[..read],
            };
            first = false;
            if !(self.passes)(piece) {
                continue;
            }
            if by.is_zero() && held.is_empty() {
                to.write_all(piece.bytes).await?;
            } else {
                held.push_back((Instant::now() + by, piece.bytes.to_owned()));
            }
        }
        for (due, piece) in held {
            sleep_until(due).await;
            to.write_all(&piece).await?;
        }
        to.shutdown().await
    }

    /// How long a piece is held back; `None`: the connection is closed.
    fn delay(&self) -> Option<Duration> {
        let state = self.state.borrow();
        match state.condition {
            _ if state.closed != self.closed => None,
            Condition::Slow(by) if self.from_server => Some(by),
            _ => Some(Duration::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the count of the closings a connection would not see a cut that is over at once.
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
