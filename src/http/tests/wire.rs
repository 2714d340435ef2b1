//! Tests on real connections: limits on connections and slow clients, and the end of an instance.

use super::config;
use crate::http::server::{close_to_others, is_open, serve};
use axum::{
    Router,
    body::Body,
    routing::{MethodRouter, get},
};
use futures::{FutureExt, stream};
use secrecy::ExposeSecret;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

const REQUEST: &[u8] = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct Wire {
    address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<Instant>,
}

async fn wire(overrides: &[(&str, &str)], slow: MethodRouter, drain: Duration) -> Wire {
    let router = Router::new().route("/slow", slow);
    let limits = config(overrides).server;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let served = tokio::spawn(async move { serve(listener, router, &limits, &stopping, drain).await });
    Wire { address, stop, served }
}

impl Wire {
    async fn connect(&self) -> TcpStream {
        let connected = TcpStream::connect(self.address).await;
        connected.expect("the kernel takes it")
    }
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(REQUEST).await.expect("it is open");
    let mut start = [0; 15];
    stream.read_exact(&mut start).await.expect("an answer");
    String::from_utf8_lossy(&start).into_owned()
}

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_connection_over_the_limit_is_closed() {
    let limit = [("server.connections", "2")];
    let wire = wire(&limit, get(()), Duration::ZERO).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = wire.connect().await;
        assert_eq!(ask(&mut stream).await, "HTTP/1.1 200 OK");
        kept.push(stream);
    }
    let mut third = wire.connect().await;
    third.write_all(REQUEST).await.ok();
    assert!(matches!(third.read(&mut [0; 1]).await, Ok(0) | Err(_)), "nobody answers it");
    kept.pop();
    let mut answered = false;
    for _ in 0..100 {
        let mut stream = wire.connect().await;
        stream.write_all(REQUEST).await.ok();
        answered = matches!(stream.read(&mut [0; 1]).await, Ok(1));
        if answered {
            break;
        }
    }
    assert!(answered, "the place of one that went is not free");
}

#[tokio::test]
async fn only_a_client_that_does_not_read_is_cut_off() {
    for (limit, cut) in [("50", true), ("60000", false)] {
        let dropped = Arc::new(Notify::new());
        let told = Arc::clone(&dropped);
        let endless = get(async move || {
            let guard = Dropped(told);
            Body::from_stream(stream::repeat_with(move || {
                let _kept = &guard;
                Ok::<_, std::io::Error>(vec![0; 64 * 1024])
            }))
        });
        let limits = [("server.write_timeout_ms", limit)];
        let wire = wire(&limits, endless, Duration::ZERO).await;
        let mut stream = wire.connect().await;
        assert_eq!(ask(&mut stream).await, "HTTP/1.1 200 OK");
        let given_up = tokio::time::timeout(Duration::from_millis(if cut { 60_000 } else { 300 }), dropped.notified()).await;
        assert_eq!(given_up.is_ok(), cut, "with a limit of {limit} ms");
    }
}

#[tokio::test]
async fn an_end_lets_requests_finish_and_cuts_off_those_that_do_not() {
    for (drain, finishes) in [(Duration::from_secs(60), true), (Duration::from_millis(50), false)] {
        let notes @ [entered, go_on, dropped] = &[(); 3].map(|()| Arc::new(Notify::new()));
        let [inside, leave, told] = notes.clone();
        let slow = get(async move || {
            let _guard = Dropped(told);
            inside.notify_one();
            leave.notified().await;
        });
        let wire = wire(&[], slow, drain).await;
        let mut stream = wire.connect().await;
        stream.write_all(REQUEST).await.expect("it is open");
        entered.notified().await;
        wire.stop.cancel();
        if finishes {
            go_on.notify_one();
        }
        wire.served.await.expect("no panic");
        assert!(dropped.notified().now_or_never().is_some(), "the handler has ended before the server has");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok();
        assert_eq!(answer.starts_with("HTTP/1.1 200 OK"), finishes, "{answer}");
        assert!(TcpStream::connect(wire.address).await.is_err(), "nobody listens any more");
    }
}

#[tokio::test]
async fn a_request_head_that_does_not_end_is_cut_off() {
    let limits = [("server.header_timeout_ms", "50")];
    let wire = wire(&limits, get(()), Duration::ZERO).await;
    let mut stream = wire.connect().await;
    stream.write_all(&REQUEST[..20]).await.expect("it is open");
    assert!(matches!(stream.read(&mut [0; 1]).await, Ok(0) | Err(_)), "it is closed without an answer");
}

#[test]
fn an_open_instance_without_a_token_makes_one() {
    for (host, published, token, open) in [
        ("127.0.0.1", "", "", false),
        ("::1", "", "", false),
        ("localhost", "", "", false),
        ("0.0.0.0", "", "", true),
        ("::", "", "", true),
        ("192.168.1.20", "", "", true),
        ("0.0.0.0", "", "s3cret", false),
        // In a container, by where it is published.
        ("0.0.0.0", "127.0.0.1", "", false),
        ("0.0.0.0", "0.0.0.0", "", true),
    ] {
        let mut config = config(&[("server.host", host), ("server.published", published), ("admin.token", token)]);
        assert_eq!(is_open(&config), open, "{host} {published} {token}");
        close_to_others(&mut config).expect("it stands alone");
        let made = config.admin_token().map(|token| token.expose_secret().len());
        let kept = (!token.is_empty()).then_some(token.len());
        assert_eq!(made, if open { Some(32) } else { kept }, "{host}");
    }
}

#[test]
fn an_open_cluster_does_not_start_without_a_token() {
    for (cluster, token, starts) in [("http://a:8000,http://b:8000", "", false), ("http://a:8000,http://b:8000", "s3cret", true)]
    {
        let mut config = config(&[("server.host", "0.0.0.0"), ("cluster.instances", cluster), ("admin.token", token)]);
        let closed = close_to_others(&mut config);
        assert_eq!(closed.is_ok(), starts, "{closed:?}");
    }
}
