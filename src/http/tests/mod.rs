//! Tests without servers: bad input, negotiation, limits, the page. The servers named here do not run.

mod answers;
mod classroom;
mod guard;
mod input;
mod lab;
mod limits;
mod openapi;
mod replays;
mod wire;

use super::{
    app::{AppResources, AppState},
    middleware::with_middleware,
    routes::router,
};
use crate::{config::Config, ctx::Ctx};
use axum::{Router, body::Body, response::Response, routing::MethodRouter};
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
        ("etcd.endpoints", "http://127.0.0.1:1"),
    ];
    let all: Vec<_> = servers.iter().chain(overrides).map(|(key, value)| (*key, (*value).to_owned())).collect();
    Config::load_with(None, &all).expect("a configuration")
}

fn app(overrides: &[(&str, &str)]) -> AppState {
    let ctx = Ctx::new(config(overrides)).expect("clients");
    AppResources::new(ctx, CancellationToken::new()).expect("an instance")
}

fn service(overrides: &[(&str, &str)]) -> Router {
    router(&app(overrides))
}

/// One route with what surrounds every request.
fn lone(overrides: &[(&str, &str)], path: &str, handler: MethodRouter) -> Router {
    let route = Router::new().route(path, handler);
    with_middleware(&app(overrides), route, Router::new())
}

async fn send(service: &Router, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.header(header::CONTENT_LENGTH, body.len());
    }
    let request = request.body(Body::from(body.to_owned())).expect("a request");
    let answer = Answer::of(service.clone().oneshot(request).await.expect("infallible")).await;
    let told = openapi::is_documented(method, path, answer.status);
    assert!(told, "{method} {path} answers {}, and its documentation does not say so", answer.status);
    let misfit = openapi::misfit(method, path, &answer);
    assert!(misfit.is_none(), "{method} {path}: {}", misfit.unwrap_or_default());
    answer
}

/// Sends `METHOD path`, headers as `name:value`, and a body. JSON is sent and asked for, unless a header says otherwise.
async fn ask(service: &Router, request: &str) -> Answer {
    let mut words = request.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default();
    let (method, path, mut rest) = (next(), next(), next());
    let mut headers = Vec::new();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    while let Some((name, after)) = rest.split_once(':').filter(|(name, _)| is_name(name)) {
        let (value, more) = after.split_once(' ').unwrap_or((after, ""));
        headers.push((name, value));
        rest = more;
    }
    for (name, value) in [JSON, ("content-type", "application/json")] {
        if !headers.iter().any(|(given, _)| *given == name) {
            headers.push((name, value));
        }
    }
    send(service, method, path, &headers, rest).await
}

/// The rows of a table: a request for [`ask`], and after `|` what must come of it.
fn table(rows: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = rows.lines().filter(|row| !row.is_empty());
    rows.map(|row| row.rsplit_once(" | ").expect("a request and what must come of it"))
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
        Self { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn problem(&self) -> (u16, String) {
        let kind = self.json()["type"].as_str().unwrap_or_default().to_owned();
        (self.status, kind.trim_start_matches("urn:oversell:").to_owned())
    }

    #[track_caller]
    fn assert_refuses(&self, field: &str, rule: &str) {
        let json = self.json();
        let detail = json["detail"].as_str().unwrap_or_default();
        assert_eq!(
            (self.status, json["field"].as_str(), json["outcome"].as_str()),
            (400, Some(field), Some("refused")),
            "{}",
            self.body
        );
        assert!(detail.len() > field.len() + 10 && detail.contains(rule), "{detail}");
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}
