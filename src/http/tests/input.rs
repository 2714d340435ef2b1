//! What a client sends wrongly is refused by field and rule.

use super::{JSON, read, send, send_json, service};

#[tokio::test]
async fn a_bad_query_is_refused_by_field_and_rule() {
    let service = service(&[]);
    for (query, field) in [
        ("hold_ms=60001", "hold_ms"),
        ("wait_ms=600001", "wait_ms"),
        ("lease_ms=99", "lease_ms"),
        ("lease_ms=600001", "lease_ms"),
        ("who=", "who"),
        ("who=%0A", "who"),
        ("who=a%1Bb", "who"),
        ("who=123456789012345678901234567890123", "who"),
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
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|d| d.len() > field.len() + 10),
            "{}",
            answer.body
        );
    }
    // A good one gets as far as the servers that are not there; a name is counted in characters.
    let who = "%E5%B0%8F".repeat(32);
    let good = format!("stock_id=7&hold_ms=60000&wait_ms=600000&lease_ms=100&who={who}");
    assert_eq!(
        read(&service, &format!("/check/lock/none?{good}"), &[JSON])
            .await
            .status,
        503
    );
}

#[tokio::test]
async fn a_herd_of_none_or_of_too_many_is_refused_by_field_and_rule() {
    let service = service(&[]);
    for (query, field) in [
        ("waiters=0", "waiters"),
        ("waiters=101", "waiters"),
        ("waiters=many", "waiters"),
        ("hold_ms=1", "hold_ms"),
    ] {
        let answer = read(&service, &format!("/test/zk/herd?{query}"), &[JSON]).await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some(field)),
            "{query}"
        );
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|d| d.contains("100") || field == "hold_ms")
        );
    }
    // A good one gets as far as the server that is not there.
    assert_eq!(
        read(&service, "/test/zk/herd?waiters=100", &[JSON])
            .await
            .status,
        503
    );
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
        ("DELETE", "/stock", "", "stock_id"),
        ("DELETE", "/stock?stock_id=1", "", "stock_id"),
        ("POST", "/runs", "{}", "strategy"),
        (
            "POST",
            "/runs",
            r#"{"strategy":"none","target":"two"}"#,
            "target",
        ),
        (
            "POST",
            "/runs",
            r#"{"strategy":"none","target":"three"}"#,
            "target",
        ),
        (
            "POST",
            "/runs",
            r#"{"strategy":"none","threads":0}"#,
            "threads",
        ),
        (
            "POST",
            "/runs",
            r#"{"strategy":"none","threads":1000,"loops":101}"#,
            "loops",
        ),
        (
            "POST",
            "/runs",
            r#"{"strategy":"none","hold_ms":60001}"#,
            "hold_ms",
        ),
        (
            "POST",
            "/runs",
            r#"{"strategy":"none","count":-1}"#,
            "count",
        ),
        ("POST", "/voucher", "{}", "title"),
        (
            "POST",
            "/voucher",
            &voucher("", "1", TODAY, TOMORROW),
            "title",
        ),
        (
            "POST",
            "/voucher",
            &voucher(&"券".repeat(101), "1", TODAY, TOMORROW),
            "title",
        ),
        (
            "POST",
            "/voucher",
            &voucher("a", "-1", TODAY, TOMORROW),
            "stock",
        ),
        (
            "POST",
            "/voucher",
            &voucher("a", "1", "2026-11-11 00:00:00", TOMORROW),
            "begin",
        ),
        (
            "POST",
            "/voucher",
            &voucher("a", "1", TODAY, "9999-01-01T00:00:00Z"),
            "end",
        ),
        ("POST", "/voucher", &voucher("a", "1", TODAY, TODAY), "end"),
        (
            "POST",
            "/voucher",
            &voucher("a", "1", TODAY, "2026-11-11T00:00:00+08:00"),
            "end",
        ),
        ("GET", "/voucher/x", "", "path"),
        ("POST", "/voucher-order/seckill/x", "", "path"),
    ] {
        let answer = send_json(&service, method, path, &[JSON], body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
}

const TODAY: &str = "2026-11-11T00:00:00Z";
const TOMORROW: &str = "2026-11-12T00:00:00Z";

fn voucher(title: &str, stock: &str, begin: &str, end: &str) -> String {
    format!(r#"{{"title":"{title}","stock":{stock},"begin":"{begin}","end":"{end}"}}"#)
}

#[tokio::test]
async fn who_orders_is_a_whole_number_in_a_header() {
    let service = service(&[]);
    for user in ["", "0", "-1", "1.5", "me", "9223372036854775808", "ü"] {
        let headers = if user.is_empty() {
            vec![JSON]
        } else {
            vec![JSON, ("x-user-id", user)]
        };
        let answer = send(&service, "POST", "/voucher-order/seckill/7", &headers, "").await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some("x-user-id")),
            "{user}"
        );
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|d| d.contains("whole number from 1")),
            "{}",
            answer.body
        );
    }
    for (query, field) in [
        ("hold_ms=60001", "hold_ms"),
        ("wait_ms=600001", "wait_ms"),
        ("lease_ms=99", "lease_ms"),
        ("stock_id=1", "stock_id"),
    ] {
        let path = format!("/voucher-order/seckill/7?{query}");
        let answer = send(&service, "POST", &path, &[JSON, ("x-user-id", "1")], "").await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some(field)),
            "{}",
            answer.body
        );
    }
    // A good one gets as far as the server that is not there.
    let good = send(
        &service,
        "POST",
        "/voucher-order/seckill/7",
        &[("x-user-id", "9223372036854775807")],
        "",
    )
    .await;
    assert_eq!(good.status, 503);
}

#[tokio::test]
async fn a_body_that_is_not_declared_as_json_is_415() {
    let service = service(&[]);
    for (method, path, body) in [
        ("PUT", "/stock", r#"{"count":1}"#),
        ("POST", "/runs", r#"{"strategy":"none"}"#),
        ("POST", "/voucher", &voucher("a", "1", TODAY, TOMORROW)),
    ] {
        for kind in ["text/plain", "application/x-www-form-urlencoded"] {
            let answer = send(
                &service,
                method,
                path,
                &[JSON, ("content-type", kind)],
                body,
            )
            .await;
            assert_eq!(
                (answer.status, answer.json()["outcome"].as_str()),
                (415, Some("refused")),
                "{path} {kind}"
            );
        }
        assert_eq!(
            send(&service, method, path, &[], body).await.status,
            415,
            "{path} without a type"
        );
        let json = send(
            &service,
            method,
            path,
            &[("content-type", "application/json; charset=utf-8")],
            body,
        )
        .await;
        assert_ne!(json.status, 415, "{path}");
    }
}

#[tokio::test]
async fn a_member_of_a_barrier_is_a_uuid_and_a_change_is_one_of_those_that_exist() {
    let service = service(&[]);
    for (path, field) in [
        (
            "/test/zk/double-barrier/leave?members=2&member=../x",
            "member",
        ),
        ("/test/zk/double-barrier/enter", "members"),
        ("/test/zk/double-barrier/enter?members=1001", "members"),
        ("/test/zk/atomic/double", "change"),
        ("/test/zk/atomic/add", "value"),
        ("/test/zk/atomic/add?value=x", "value"),
    ] {
        let answer = read(&service, path, &[JSON]).await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some(field)),
            "{path}: {}",
            answer.body
        );
    }
}

#[tokio::test]
async fn a_prefix_or_a_count_of_ids_that_is_not_one_is_refused_by_field_and_rule() {
    let service = service(&[]);
    let long = format!("/id/{}", "a".repeat(33));
    for (path, field) in [
        (&*long, "prefix"),
        ("/id/Order", "prefix"),
        ("/id/%E8%AE%A2", "prefix"),
        ("/id/a%3Ab", "prefix"),
        ("/id/order?count=0", "count"),
        ("/id/order?count=1001", "count"),
        ("/id/order?n=1", "n"),
    ] {
        let answer = read(&service, path, &[JSON]).await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some(field)),
            "{path}: {}",
            answer.body
        );
    }
    // A good one gets as far as the server that is not there, which is named.
    let answer = read(&service, "/id/seckill_order-2?count=1000", &[JSON]).await;
    assert_eq!(
        (answer.status, answer.json()["title"].as_str()),
        (503, Some("redis 不可用")),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn the_number_of_an_order_is_a_positive_whole_number() {
    let service = service(&[]);
    for number in ["0", "-1", "one", "9223372036854775808"] {
        let answer = read(&service, &format!("/voucher-order/{number}"), &[JSON]).await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some("order_id")),
            "{number}"
        );
    }
    assert_eq!(
        read(&service, "/voucher-order/9223372036854775807", &[JSON])
            .await
            .status,
        503
    );
}
