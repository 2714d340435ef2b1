//! The lesson on show, guesses, and typed lines.

use super::{JSON, ask, send, service};
use axum::body::Body;
use http::Request;
use tower::ServiceExt;

#[tokio::test]
async fn only_an_admin_types_lines_and_only_those_of_a_lesson() {
    let json = ("content-type", "application/json");
    let post = async |settings: &[(&str, &str)], path: &str| {
        let service = service(settings);
        send(&service, "POST", &format!("/classroom/lines/{path}"), &[JSON, json], "").await
    };
    let on = ("replays.enabled", "true");
    for (settings, path, status) in [
        (&[][..], "2.4.4.2/1", 403),
        (&[on, ("admin.token", "s3cret")], "2.4.4.2/1", 401),
        (&[on], "2.4.4.2/0", 404),
        (&[on], "2.4.4.2/99", 404),
        (&[on], "9.9/1", 404),
    ] {
        let answer = post(settings, path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    // The output is returned, and that it is not the expected one: there are no servers here.
    let answer = post(&[on], "2.4.4.2/1").await;
    assert_eq!((answer.status, &answer.json()["expected"]), (200, &false.into()));
    assert!(answer.json()["printed"].as_str().is_some_and(|printed| !printed.is_empty()));
}

#[tokio::test]
async fn guesses_and_the_lesson_on_show_must_name_a_known_lesson() {
    let service = service(&[]);
    for (request, status) in [
        (r#"PUT /classroom/lesson {"lesson":"1.3"}"#, 204),
        (r#"PUT /classroom/lesson {"lesson":"9.9"}"#, 400),
        (r#"POST /classroom/guesses {"lesson":"1.3","who":"小明","guess":4998}"#, 204),
        (r#"POST /classroom/guesses {"lesson":"1.3","who":"","guess":4998}"#, 400),
        (r#"POST /classroom/guesses {"lesson":"1.3","who":"小明","guess":-1}"#, 400),
    ] {
        let answer = ask(&service, request).await;
        // A wrong form is 422, a wrong meaning 400.
        let told = if answer.status == 422 { 400 } else { answer.status };
        assert_eq!(told, status, "{request}: {}", answer.body);
    }
}

/// A student is shown to whoever has the token, and moves nobody without it.
#[tokio::test]
async fn only_the_teacher_has_the_desk() {
    let service = service(&[("admin.token", "s3cret")]);
    let here = r#"PUT /classroom/presence x-visitor:0123456789abcdef {"lesson":"2.3","who":"小明"}"#;
    assert_eq!(ask(&service, here).await.json(), serde_json::json!({"call": null}));
    for (request, status) in
        [("GET /classroom/desk", 200), (r#"PUT /classroom/desk {"lesson":"2.1"}"#, 204), ("DELETE /classroom/desk/queue", 200)]
    {
        let stranger = ask(&service, request).await;
        assert_eq!(stranger.status, 401, "{request}: {}", stranger.body);
        let mut words = request.splitn(3, ' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let headers = [JSON, ("content-type", "application/json"), ("authorization", "Bearer s3cret")];
        let answer = send(&service, method, path, &headers, words.next().unwrap_or_default()).await;
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
        if method == "GET" {
            let visitors = &answer.json()["visitors"];
            assert_eq!(*visitors, serde_json::json!([{"number": 1, "who": "小明", "lesson": "2.3", "own": false, "races": []}]));
        }
    }
    let heard = ask(&service, here).await.json();
    assert_eq!((&heard["call"]["lesson"], &heard["call"]["replays"]), (&"2.1".into(), &serde_json::json!([])));
    for (request, status) in [
        (r#"PUT /classroom/presence {"lesson":"9.9"}"#, 404),
        (r#"PUT /classroom/presence {"lesson":"2.3","who":""}"#, 400),
        (r#"PUT /classroom/presence {"lesson":"2.3","at":1}"#, 400),
    ] {
        let answer = ask(&service, request).await;
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
    }
}

/// Each watcher of the class has a stream, and a place in an instance; those that other instances follow are counted apart.
#[tokio::test]
async fn watchers_beyond_the_places_are_refused() {
    let service = service(&[]);
    let watch = async |query: &str| {
        let request = Request::get(format!("/classroom/events{query}"));
        let request = request.body(Body::empty()).expect("a request");
        service.clone().oneshot(request).await.expect("infallible")
    };
    let mut watchers = Vec::new();
    for n in 0..300 {
        let watcher = watch("").await;
        assert_eq!(watcher.status(), 200, "{n}");
        watchers.push(watcher);
    }
    assert_eq!(watch("").await.status(), 503);
    assert_eq!(watch("?own=true").await.status(), 200);
    watchers.pop();
    assert_eq!(watch("").await.status(), 200, "a place is free again");
}
