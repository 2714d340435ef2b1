//! A way from one instance to one server, through the lab, so that it can be cut and slowed down.
//!
//! 1. It listens on a port of its own and forwards each connection, both ways.
//! 2. Cut: its connections are closed, and new ones as soon as they are made. The server and all others go on.
//! 3. Slow: what comes from the server is held back for a while, in order; as many bytes are under way as were sent.
//! 4. What ZooKeeper says first on a connection has the number and the password of its session, with which
//!    [`Way::expire`] ends it, as anybody may who knows both.
//!
//! **What it costs**: two more copies of each byte, in the lab's process. Only a lab that is asked for ways has them.
//!
//! Source of the formats: ZooKeeper's `zookeeper.jute`, `ConnectRequest`, `ConnectResponse` and `RequestHeader`.

use super::{mysql, redis, zookeeper};
use crate::{addresses::Addresses, failure::Failure};
use parking_lot::Mutex;
use std::{collections::VecDeque, io, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The largest piece that is forwarded at once.
const PIECE: usize = 16 * 1024;
/// How long ZooKeeper may take to end a session.
const ANSWER: Duration = Duration::from_secs(10);

/// How a way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Open,
    Cut,
    /// Answers come so much later.
    Slow(Duration),
}

/// A way from each instance to each server.
pub(super) async fn all(at: &Addresses) -> Result<Vec<Arc<Way>>, Failure> {
    let mut servers = vec![(mysql::NAME.to_owned(), authority(&at.mysql.url))];
    servers.extend(
        at.redis
            .iter()
            .enumerate()
            .map(|(n, node)| (redis::name(n), authority(&node.url))),
    );
    let members = at.zookeeper.connect.split(',').enumerate();
    servers.extend(members.map(|(n, member)| (zookeeper::name(n), member)));
    let mut ways = Vec::new();
    for instance in &at.instances {
        for (server, to) in &servers {
            ways.push(Arc::new(Way::open(&instance.name, server, to).await?));
        }
    }
    Ok(ways)
}

/// Where this instance finds the servers: at the ends of its ways, where there are any.
pub(super) fn seen_by(instance: &str, at: &Addresses, ways: &[Arc<Way>]) -> Addresses {
    let by_way = |address: &str| {
        let way = ways
            .iter()
            .find(|way| way.instance == instance && *way.to.borrow() == address);
        way.map_or_else(|| address.to_owned(), |way| way.address())
    };
    let mut seen = at.clone();
    for url in seen
        .redis
        .iter_mut()
        .map(|node| &mut node.url)
        .chain([&mut seen.mysql.url])
    {
        let direct = authority(url);
        *url = url.replace(direct, &by_way(direct));
    }
    seen.zookeeper.connect = at
        .zookeeper
        .connect
        .split(',')
        .map(by_way)
        .collect::<Vec<_>>()
        .join(",");
    seen
}

/// `host:port` of a URL.
pub(super) fn authority(url: &str) -> &str {
    let rest = url.split_once("//").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// One way.
#[derive(Debug)]
pub(super) struct Way {
    instance: String,
    server: String,
    port: u16,
    to: watch::Sender<String>,
    condition: watch::Sender<Condition>,
    session: Arc<Mutex<Option<Session>>>,
    _forwarding: DropGuard,
}

/// The number and the password of a ZooKeeper session.
#[derive(Debug, Clone, Copy)]
struct Session {
    number: [u8; 8],
    password: [u8; 16],
}

impl Way {
    /// A way for this instance to the server at `to` (`host:port`), open.
    pub(super) async fn open(instance: &str, server: &str, to: &str) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::Unusable(format!("a way to {server}: {e}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let (condition, ends) = (
            watch::Sender::new(Condition::Open),
            CancellationToken::new(),
        );
        let session = Arc::<Mutex<_>>::default();
        let to = watch::Sender::new(to.to_owned());
        let forwarding = forward_all(
            listener,
            to.clone(),
            condition.clone(),
            Arc::clone(&session),
        );
        tokio::spawn(ends.clone().run_until_cancelled_owned(forwarding));
        let (instance, server) = (instance.to_owned(), server.to_owned());
        Ok(Self {
            instance,
            server,
            port,
            to,
            condition,
            session,
            _forwarding: ends.drop_guard(),
        })
    }

    /// Whether this is what `name` means: `redis` are the ways of all instances to it, `8100-redis` is that of one.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name() == name || (self.server == name && self.instance != redis::REPLICA)
    }

    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.instance, self.server)
    }

    pub(super) fn is_of(&self, instance: &str) -> bool {
        self.instance == instance
    }

    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Where the instance reaches the server.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn condition(&self) -> Condition {
        *self.condition.borrow()
    }

    pub(super) fn becomes(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }

    /// The server to which it leads, `host:port`.
    pub(super) fn leads_to(&self) -> String {
        self.to.borrow().clone()
    }

    /// Leads to another server from now on; its connections are closed.
    pub(super) fn lead(&self, to: &str) {
        self.to.send_replace(to.to_owned());
    }

    /// Told each time that it leads elsewhere.
    pub(super) fn led(&self) -> watch::Receiver<String> {
        self.to.subscribe()
    }

    /// Ends the session that was last made on this way, at the server; `false` where there was none.
    pub(super) async fn expire(&self) -> Result<bool, Failure> {
        let Some(session) = self.session.lock().take() else {
            return Ok(false);
        };
        let to = self.to.borrow().clone();
        match timeout(ANSWER, session.close(&to)).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => Err(Failure::Unusable(format!(
                "{} does not end the session: {error}",
                self.server
            ))),
            Err(_) => Err(Failure::Unusable(format!(
                "{} does not answer",
                self.server
            ))),
        }
    }
}

async fn forward_all(
    listener: TcpListener,
    to: watch::Sender<String>,
    condition: watch::Sender<Condition>,
    session: Arc<Mutex<Option<Session>>>,
) {
    while let Ok((client, _)) = listener.accept().await {
        if *condition.borrow() == Condition::Cut {
            continue;
        }
        let (to, condition, session) =
            (to.subscribe(), condition.subscribe(), Arc::clone(&session));
        tokio::spawn(async move {
            // A connection that breaks is broken for both, which is all there is to say.
            drop(forward(client, to, condition, &session).await);
        });
    }
}

async fn forward(
    client: TcpStream,
    mut to: watch::Receiver<String>,
    condition: watch::Receiver<Condition>,
    session: &Mutex<Option<Session>>,
) -> io::Result<()> {
    let address = to.borrow_and_update().clone();
    let server = TcpStream::connect(address).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((asks, told), (answers, asked)) = (client.into_split(), server.into_split());
    let mut cut = condition.clone();
    tokio::select! {
        end = copy(asks, asked, None, |_| ()) => end,
        end = copy(answers, told, Some(condition), |first| {
            if let Some(made) = Session::made(first) {
                *session.lock() = Some(made);
            }
        }) => end,
        _ = cut.wait_for(|condition| *condition == Condition::Cut) => Ok(()),
        _ = to.changed() => Ok(()),
    }
}

/// Copies until the end; while `condition` says so, each piece is held back. `look` is shown the first one.
async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    condition: Option<watch::Receiver<Condition>>,
    look: impl FnOnce(&[u8]),
) -> io::Result<()> {
    let (mut buffer, mut look) = (vec![0; PIECE], Some(look));
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
        if read == 0 {
            break;
        }
        let piece = &buffer[..read];
        if let Some(look) = look.take() {
            look(piece);
        }
        let by = match condition.as_ref().map(|condition| *condition.borrow()) {
            Some(Condition::Slow(by)) => by,
            _ => Duration::ZERO,
        };
        if by.is_zero() && held.is_empty() {
            to.write_all(piece).await?;
        } else {
            held.push_back((Instant::now() + by, piece.to_owned()));
        }
    }
    for (due, piece) in held {
        sleep_until(due).await;
        to.write_all(&piece).await?;
    }
    to.shutdown().await
}

impl Session {
    /// What a `ConnectResponse` says: length, protocol, time-out, number, and the password with its length before it.
    fn made(first: &[u8]) -> Option<Self> {
        let number = first.get(12..20)?.try_into().ok()?;
        let password = first.get(24..40)?.try_into().ok()?;
        let is_one = first.get(20..24)? == 16_u32.to_be_bytes() && number != [0; 8];
        is_one.then_some(Self { number, password })
    }

    /// Joins the session, and ends it.
    async fn close(self, server: &str) -> io::Result<()> {
        const CLOSE: i32 = -11;
        let mut stream = TcpStream::connect(server).await?;
        let (protocol, zxid, patience, read_only) = ([0; 4], [0; 8], 10_000_i32.to_be_bytes(), [0]);
        let length = 16_u32.to_be_bytes();
        let join = [
            &protocol[..],
            &zxid,
            &patience,
            &self.number,
            &length,
            &self.password,
            &read_only,
        ]
        .concat();
        send(&mut stream, &join).await?;
        receive(&mut stream).await?;
        send(
            &mut stream,
            &[1_i32.to_be_bytes(), CLOSE.to_be_bytes()].concat(),
        )
        .await?;
        receive(&mut stream).await
    }
}

async fn send(stream: &mut TcpStream, packet: &[u8]) -> io::Result<()> {
    let length = u32::try_from(packet.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes(), packet].concat())
        .await
}

async fn receive(stream: &mut TcpStream) -> io::Result<()> {
    let length = stream.read_u32().await?;
    let mut packet = vec![0; length.min(1024) as usize];
    stream.read_exact(&mut packet).await.map(drop)
}
