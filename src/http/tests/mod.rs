//! What needs no server: bad input, negotiation, limits, the page. The servers named here are not there.

mod answers;
mod guard;
mod input;
mod lab;
mod limits;
mod openapi;
mod replays;
mod wire;

use super::{app::AppState, routes::router};
use crate::{config::Config, ctx::Ctx};
use axum::{Router, body::Body, response::Response};
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const NOBODY: &str = "mysql://root@127.0.0.1:1/test";
const JSON: (&str, &str) = ("accept", "application/json");

fn config(overrides: &[(&str, &str)]) -> Config {
    let servers = [
        ("mysql.url", NOBODY),
        ("redis.url", "redis://127.0.0.1:1"),
        ("zookeeper.connect", "127.0.0.1:1"),
    ];
    let all: Vec<_> = servers
        .iter()
        .chain(overrides)
        .map(|(key, value)| (*key, (*value).to_owned()))
        .collect();
    Config::load_with(None, &all).expect("a configuration")
}

fn app(overrides: &[(&str, &str)]) -> AppState {
    let ctx = Ctx::new(config(overrides)).expect("clients");
    AppState::new(ctx, CancellationToken::new()).expect("an instance")
}

fn service(overrides: &[(&str, &str)]) -> Router {
    router(&app(overrides))
}

async fn send(
    service: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header(header::CONTENT_LENGTH, body.len());
    }
    let request = request
        .body(Body::from(body.to_owned()))
        .expect("a request");
    Answer::of(service.clone().oneshot(request).await.expect("infallible")).await
}

/// Sends a JSON body.
async fn send_json(
    service: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    send(
        service,
        method,
        path,
        &[headers, &[("content-type", "application/json")]].concat(),
        body,
    )
    .await
}

async fn read(service: &Router, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(service, "GET", path, headers, "").await
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}
