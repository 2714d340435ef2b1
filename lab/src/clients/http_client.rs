//! HTTP requests of commands and instances to each other: requests of reqwest, and the errors that callers tell apart. The load
//! generator does not use it: it must know what was sent.
//!
//! Every request has a connection of its own, so that none is sent into a connection that is just being closed, and the
//! process that answers is the one that listens now.

use async_stream::stream;
use axum::body::Bytes;
use eventsource_stream::{Event, Eventsource};
use futures::{StreamExt, stream::BoxStream};
use http::{HeaderMap, StatusCode};
use reqwest::{Client, RequestBuilder, Response, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use std::{error::Error, pin::pin, sync::LazyLock, time::Duration};
use tokio::time::timeout;

/// Time limit of silence in a stream of events: instances send a sign of life every 5 s.
const EVENT_SILENCE_TIMEOUT: Duration = Duration::from_secs(15);

/// An answer with a longer body is an error; a stream of events has no such limit.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Why a request has no answer, or no useful one.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It could not be sent, nobody listens, the connection broke, or the answer is too long or of the wrong kind.
    #[error("{0}")]
    Failed(String),
    #[error("no answer within the time limit")]
    TimedOut,
    /// The status is not 2xx.
    #[error("{status} {body}")]
    Refused { status: StatusCode, body: String },
    #[error("not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        let why = innermost_cause(&error);
        match error.url() {
            _ if error.is_timeout() => Self::TimedOut,
            // With several addresses, the failed one.
            Some(url) if error.is_connect() => Self::Failed(format!("{}: {why}", url.authority())),
            _ => Self::Failed(why),
        }
    }
}

/// The error at the end of the chain of causes: "Connection refused" rather than "client error (Connect)".
fn innermost_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// An answer that is read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// Reads the whole answer, of at most [`MAX_ANSWER_BYTES`].
    async fn read(mut response: Response) -> Result<Self, HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ANSWER_BYTES {
                return Err(HttpError::Failed(format!("more than {MAX_ANSWER_BYTES} bytes")));
            }
        }
        Ok(Self { status: response.status(), headers: response.headers().clone(), body: body.into() })
    }

    /// The answer, if its status is 2xx; else [`HttpError::Refused`].
    pub fn success(self) -> Result<Self, HttpError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(self.into_refusal())
    }

    fn into_refusal(self) -> HttpError {
        HttpError::Refused { status: self.status, body: self.text().trim().to_owned() }
    }

    /// The body as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the body as JSON, whatever the status.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The instance that answered (header `x-instance`), if it says so.
    pub fn instance(&self) -> Option<&str> {
        self.headers.get("x-instance")?.to_str().ok()
    }
}

/// Server-sent events, each as it arrives.
pub type Events = BoxStream<'static, Result<Event, HttpError>>;

/// The client of this process, which follows no redirect and uses no proxy. It has no time limit: each request names its own.
/// Never panics: without TLS there is nothing in a client that could fail.
pub fn client() -> &'static Client {
    static CLIENT: LazyLock<Client> = LazyLock::new(|| {
        Client::builder().pool_max_idle_per_host(0).redirect(Policy::none()).no_proxy().build().expect("a client without TLS")
    });
    &CLIENT
}

/// Sends a request and reads its answer. Implemented for reqwest's [`RequestBuilder`].
pub trait Ask: Sized {
    /// The same request with the token in `Authorization: Bearer …`, if there is one.
    fn token(self, token: Option<&SecretString>) -> Self;

    /// Sends the request, and reads the whole answer.
    /// Errors: [`HttpError`], but not for a status: see [`Answer::success`].
    /// Cancel safety: a request that is given up may have been carried out.
    fn answer(self) -> impl Future<Output = Result<Answer, HttpError>> + Send;

    /// Sends the request, and reads server-sent events (`text/event-stream`) to their end. `limit` holds until the answer begins;
    /// after 15 s of silence the stream ends without an error.
    /// Errors: [`HttpError::TimedOut`] after `limit`, [`HttpError::Refused`] for a status that is not 2xx. In the stream: the
    /// connection broke, or what came are no events.
    fn events(self, limit: Duration) -> impl Future<Output = Result<Events, HttpError>> + Send;
}

impl Ask for RequestBuilder {
    fn token(self, token: Option<&SecretString>) -> Self {
        match token {
            Some(token) => self.bearer_auth(token.expose_secret()),
            None => self,
        }
    }

    async fn answer(self) -> Result<Answer, HttpError> {
        Answer::read(self.send().await?).await
    }

    async fn events(self, limit: Duration) -> Result<Events, HttpError> {
        let begun = async {
            let response = self.send().await?;
            if response.status().is_success() {
                let heard = stream! {
                    let mut bytes = pin!(response.bytes_stream());
                    while let Ok(Some(more)) = timeout(EVENT_SILENCE_TIMEOUT, bytes.next()).await {
                        yield more;
                    }
                };
                return Ok(heard.eventsource().map(|event| event.map_err(|e| HttpError::Failed(innermost_cause(&e)))).boxed());
            }
            Err(Answer::read(response).await?.into_refusal())
        };
        let begun = timeout(limit, begun).await;
        begun.unwrap_or(Err(HttpError::TimedOut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, routing::get};
    use std::net::Ipv4Addr;
    use tokio::net::TcpListener;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn serve(router: Router) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    #[tokio::test]
    async fn a_refusal_is_an_answer_until_success_is_asked_for() {
        let url = serve(Router::new()).await + "/nowhere";
        let answer = client().get(&url).answer().await.unwrap();
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        for refused in [answer.success().err(), client().get(&url).events(LIMIT).await.err()] {
            assert!(matches!(refused, Some(HttpError::Refused { status: StatusCode::NOT_FOUND, .. })));
        }
    }

    #[tokio::test]
    async fn an_endless_answer_is_given_up() {
        let endless = || {
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            let body = futures::stream::repeat(piece).map(Ok::<_, std::io::Error>);
            (StatusCode::NOT_FOUND, axum::body::Body::from_stream(body))
        };
        let url = serve(Router::new().route("/", get(async move || endless()))).await;
        for given_up in [client().get(&url).timeout(LIMIT).answer().await.err(), client().get(&url).events(LIMIT).await.err()] {
            let why = given_up.expect("it has no end").to_string();
            assert!(why.contains("more than"), "{why}");
        }
    }

    #[tokio::test]
    async fn a_silent_server_times_out_an_absent_one_is_refused() {
        let silent = serve(Router::new().route("/", get(async || std::future::pending::<()>().await))).await;
        let short = Duration::from_millis(20);
        for given_up in
            [client().get(&silent).timeout(short).answer().await.err(), client().get(&silent).events(short).await.err()]
        {
            assert!(matches!(given_up, Some(HttpError::TimedOut)));
        }

        let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
        for (url, why) in [(format!("http://{gone}"), "refused"), ("no address".into(), "relative URL")] {
            let error = client().get(url).answer().await.unwrap_err();
            assert!(matches!(&error, HttpError::Failed(said) if said.contains(why)), "{error}");
        }
    }
}
