//! One keep-alive connection to an instance or to nginx.
//!
//! The connection is driven by the very task that waits for the answer, so that a request costs no hand-over between
//! tasks; generator and servers share the same cores.
//!
//! **A request is never sent twice.** [`Link::exchange`] takes the request by value and hands it to hyper once. Where
//! that fails, hyper gives the request back only if not one byte of it was written ([`ExchangeError::NotSent`]): only then may
//! the caller open a new connection for it. In every other case it may have reached the server, its effect is unknown
//! ([`ExchangeError::NoAnswer`]), and nobody sends it again. Requests are POSTs, so that no proxy takes them for repeatable.

use super::stats::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header, uri::PathAndQuery};
use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes as Chunk, client::conn::http1};
use hyper_util::rt::TokioIo;
use oversell_lab::terminal::failure::{Failure, unusable};
use std::{
    fmt,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::net::TcpStream;
use tokio_util::io::{InspectReader, InspectWriter};

/// A connection that cannot be made within this is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Is called with the bytes of each read or write.
type Inspect = Box<dyn FnMut(&[u8]) + Send>;
/// A TCP connection whose bytes are counted.
type Wire = TokioIo<InspectReader<InspectWriter<TcpStream, Inspect>, Inspect>>;
/// The body of a request.
pub(super) type Body = Full<Chunk>;

/// The host and port to which requests go, from an address such as `http://127.0.0.1:8080`.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    host: String,
    port: u16,
    authority: HeaderValue,
}

/// Bytes that went over the wire, counted by all connections of a run.
#[derive(Debug, Default)]
pub(super) struct Meter {
    received: AtomicU64,
    sent: AtomicU64,
}

/// One keep-alive connection to an instance or to nginx.
pub(super) struct Link {
    sender: http1::SendRequest<Body>,
    connection: Pin<Box<http1::Connection<Wire, Body>>>,
    closed: bool,
}

/// Why an exchange has no whole answer: the request was surely not sent, or it may have been.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// Not one byte of the request was written.
    NotSent,
    /// The request, or a part of it, was written.
    NoAnswer(String),
}

impl Origin {
    /// Parses `http://host:port`; without a port it is 80.
    /// Errors: [`Failure::Unusable`] where it is not such an address.
    pub(super) fn parse(base: &str) -> Result<Self, Failure> {
        let wrong = || unusable!("{base} is not an address such as http://127.0.0.1:8080");
        let uri: Uri = base.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        if uri.scheme_str() != Some("http") || uri.path().len() > 1 || uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?,
        })
    }

    /// A request to this origin, without a body.
    /// Errors: [`Failure::Unusable`] where `path` is not a path.
    pub(super) fn request(&self, method: Method, path: &str) -> Result<Request<Body>, Failure> {
        let path = PathAndQuery::try_from(path).map_err(|_| unusable!("{path} is not a path"))?;
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().insert(header::HOST, self.authority.clone());
        Ok(request)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl Meter {
    /// The bytes counted so far.
    pub(super) fn read(&self) -> Bytes {
        Bytes { received: self.received.load(Ordering::Relaxed), sent: self.sent.load(Ordering::Relaxed) }
    }
}

impl Link {
    /// Connects; its bytes are counted by `meter`. The error says why it did not, or not within [`CONNECT_TIMEOUT`].
    pub(super) async fn open(origin: &Origin, meter: &Arc<Meter>) -> Result<Self, String> {
        let connecting = TcpStream::connect((origin.host.as_str(), origin.port));
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected.map_err(|e| e.to_string())?,
            Err(_) => {
                return Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()));
            }
        };
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let (received, sent) = (Arc::clone(meter), Arc::clone(meter));
        let sent: Inspect = Box::new(move |bytes| add(&sent.sent, bytes));
        let received: Inspect = Box::new(move |bytes| add(&received.received, bytes));
        let wire = TokioIo::new(InspectReader::new(InspectWriter::new(stream, sent), received));
        let (sender, connection) = http1::handshake(wire).await.map_err(|e| e.to_string())?;
        Ok(Self { sender, connection: Box::pin(connection), closed: false })
    }

    /// Sends a request and reads its whole answer, without a time limit.
    /// Errors: [`ExchangeError`] if the connection ended first; the link is of no further use then.
    /// Cancel safety: dropping it may leave a request half done: drop the link too.
    pub(super) async fn exchange(&mut self, request: Request<Body>) -> Result<Response<Chunk>, ExchangeError> {
        let Self { sender, connection, closed } = self;
        if *closed {
            return Err(ExchangeError::NotSent);
        }
        tokio::select! {
            biased;
            _ = connection.as_mut() => *closed = true,
            _ = sender.ready() => {}
        }
        if *closed {
            return Err(ExchangeError::NotSent);
        }
        let mut exchange = pin!(async {
            let response = sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
                Some(_) => ExchangeError::NotSent,
                None => ExchangeError::NoAnswer(reason(error.error())),
            })?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|e| ExchangeError::NoAnswer(reason(&e)))?.to_bytes();
            Ok(Response::from_parts(head, body))
        });
        tokio::select! {
            biased;
            done = &mut exchange => return done,
            _ = connection.as_mut() => *closed = true,
        }
        exchange.await
    }
}

/// Adds the number of these bytes to the counter.
fn add(counter: &AtomicU64, bytes: &[u8]) {
    counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
}

/// The error's text with that of its cause.
fn reason(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_plain_http_origin() {
        let origin = Origin::parse("http://127.0.0.1:8080").unwrap();
        assert_eq!((origin.host.as_str(), origin.port), ("127.0.0.1", 8080));
        assert_eq!(Origin::parse("http://shop/").unwrap().port, 80);
        assert_eq!(Origin::parse("http://[::1]:8080").unwrap().host, "::1");
        for wrong in ["", "127.0.0.1:8080", "https://shop", "http://shop/path", "http://shop/?a=1", "not an address"] {
            assert!(Origin::parse(wrong).is_err(), "{wrong}");
        }
    }
}
