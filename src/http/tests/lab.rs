//! `/lab` of an instance that no lab has started, and of one whose lab does not answer.

use super::{JSON, read, send_json, service};

#[tokio::test]
async fn without_a_lab_there_is_nothing_to_break_and_an_order_is_refused_in_words() {
    let service = service(&[]);
    let lab = read(&service, "/lab", &[]).await.json();
    assert_eq!(
        (&lab["owned"], lab["members"].as_array().map(Vec::len)),
        (&false.into(), Some(0))
    );
    assert!(
        lab["why"]["zh"]
            .as_str()
            .is_some_and(|why| why.contains("docker compose pause")),
        "{lab}"
    );
    let pause = r#"{"action":"pause","member":"8100"}"#;
    let refused = send_json(&service, "POST", "/lab/faults", &[JSON], pause).await;
    assert_eq!(
        (refused.status, refused.json()["type"].as_str()),
        (403, Some("urn:oversell:no-lab")),
        "{}",
        refused.body
    );
    for (fault, field) in [
        (r#"{"action":"break","member":"8100"}"#, "action"),
        (r#"{"action":"pause"}"#, "member"),
        (r#"{"action":"slow","member":"redis","by_ms":0}"#, "by_ms"),
    ] {
        let refused = send_json(&service, "POST", "/lab/faults", &[JSON], fault).await;
        assert_eq!(
            (refused.status, refused.json()["field"].as_str()),
            (400, Some(field)),
            "{}",
            refused.body
        );
    }
}

#[tokio::test]
async fn an_order_needs_the_admin_token_and_comes_from_no_page_of_another_host() {
    let service = service(&[
        ("admin.token", "s3cret"),
        ("replays.lab", "http://127.0.0.1:1/fault"),
    ]);
    let pause = r#"{"action":"pause","member":"8100"}"#;
    assert_eq!(
        send_json(&service, "POST", "/lab/faults", &[JSON], pause)
            .await
            .status,
        401
    );
    let token = ("authorization", "Bearer s3cret");
    let evil = send_json(
        &service,
        "POST",
        "/lab/faults",
        &[JSON, token, ("sec-fetch-site", "cross-site")],
        pause,
    )
    .await;
    assert_eq!(
        (evil.status, evil.json()["type"].as_str()),
        (403, Some("urn:oversell:forbidden")),
        "{}",
        evil.body
    );
    let unreached = send_json(&service, "POST", "/lab/faults", &[JSON, token], pause).await;
    assert_eq!(
        (unreached.status, unreached.json()["detail"].as_str()),
        (503, Some("lab is not available"))
    );
}
