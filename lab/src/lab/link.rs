//! The links from instances to servers: proxies, so that each link can be cut or slowed down.
//!
//! ZooKeeper's first answer on a connection has the id and the password of the session. With both, any client may end
//! the session: [`ProxyLink::expire_sessions`] does.
//!
//! Source of the formats: ZooKeeper's `zookeeper.jute`, `ConnectRequest`, `ConnectResponse` and `RequestHeader`.

use super::{etcd, mysql, redis, zookeeper};
use crate::{
    addresses::Addresses,
    clients::proxy::Proxy,
    terminal::failure::{Failure, unusable},
};
use parking_lot::Mutex;
use std::{io, mem::take, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Time limit of the end of a session: an ensemble first agrees on it.
const SESSION_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a link from each instance to each MySQL, Redis, ZooKeeper and etcd server, but none to a main Redis with Sentinels.
pub(super) fn open_all(at: &Addresses) -> Result<Vec<Arc<ProxyLink>>, Failure> {
    let nodes = at.mysql_nodes().enumerate();
    let nodes = nodes.map(|(n, node)| (mysql::name(n), authority(&node.url)));
    let mut servers: Vec<_> = nodes.collect();
    // With Sentinels the instances find the main Redis by themselves.
    let first = usize::from(!at.sentinels.is_empty());
    servers.extend(at.redis.iter().enumerate().skip(first).map(|(n, node)| (redis::name(n), authority(&node.url))));
    let members = at.zookeeper.connect.split(',').enumerate();
    servers.extend(members.map(|(n, member)| (zookeeper::name(n), member)));
    servers.extend(at.etcd.iter().enumerate().map(|(n, node)| (etcd::name(n), authority(&node.url))));
    let mut links = Vec::new();
    for instance in &at.instances {
        for (server, to) in &servers {
            links.push(Arc::new(ProxyLink::open(&instance.name, server, to)?));
        }
    }
    Ok(links)
}

/// The addresses as this instance sees them: those of its links, if it has any.
pub(super) fn addresses_through_links(instance: &str, at: &Addresses, links: &[Arc<ProxyLink>]) -> Addresses {
    let by_link = |address: &str| {
        let link = links.iter().find(|link| link.instance == instance && link.proxy.target() == address);
        link.map_or_else(|| address.to_owned(), |link| link.proxy.address())
    };
    let mut addresses = at.clone();
    let nodes = addresses.redis.iter_mut().chain(&mut addresses.galera).chain(&mut addresses.etcd);
    for url in nodes.chain([&mut addresses.mysql]).map(|node| &mut node.url) {
        let direct = authority(url);
        *url = url.replace(direct, &by_link(direct));
    }
    addresses.zookeeper.connect = at.zookeeper.connect.split(',').map(by_link).collect::<Vec<_>>().join(",");
    addresses
}

/// `host:port` of a URL, without a user.
pub(super) fn authority(url: &str) -> &str {
    let rest = url.split_once("//").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// The link from one instance to one server. It also notes the ZooKeeper sessions that were opened on it, for
/// [`expire_sessions`](Self::expire_sessions).
#[derive(Debug)]
pub(super) struct ProxyLink {
    pub(super) instance: String,
    pub(super) server: String,
    pub(super) proxy: Proxy,
    zk_sessions: Arc<Mutex<Vec<Session>>>,
}

/// A session of ZooKeeper, with what a client needs to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Session {
    number: [u8; 8],
    password: [u8; 16],
}

impl ProxyLink {
    /// Opens a link for this instance to the server at `to` (`host:port`).
    pub(super) fn open(instance: &str, server: &str, to: &str) -> Result<Self, Failure> {
        let zk_sessions = Arc::<Mutex<Vec<_>>>::default();
        let sessions = Arc::clone(&zk_sessions);
        let proxy = Proxy::filtered(to, move |piece| {
            if piece.from_server
                && piece.first
                && let Some(session) = Session::parse(piece.bytes)
            {
                let mut sessions = sessions.lock();
                sessions.retain(|other| *other != session);
                sessions.push(session);
            }
            true
        });
        Ok(Self {
            instance: instance.to_owned(),
            server: server.to_owned(),
            proxy: proxy.map_err(|e| unusable!("cannot open a link to {server}: {e}"))?,
            zk_sessions,
        })
    }

    /// Whether this name means the link: `redis` names the links of all instances to it, but not the replica's; `8100-redis` that
    /// of one.
    pub(super) fn is_meant_by(&self, name: &str) -> bool {
        self.name() == name || (self.server == name && self.instance != redis::REPLICA)
    }

    /// The instance and the server, as in `8100-redis`.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.instance, self.server)
    }

    pub(super) fn belongs_to(&self, instance: &str) -> bool {
        self.instance == instance
    }

    /// Ends and forgets the sessions that were opened on this link. Returns false if none of them was live.
    pub(super) async fn expire_sessions(&self) -> Result<bool, Failure> {
        let (sessions, to) = (take(&mut *self.zk_sessions.lock()), self.proxy.target());
        let mut was_live = false;
        for session in sessions {
            was_live |= match timeout(SESSION_CLOSE_TIMEOUT, session.close(&to)).await {
                Ok(Ok(was_live)) => was_live,
                Ok(Err(error)) => {
                    return Err(unusable!("{} did not end the session: {error}", self.server));
                }
                Err(_) => {
                    return Err(unusable!("{} did not answer within {} s", self.server, SESSION_CLOSE_TIMEOUT.as_secs()));
                }
            };
        }
        Ok(was_live)
    }
}

impl Session {
    /// Reads a `ConnectResponse`: length, protocol, time-out, id, and the password after its length. `None` if it is not one,
    /// or the session was refused.
    fn parse(first: &[u8]) -> Option<Self> {
        let number = first.get(12..20)?.try_into().ok()?;
        let password = first.get(24..40)?.try_into().ok()?;
        let is_valid = first.get(20..24)? == 16_u32.to_be_bytes() && number != [0; 8];
        is_valid.then_some(Self { number, password })
    }

    /// Joins the session at the server, and closes it; without a time limit. Returns false if it had ended before.
    async fn close(self, server: &str) -> io::Result<bool> {
        const CLOSE_SESSION_REQUEST: i32 = -11;
        let mut stream = TcpStream::connect(server).await?;
        let (protocol, zxid, time_out, read_only) = ([0; 4], [0; 8], 10_000_i32.to_be_bytes(), [0]);
        let length = 16_u32.to_be_bytes();
        let join = [&protocol[..], &zxid, &time_out, &self.number, &length, &self.password, &read_only].concat();
        send(&mut stream, &join).await?;
        if Self::parse(&receive(&mut stream).await?).is_none() {
            return Ok(false);
        }
        send(&mut stream, &[1_i32.to_be_bytes(), CLOSE_SESSION_REQUEST.to_be_bytes()].concat()).await?;
        receive(&mut stream).await?;
        Ok(true)
    }
}

/// Sends a packet with its length before it.
async fn send(stream: &mut TcpStream, packet: &[u8]) -> io::Result<()> {
    let length = u32::try_from(packet.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), packet].concat()).await
}

/// Reads one packet, at most 1024 bytes of it; returns it with its length before it.
async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    let mut packet = length.to_be_bytes().to_vec();
    packet.resize(4 + length.min(1024) as usize, 0);
    stream.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}
