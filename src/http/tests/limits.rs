//! Bodies that are too large, requests that take too long, one too many, and panics.

use super::{Answer, JSON, app, ask, lone, read, service};
use crate::http::{app::MAX_STREAMS, error::HandlerError, middleware::with_middleware, sse};
use axum::{Router, body::Body, routing::get};
use http::Request;
use http_body_util::BodyExt;
use std::{future::pending, sync::Arc};
use tower::ServiceExt;

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_or_without_length() {
    let service = service(&[("server.body_limit", "1024")]);
    for request in ["POST /check/lock/none", "PUT /stock"] {
        let told = ask(&service, &format!("{request} {}", "x".repeat(1025))).await;
        assert_eq!(told.status, 413, "{request}");
    }
    let chunks = futures::stream::iter((0..3).map(|_| Ok::<_, std::io::Error>("x".repeat(500))));
    let request = Request::put("/stock").header("content-type", "application/json");
    let request = request.body(Body::from_stream(chunks)).expect("a request");
    let untold = Answer::of(service.clone().oneshot(request).await.expect("infallible")).await;
    assert_eq!(untold.status, 413);
    let small = ask(&service, r#"PUT /stock {"count":1}"#).await;
    assert_eq!(small.status, 503, "a small one gets as far as the servers that are not there");
}

#[tokio::test]
async fn requests_over_the_limit_get_the_words_of_the_course() {
    let service = service(&[]);
    let (mut through, mut refused) = (0, 0);
    for _ in 0..200 {
        let answer = read(&service, "/seckill/limited", &[]).await;
        match (answer.status, answer.body.as_str(), answer.header("retry-after")) {
            (200, "拿到令牌，进入秒杀", "") => through += 1,
            (429, "很遗憾，没抢到", "1") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(through >= 10 && refused > 0, "{through} were let through, {refused} were not");
    let lone = read(&service, "/nginx/leaky/queued", &[JSON]).await;
    assert_eq!(lone.problem(), (404, "only-at-nginx".to_owned()));
}

/// A load on another machine judges by these times who was inside at once.
#[tokio::test]
async fn an_admitted_request_says_when_it_came_and_left() {
    let now = || chrono::Utc::now().timestamp_millis();
    let before = now();
    let answer = read(&service(&[]), "/seckill/unlimited?hold_ms=20", &[JSON]).await;
    let at = |key: &str| answer.json()[key].as_i64().expect("a time");
    let (came, left) = (at("came_ms"), at("left_ms"));
    assert!(before <= came && came + 20 <= left && left <= now());
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let service = service(&[("server.header_timeout_ms", "5")]);
    let request = Request::put("/stock").header("content-type", "application/json");
    let endless = futures::stream::pending::<std::io::Result<String>>();
    let request = request.body(Body::from_stream(endless)).expect("a request");
    let answer = Answer::of(service.oneshot(request).await.expect("infallible")).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
}

#[tokio::test]
async fn a_panic_is_500_and_the_next_request_is_served() {
    let boom = get(async || -> () { panic!("inner detail") });
    let service = lone(&[], "/boom", boom);
    for _ in 0..2 {
        let answer = read(&service, "/boom", &[JSON]).await;
        assert_eq!((answer.status, answer.json()["outcome"].as_str()), (500, Some("unknown")));
        assert!(!answer.body.contains("inner"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_request_that_times_out_has_an_unknown_outcome() {
    let limit = [("server.request_timeout_ms", "5")];
    let service = lone(&limit, "/slow", get(pending::<()>));
    let answer = read(&service, "/slow", &[JSON]).await;
    assert_eq!((answer.status, answer.json()["outcome"].as_str()), (503, Some("unknown")));
}

#[tokio::test]
async fn one_client_leaves_room_for_the_others() {
    let app = app(&[("server.concurrency", "8")]);
    let entered = Arc::new(tokio::sync::Semaphore::new(0));
    let inside = Arc::clone(&entered);
    let slow = get(async move || {
        inside.add_permits(1);
        pending::<()>().await;
    });
    let routes = Router::new().route("/slow", slow).route("/fast", get(()));
    let service = with_middleware(&app, routes, Router::new());
    // The last address is the proxy's; those before it are the client's own words.
    let of = |address: &str| [("x-forwarded-for", format!("9.9.9.9, {address}"))];
    let start = |path: &'static str, address: &str| {
        let (service, [(name, value)]) = (service.clone(), of(address));
        tokio::spawn(async move { read(&service, path, &[(name, &value), JSON]).await })
    };
    let waiting = [start("/slow", "10.0.0.7"), start("/slow", "10.0.0.7")];
    entered.acquire_many(2).await.expect("open").forget();
    let refused = start("/fast", "10.0.0.7").await.expect("an answer");
    assert_eq!((refused.problem(), refused.header("retry-after")), ((429, "too-many".into()), "1"));
    assert!(refused.body.contains("requests of one address"), "{}", refused.body);
    assert_eq!(start("/fast", "10.0.0.8").await.expect("an answer").status, 200);
    // A load from this machine may take all.
    let loads: Vec<_> = (0..5).map(|_| start("/slow", "127.0.0.1")).collect();
    entered.acquire_many(5).await.expect("open").forget();
    assert_eq!(start("/fast", "::ffff:127.0.0.1").await.expect("an answer").status, 200);
    for one in waiting.into_iter().chain(loads) {
        one.abort();
        assert!(one.await.is_err(), "it was under way until now");
    }
    assert_eq!(start("/fast", "10.0.0.7").await.expect("an answer").status, 200);
}

/// A stream is under way until its end, for the bound of its address and for that of all.
#[tokio::test]
async fn streams_have_a_bound_and_begin_with_a_comment() {
    let app = app(&[("server.concurrency", "8")]);
    let service = crate::http::routes::router(&app);
    let watch = async |address: &str| {
        let request = Request::get("/classroom/events?own=true").header("x-forwarded-for", address);
        service.clone().oneshot(request.body(Body::empty()).expect("a request")).await.expect("infallible")
    };
    let mut first = watch("10.0.0.7").await;
    assert_eq!((first.status().as_u16(), first.headers()["x-accel-buffering"].as_bytes()), (200, &b"no"[..]));
    let begins = first.body_mut().frame().await.expect("a frame").expect("no error").into_data().expect("data");
    assert!(begins.starts_with(b":"), "{begins:?}");
    let second = watch("10.0.0.7").await;
    assert_eq!(Answer::of(watch("10.0.0.7").await).await.status, 429, "a third of one address");
    assert_eq!(watch("10.0.0.8").await.status().as_u16(), 200, "one of another address");
    drop((first, second));
    assert_eq!(watch("10.0.0.7").await.status().as_u16(), 200, "the streams have ended");

    let endless = || sse::stream_response(&app, futures::stream::pending());
    let all: Vec<_> = (0..MAX_STREAMS).map(|_| endless()).collect();
    assert!(all.iter().all(|one| one.extensions().get::<HandlerError>().is_none()));
    assert!(endless().extensions().get::<HandlerError>().is_some(), "one more");
    drop(all);
    assert!(endless().extensions().get::<HandlerError>().is_none());
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
    let routes = Router::new().route("/slow", slow).route("/fast", get(()));
    let service = with_middleware(&app, routes, Router::new().route("/health/live", get(())));
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
