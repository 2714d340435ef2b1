//! What commands and instances ask of each other over HTTP: reqwest, with a time limit for each request and the errors told
//! apart that callers act on. The load generator does not use it: it must know what was sent.
//!
//! Every request has a connection of its own, so that none is sent into a connection that is just being closed, and the
//! one who answers is the one who listens now.

use axum::body::Bytes;
use eventsource_stream::{Event, Eventsource};
use futures::{StreamExt, stream::BoxStream};
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Client, RequestBuilder, Response, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use serde::{Serialize, de::DeserializeOwned};
use std::{error::Error, time::Duration};

/// Why there is no answer, or none that helps.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address, the token or the body cannot be sent.
    #[error("it cannot be sent: {0}")]
    Unfit(String),
    /// Nobody listens, or the connection broke.
    #[error("{0}")]
    Broken(String),
    /// The time limit is over.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The status is not 2xx.
    #[error("{status} {body}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// What the answer says.
        body: String,
    },
    /// The answer is not the JSON that was expected.
    #[error("not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The answer, where its status is 2xx.
    ///
    /// # Errors
    ///
    /// [`HttpError::Refused`].
    pub fn success(self) -> Result<Self, HttpError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(self.refused())
    }

    fn refused(self) -> HttpError {
        HttpError::Refused {
            status: self.status,
            body: String::from_utf8_lossy(&self.body).trim().to_owned(),
        }
    }

    /// What the body says.
    ///
    /// # Errors
    ///
    /// [`HttpError::Json`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The instance that answered.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        self.headers.get("x-instance")?.to_str().ok()
    }
}

/// Server-sent events, each as it comes.
pub type Events = BoxStream<'static, Result<Event, HttpError>>;

/// The client. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    limit: Duration,
}

impl HttpClient {
    /// A client that gives up each request after `limit`.
    ///
    /// # Panics
    ///
    /// Never: without TLS there is nothing in a client that could fail.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        let client = Client::builder()
            .pool_max_idle_per_host(0)
            .redirect(Policy::none())
            .no_proxy()
            .build()
            .expect("a client without TLS");
        Self { client, limit }
    }

    /// GET.
    ///
    /// # Errors
    ///
    /// [`HttpError`], but not for a status: see [`Answer::success`].
    ///
    /// # Cancel safety
    ///
    /// A request that is given up may have been carried out. So it is with all methods.
    pub async fn get(&self, url: &str) -> Result<Answer, HttpError> {
        self.whole(self.client.get(url)).await
    }

    /// PUT with a JSON body; `token` goes into `Authorization: Bearer …`.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn put(
        &self,
        url: &str,
        json: &impl Serialize,
        token: Option<&SecretString>,
    ) -> Result<Answer, HttpError> {
        self.whole(authorized(self.client.put(url).json(json), token))
            .await
    }

    /// POST with a JSON body; `token` goes into `Authorization: Bearer …`.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn post(
        &self,
        url: &str,
        json: &impl Serialize,
        token: Option<&SecretString>,
    ) -> Result<Answer, HttpError> {
        self.whole(authorized(self.client.post(url).json(json), token))
            .await
    }

    /// DELETE; `token` goes into `Authorization: Bearer …`.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn delete(
        &self,
        url: &str,
        token: Option<&SecretString>,
    ) -> Result<Answer, HttpError> {
        self.whole(authorized(self.client.delete(url), token)).await
    }

    /// A request with headers of its own, such as who asks, or in which form the answer is read; without a body where
    /// `json` is none.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        json: Option<&serde_json::Value>,
    ) -> Result<Answer, HttpError> {
        let mut request = self.client.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(json) = json {
            request = request.json(json);
        }
        self.whole(request).await
    }

    /// GET of server-sent events (`text/event-stream`): each as it comes, to the end. The limit holds for the first answer
    /// only.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`HttpError::Refused`] for a status that is not 2xx. In the stream: the connection broke,
    /// or what came are no events.
    ///
    /// # Cancel safety
    ///
    /// Dropping the stream closes the connection.
    pub async fn events(&self, url: &str) -> Result<Events, HttpError> {
        self.stream(self.client.get(url)).await
    }

    /// POST with a JSON body, whose answer are server-sent events.
    ///
    /// # Errors
    ///
    /// As [`events`](Self::events).
    ///
    /// # Cancel safety
    ///
    /// As [`events`](Self::events); what was asked for may be under way.
    pub async fn events_of(&self, url: &str, json: &impl Serialize) -> Result<Events, HttpError> {
        self.stream(self.client.post(url).json(json)).await
    }

    async fn whole(&self, request: RequestBuilder) -> Result<Answer, HttpError> {
        self.in_time(async { whole(request.send().await?).await })
            .await
    }

    async fn stream(&self, request: RequestBuilder) -> Result<Events, HttpError> {
        let begun = self.in_time(async {
            let answer = request.send().await?;
            Ok(match answer.status().is_success() {
                true => Ok(answer),
                false => Err(whole(answer).await?),
            })
        });
        match begun.await? {
            Ok(answer) => Ok(answer
                .bytes_stream()
                .eventsource()
                .map(|event| event.map_err(|e| HttpError::Broken(innermost(&e))))
                .boxed()),
            Err(refused) => Err(refused.refused()),
        }
    }

    async fn in_time<T>(
        &self,
        asked: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, HttpError> {
        match tokio::time::timeout(self.limit, asked).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(HttpError::TimedOut(self.limit)),
        }
    }
}

fn authorized(request: RequestBuilder, token: Option<&SecretString>) -> RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(token.expose_secret()),
        None => request,
    }
}

async fn whole(answer: Response) -> reqwest::Result<Answer> {
    Ok(Answer {
        status: answer.status(),
        headers: answer.headers().clone(),
        body: answer.bytes().await?,
    })
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        match error.is_builder() {
            true => Self::Unfit(innermost(&error)),
            false => Self::Broken(innermost(&error)),
        }
    }
}

/// The error that the others were made of: "Connection refused" rather than "client error (Connect)".
fn innermost(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{
        Json, Router,
        routing::{delete, get, put},
    };
    use http::header;
    use std::net::Ipv4Addr;
    use tokio::net::TcpListener;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn serve(router: Router) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    fn bearer(headers: &HeaderMap) -> String {
        headers
            .get(header::AUTHORIZATION)
            .map_or("none", |v| v.to_str().unwrap())
            .to_owned()
    }

    #[tokio::test]
    async fn json_goes_and_comes_with_the_token() {
        let router = Router::new().route(
            "/stock",
            put(async |headers: HeaderMap, Json(n): Json<i64>| Json((n + 1, bearer(&headers))))
                .merge(delete(async |headers: HeaderMap| bearer(&headers))),
        );
        let url = serve(router).await + "/stock";
        let client = HttpClient::new(LIMIT);
        let token = SecretString::from("00123");
        let answer = client
            .put(&url, &41, Some(&token))
            .await
            .unwrap()
            .success()
            .unwrap();
        assert_eq!(
            answer.json::<(i64, String)>().unwrap(),
            (42, "Bearer 00123".to_owned())
        );
        assert_eq!(client.delete(&url, None).await.unwrap().body, "none");
    }

    #[tokio::test]
    async fn a_refusal_is_an_answer_until_success_is_asked_for() {
        let url = serve(Router::new()).await;
        let answer = HttpClient::new(LIMIT)
            .get(&(url + "/nowhere"))
            .await
            .unwrap();
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert!(matches!(
            answer.success(),
            Err(HttpError::Refused {
                status: StatusCode::NOT_FOUND,
                ..
            })
        ));
    }

    #[tokio::test]
    async fn one_who_says_nothing_is_given_up_and_one_who_is_not_there_is_told_at_once() {
        let silent =
            serve(Router::new().route("/", get(async || std::future::pending::<()>().await))).await;
        let short = HttpClient::new(Duration::from_millis(20));
        assert!(matches!(
            short.get(&silent).await,
            Err(HttpError::TimedOut(_))
        ));

        let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let error = HttpClient::new(LIMIT)
            .get(&format!("http://{gone}"))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, HttpError::Broken(why) if why.contains("refused")),
            "{error}"
        );
        assert!(matches!(
            HttpClient::new(LIMIT).get("no address").await,
            Err(HttpError::Unfit(_))
        ));
    }
}
