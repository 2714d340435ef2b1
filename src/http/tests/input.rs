//! Invalid input is refused with its field and rule.

use super::{Answer, JSON, app, ask, read, send, service, table};
use crate::http::{openapi, routes::documented};
use axum::Router;
use http::Method;

/// The field that each is refused for, and what the rule says where that matters.
const WRONG: &str = r#"
GET /check/lock/none?hold_ms=60001 | hold_ms
GET /check/lock/none?hold_ms=-1 | hold_ms
GET /check/lock/none?wait_ms=600001 | wait_ms
GET /check/lock/none?wait_ms=soon | wait_ms
GET /check/lock/none?wait_ms= | wait_ms
GET /check/lock/none?lease_ms=99 | lease_ms
GET /check/lock/none?lease_ms=600001 | lease_ms
GET /check/lock/none?who= | who
GET /check/lock/none?who=%0A | who
GET /check/lock/none?who=a%1Bb | who
GET /check/lock/none?who=a%C2%85b | who control
GET /check/lock/none?who=a%E2%80%AEb | who U+202E
GET /check/lock/none?who=a%E2%81%A6b | who format
GET /check/lock/none?who=a%E2%80%A8b | who format
GET /check/lock/none?who=a%EF%BB%BFb | who format
GET /check/lock/none?who=123456789012345678901234567890123 | who
GET /check/lock/none?stock_id=0 | stock_id
GET /check/lock/none?stock_id=99999999999999999999 | stock_id
GET /check/lock/none?stock_id=1&stock_id=2 | stock_id
GET /check/lock/none?stok_id=1 | stok_id
GET /test/zk/herd?waiters=0 | waiters 100
GET /test/zk/herd?waiters=101 | waiters 100
GET /test/zk/herd?waiters=many | waiters 100
GET /test/zk/herd?hold_ms=1 | hold_ms
GET /test/zk/double-barrier/leave?members=2&member=../x | member
GET /test/zk/double-barrier/enter | members
GET /test/zk/double-barrier/enter?members=1001 | members
GET /test/zk/atomic/double | change
GET /test/zk/atomic/add | value
GET /test/zk/atomic/add?value=x | value
GET /id/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | prefix
GET /id/Order | prefix
GET /id/%E8%AE%A2 | prefix
GET /id/a%3Ab | prefix
GET /id/order?count=0 | count
GET /id/order?count=1001 | count
GET /id/order?n=1 | n
PUT /stock | body
PUT /stock { | body
PUT /stock [1] | body
PUT /stock {} | count
PUT /stock {"count":-1} | count
PUT /stock {"count":1.5} | count
PUT /stock {"count":"5"} | count
PUT /stock {"count":1000000001} | count
PUT /stock {"count":1,"id":2} | id
PUT /stock?id=1 {"count":1} | id
DELETE /stock | stock_id
DELETE /stock?stock_id=1 | stock_id
POST /runs {} | strategy
POST /runs {"strategy":"none","target":"two"} | target
POST /runs {"strategy":"none","target":"three"} | target
POST /runs {"strategy":"none","threads":0} | threads
POST /runs {"strategy":"none","threads":1000,"loops":101} | loops
POST /runs {"strategy":"none","hold_ms":60001} | hold_ms
POST /runs {"strategy":"none","count":-1} | count
POST /voucher {} | title
POST /voucher {"title":"","stock":1,"begin":"2026-11-11T00:00:00Z","end":"2026-11-12T00:00:00Z"} | title
POST /voucher {"title":"a","stock":-1,"begin":"2026-11-11T00:00:00Z","end":"2026-11-12T00:00:00Z"} | stock
POST /voucher {"title":"a","stock":1,"begin":"2026-11-11 00:00:00","end":"2026-11-12T00:00:00Z"} | begin
POST /voucher {"title":"a","stock":1,"begin":"2026-11-11T00:00:00Z","end":"9999-01-01T00:00:00Z"} | end
POST /voucher {"title":"a","stock":1,"begin":"2026-11-11T00:00:00Z","end":"2026-11-11T00:00:00Z"} | end
POST /voucher {"title":"a","stock":1,"begin":"2026-11-11T00:00:00Z","end":"2026-11-11T00:00:00+08:00"} | end
GET /voucher/x | path
POST /voucher-order/seckill/x | path
POST /voucher-order/seckill/7 | x-user-id whole number from 1
POST /voucher-order/seckill/7 x-user-id:0 | x-user-id whole number from 1
POST /voucher-order/seckill/7 x-user-id:-1 | x-user-id whole number from 1
POST /voucher-order/seckill/7 x-user-id:1.5 | x-user-id whole number from 1
POST /voucher-order/seckill/7 x-user-id:me | x-user-id whole number from 1
POST /voucher-order/seckill/7 x-user-id:9223372036854775808 | x-user-id whole number from 1
POST /voucher-order/seckill/7 x-user-id:ü | x-user-id whole number from 1
POST /voucher-order/seckill/7?hold_ms=60001 x-user-id:1 | hold_ms
POST /voucher-order/seckill/7?wait_ms=600001 x-user-id:1 | wait_ms
POST /voucher-order/seckill/7?lease_ms=99 x-user-id:1 | lease_ms
POST /voucher-order/seckill/7?stock_id=1 x-user-id:1 | stock_id
GET /voucher-order/0 | order_id
GET /voucher-order/-1 | order_id
GET /voucher-order/one | order_id
GET /voucher-order/9223372036854775808 | order_id
POST /classroom/visits {"visit":"/stock","names":["甲"]} | visit
POST /classroom/visits {"visit":"/test/../stock","names":["甲"]} | visit
POST /classroom/visits {"visit":"/test/semaphore","names":[]} | names
POST /classroom/visits {"visit":"/test/semaphore"} | names
POST /classroom/visits {"visit":"/test/semaphore","names":["甲","a\nb"]} | names[1]
POST /classroom/visits {"visit":"/test/semaphore","names":["甲"],"hold_ms":60001} | hold_ms
POST /classroom/visits {"visit":"/test/semaphore","names":["甲"],"member":"x"} | member
GET /classroom/qr.svg?url=javascript:1 | url
POST /lab/faults {"action":"break","member":"8100"} | action
POST /lab/faults {"action":"pause"} | member
POST /lab/faults {"action":"slow","member":"redis","by_ms":0} | by_ms
"#;

/// These get as far as the servers that are not there, of which the title names one.
const GOOD: &str = r#"
GET /check/lock/none?stock_id=7&hold_ms=60000&wait_ms=600000&lease_ms=100 | mysql 不可用
GET /test/zk/herd?waiters=100 | zookeeper 不可用
GET /id/seckill_order-2?count=1000 | redis 不可用
POST /voucher-order/seckill/7 x-user-id:9223372036854775807 | 不可用
GET /voucher-order/9223372036854775807 | 不可用
"#;

#[tokio::test]
async fn a_bad_request_is_refused_with_its_field_and_rule() {
    let service = service(&[]);
    for (request, wanted) in table(WRONG) {
        let (field, rule) = wanted.split_once(' ').unwrap_or((wanted, ""));
        ask(&service, request).await.assert_refuses(field, rule);
    }
    let people = serde_json::json!({"visit": "/test/semaphore", "names": vec!["甲"; 31]});
    ask(&service, &format!("POST /classroom/visits {people}")).await.assert_refuses("names", "");
    let title = "券".repeat(101);
    let long = format!(r#"{{"title":"{title}","stock":1,"begin":"2026-11-11T00:00:00Z","end":"2026-11-12T00:00:00Z"}}"#);
    (ask(&service, &format!("POST /voucher {long}")).await).assert_refuses("title", "");
}

#[tokio::test]
async fn valid_requests_reach_the_missing_servers() {
    let service = service(&[]);
    for (request, title) in table(GOOD) {
        let answer = ask(&service, request).await;
        let json = answer.json();
        let named = json["title"].as_str().is_some_and(|named| named.contains(title));
        assert!(answer.status == 503 && named, "{request}: {}", answer.body);
    }
    // A name is counted in characters.
    let who = "%E5%B0%8F".repeat(32);
    assert_eq!(read(&service, &format!("/check/lock/none?who={who}"), &[]).await.status, 503);
}

#[tokio::test]
async fn a_body_that_is_not_declared_as_json_is_415() {
    let service = service(&[]);
    for (method, path) in [("PUT", "/stock"), ("POST", "/runs"), ("POST", "/voucher")] {
        let bare = send(&service, method, path, &[JSON], "{}").await;
        assert_eq!(bare.problem(), (415, "not-json".to_owned()), "{path} without a type");
        for (kind, refused) in
            [("text/plain", true), ("application/x-www-form-urlencoded", true), ("application/json;charset=utf-8", false)]
        {
            let answer = ask(&service, &format!("{method} {path} content-type:{kind} {{}}")).await;
            assert_eq!(answer.status == 415, refused, "{path} {kind}: {}", answer.body);
        }
    }
}

/// What a form, of either kind, and a JSON object of these fields are, with their types.
fn bodies(fields: &[(String, String)]) -> [(&'static str, String); 3] {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let part = |(name, value): &(String, String)| {
        format!("--part\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts: String = fields.iter().map(part).collect();
    let json: serde_json::Map<_, _> = fields.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    [
        ("application/x-www-form-urlencoded", form),
        ("multipart/form-data; boundary=part", parts + "--part--\r\n"),
        ("application/json", serde_json::Value::Object(json).to_string()),
    ]
}

async fn post(service: &Router, path: &str, kind: &str, body: &str) -> Answer {
    send(service, "POST", path, &[JSON, ("content-type", kind), ("x-user-id", "1")], body).await
}

/// JMeter's table of parameters, `curl -d` and an HTML form send fields in the body.
#[tokio::test]
async fn fields_of_a_posts_body_are_read_as_the_querys() {
    let service = service(&[]);
    let mut tried = 0;
    for (request, wanted) in table(WRONG) {
        let (field, rule) = wanted.split_once(' ').unwrap_or((wanted, ""));
        let address = request.split(' ').nth(1).unwrap_or_default();
        let Some((path, query)) = address.split_once('?') else { continue };
        if path != "/check/lock/none" && path != "/voucher-order/seckill/7" {
            continue;
        }
        let fields: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        for (kind, body) in bodies(&fields) {
            // A JSON object has each name once.
            if fields.len() == 1 || kind != "application/json" {
                post(&service, path, kind, &body).await.assert_refuses(field, rule);
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "{tried}");
    let numbers = post(&service, "/check/lock/none", "application/json", r#"{"stock_id": 7.0, "hold_ms": 60001}"#).await;
    numbers.assert_refuses("hold_ms", "");
    for (body, field) in [(r#"{"who": ["a"]}"#, "who"), ("[1]", "body"), ("{", "body"), (r#"{"goodsId": 10}"#, "goodsId")] {
        post(&service, "/check/lock/none", "application/json", body).await.assert_refuses(field, "");
    }
}

#[tokio::test]
async fn a_field_given_twice_has_one_value() {
    let service = service(&[]);
    for (kind, body) in bodies(&[("stock_id".to_owned(), "7".to_owned())]) {
        post(&service, "/check/lock/none?stock_id=8", kind, &body).await.assert_refuses("stock_id", "two values");
        for path in ["/check/lock/none?stock_id=7", "/check/lock/none?hold_ms=1", "/check/lock"] {
            let answer = post(&service, path, kind, &body).await;
            assert_eq!(answer.status, 503, "{path} gets as far as the servers that are not there: {}", answer.body);
        }
    }
    for kind in ["text/plain", ""] {
        let answer = post(&service, "/check/lock/none", kind, "stock_id=7").await;
        assert_eq!(answer.problem(), (415, "not-a-form".to_owned()), "{kind}");
    }
}

/// Each operation uses a field or refuses it, in the query and in the body.
#[tokio::test]
async fn no_input_is_dropped() {
    let service = service(&[("replays.enabled", "true")]);
    let mut api = documented(&app(&[])).2;
    let (mut queries, mut tried) = (0, 0);
    for (path, item) in &mut api.paths.paths {
        let address = path.replace("{actor}", "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b").replace("{change}", "get");
        let address = address.replace("{number}", "1").replace("{strategy}", "none");
        let address = address.split('/').map(|part| if part.starts_with('{') { "7" } else { part });
        let address = address.collect::<Vec<_>>().join("/");
        for (method, operation) in openapi::operations(item) {
            let headers = [JSON, ("x-user-id", "1"), ("content-type", "application/x-www-form-urlencoded")];
            let told = send(&service, method.as_str(), &format!("{address}?no_such_field=1"), &headers, "").await;
            told.assert_refuses("no_such_field", "");
            queries += usize::from(openapi::takes_query(operation));
            tried += 1;
            if operation.request_body.is_none() {
                let told = send(&service, method.as_str(), &address, &headers, "no_such_field=1").await;
                told.assert_refuses(if method == Method::POST { "no_such_field" } else { "body" }, "");
            }
        }
    }
    assert!(tried > 60 && queries > 20, "{tried} operations, {queries} with a query");
}
