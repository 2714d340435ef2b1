//! `/openapi.json` says what the router does, and nothing else.

use super::{Answer, JSON, app, ask, read, send, service, table};
use crate::http::{openapi, routes::documented};
use axum::Router;
use boon::{Compiler, Schemas};
use futures::future::join_all;
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashSet},
    sync::LazyLock,
    time::Duration,
};
use tokio::time::timeout;

/// axum keeps this in every router for its fallback.
const IN_EVERY_ROUTER: [&str; 2] = ["/", "/{*__private__axum_fallback}"];

const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

async fn document(service: &Router) -> Value {
    read(service, "/openapi.json", &[]).await.json()
}

/// `make docs` runs it.
#[tokio::test]
#[ignore = "`make docs` runs it: it writes target/docs/openapi.json"]
async fn make_docs_writes_the_document() {
    let text = serde_json::to_string_pretty(&*API).expect("JSON");
    std::fs::create_dir_all("target/docs").expect("target can be written");
    std::fs::write("target/docs/openapi.json", text + "\n").expect("target can be written");
}

/// The places of all schemas: those with a name, and those of parameters, bodies and answers.
fn schema_places(document: &Value) -> Vec<String> {
    fn add(at: &str, value: &Value, places: &mut Vec<String>) {
        let fields = value.as_object().into_iter().flatten();
        for (name, value) in fields {
            let at = format!("{at}/{}", escaped(name));
            match &name[..] {
                "schema" => places.push(at),
                "schemas" => {
                    let named = value.as_object().into_iter().flatten();
                    places.extend(named.map(|(name, _)| format!("{at}/{}", escaped(name))));
                }
                _ => add(&at, value, places),
            }
        }
        let items = value.as_array().into_iter().flatten();
        for (n, item) in items.enumerate() {
            add(&format!("{at}/{n}"), item, places);
        }
    }
    let mut places = Vec::new();
    add("", document, &mut places);
    places
}

/// The schemas of this document that are none, or name one that is not there.
fn invalid_schemas(document: &Value) -> Vec<String> {
    let (mut compiler, mut schemas) = compiler_of(document);
    let places = schema_places(document).into_iter();
    let wrong = places.filter_map(|place| {
        let compiled = compiler.compile(&address_of(&place), &mut schemas);
        Some(format!("{place}: {}", compiled.err()?))
    });
    wrong.collect()
}

#[tokio::test]
async fn each_schema_of_the_document_is_valid() {
    assert!(schema_places(&API).len() > 500);
    assert_eq!(invalid_schemas(&API), Vec::<String>::new());
    let twin = |schema: Value| serde_json::json!({"components": {"schemas": {"View": schema}}});
    for wrong in [serde_json::json!({"$ref": "#/components/schemas/Other"}), serde_json::json!({"type": "whole number"})] {
        assert_eq!(invalid_schemas(&twin(wrong)).len(), 1);
    }
}

#[test]
fn references_lead_somewhere_and_operations_differ_in_name() {
    let document = API.to_string();
    for reference in document.split(r##""$ref":"#"##).skip(1) {
        let place = reference.split('"').next().unwrap_or_default();
        assert!(API.pointer(place).is_some(), "{place}");
    }
    let all = operations(&API);
    let names: HashSet<_> = all.iter().map(|(_, _, operation)| operation["operationId"].as_str().expect("a name")).collect();
    assert_eq!(names.len(), all.len());
}

fn operations(api: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = api["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("methods");
        methods.iter().map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    all.filter(|(_, method, _)| METHODS.contains(method)).collect()
}

/// The parameters of an operation that stand here: in the path or in the query.
fn parameters<'a>(operation: &'a Value, place: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = operation["parameters"].as_array().into_iter().flatten();
    all.filter(move |parameter| parameter["in"] == place)
}

fn gets(api: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = operations(api).into_iter();
    all.filter_map(|(path, method, operation)| (method == "get").then_some((path, operation)))
}

/// The address with something for each open piece.
fn filled(path: &str) -> String {
    let path = path.replace("{strategy}", "none").replace("{slug}", "none").replace("{lesson}", "gap");
    let path = path.replace("{prefix}", "order").replace("{order_id}", "7");
    path.replace("{id}", "7").replace("{change}", "get")
}

/// Whether it takes something with GET: such a route is refused to a page that embeds it.
fn takes(operation: &Value) -> bool {
    let refusal = operation["responses"]["403"]["$ref"].as_str();
    refusal.is_some_and(|name| name.ends_with("/Forbidden"))
}

#[tokio::test]
async fn each_documented_route_takes_exactly_its_methods() {
    let service = service(&[]);
    let api = document(&service).await;
    let paths: BTreeSet<_> = operations(&api).into_iter().map(|(path, _, _)| path).collect();
    assert!(paths.len() >= 30, "{paths:?}");
    for path in paths {
        let refused = send(&service, "PATCH", &filled(path), &[], "").await;
        assert_eq!(refused.status, 405, "{path} is documented but not routed");
        let allowed: BTreeSet<_> = refused.header("allow").split(',').map(|m| m.trim().to_lowercase()).collect();
        let mut wanted = BTreeSet::new();
        for (_, method, operation) in operations(&api).into_iter().filter(|(other, _, _)| *other == path) {
            wanted.insert(method.to_owned());
            if method == "get" && !takes(operation) {
                wanted.insert("head".to_owned());
            }
        }
        assert_eq!(allowed, wanted, "{path}");
    }
}

#[tokio::test]
async fn every_route_is_documented() {
    let (routes, operating, api) = documented(&app(&[]));
    let known: HashSet<_> = api.paths.paths.keys().cloned().collect();
    let routed: HashSet<_> = [format!("{routes:?}"), format!("{operating:?}")]
        .iter()
        .flat_map(|shown| {
            shown
                .split('"')
                .filter(|text| text.starts_with('/') && !IN_EVERY_ROUTER.contains(text))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(routed, known);
    let twin = routes.route("/secret", axum::routing::get(()));
    assert!(format!("{twin:?}").contains("\"/secret\""), "a route that is not documented is seen");
}

/// A value beyond a limit is refused before anything is waited for; one within it may be a stay of a minute.
const AT_ONCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_documented_limit_is_the_one_that_is_kept() {
    let service = service(&[]);
    let api = document(&service).await;
    let mut tries = Vec::new();
    for (path, operation) in gets(&api) {
        for parameter in parameters(operation, "query") {
            let schema = &parameter["schema"];
            let schema = schema["oneOf"].as_array().and_then(|any| any.iter().find(|s| s["maximum"].is_i64())).unwrap_or(schema);
            let name = parameter["name"].as_str().unwrap_or_default();
            let (Some(least), Some(most)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64()) else {
                continue;
            };
            let rest = match (path, name) {
                (path, name) if path.contains("double-barrier") && name != "members" => "&members=2",
                ("/demo4", "whId") => "&sku=a",
                ("/demo4", _) => "&whId=1&sku=a",
                _ => "",
            };
            for (value, good) in [(least - 1, false), (least, true), (most, true), (most.saturating_add(1), false)] {
                if !good && value == i64::MAX {
                    continue;
                }
                tries.push((name.to_owned(), format!("{}?{name}={value}{rest}", filled(path)), good));
            }
        }
    }
    assert!(tries.len() > 250, "only {} limits are tried", tries.len());
    let answers = join_all(tries.iter().map(|(_, path, _)| timeout(AT_ONCE, read(&service, path, &[JSON])))).await;
    for ((name, path, good), answer) in tries.iter().zip(answers) {
        let refused = |answer: Answer| answer.status == 400 && answer.json()["field"] == name.as_str();
        assert_eq!(answer.is_ok_and(refused), !good, "{path}");
    }
}

/// Answers that operations and files have for reasons of their own; [`send`] checks that each is documented, here as in all
/// tests.
const ANSWERS: &str = r#"
GET /check/lock/none?x=1 | 400
GET /check/lock/nope | 404
GET /check/lock/none sec-fetch-site:cross-site | 403
GET /check/lock/none | 503
GET /stock | 503
PUT /stock {} | 400
PUT /stock sec-fetch-site:cross-site {"count":1} | 403
PUT /stock?strategy=nope {"count":1} | 404
PUT /stock content-type:text/plain {"count":1} | 415
PUT /stock {"count":1} | 503
DELETE /stock | 400
DELETE /stock?stock_id=7 | 503
POST /test/deadlock/nope | 404
POST /test/deadlock/gap sec-fetch-site:cross-site | 403
POST /test/deadlock/gap | 503
POST /runs {"strategy":"nope"} | 404
GET /runs/current | 204
GET /runs/7/events | 404
DELETE /runs/7 | 404
GET /strategies/%ff/source | 400
POST /voucher {} | 400
POST /voucher content-type:text/plain {} | 415
GET /voucher/7 | 503
GET /voucher/7/check | 503
POST /voucher-order/seckill/7 | 400
GET /health/ready | 503
GET /health/ready?instances=maybe | 400
GET /seckill/limited/shared | 503
GET /health/live | 200
GET /README.md | 200
GET /README.zh-CN.md | 200
GET /frameworks.md | 200
GET /frameworks.zh-CN.md | 200
GET /Cargo.toml | 404
"#;

#[tokio::test]
async fn answers_have_the_expected_and_documented_status() {
    let service = service(&[]);
    for (request, status) in table(ANSWERS) {
        let answer = ask(&service, request).await;
        assert_eq!(answer.status.to_string(), status, "{request}: {}", answer.body);
    }
    assert!(!is_documented("GET", "/stock", 418), "one that is not documented is seen");
}

static API: LazyLock<Value> = LazyLock::new(|| openapi::with_defaults(&documented(&app(&[])).2));

/// The documented path to which this one belongs.
fn template(path: &str) -> Option<&'static String> {
    let parts: Vec<_> = path.split('?').next().unwrap_or(path).split('/').collect();
    let matches = |template: &&String| {
        let known: Vec<_> = template.split('/').collect();
        let same = |(known, part): (&&str, &&str)| known == part || known.starts_with('{');
        known.len() == parts.len() && known.iter().zip(&parts).all(same)
    };
    let paths = API["paths"].as_object().expect("paths");
    let known = paths.keys().filter(matches);
    known.min_by_key(|path| path.matches('{').count())
}

/// Whether the documentation of this operation has this status; true where nothing is documented at this path.
pub(super) fn is_documented(method: &str, path: &str, status: u16) -> bool {
    let Some(template) = template(path) else {
        return true;
    };
    let method = method.to_lowercase().replace("head", "get");
    let responses = &API["paths"][template][&method]["responses"];
    status == 405 || responses.get(status.to_string()).is_some()
}

/// A name as a part of a place in the document.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The place in the document of the schema of this answer, if it has one.
fn schema_of(method: &str, path: &str, answer: &Answer) -> Option<String> {
    let kind = answer.header("content-type").split(';').next()?;
    let schema = format!(
        "/paths/{}/{}/responses/{}/content/{}/schema",
        escaped(template(path)?),
        method.to_lowercase(),
        answer.status,
        escaped(kind)
    );
    API.pointer(&schema).map(|_| schema)
}

/// Where an answer in JSON does not fit its documented schema.
pub(super) fn misfit(method: &str, path: &str, answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_str(&answer.body).ok()?;
    does_not_fit(&schema_of(method, path, answer)?, &body)
}

/// The address that a document is given.
const DOCUMENT_ADDRESS: &str = "http://oversell/openapi.json";

/// A compiler of the schemas in this document.
fn compiler_of(document: &Value) -> (Compiler, Schemas) {
    let mut compiler = Compiler::new();
    let added = compiler.add_resource(DOCUMENT_ADDRESS, document.clone());
    added.expect("a document of its own");
    (compiler, Schemas::new())
}

/// The address of a place in the document.
fn address_of(place: &str) -> String {
    let place = place.replace('{', "%7B").replace('}', "%7D");
    format!("{DOCUMENT_ADDRESS}#{place}")
}

/// Where a value does not fit the schema at this place of the document.
fn does_not_fit(schema: &str, value: &Value) -> Option<String> {
    let (mut compiler, mut schemas) = compiler_of(&API);
    let compiled = compiler.compile(&address_of(schema), &mut schemas);
    let compiled = compiled.expect("a schema");
    let error = schemas.validate(value, compiled).err()?;
    Some(error.to_string())
}

#[tokio::test]
async fn head_takes_nothing() {
    let service = service(&[]);
    let api = document(&service).await;
    let metrics = async || {
        let shown = read(&service, "/metrics", &[]).await.body;
        let counted = shown
            .lines()
            .filter(|line| line.starts_with("oversell_") && !line.starts_with("oversell_http_"))
            .filter(|line| !line.ends_with(" 0"));
        counted.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let before = metrics().await;
    for (path, operation) in gets(&api) {
        let answer = send(&service, "HEAD", &filled(path), &[], "").await;
        assert_eq!(answer.status == 405, takes(operation), "{path}");
    }
    assert_eq!(metrics().await, before, "no strategy has run");
    // The twin: what GET does is seen.
    read(&service, "/check/lock", &[]).await;
    assert_ne!(metrics().await, before);
}

/// Types of one name would stand under one schema: `Listed` of the strategies stood under that of the replays.
#[tokio::test]
async fn answers_to_get_fit_their_schema() {
    let service = service(&[]);
    for path in [
        "/strategies",
        "/voucher-order/strategies",
        "/course?brief=false",
        "/course/2.3",
        "/course/beyond.ensemble",
        "/replays",
        "/lab",
    ] {
        // Each answer of these tests is compared with its schema.
        let answer = read(&service, path, &[JSON]).await;
        assert!(schema_of("GET", path, &answer).is_some(), "{path}");
    }
    let answered = read(&service, "/strategies", &[JSON]).await.json();
    let of_another = does_not_fit("/components/schemas/ReplayListing", &answered[0]);
    assert!(of_another.is_some(), "the twin: the other list's schema");
}

#[tokio::test]
async fn health_leads_to_what_an_instance_can_do() {
    let service = service(&[]);
    let answer = read(&service, "/health", &[]).await;
    assert_eq!((answer.status, answer.header("location")), (307, "health/ready"));
}
