//! The form of answers, and the page.

use super::{JSON, ask, lone, read, service};
use crate::{console::Log, seckill, stock};

#[tokio::test]
async fn an_unknown_name_is_answered_with_those_that_exist() {
    let service = service(&[]);
    let strategies: Vec<_> = stock::ALL.iter().map(|strategy| strategy.slug).collect();
    let steps: Vec<_> = seckill::ALL.iter().map(|step| step.slug).collect();
    let order = "POST /voucher-order/seckill/7?strategy=nope x-user-id:1";
    for (request, names) in [
        ("GET /check/lock/nope", &strategies),
        ("GET /strategies/nope/source", &strategies),
        ("GET /strategies/nope/text", &strategies),
        (order, &steps),
        ("GET /voucher-order/strategies/nope/source", &steps),
        ("GET /voucher-order/strategies/nope/text", &steps),
    ] {
        let json = ask(&service, request).await;
        let told = (json.status, json.header("content-type"));
        assert_eq!(told, (404, "application/problem+json"), "{request}");
        assert_eq!(json.json()["strategies"], serde_json::json!(names), "{request}");
        let text = ask(&service, &format!("{request} accept:text/plain")).await;
        assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
        assert!(names.iter().all(|name| text.body.contains(name)), "{}", text.body);
    }
}

#[tokio::test]
async fn a_path_without_its_number_is_told_what_must_stand_there() {
    let service = service(&[]);
    for (request, value) in [("GET /voucher//check", r#""""#), ("GET /voucher/abc/check", r#""abc""#)] {
        let answer = ask(&service, request).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        let rule = format!("{value} stands where a whole number must be");
        let problem = answer.json().to_string();
        let said = problem.replace(r#"\""#, "\"");
        assert!(said.contains(&rule), "{said}");
    }
}

/// Each with its source; a strategy with its figures, too.
#[tokio::test]
async fn every_strategy_and_every_step_is_listed_with_its_source() {
    let service = service(&[]);
    let strategies = stock::ALL.iter().map(|strategy| (strategy.slug, strategy.source, strategy.text.en.survives));
    let steps = seckill::ALL.iter().map(|step| (step.slug, step.source, step.text.en.survives));
    for (registry, all) in [("/strategies", strategies.collect::<Vec<_>>()), ("/voucher-order/strategies", steps.collect())] {
        let listed = read(&service, registry, &[]).await.json();
        for (place, (slug, source, survives)) in all.into_iter().enumerate() {
            assert_eq!(listed[place]["slug"], slug);
            let shown = read(&service, &format!("{registry}/{slug}/source"), &[]).await;
            assert_eq!((shown.status, shown.body.as_str()), (200, source));
            let text = read(&service, &format!("{registry}/{slug}/text"), &[]).await;
            assert_eq!(text.json()["en"]["survives"], survives);
        }
    }
    assert!(seckill::find(seckill::DEFAULT).is_some());
}

#[tokio::test]
async fn unknown_paths_and_methods_follow_the_accept_header() {
    let service = service(&[]);
    for (request, status) in [
        ("GET /nope", 404),
        ("GET /docs/nope", 404),
        ("GET /%ff", 404),
        ("DELETE /check/lock", 405),
        ("POST /health/live", 405),
        ("POST /", 405),
    ] {
        let json = ask(&service, request).await;
        assert_eq!((json.status, &json.json()["status"]), (status, &status.into()));
        assert_eq!(json.header("allow").is_empty(), status == 404, "{request}");
        let text = ask(&service, &format!("{request} accept:text/plain")).await;
        assert_eq!(text.header("content-type"), "text/plain; charset=utf-8", "{request}");
    }
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
async fn the_pages_come_with_a_strict_policy() {
    let service = service(&[]);
    // The documentation of the API styles itself.
    for (path, unsafe_style) in [("/", false), ("/docs/", true)] {
        let page = read(&service, path, &[]).await;
        assert!(page.status == 200 && page.header("content-type").starts_with("text/html"), "{path}");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{path}: {policy}");
        assert_eq!(policy.contains("unsafe"), unsafe_style, "{path}: {policy}");
    }
}

#[tokio::test]
async fn readiness_names_who_waits_for_what() {
    let answer = read(&service(&[]), "/health/ready", &[]).await;
    assert_eq!(answer.status, 503);
    let json = answer.json();
    assert_eq!(json["servers"]["mysql"]["up"], false);
    assert_eq!(json["waiting"].as_array().map(Vec::len), Some(stock::ALL.len()));
    assert!(json.get("instances").is_none());
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
async fn log_lines_of_a_request_carry_its_id() {
    let noisy = axum::routing::get(async || tracing::warn!("the lock was not released cleanly"));
    let service = lone(&[], "/noisy", noisy);
    let (log, _listening) = Log::listen();
    read(&service, "/noisy", &[("x-request-id", "abc-1")]).await;
    assert_eq!(log.count(&["not released cleanly", "abc-1"]), 1);
}

#[tokio::test]
async fn an_overload_logs_one_line_and_not_one_for_each_request() {
    let service = service(&[]);
    let (log, _listening) = Log::listen();
    let started = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(read(&service, "/check/lock/none", &[]).await.status, 503);
    }
    let failed = log.count(&["request failed"]);
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap_or(usize::MAX);
    assert!((1..=1 + seconds).contains(&failed), "{failed} lines in {seconds} s");
}

#[tokio::test]
async fn a_lease_that_nobody_renews_is_told() {
    let service = service(&[("lock.lease_ms", "7000")]);
    let all = read(&service, "/strategies", &[]).await.json();
    for (slug, lease_ms) in [
        ("redis-setnx-ttl", Some(3000)),
        ("redis-setnx-owner", Some(3000)),
        ("redis-setnx-lua", Some(3000)),
        ("redis-reentrant", Some(7000)),
        ("none", None),
        ("redis-setnx", None),
        ("redis-watchdog", None),
        ("redis-lock", None),
        ("zk-lock", None),
    ] {
        let mut all = all.as_array().expect("a list").iter();
        let strategy = all.find(|strategy| strategy["slug"] == slug);
        let told = &strategy.expect("a strategy")["lease_ms"];
        assert_eq!(told.as_u64(), lease_ms, "{slug}");
    }
}
