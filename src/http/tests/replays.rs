//! `/replays`: what is refused, and what an instance without replays says.

use super::{ask, read, service, table};

/// A request to play, with an invalid field.
const WRONG_SPECS: &str = r#"
{"act":"none","stock_id":2.5,"wait_ms":0,"linger_ms":0,"stops":[]} | spec.stock_id
{"act":"none","stock_id":1,"wait_ms":0,"linger_ms":0,"stops":[]} | spec.stock_id
{"act":"none","stock_id":2,"wait_ms":600001,"linger_ms":0,"stops":[]} | spec.wait_ms
{"act":"none","stock_id":2,"wait_ms":0,"lease_ms":99,"linger_ms":0,"stops":[]} | spec.lease_ms
{"act":"none","stock_id":2,"wait_ms":0,"linger_ms":5001,"stops":[]} | spec.linger_ms
"#;

const ID: &str = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b";

#[tokio::test]
async fn replays_are_refused_where_they_are_not_enabled() {
    let service = service(&[]);
    let list = read(&service, "/replays", &[]).await.json();
    assert_eq!(list["enabled"], false);
    let why = list["replays"][0]["cannot"]["en"].as_str().unwrap_or_default();
    assert!(why.contains("replays.enabled"), "{list}");
    // `2.0` is a whole number of JSON.
    let actors = ["2", "2.0"].map(|n| {
        format!(
            r#"POST /replays/actors {{"id":"{ID}","spec":{{"act":"none","stock_id":{n},"wait_ms":{n},"linger_ms":{n},"stops":[]}}}}"#
        )
    });
    let scripts = r#"PUT /mine {"acquire":"return 1","release":"return 1"}"#;
    let mine = ["GET /mine", scripts, "POST /mine/grade", "GET /check/lock/mine"];
    let actors = actors.iter().map(String::as_str);
    for request in ["POST /replays/1.1"].into_iter().chain(actors).chain(mine) {
        let answer = ask(&service, request).await;
        assert_eq!(answer.status, 403, "{request}: {}", answer.body);
        assert!(answer.body.contains("replays.enabled"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_lessons_own_replay_is_listed_alone() {
    let service = service(&[]);
    let lessons = async |query: &str| {
        let list = read(&service, &format!("/replays{query}"), &[]).await.json();
        let replays = list["replays"].as_array().cloned().unwrap_or_default();
        let lessons = replays.iter().map(|replay| replay["lesson"].as_str());
        lessons.map(|id| id.unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lessons("?lesson=2.3").await, ["2.3"]);
    assert_eq!(lessons("?lesson=9.9").await, [""; 0]);
    assert!(lessons("").await.len() > 40);
}

#[tokio::test]
async fn unknown_replays_and_wrong_options_are_refused_by_name() {
    let service = service(&[("replays.enabled", "true")]);
    for (request, status) in [
        ("POST /replays/9.9", 404),
        ("POST /replays/1.1?pace=quick", 400),
        ("POST /replays/1.1?cured=perhaps", 400),
        ("POST /replays/1.1?step=1", 400),
        ("POST /replays/none/step", 404),
        ("POST /replays/none/next?actor=A", 404),
        ("POST /replays/none/next?actor=D", 400),
        ("POST /replays/2.10.5?pace=scheduler", 400),
        ("POST /replays/1.1?pace=timed", 400),
        ("POST /replays/2.3?pace=slow&lease_ms=300", 400),
        ("POST /replays/2.3?pace=timed&lease_ms=99", 400),
        ("POST /replays/2.3?pace=timed&at=sold", 400),
        ("DELETE /replays/none", 404),
        ("GET /replays/none/events", 404),
    ] {
        let answer = ask(&service, request).await;
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
        assert_eq!(answer.json()["outcome"], "refused", "{request}");
    }
    for (request, server) in [("POST /replays/1.1", "mysql"), ("POST /replays/2.2", "redis")] {
        let answer = ask(&service, request).await;
        let told = (answer.status, answer.json()["detail"].clone());
        assert_eq!(told, (503, format!("{server} is not available").into()), "{request}");
    }
    let list = read(&service, "/replays", &[]).await.json();
    assert_eq!(list["playing"], serde_json::json!([]), "{list}");
    for (spec, field) in table(WRONG_SPECS) {
        let request = format!(r#"POST /replays/actors {{"id":"{ID}","spec":{spec}}}"#);
        ask(&service, &request).await.assert_refuses(field, "");
    }
    let nobody = ask(&service, &format!(r#"PUT /replays/actors/{ID} {{"stops":[]}}"#)).await;
    assert_eq!(nobody.status, 404, "{}", nobody.body);
}
