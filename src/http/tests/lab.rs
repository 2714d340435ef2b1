//! `/lab` of an instance that no lab has started, and of one whose lab does not answer.

use super::{JSON, ask, read, send, service};

const PAUSE: &str = r#"{"action":"pause","member":"8100"}"#;

#[tokio::test]
async fn without_a_lab_nothing_can_be_broken() {
    let service = service(&[]);
    let lab = read(&service, "/lab", &[]).await.json();
    let members = lab["members"].as_array().map(Vec::len);
    assert_eq!((&lab["owned"], members), (&false.into(), Some(0)));
    let why = lab["why"]["zh"].as_str().unwrap_or_default();
    assert!(why.contains("docker compose pause"), "{lab}");
    let refused = ask(&service, &format!("POST /lab/faults {PAUSE}")).await;
    assert_eq!(refused.problem(), (403, "no-lab".to_owned()), "{}", refused.body);
}

#[tokio::test]
async fn a_fault_needs_the_admin_token_and_a_page_of_this_host() {
    let service = service(&[("admin.token", "s3cret"), ("replays.lab", "http://127.0.0.1:1/fault")]);
    let token = ("authorization", "Bearer s3cret");
    let json = ("content-type", "application/json");
    let other_host = ("sec-fetch-site", "cross-site");
    for (headers, status, kind) in [
        (&[JSON, json][..], 401, "unauthorized"),
        (&[JSON, json, token, other_host], 403, "forbidden"),
        (&[JSON, json, token], 503, "unavailable"),
    ] {
        let answer = send(&service, "POST", "/lab/faults", headers, PAUSE).await;
        assert_eq!(answer.problem(), (status, kind.to_owned()), "{}", answer.body);
        assert_eq!(status == 503, answer.json()["detail"] == "lab is not available");
    }
}
