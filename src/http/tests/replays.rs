//! `/replays`: what is refused, and what an instance without replays says.

use super::{JSON, read, send, send_json, service};

#[tokio::test]
async fn replays_are_refused_where_they_are_not_enabled() {
    let service = service(&[]);
    let list = read(&service, "/replays", &[]).await.json();
    assert_eq!(list["enabled"], false);
    assert!(
        list["replays"][0]["cannot"]["en"]
            .as_str()
            .is_some_and(|why| why.contains("replays.enabled")),
        "{list}"
    );
    let part = r#"{"id":"6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b","part":{"act":"none","stock_id":2,"wait_ms":0,"linger_ms":0,"stops":[]}}"#;
    for (path, body) in [("/replays/1.3", ""), ("/replays/actors", part)] {
        let answer = send_json(&service, "POST", path, &[JSON], body).await;
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
        assert!(answer.body.contains("replays.enabled"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_replay_that_is_not_there_or_is_asked_for_wrongly_is_refused_by_field_and_rule() {
    let service = service(&[("replays.enabled", "true")]);
    for (method, path, status) in [
        ("POST", "/replays/9.9", 404),
        ("POST", "/replays/1.3?pace=quick", 400),
        ("POST", "/replays/1.3?cured=perhaps", 400),
        ("POST", "/replays/1.3?step=1", 400),
        ("POST", "/replays/none/step", 404),
        ("DELETE", "/replays/none", 404),
        ("GET", "/replays/none/events", 404),
    ] {
        let answer = send(&service, method, path, &[JSON], "").await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(answer.json()["outcome"], "refused", "{path}");
    }
    for (path, server) in [("/replays/1.3", "mysql"), ("/replays/2.2", "redis")] {
        let answer = send(&service, "POST", path, &[JSON], "").await;
        assert_eq!(
            answer.status, 503,
            "{path}, of which a server is down: {}",
            answer.body
        );
        assert!(
            answer.body.contains(&format!("{server} is not available")),
            "{path}: {}",
            answer.body
        );
    }
    assert_eq!(
        read(&service, "/replays", &[]).await.json()["playing"],
        serde_json::Value::Null
    );
    let id = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b";
    let part = |part: &str| format!(r#"{{"id":"{id}","part":{part}}}"#);
    for (part, field) in [
        (
            r#"{"act":"none","stock_id":1,"wait_ms":0,"linger_ms":0,"stops":[]}"#,
            "part.stock_id",
        ),
        (
            r#"{"act":"none","stock_id":2,"wait_ms":600001,"linger_ms":0,"stops":[]}"#,
            "part.wait_ms",
        ),
        (
            r#"{"act":"none","stock_id":2,"wait_ms":0,"lease_ms":99,"linger_ms":0,"stops":[]}"#,
            "part.lease_ms",
        ),
        (
            r#"{"act":"none","stock_id":2,"wait_ms":0,"linger_ms":5001,"stops":[]}"#,
            "part.linger_ms",
        ),
    ]
    .map(|(json, field)| (part(json), field))
    {
        let answer = send_json(&service, "POST", "/replays/actors", &[JSON], &part).await;
        assert_eq!(
            (answer.status, answer.json()["field"].as_str()),
            (400, Some(field)),
            "{}",
            answer.body
        );
    }
    let nobody = send_json(
        &service,
        "PUT",
        &format!("/replays/actors/{id}"),
        &[JSON],
        r#"{"stops":[]}"#,
    )
    .await;
    assert_eq!(nobody.status, 404, "{}", nobody.body);
}
