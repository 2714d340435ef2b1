//! `/openapi.json`, and `/docs`, which shows it without any other host.
//!
//! A handler documents what is its own: its success, and what 404 or 409 mean there. What any route of its kind may answer
//! is named once, in [`REFUSALS`], and [`complete`] refers each operation to it.

use super::problem::Problem;
use crate::{classroom::deadlocks, error::Error, replay, seckill, stock};
use http::Method;
use serde_json::Value;
use std::time::Duration;
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, HeaderBuilder, ObjectBuilder, OpenApi as Document, PathItem, Ref, RefOr, Response, ResponseBuilder,
        Schema, Type,
        extensions::Extensions,
        path::{Operation, ParameterIn},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_swagger_ui::SwaggerUi;

/// A refusal that operations of a kind share: the status, the name of its description under `components`, the description, and
/// which operations these are.
type Refusal = (&'static str, &'static str, &'static str, fn(&Method, &Operation) -> bool);

const REFUSALS: [Refusal; 10] = [
    ("400", "BadInput", "Path, query or body is not as it should be: `field` and `detail` say where and why", |_, _| true),
    ("401", "Unauthorized", "The admin token is asked for", |_, operation| operation.security.is_some()),
    ("403", FORBIDDEN, "A page of another host asks for this", |method, _| !method.is_safe()),
    ("403", "UnknownHost", "The request names a host that is none of this service's: setting `server.hosts`", |_, _| true),
    ("413", "TooLarge", "The body is larger than `server.body_limit`", |_, _| true),
    ("415", "NotJson", "The body is not declared as JSON", |_, operation| operation.request_body.is_some()),
    (
        "415",
        "NotAForm",
        "The body, in which the fields of the query may stand, is declared neither as a form nor as JSON",
        |method, operation| *method == Method::POST && operation.request_body.is_none(),
    ),
    ("429", "TooManyOfOneAddress", "The client has a quarter of `server.concurrency` under way: nothing was changed", |_, _| {
        true
    }),
    ("500", "Internal", "An error of ours; the log has it under the request id", |_, _| true),
    (
        "503",
        "Unavailable",
        "The lock, permit or row was not acquired within the wait, a server is down, or too many requests are under way: \
         nothing was changed. Or a server did not answer a write: `outcome` is then `unknown`",
        |_, operation| !operation.tags.iter().flatten().any(|tag| tag == OPERATING),
    ),
];

/// The name of the refusal of requests that a page of another host makes.
const FORBIDDEN: &str = "Forbidden";

/// The tag of the routes that answer whatever the load and the state of the servers are.
const OPERATING: &str = "operating";

#[derive(OpenApi)]
#[openapi(
    info(title = "oversell", description = "A stock that oversells, and every cure for it. \
        Answers are text as in the course, or JSON with `Accept: application/json`; errors then follow RFC 9457. \
        Every answer has `x-instance` and `x-request-id`. Every address is also there as `/instances/{name}/…`, which nginx \
        hands to the instance of this name, and to no other."),
    components(schemas(Problem)),
    tags(
        (name = "course", description = "The stock and the strategies"),
        (name = "seckill", description = "Vouchers, their orders, and the steps that lead there"),
        (name = "classroom", description = "Who visits a lesson, for a class that looks on"),
        (name = "load", description = "Runs of load, one at a time"),
        (name = "lab", description = "Breaking servers and instances by hand, where a lab has started them"),
        (name = "operating", description = "For those who run it"),
    ),
)]
pub(super) struct Api;

/// Adds what the handlers do not say each for itself: an id for each operation, the refusals that it shares with others, the
/// form of its own, the values of parameters from a registry, the form of events, and the admin token.
pub(super) fn complete(api: &mut Document) {
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in operations(item) {
            let words: Vec<_> = path.split(['/', '-', '{', '}']).filter(|word| !word.is_empty()).collect();
            operation.operation_id = Some(format!("{}_{}", method.as_str().to_lowercase(), words.join("_")));
            for (status, name, _, holds) in REFUSALS {
                if holds(&method, operation) {
                    add_shared_refusal(operation, status, name);
                }
            }
            for parameter in operation.parameters.iter_mut().flatten() {
                let RefOr::T(parameter) = parameter else {
                    continue;
                };
                if let Some(names) = parameter.description.as_deref().and_then(registry_names) {
                    let one = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
                    parameter.schema = Some(RefOr::T(Schema::Object(one.build())));
                }
            }
            for (status, response) in &mut operation.responses.responses {
                let RefOr::T(response) = response else {
                    continue;
                };
                if let Some(RefOr::T(events)) = response.content.get_mut("text/event-stream") {
                    events.schema = events.schema.take().map(|data| event_schema(data).into());
                }
                if status.starts_with(['4', '5']) && response.content.is_empty() {
                    set_error_body(status, response);
                }
            }
        }
    }
    let components = api.components.get_or_insert_default();
    for (status, name, description, _) in REFUSALS {
        let mut response = ResponseBuilder::new().description(description).build();
        set_error_body(status, &mut response);
        components.responses.insert(name.to_owned(), response.into());
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("`admin.token`")).build();
    components.add_security_scheme("admin", SecurityScheme::Http(bearer));
}

/// The values of a parameter, if its description begins with `One of` a registry's route, or with `One of` a list with commas; what
/// follows a semicolon is about something else.
fn registry_names(description: &str) -> Option<Vec<&str>> {
    let of = description.strip_prefix("One of ")?;
    let (of, _) = of.split_once(';').unwrap_or((of, ""));
    Some(match of {
        "`GET /strategies`" => stock::ALL.iter().map(|strategy| strategy.slug).collect(),
        "`GET /voucher-order/strategies`" => seckill::ALL.iter().map(|step| step.slug).collect(),
        "`GET /test/deadlock`" => deadlocks::ALL.iter().map(|lesson| lesson.slug).collect(),
        "`GET /replays`" => replay::lessons().map(|(lesson, _)| lesson).collect(),
        these => these.split(", ").collect(),
    })
}

/// A problem of this status as an example; `None` for a status without one.
fn example_problem(status: &str) -> Option<Value> {
    let error = match status {
        "400" => Error::BadInput { field: "hold_ms".into(), rule: "greater than 60000".into() },
        "404" => Error::NoProduct(7),
        "429" => Error::Limited,
        "500" => Error::Internal(String::new()),
        "503" => Error::Timeout { what: "lock".into(), waited: Duration::from_secs(30) },
        _ => return None,
    };
    serde_json::to_value(Problem::from(&error)).ok()
}

/// Documents that an operation refuses what a page of another host embeds; `guard.rs` refuses it.
pub(super) fn document_embedding_refusal(operation: &mut Operation) {
    add_shared_refusal(operation, "403", FORBIDDEN);
}

/// Refers an operation to a shared refusal, unless it has one of this status already.
fn add_shared_refusal(operation: &mut Operation, status: &str, name: &str) {
    let refusal = || RefOr::Ref(Ref::from_response_name(name));
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_owned()).or_insert_with(refusal);
}

/// Whether an operation has fields in its query.
pub(super) fn takes_query(operation: &Operation) -> bool {
    let parameters = operation.parameters.iter().flatten();
    let mut places = parameters.filter_map(|it| match it {
        RefOr::T(parameter) => Some(&parameter.parameter_in),
        RefOr::Ref(_) => None,
    });
    places.any(|place| *place == ParameterIn::Query)
}

/// The documented operations of a path: of GET, POST, PUT and DELETE.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PUT, &mut item.put),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// A server-sent event, whose data are JSON of this schema.
fn event_schema(data: RefOr<Schema>) -> Schema {
    // By its name, since a reference may not stand in an extension.
    let name = match data {
        RefOr::Ref(data) => data.ref_location.rsplit('/').next().unwrap_or_default().to_owned(),
        RefOr::T(_) => String::new(),
    };
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .content_media_type("application/json")
        .extensions(Some(Extensions::builder().add("x-schema", name).build()));
    ObjectBuilder::new()
        .description(Some("A server-sent event; `data` is JSON of the schema that `x-schema` names"))
        .property("data", text)
        .required("data")
        .into()
}

/// Gives an error response the form that all errors have, and the header `retry-after` if its status is 503 or 429.
fn set_error_body(status: &str, response: &mut Response) {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).example(example_problem(status)).build();
    let text = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
    for (kind, content) in [("application/problem+json", problem), ("text/plain", text)] {
        response.content.insert(kind.to_owned(), content.into());
    }
    if ["503", "429"].contains(&status) {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer);
        let header = HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds")).build();
        response.headers.insert("retry-after".to_owned(), header.into());
    }
}

/// The document with each `default` and `example` in the schema of its value. utoipa puts it into a second schema, of an object,
/// which no number fits. A tuple is a list of its one type there, since few readers know `prefixItems`.
/// It is JSON, since utoipa reads no schema without a type.
pub(super) fn with_defaults(api: &Document) -> Value {
    let mut api = serde_json::to_value(api).expect("a document is JSON");
    join_defaults(&mut api);
    api
}

/// Joins each `allOf` of a schema and a default or an example into one schema, at any depth.
fn join_defaults(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Array(all)) = fields.get_mut("allOf")
                && let [Value::Object(schema), Value::Object(more)] = &mut all[..]
                && more.len() > 1
                && more.keys().all(|key| ["type", "default", "example", "description"].contains(&key.as_str()))
            {
                more.remove("type");
                schema.append(more);
                let schema = std::mem::take(schema);
                fields.remove("allOf");
                fields.extend(schema);
            }
            if fields.get("items") == Some(&Value::Bool(false))
                && let Some(Value::Array(types)) = fields.remove("prefixItems")
            {
                let count = Value::from(types.len());
                assert!(types.windows(2).all(|pair| pair[0] == pair[1]), "a tuple of several types: {types:?}");
                fields.insert("items".to_owned(), types.into_iter().next().unwrap_or_default());
                fields.extend([("minItems".to_owned(), count.clone()), ("maxItems".to_owned(), count)]);
            }
            fields.values_mut().for_each(join_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(join_defaults),
        _ => {}
    }
}

pub(super) fn ui(api: Value) -> SwaggerUi {
    SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", api)
}
