//! The sockets: accept, serve HTTP/1, and end in good order.

use axum::Router;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// After an error that is not one connection's own (no file handle left, say), others get time to close.
const PAUSE: Duration = Duration::from_millis(50);

/// The most that one connection's request head may take up, in bytes.
const BUFFER: usize = 64 * 1024;

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// Serves until `stop`, then lets what is under way end, at most for `drain`; what is left is dropped, and with it
/// what its handlers hold. Gives the time at which it was stopped.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    stop: CancellationToken,
    drain: Duration,
) -> Instant {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(header_timeout).max_buf_size(BUFFER);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted.and_then(without_delay) {
            Ok((stream, peer)) => {
                let router = TowerToHyperService::new(router.clone());
                let service = service_fn(move |mut request: http::Request<Incoming>| {
                    request.extensions_mut().insert(Peer(peer.ip()));
                    hyper::service::Service::call(&router, request)
                });
                let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
                connections.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%peer, %error, "connection ended");
                    }
                });
            }
            Err(error) if is_the_connections_own(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    let stopped = Instant::now();
    drop(listener);
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        while connections.try_join_next().is_some() {}
        tracing::warn!(connections = connections.len(), "cutting off requests that are still under way");
    }
    connections.shutdown().await;
    stopped
}

/// A small answer must not wait for the acknowledgement of the one before.
fn without_delay((stream, peer): (TcpStream, SocketAddr)) -> io::Result<(TcpStream, SocketAddr)> {
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

fn is_the_connections_own(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::InvalidInput | ErrorKind::NotConnected
    )
}
