//! Who may change something.

use super::{ask, read, send, service, table};

#[tokio::test]
async fn what_an_administrator_does_asks_for_the_token_where_there_is_one() {
    let service = service(&[("admin.token", "s3cret")]);
    for request in [
        r#"PUT /stock {"count":1}"#,
        "DELETE /stock?stock_id=7",
        r#"POST /runs {"strategy":"none"}"#,
        "DELETE /runs/1",
        "POST /voucher {}",
        "DELETE /voucher/7",
    ] {
        let (operation, body) = request.split_once(" {").unwrap_or((request, "}"));
        let (method, path) = operation.split_once(' ').expect("a method and a path");
        let body = format!("{{{body}");
        let with = async |token: &str| {
            let headers = [
                ("authorization", token),
                ("content-type", "application/json"),
            ];
            send(&service, method, path, &headers, &body).await
        };
        for wrong in [
            "",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cret2",
            "Basic s3cret",
        ] {
            let answer = with(wrong).await;
            let told = (answer.status, answer.header("www-authenticate"));
            assert_eq!(told, (401, "Bearer"), "{request} {wrong}");
        }
        for right in ["Bearer s3cret", "bearer s3cret", "BEARER s3cret"] {
            assert_ne!(with(right).await.status, 401, "{request} {right}");
        }
    }
    assert_eq!(read(&service, "/strategies", &[]).await.status, 200);
}

/// What changes something, and would: the answer where nobody refuses it is not 403.
const WRITES: [(&str, &str); 4] = [
    ("PUT /stock", r#"{"count":1}"#),
    ("POST /runs", r#"{"strategy":"nope"}"#),
    ("DELETE /runs/1", ""),
    ("POST /check/lock/none", ""),
];

/// Pages that are refused, and the header that gives them away.
const REFUSED: &str = "
host:127.0.0.1:8000 sec-fetch-site:cross-site origin:http://evil.example | Origin
host:127.0.0.1:8000 sec-fetch-site:same-site origin:http://127.0.0.1:3000 | Origin
host:127.0.0.1:8000 origin:null | Origin
host:evil.example:8000 sec-fetch-site:same-origin origin:http://evil.example:8000 | Host
host:localhost.evil.example | Host
";

/// The own page, a phone in the room, a client without a browser, and a browser from before Sec-Fetch-Site.
const PASSED: [&str; 9] = [
    "",
    "host:127.0.0.1:8000",
    "host:localhost:8000 sec-fetch-site:same-origin origin:http://localhost:8000",
    "host:192.168.1.20:8080 sec-fetch-site:same-origin origin:http://192.168.1.20:8080",
    "host:[::1]:8000 sec-fetch-site:same-origin origin:http://[::1]:8000",
    "host:Shop.example sec-fetch-site:same-origin origin:http://shop.example",
    "host:nginx",
    "host:app-8000:8000",
    "host:192.168.1.20:8080 origin:http://192.168.1.20:8080",
];

/// A page whose name was made to point here is of one origin for its browser, which says so: its host gives it away.
#[tokio::test]
async fn a_page_of_another_host_may_not_change_anything_and_the_own_page_may() {
    let service = service(&[
        ("server.hosts", "shop.example"),
        ("cluster.http", "http://nginx"),
        ("cluster.instances", "http://app-8000:8000"),
    ]);
    for (operation, body) in WRITES {
        for (headers, named) in table(REFUSED) {
            let answer = ask(&service, &format!("{operation} {headers} {body}")).await;
            assert_eq!(
                answer.problem(),
                (403, "forbidden".to_owned()),
                "{operation} {headers}"
            );
            let json = answer.json();
            let detail = json["detail"].as_str().unwrap_or_default();
            assert!(
                detail.contains(named) && json["outcome"] == "refused",
                "{headers}: {json}"
            );
        }
        for headers in PASSED {
            let request = format!("{operation} {headers} {body}").replace("  ", " ");
            assert_ne!(ask(&service, &request).await.status, 403, "{request}");
        }
    }
}

#[tokio::test]
async fn a_route_that_takes_with_get_cannot_be_embedded_but_a_link_to_it_may_be_followed() {
    let service = service(&[]);
    for path in ["/check/lock/none", "/test/zk/barrier/set"] {
        for site in ["cross-site", "same-site"] {
            let from = |mode| format!("GET {path} sec-fetch-site:{site} sec-fetch-mode:{mode}");
            assert_eq!(
                ask(&service, &from("no-cors")).await.status,
                403,
                "{path} {site}"
            );
            let link = ask(&service, &from("navigate")).await;
            assert_eq!(
                link.status, 503,
                "{path} {site} gets as far as the servers that are not there"
            );
        }
    }
    let harmless = "GET /strategies sec-fetch-site:cross-site sec-fetch-mode:no-cors";
    assert_eq!(ask(&service, harmless).await.status, 200);
}

#[tokio::test]
async fn no_other_origin_may_read_an_answer() {
    let service = service(&[]);
    let asked = [
        ("origin", "http://evil.example"),
        ("access-control-request-method", "PUT"),
    ];
    for (method, path, headers, status) in [
        ("OPTIONS", "/stock", &asked[..], 405),
        ("GET", "/strategies", &asked[..1], 200),
    ] {
        let answer = send(&service, method, path, headers, "").await;
        let told = (answer.status, answer.header("access-control-allow-origin"));
        assert_eq!(told, (status, ""), "{method} {path}");
    }
}
