//! What needs no server: bad input, negotiation, limits, the page. The servers named here are not there.

use super::{
    app::App,
    openapi::Api,
    router::{router, surrounded},
};
use crate::{config::Config, ctx::Ctx, stock};
use axum::{Router, body::Body, response::Response, routing::get};
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use std::{future::pending, sync::Arc};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use utoipa::OpenApi;

const NOBODY: &str = "mysql://root@127.0.0.1:1/test";
const JSON: (&str, &str) = ("accept", "application/json");

fn app(overrides: &[(&str, &str)]) -> App {
    let servers = [("mysql.url", NOBODY), ("redis.url", "redis://127.0.0.1:1"), ("zookeeper.connect", "127.0.0.1:1")];
    let all: Vec<_> = servers.iter().chain(overrides).map(|(key, value)| (*key, (*value).to_owned())).collect();
    let ctx = Ctx::new(Config::load_with(None, &all).expect("a configuration")).expect("clients");
    App::new(ctx, CancellationToken::new()).expect("an instance")
}

fn service(overrides: &[(&str, &str)]) -> Router {
    router(app(overrides))
}

async fn send(service: &Router, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_owned())).expect("a request");
    Answer::of(service.clone().oneshot(request).await.expect("infallible")).await
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

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

#[tokio::test]
async fn a_bad_query_is_refused_by_field_and_rule() {
    let service = service(&[]);
    for (query, field) in [
        ("hold_ms=60001", "hold_ms"),
        ("hold_ms=-1", "hold_ms"),
        ("wait_ms=soon", "wait_ms"),
        ("wait_ms=", "wait_ms"),
        ("stock_id=0", "stock_id"),
        ("stock_id=99999999999999999999", "stock_id"),
        ("stock_id=1&stock_id=2", "stock_id"),
        ("stok_id=1", "stok_id"),
    ] {
        let answer = read(&service, &format!("/check/lock/none?{query}"), &[JSON]).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.json()["field"], field, "{query}");
        assert_eq!(answer.json()["outcome"], "refused");
        assert!(answer.json()["detail"].as_str().is_some_and(|d| d.len() > field.len() + 10), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_herd_of_none_or_of_too_many_is_refused_by_field_and_rule() {
    let service = service(&[]);
    for (query, field) in
        [("waiters=0", "waiters"), ("waiters=501", "waiters"), ("waiters=many", "waiters"), ("hold_ms=1", "hold_ms")]
    {
        let answer = read(&service, &format!("/test/zk/herd?{query}"), &[JSON]).await;
        assert_eq!((answer.status, answer.json()["field"].as_str()), (400, Some(field)), "{query}");
        assert!(answer.json()["detail"].as_str().is_some_and(|d| d.contains("500") || field == "hold_ms"));
    }
    // A good one gets as far as the server that is not there.
    assert_eq!(read(&service, "/test/zk/herd?waiters=500", &[JSON]).await.status, 503);
}

#[tokio::test]
async fn a_bad_body_is_refused_by_field_and_rule() {
    let service = service(&[]);
    for (method, path, body, field) in [
        ("PUT", "/stock", "", "body"),
        ("PUT", "/stock", "{", "body"),
        ("PUT", "/stock", "[1]", "body"),
        ("PUT", "/stock", "{}", "count"),
        ("PUT", "/stock", r#"{"count":-1}"#, "count"),
        ("PUT", "/stock", r#"{"count":1.5}"#, "count"),
        ("PUT", "/stock", r#"{"count":"5"}"#, "count"),
        ("PUT", "/stock", r#"{"count":1000000001}"#, "count"),
        ("PUT", "/stock", r#"{"count":1,"id":2}"#, "id"),
        ("PUT", "/stock?id=1", r#"{"count":1}"#, "id"),
        ("POST", "/runs", "{}", "strategy"),
        ("POST", "/runs", r#"{"strategy":"none","target":"two"}"#, "target"),
        ("POST", "/runs", r#"{"strategy":"none","target":"three"}"#, "target"),
        ("POST", "/runs", r#"{"strategy":"none","threads":0}"#, "threads"),
        ("POST", "/runs", r#"{"strategy":"none","threads":1000,"loops":101}"#, "loops"),
        ("POST", "/runs", r#"{"strategy":"none","hold_ms":60001}"#, "hold_ms"),
        ("POST", "/runs", r#"{"strategy":"none","count":-1}"#, "count"),
    ] {
        let answer = send(&service, method, path, &[JSON], body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
}

#[tokio::test]
async fn an_unknown_strategy_is_answered_with_those_that_exist() {
    let service = service(&[]);
    for path in ["/check/lock/nope", "/strategies/nope/source"] {
        let json = read(&service, path, &[JSON]).await;
        assert_eq!(json.status, 404);
        assert_eq!(json.header("content-type"), "application/problem+json");
        let listed = json.json()["strategies"].as_array().map(Vec::len);
        assert_eq!(listed, Some(stock::ALL.len()));
        let text = read(&service, path, &[]).await;
        assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
        assert!(stock::ALL.iter().all(|s| text.body.contains(s.slug)), "{}", text.body);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_answered_in_the_form_that_is_asked_for() {
    let service = service(&[]);
    for (method, path, status) in [
        ("GET", "/nope", 404),
        ("GET", "/docs/nope", 404),
        ("GET", "/%ff", 404),
        ("DELETE", "/check/lock", 405),
        ("POST", "/health/live", 405),
        ("POST", "/", 405),
    ] {
        let json = send(&service, method, path, &[JSON], "").await;
        assert_eq!(json.status, status, "{path}");
        assert_eq!(json.json()["status"], status, "{path}");
        assert_eq!(json.header("allow").is_empty(), status == 404, "{path}");
        let text = send(&service, method, path, &[], "").await;
        assert_eq!(text.header("content-type"), "text/plain; charset=utf-8", "{path}");
    }
}

#[tokio::test]
async fn a_missing_server_is_named_with_503_and_retry_after() {
    let answer = read(&service(&[]), "/check/lock/none", &[JSON]).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.json()["detail"], "mysql is not available");
    assert_eq!(answer.json()["outcome"], "failed");
}

#[tokio::test]
async fn every_answer_names_its_instance_and_its_request() {
    let service = service(&[("server.name", "eight")]);
    for path in ["/health/live", "/nope", "/", "/check/lock/none?x=1"] {
        let answer = read(&service, path, &[]).await;
        assert_eq!(answer.header("x-instance"), "eight", "{path}");
        assert_eq!(answer.header("x-request-id").len(), 16, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    let known = read(&service, "/nope", &[JSON, ("x-request-id", "abc-1")]).await;
    assert_eq!((known.header("x-request-id"), known.json()["request_id"].as_str()), ("abc-1", Some("abc-1")));
    let odd = read(&service, "/nope", &[("x-request-id", "a b\"c")]).await;
    assert_eq!(odd.header("x-request-id").len(), 16);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_whether_or_not_its_length_is_told() {
    let service = service(&[("server.body_limit", "1024")]);
    let told = send(&service, "POST", "/check/lock/none", &[], &"x".repeat(1025)).await;
    assert_eq!(told.status, 413);
    let chunks = futures::stream::iter((0..3).map(|_| Ok::<_, std::io::Error>("x".repeat(500))));
    let request = Request::put("/stock").body(Body::from_stream(chunks)).expect("a request");
    let untold = Answer::of(service.clone().oneshot(request).await.expect("infallible")).await;
    assert_eq!(untold.status, 413);
}

#[tokio::test]
async fn the_stock_and_runs_ask_for_the_token_where_there_is_one() {
    let service = service(&[("admin.token", "s3cret")]);
    for (method, path, body) in
        [("PUT", "/stock", r#"{"count":1}"#), ("POST", "/runs", r#"{"strategy":"none"}"#), ("DELETE", "/runs/1", "")]
    {
        for wrong in ["", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret"] {
            let answer = send(&service, method, path, &[("authorization", wrong)], body).await;
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Bearer"), "{path} {wrong}");
        }
        let answer = send(&service, method, path, &[("authorization", "Bearer s3cret")], body).await;
        assert_ne!(answer.status, 401, "{path}");
    }
    let open = send(&service, "GET", "/strategies", &[], "").await;
    assert_eq!(open.status, 200);
}

#[tokio::test]
async fn a_panic_is_500_without_its_words_and_the_next_request_is_served() {
    let app = app(&[]);
    let service = surrounded(Router::new().route("/boom", get(async || -> () { panic!("inner detail") })), app);
    for _ in 0..2 {
        let answer = read(&service, "/boom", &[JSON]).await;
        assert_eq!((answer.status, answer.json()["outcome"].as_str()), (500, Some("unknown")));
        assert!(!answer.body.contains("inner"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up_with_an_unknown_outcome() {
    let service =
        surrounded(Router::new().route("/slow", get(pending::<()>)), app(&[("server.request_timeout_ms", "5")]));
    let answer = read(&service, "/slow", &[JSON]).await;
    assert_eq!((answer.status, answer.json()["outcome"].as_str()), (503, Some("unknown")));
}

#[tokio::test]
async fn one_request_too_many_is_refused_and_operators_are_let_in() {
    let app = app(&[("server.concurrency", "1")]);
    let entered = Arc::new(tokio::sync::Notify::new());
    let inside = Arc::clone(&entered);
    let slow = get(async move || {
        inside.notify_one();
        pending::<()>().await;
    });
    let routes = Router::new().route("/slow", slow).route("/fast", get(())).route("/health/live", get(()));
    let service = surrounded(routes, app);
    let busy = service.clone();
    let first = tokio::spawn(async move { read(&busy, "/slow", &[]).await });
    entered.notified().await;

    let refused = read(&service, "/fast", &[]).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    assert_eq!(read(&service, "/health/live", &[]).await.status, 200);

    first.abort();
    assert!(first.await.is_err(), "it was under way until now");
    assert_eq!(read(&service, "/fast", &[]).await.status, 200, "the place of one that hung up is free again");
}

#[tokio::test]
async fn the_page_comes_with_a_strict_policy_and_is_sent_once() {
    let service = service(&[]);
    let page = read(&service, "/", &[]).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let etag = page.header("etag");
    for known in [etag.to_owned(), format!("\"x\", W/{etag}"), "*".to_owned()] {
        let again = read(&service, "/", &[("if-none-match", &known)]).await;
        assert_eq!((again.status, again.body.as_str(), again.header("etag")), (304, "", etag), "{known}");
    }
    assert_eq!(read(&service, "/", &[("if-none-match", "\"other\"")]).await.status, 200);
    let docs = read(&service, "/docs/", &[]).await;
    assert_eq!(docs.status, 200);
    assert!(docs.header("content-security-policy").contains("script-src 'self';"));
}

#[tokio::test]
async fn readiness_names_who_waits_for_what() {
    let answer = read(&service(&[]), "/health/ready", &[]).await;
    assert_eq!(answer.status, 503);
    let json = answer.json();
    assert_eq!(json["servers"]["mysql"]["up"], false);
    assert_eq!(json["waiting"].as_array().map(Vec::len), Some(stock::ALL.len()));
    assert!(json.get("instances").is_none());
    assert_eq!(read(&service(&[]), "/health/ready?instances=maybe", &[]).await.status, 400);
}

#[tokio::test]
async fn every_strategy_is_listed_with_its_source_and_its_figures() {
    let service = service(&[]);
    let listed = read(&service, "/strategies", &[]).await.json();
    let metrics = read(&service, "/metrics", &[]).await.body;
    for (place, strategy) in stock::ALL.iter().enumerate() {
        assert_eq!(listed[place]["slug"], strategy.slug);
        let source = read(&service, &format!("/strategies/{}/source", strategy.slug), &[]).await;
        assert_eq!((source.status, source.body.as_str()), (200, strategy.source));
        assert!(metrics.contains(&format!("oversell_waiters{{strategy=\"{}\"}} 0", strategy.slug)));
    }
}

#[tokio::test]
async fn a_failed_request_is_counted_and_waits_no_more() {
    let service = service(&[]);
    assert_eq!(read(&service, "/check/lock/none", &[]).await.status, 503);
    let metrics = read(&service, "/metrics", &[]).await.body;
    assert!(metrics.contains("oversell_errors_total{strategy=\"none\",kind=\"unavailable\"} 1"), "{metrics}");
    assert!(metrics.contains("oversell_waiters{strategy=\"none\"} 0"));
}

#[tokio::test]
async fn no_run_yet_is_204_and_an_unknown_one_404() {
    let service = service(&[]);
    assert_eq!(read(&service, "/runs/current", &[]).await.status, StatusCode::NO_CONTENT);
    assert_eq!(read(&service, "/runs/7/events", &[]).await.status, 404);
    assert_eq!(send(&service, "DELETE", "/runs/7", &[], "").await.status, 404);
}

#[tokio::test]
async fn every_documented_route_exists() {
    let service = service(&[]);
    let api = serde_json::to_value(Api::openapi()).expect("json");
    let paths = api["paths"].as_object().expect("paths");
    assert!(paths.len() >= 12, "{paths:?}");
    for (path, methods) in paths {
        let path = path.replace("{strategy}", "none").replace("{slug}", "none").replace("{id}", "7");
        let allowed = send(&service, "PATCH", &path, &[], "").await;
        assert_eq!(allowed.status, 405, "{path} is documented but not routed");
        for method in methods.as_object().expect("methods").keys() {
            assert!(allowed.header("allow").contains(&method.to_uppercase()), "{method} {path}");
        }
    }
}
