//! Waiting until a server is well, by asking it.

use super::{process::Process, server::Server};
use crate::{
    failure::Failure,
    http_client::{Answer, HttpClient},
};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

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
pub(super) async fn until_well(
    server: &dyn Server,
    process: &Process,
    complete: bool,
) -> Result<(), Failure> {
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

/// A GET on loopback.
pub(super) async fn get(port: u16, path: &str) -> Result<Answer, String> {
    HttpClient::new(ANSWER)
        .get(&format!("http://127.0.0.1:{port}{path}"))
        .await
        .map_err(|e| e.to_string())
}
