//! A port that stays ours while nobody listens on it.
//!
//! A free port is free for everybody: between the end of one listener and the next, the system may hand it to any other
//! socket that asks for one. Here it is bound all the time, to a socket that never listens: connections are refused as
//! at a port that nobody has, a server that reuses addresses may listen on it, and no other gets it.

use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// A port of 127.0.0.1, until it is dropped.
pub(crate) struct Port(TcpSocket);

impl Port {
    /// One that was free.
    pub(crate) fn free() -> Self {
        Self(bound(SocketAddr::from(([127, 0, 0, 1], 0))))
    }

    /// Its `host:port`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }

    /// Takes connections on it; not while another listener does.
    pub(crate) fn listen(&self) -> TcpListener {
        bound(self.address())
            .listen(1024)
            .expect("nobody else listens")
    }
}

fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .set_reuseaddr(true)
        .expect("a socket that reuses addresses");
    socket.bind(address).expect("a free port");
    socket
}
