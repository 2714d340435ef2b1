//! Waiting until a server is well, by asking it.

use super::{process::Process, server::Server};
use crate::failure::Failure;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use std::{net::Ipv4Addr, time::Duration};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// Longer than any server takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(60);
/// One question; a server that accepts and says nothing is asked again.
const ANSWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until the server is well.
///
/// # Errors
///
/// It ended, or is not well in time: with its last answer and the end of its log.
pub(super) async fn until_well(server: &dyn Server, process: &Process, complete: bool) -> Result<(), Failure> {
    let name = server.title();
    let begin = Instant::now();
    loop {
        let check = timeout(ANSWER, server.check(process.pid(), complete));
        let reason = tokio::select! {
            end = process.gone() => {
                return Err(Failure::Unusable(format!("{name} ended at its start ({end}); {}", process.tail())));
            }
            answer = check => match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(reason)) => reason,
                Err(_) => "no answer".to_owned(),
            },
        };
        if begin.elapsed() > LIMIT {
            let limit = LIMIT.as_secs();
            return Err(Failure::Unusable(format!(
                "{name} is not healthy after {limit} s ({reason}); {}",
                process.tail()
            )));
        }
        sleep(PAUSE).await;
    }
}

/// A GET on loopback: status and headers.
pub(super) async fn get(port: u16, path: &str) -> Result<(StatusCode, HeaderMap), String> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map_err(|e| e.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    let request = Request::get(path)
        .header(http::header::HOST, format!("127.0.0.1:{port}"))
        .body(Empty::<Bytes>::new())
        .map_err(|e| e.to_string())?;
    let answer = sender.send_request(request);
    tokio::pin!(answer, connection);
    // The connection does the reading and writing; it need not live on after the answer's head.
    tokio::select! {
        answer = &mut answer => answer.map(|a| (a.status(), a.headers().clone())).map_err(|e| e.to_string()),
        end = &mut connection => Err(end.map_or_else(|e| e.to_string(), |()| "the connection was closed".to_owned())),
    }
}

/// The instance that answered.
pub(super) fn instance_of(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-instance")?.to_str().ok()
}
