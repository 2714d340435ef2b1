//! Refusals of requests that change something.

use super::{ask, read, send, service, table};

#[tokio::test]
async fn administration_needs_the_token_if_there_is_one() {
    let service = service(&[("admin.token", "s3cret"), ("replays.enabled", "true"), ("replays.lab", "http://127.0.0.1:1/fault")]);
    for request in [
        r#"PUT /stock {"count":1}"#,
        "DELETE /stock?stock_id=7",
        r#"POST /runs {"strategy":"none"}"#,
        "DELETE /runs/1",
        "POST /voucher {}",
        "DELETE /voucher/7",
        "POST /replays/2.10.4",
        "POST /replays/003.pause",
        "POST /replays/2.2?pace=clock",
        "POST /replays/actors {}",
        r#"PUT /replays/actors/6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b {"stops":[]}"#,
    ] {
        let (operation, body) = request.split_at(request.find(" {").unwrap_or(request.len()));
        let (method, path) = operation.split_once(' ').expect("a method and a path");
        let body = body.trim();
        let with = async |token: &str| {
            let headers = [("authorization", token), ("content-type", "application/json")];
            send(&service, method, path, &headers, body).await
        };
        for wrong in ["", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret"] {
            let answer = with(wrong).await;
            let told = (answer.status, answer.header("www-authenticate"));
            assert_eq!(told, (401, "Bearer"), "{request} {wrong}");
        }
        for right in ["Bearer s3cret", "bearer s3cret", "BEARER s3cret"] {
            assert_ne!(with(right).await.status, 401, "{request} {right}");
        }
    }
    assert_eq!(read(&service, "/strategies", &[]).await.status, 200);
    for harmless in ["/replays/2.3", "/replays/2.2", "/replays/003.pause?pace=timed"] {
        let answer = send(&service, "POST", harmless, &[], "").await;
        assert_eq!(answer.status, 503, "{harmless} breaks nothing, and finds no servers");
    }
}

/// Requests that change something; if they are not refused, the answer is not 403.
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
async fn another_hosts_page_is_refused_our_own_page_is_not() {
    let service = service(&[
        ("server.hosts", "shop.example"),
        ("cluster.http", "http://nginx"),
        ("cluster.instances", "http://app-8000:8000"),
    ]);
    for (operation, body) in WRITES {
        for (headers, named) in table(REFUSED) {
            let answer = ask(&service, &format!("{operation} {headers} {body}")).await;
            assert_eq!(answer.problem(), (403, "forbidden".to_owned()), "{operation} {headers}");
            let json = answer.json();
            let detail = json["detail"].as_str().unwrap_or_default();
            assert!(detail.contains(named) && json["outcome"] == "refused", "{headers}: {json}");
        }
        for headers in PASSED {
            let request = format!("{operation} {headers} {body}").replace("  ", " ");
            assert_ne!(ask(&service, &request).await.status, 403, "{request}");
        }
    }
}

#[tokio::test]
async fn a_route_that_takes_with_get_can_be_linked_not_embedded() {
    let service = service(&[]);
    for path in ["/check/lock/none", "/test/zk/barrier/set"] {
        for site in ["cross-site", "same-site"] {
            let from = |how: &str| format!("GET {path} sec-fetch-site:{site} {how}");
            for embedded in [
                "sec-fetch-mode:no-cors sec-fetch-dest:image",
                "sec-fetch-mode:navigate sec-fetch-dest:iframe",
                "sec-fetch-mode:cors",
            ] {
                let answer = ask(&service, &from(embedded)).await;
                assert_eq!(answer.status, 403, "{path} {site} {embedded}");
            }
            let link = from("sec-fetch-mode:navigate sec-fetch-dest:document");
            assert_eq!(ask(&service, &link).await.status, 503, "{path} {site} gets as far as the servers that are not there");
        }
    }
    let harmless = "GET /strategies sec-fetch-site:cross-site sec-fetch-mode:no-cors";
    assert_eq!(ask(&service, harmless).await.status, 200);
}

/// To an address without TLS that is not loopback a browser sends no Sec-Fetch-*.
#[tokio::test]
async fn without_fetch_headers_origin_or_referer_tells_the_page() {
    let service = service(&[]);
    for (headers, status) in [
        ("accept:image/avif,*/* referer:http://evil.example/", 403),
        ("accept:*/* origin:http://evil.example", 403),
        ("accept:*/* origin:null", 403),
        ("accept:*/* origin:http://192.168.1.20:3000", 403),
        ("accept:text/html,*/* referer:http://intranet.example/course", 503),
        ("accept:image/avif,*/* referer:http://192.168.1.20:8080/class.html", 503),
        ("accept:*/* origin:http://192.168.1.20:8080", 503),
        ("accept:*/*", 503),
    ] {
        let request = format!("GET /check/lock/none host:192.168.1.20:8080 {headers}");
        assert_eq!(ask(&service, &request).await.status, status, "{headers}");
    }
}

/// A page whose name was made to point here reads nothing: a browser shows it what is of its own origin.
#[tokio::test]
async fn nothing_is_read_through_a_name_that_is_not_this_services() {
    let service = service(&[("server.hosts", "shop.example")]);
    for path in ["/lab", "/strategies", "/check/lock/none", "/metrics", "/"] {
        let asked = async |host: &str| ask(&service, &format!("GET {path} host:{host}")).await;
        let foreign = asked("evil.example:8000").await;
        assert_eq!(foreign.status, 403, "{path}");
        assert!(foreign.body.contains("server.hosts"), "{}", foreign.body);
        assert_ne!(asked("shop.example").await.status, 403, "{path}");
    }
}

/// A proxy that sends a Host of its own, as nginx does unless it is told otherwise.
#[tokio::test]
async fn a_page_under_a_further_name_passes_behind_a_proxy() {
    let service = service(&[("server.hosts", "shop.example")]);
    for (operation, body) in WRITES.into_iter().chain([("GET /check/lock/none", "")]) {
        for scheme in ["http", "https"] {
            let request = format!("{operation} host:127.0.0.1:8080 origin:{scheme}://shop.example {body}");
            assert_ne!(ask(&service, request.trim()).await.status, 403, "{request}");
        }
        let other = format!("{operation} host:127.0.0.1:8080 origin:https://other.example {body}");
        let refused = ask(&service, other.trim()).await;
        assert_eq!(refused.status, 403, "{operation}");
        assert!(refused.body.contains("proxy_set_header Host $http_host"), "{}", refused.body);
    }
}

#[tokio::test]
async fn no_other_origin_may_read_an_answer() {
    let service = service(&[]);
    let asked = [("origin", "http://evil.example"), ("access-control-request-method", "PUT")];
    for (method, path, headers, status) in [("OPTIONS", "/stock", &asked[..], 405), ("GET", "/strategies", &asked[..1], 200)] {
        let answer = send(&service, method, path, headers, "").await;
        let told = (answer.status, answer.header("access-control-allow-origin"));
        assert_eq!(told, (status, ""), "{method} {path}");
    }
}
