//! What is answered in which form, and the page.

use super::{JSON, read, send, service};
use crate::{error::Error, http::problem::Problem, seckill, stock};
use http::StatusCode;
use parking_lot::Mutex;
use std::{
    io::{self, Write},
    sync::Arc,
};
use tracing::subscriber::DefaultGuard;

#[tokio::test]
async fn an_unknown_strategy_is_answered_with_those_that_exist() {
    let service = service(&[]);
    for path in [
        "/check/lock/nope",
        "/strategies/nope/source",
        "/strategies/nope/text",
    ] {
        let json = read(&service, path, &[JSON]).await;
        assert_eq!(json.status, 404);
        assert_eq!(json.header("content-type"), "application/problem+json");
        let listed = json.json()["strategies"].as_array().map(Vec::len);
        assert_eq!(listed, Some(stock::ALL.len()));
        let text = read(&service, path, &[]).await;
        assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
        assert!(
            stock::ALL.iter().all(|s| text.body.contains(s.slug)),
            "{}",
            text.body
        );
    }
}

#[tokio::test]
async fn an_unknown_step_is_answered_with_those_that_exist() {
    let service = service(&[]);
    let user = ("x-user-id", "1");
    for (method, path) in [
        ("POST", "/voucher-order/seckill/7?strategy=nope"),
        ("GET", "/voucher-order/strategies/nope/source"),
        ("GET", "/voucher-order/strategies/nope/text"),
    ] {
        let json = send(&service, method, path, &[JSON, user], "").await;
        assert_eq!(json.status, 404);
        assert_eq!(
            json.json()["strategies"].as_array().map(Vec::len),
            Some(seckill::ALL.len())
        );
        let text = send(&service, method, path, &[user], "").await;
        assert!(
            seckill::ALL.iter().all(|s| text.body.contains(s.slug)),
            "{}",
            text.body
        );
    }
    let listed = read(&service, "/voucher-order/strategies", &[])
        .await
        .json();
    for (step, listed) in seckill::ALL.iter().zip(listed.as_array().expect("a list")) {
        assert_eq!(listed["slug"], step.slug);
        assert_eq!(
            read(
                &service,
                &format!("/voucher-order/strategies/{}/source", step.slug),
                &[]
            )
            .await
            .body,
            step.source
        );
    }
    assert!(seckill::find(seckill::DEFAULT).is_some());
}

#[test]
fn a_seckill_refuses_in_the_words_of_the_course() {
    for (error, words) in [
        (Error::NotStarted, "秒杀尚未开始!"),
        (Error::Over, "秒杀已经结束!"),
        (Error::SoldOut, "库存不足！"),
        (Error::AlreadyOrdered, "用户已经购买过一次!"),
        (Error::OrderUnderWay, "不允许重复下单"),
    ] {
        let problem = Problem::from(&error);
        assert_eq!(
            (problem.code(), problem.text().as_str()),
            (StatusCode::CONFLICT, words)
        );
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
        assert_eq!(
            text.header("content-type"),
            "text/plain; charset=utf-8",
            "{path}"
        );
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
    assert_eq!(
        (
            known.header("x-request-id"),
            known.json()["request_id"].as_str()
        ),
        ("abc-1", Some("abc-1"))
    );
    let odd = read(&service, "/nope", &[("x-request-id", "a b\"c")]).await;
    assert_eq!(odd.header("x-request-id").len(), 16);
}

#[tokio::test]
async fn the_page_comes_with_a_strict_policy_and_is_sent_once() {
    let service = service(&[]);
    let page = read(&service, "/", &[]).await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let etag = page.header("etag");
    for known in [etag.to_owned(), format!("\"x\", W/{etag}"), "*".to_owned()] {
        let again = read(&service, "/", &[("if-none-match", &known)]).await;
        assert_eq!(
            (again.status, again.body.as_str(), again.header("etag")),
            (304, "", etag),
            "{known}"
        );
    }
    assert_eq!(
        read(&service, "/", &[("if-none-match", "\"other\"")])
            .await
            .status,
        200
    );
    let docs = read(&service, "/docs/", &[]).await;
    assert_eq!(docs.status, 200);
    assert!(
        docs.header("content-security-policy")
            .contains("script-src 'self';")
    );
}

#[tokio::test]
async fn readiness_names_who_waits_for_what() {
    let answer = read(&service(&[]), "/health/ready", &[]).await;
    assert_eq!(answer.status, 503);
    let json = answer.json();
    assert_eq!(json["servers"]["mysql"]["up"], false);
    assert_eq!(
        json["waiting"].as_array().map(Vec::len),
        Some(stock::ALL.len())
    );
    assert!(json.get("instances").is_none());
    assert_eq!(
        read(&service(&[]), "/health/ready?instances=maybe", &[])
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn every_strategy_is_listed_with_its_source_and_its_figures() {
    let service = service(&[]);
    let listed = read(&service, "/strategies", &[]).await.json();
    let metrics = read(&service, "/metrics", &[]).await.body;
    for (place, strategy) in stock::ALL.iter().enumerate() {
        assert_eq!(listed[place]["slug"], strategy.slug);
        let source = read(
            &service,
            &format!("/strategies/{}/source", strategy.slug),
            &[],
        )
        .await;
        assert_eq!(
            (source.status, source.body.as_str()),
            (200, strategy.source)
        );
        let text = read(
            &service,
            &format!("/strategies/{}/text", strategy.slug),
            &[],
        )
        .await;
        assert_eq!(text.status, 200);
        assert_eq!(text.json()["en"]["survives"], strategy.text.en.survives);
        assert!(metrics.contains(&format!(
            "oversell_waiters{{strategy=\"{}\"}} 0",
            strategy.slug
        )));
    }
}

#[tokio::test]
async fn a_failed_request_is_counted_and_waits_no_more() {
    let service = service(&[]);
    assert_eq!(read(&service, "/check/lock/none", &[]).await.status, 503);
    let metrics = read(&service, "/metrics", &[]).await.body;
    assert!(
        metrics.contains("oversell_errors_total{strategy=\"none\",kind=\"unavailable\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("oversell_waiters{strategy=\"none\"} 0"));
}

#[tokio::test]
async fn no_run_yet_is_204_and_an_unknown_one_404() {
    let service = service(&[]);
    assert_eq!(
        read(&service, "/runs/current", &[]).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(read(&service, "/runs/7/events", &[]).await.status, 404);
    assert_eq!(
        send(&service, "DELETE", "/runs/7", &[], "").await.status,
        404
    );
}

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn listen() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock())
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_logged_while_a_request_is_handled_names_the_request() {
    let app = super::app(&[]);
    let noisy = axum::routing::get(async || tracing::warn!("the lock was not released cleanly"));
    let service = crate::http::middleware::surround(
        &app,
        axum::Router::new().route("/noisy", noisy),
        axum::Router::new(),
    );
    let (log, _listening) = Log::listen();
    read(&service, "/noisy", &[("x-request-id", "abc-1")]).await;
    let lines = log.lines();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("not released cleanly") && line.contains("abc-1")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn an_overload_logs_one_line_and_not_one_for_each_request() {
    let service = service(&[]);
    let (log, _listening) = Log::listen();
    let started = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(read(&service, "/check/lock/none", &[]).await.status, 503);
    }
    let failed = log
        .lines()
        .iter()
        .filter(|line| line.contains("request failed"))
        .count();
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap_or(usize::MAX);
    assert!(
        (1..=1 + seconds).contains(&failed),
        "{failed} lines in {seconds} s"
    );
}

#[tokio::test]
async fn a_lease_that_nobody_renews_is_told() {
    let all = read(&service(&[("lock.lease_ms", "7000")]), "/strategies", &[])
        .await
        .json();
    let lease = |slug| {
        let of = all
            .as_array()
            .expect("a list")
            .iter()
            .find(|strategy| strategy["slug"] == slug);
        of.expect("a strategy")["lease_ms"].as_u64()
    };
    assert_eq!(
        ["redis-setnx-ttl", "redis-setnx-owner", "redis-setnx-lua"].map(lease),
        [Some(3000); 3]
    );
    assert_eq!(lease("redis-reentrant"), Some(7000));
    assert_eq!(
        [
            "none",
            "redis-setnx",
            "redis-watchdog",
            "redis-lock",
            "zk-lock"
        ]
        .map(lease),
        [None; 5]
    );
}

#[tokio::test]
async fn the_readmes_that_the_page_leads_to_are_there_and_no_other_file_of_the_project_is() {
    let service = service(&[]);
    for (path, status) in [
        ("/README.md", 200),
        ("/README.zh-CN.md", 200),
        ("/Cargo.toml", 404),
    ] {
        assert_eq!(
            send(&service, "GET", path, &[], "").await.status,
            status,
            "{path}"
        );
    }
}
