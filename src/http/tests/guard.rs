//! Who may change something.

use super::{JSON, read, send, send_json, service};

#[tokio::test]
async fn the_stock_and_runs_ask_for_the_token_where_there_is_one() {
    let service = service(&[("admin.token", "s3cret")]);
    for (method, path, body) in [
        ("PUT", "/stock", r#"{"count":1}"#),
        ("POST", "/runs", r#"{"strategy":"none"}"#),
        ("DELETE", "/runs/1", ""),
        ("DELETE", "/stock?stock_id=7", ""),
    ] {
        for wrong in [
            "",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cret2",
            "Basic s3cret",
        ] {
            let answer = send_json(&service, method, path, &[("authorization", wrong)], body).await;
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, "Bearer"),
                "{path} {wrong}"
            );
        }
        for right in ["Bearer s3cret", "bearer s3cret", "BEARER s3cret"] {
            let answer = send_json(&service, method, path, &[("authorization", right)], body).await;
            assert_ne!(answer.status, 401, "{path} {right}");
        }
    }
    let open = send(&service, "GET", "/strategies", &[], "").await;
    assert_eq!(open.status, 200);
}

/// What changes something, and would: the answer where nobody refuses it is not 403.
const WRITES: [(&str, &str, &str); 4] = [
    ("PUT", "/stock", r#"{"count":1}"#),
    ("POST", "/runs", r#"{"strategy":"nope"}"#),
    ("DELETE", "/runs/1", ""),
    ("POST", "/check/lock/none", ""),
];

#[tokio::test]
async fn a_page_of_another_host_may_not_change_anything() {
    let service = service(&[("server.hosts", "shop.example")]);
    let refused: [(&[(&str, &str)], &str); 5] = [
        (
            &[
                ("host", "127.0.0.1:8000"),
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://evil.example"),
            ],
            "Origin",
        ),
        (
            &[
                ("host", "127.0.0.1:8000"),
                ("sec-fetch-site", "same-site"),
                ("origin", "http://127.0.0.1:3000"),
            ],
            "Origin",
        ),
        (&[("host", "127.0.0.1:8000"), ("origin", "null")], "Origin"),
        // Its name was made to point here: to the browser it is one origin, and says so.
        (
            &[
                ("host", "evil.example:8000"),
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example:8000"),
            ],
            "Host",
        ),
        (&[("host", "localhost.evil.example")], "Host"),
    ];
    for (method, path, body) in WRITES {
        for (headers, named) in refused {
            let answer =
                send_json(&service, method, path, &[headers, &[JSON]].concat(), body).await;
            assert_eq!(
                (answer.status, answer.json()["outcome"].as_str()),
                (403, Some("refused")),
                "{path} {headers:?}"
            );
            assert!(
                answer.json()["detail"]
                    .as_str()
                    .is_some_and(|d| d.contains(named)),
                "{headers:?}: {}",
                answer.body
            );
        }
    }
}

#[tokio::test]
async fn the_own_page_a_phone_in_the_room_and_a_client_without_a_browser_may() {
    let service = service(&[
        ("server.hosts", "shop.example"),
        ("cluster.http", "http://nginx"),
        ("cluster.instances", "http://app-8000:8000"),
    ]);
    let page = ("sec-fetch-site", "same-origin");
    let passed: [&[(&str, &str)]; 9] = [
        &[],
        &[("host", "127.0.0.1:8000")],
        &[
            ("host", "localhost:8000"),
            page,
            ("origin", "http://localhost:8000"),
        ],
        &[
            ("host", "192.168.1.20:8080"),
            page,
            ("origin", "http://192.168.1.20:8080"),
        ],
        &[
            ("host", "[::1]:8000"),
            page,
            ("origin", "http://[::1]:8000"),
        ],
        &[
            ("host", "Shop.example"),
            page,
            ("origin", "http://shop.example"),
        ],
        &[("host", "nginx")],
        &[("host", "app-8000:8000")],
        // A browser from before Sec-Fetch-Site.
        &[
            ("host", "192.168.1.20:8080"),
            ("origin", "http://192.168.1.20:8080"),
        ],
    ];
    for (method, path, body) in WRITES {
        for headers in passed {
            let answer = send_json(&service, method, path, headers, body).await;
            assert_ne!(answer.status, 403, "{path} {headers:?}");
        }
    }
}

#[tokio::test]
async fn a_route_that_takes_with_get_cannot_be_embedded_but_a_link_to_it_may_be_followed() {
    let service = service(&[]);
    for path in ["/check/lock/none", "/test/zk/barrier/set"] {
        for site in ["cross-site", "same-site"] {
            let image = read(
                &service,
                path,
                &[("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")],
            )
            .await;
            assert_eq!(image.status, 403, "{path} {site}");
            let link = read(
                &service,
                path,
                &[("sec-fetch-site", site), ("sec-fetch-mode", "navigate")],
            )
            .await;
            assert_eq!(
                link.status, 503,
                "{path} {site} gets as far as the servers that are not there"
            );
        }
    }
    let harmless = read(
        &service,
        "/strategies",
        &[
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
        ],
    )
    .await;
    assert_eq!(harmless.status, 200);
}

#[tokio::test]
async fn no_other_origin_may_read_an_answer() {
    let service = service(&[]);
    let asked = [
        ("origin", "http://evil.example"),
        ("access-control-request-method", "PUT"),
    ];
    let preflight = send(&service, "OPTIONS", "/stock", &asked, "").await;
    assert_eq!(
        (
            preflight.status,
            preflight.header("access-control-allow-origin")
        ),
        (405, "")
    );
    let answer = read(&service, "/strategies", &asked[..1]).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, "")
    );
}
