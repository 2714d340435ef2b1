//! The input of a request that stands where its route does not look for it: used, or refused, never dropped.
//!
//! 1. The fields of a POST's body become fields of its query, unless the route reads the body: JMeter's table of parameters, `curl -d`
//!    and an HTML form send them there. So the same rules hold, with the same refusals. The body is a form, of either kind, or a JSON
//!    object. A field of both must have one value.
//! 2. A query or a body that a route does not take at all is refused.

use super::{app::AppState, error::Error, extract, openapi};
use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{FromRequest, MatchedPath, Multipart, Request, State, multipart::MultipartError},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, header};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use tower_http::validate_request::{ValidateRequest, ValidateRequestHeaderLayer};
use utoipa::openapi::OpenApi as Document;

type Fields = Vec<(String, String)>;

/// The rule of an address without a query.
const NO_FIELD: &str = "is no field of this address, which takes none";

/// Joins the fields of the body to the query, for the route behind it; if this takes no query, each field is refused.
pub(super) async fn join_body_to_query(
    State((app, takes_query)): State<(AppState, bool)>,
    request: Request,
    next: Next,
) -> Response {
    match joined(&app, takes_query, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

async fn joined(app: &AppState, takes_query: bool, request: Request) -> Result<Request, Error> {
    if request.method() != Method::POST || request.body().is_end_stream() {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let request = Request::from_parts(parts.clone(), body);
    let too_large = || Error::TooLarge(app.ctx.config.server.body_limit);
    let fields = match &kind[..] {
        "multipart/form-data" => multipart_fields(app, request).await?,
        _ => {
            let body = Bytes::from_request(request, app).await.map_err(|rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => too_large(),
                _ => Error::bad_input("body", rejection.body_text()),
            })?;
            match &kind[..] {
                _ if body.is_empty() => Fields::new(),
                "application/x-www-form-urlencoded" => form_urlencoded::parse(&body).into_owned().collect(),
                "application/json" => json_fields(&body)?,
                _ => return Err(Error::NotAForm),
            }
        }
    };
    if let Some((name, _)) = fields.first().filter(|_| !takes_query) {
        return Err(Error::bad_input(name, NO_FIELD));
    }
    let query = parts.uri.query().unwrap_or_default();
    let mut all = form_urlencoded::Serializer::for_suffix(query.to_owned(), 0);
    let given: Fields = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    for (name, value) in fields {
        match given.iter().find(|(other, _)| *other == name) {
            Some((_, same)) if *same == value => {}
            Some(_) => {
                return Err(Error::bad_input(&name, "is given twice, in the query and in the body, with two values"));
            }
            None => drop(all.append_pair(&name, &value)),
        }
    }
    let mut uri = parts.uri.clone().into_parts();
    let path = format!("{}?{}", parts.uri.path(), all.finish());
    uri.path_and_query = Some(path.parse().map_err(|_| too_large())?);
    parts.uri = uri.try_into().map_err(|_| too_large())?;
    Ok(Request::from_parts(parts, Body::empty()))
}

async fn multipart_fields(app: &AppState, request: Request) -> Result<Fields, Error> {
    let refused = |error: MultipartError| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Error::TooLarge(app.ctx.config.server.body_limit),
        _ => Error::bad_input("body", error.body_text()),
    };
    let form = Multipart::from_request(request, app).await;
    let mut form = form.map_err(|rejection| Error::bad_input("body", rejection.body_text()))?;
    let mut fields = Fields::new();
    while let Some(field) = form.next_field().await.map_err(refused)? {
        let name = field.name().unwrap_or_default().to_owned();
        fields.push((name, field.text().await.map_err(refused)?));
    }
    Ok(fields)
}

/// The fields of a JSON object, each as the text that a query would have; without those that are null.
fn json_fields(body: &[u8]) -> Result<Fields, Error> {
    let object = serde_json::from_slice::<Value>(body);
    let mut object = object.map_err(|error| Error::bad_input("body", format!("must be a JSON object: {error}")))?;
    extract::drop_zero_fraction(&mut object);
    let Value::Object(object) = object else {
        return Err(Error::bad_input("body", "must be a JSON object"));
    };
    let texts = object.into_iter().filter_map(|(name, value)| {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            _ => return Some(Err(Error::bad_input(&name, "must be a text, a number, true or false"))),
        };
        Some(Ok((name, text)))
    });
    texts.collect()
}

/// What an operation reads, by its documentation.
#[derive(Clone, Copy)]
struct Reads {
    query: bool,
    body: bool,
}

/// A layer that refuses a query that an operation does not document, and a body that it does not read.
#[expect(clippy::result_large_err, reason = "the refusal is an answer, as tower-http has it")]
pub(super) fn refuse_unread(
    api: &mut Document,
) -> ValidateRequestHeaderLayer<impl ValidateRequest<Body, ResponseBody = Body> + Clone + use<>> {
    let mut all = HashMap::new();
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in openapi::operations(item) {
            let query = openapi::takes_query(operation);
            let body = operation.request_body.is_some() || method == Method::POST;
            all.entry(path.clone()).or_insert_with(Vec::new).push((method, Reads { query, body }));
        }
    }
    let all = Arc::new(all);
    ValidateRequestHeaderLayer::custom(move |request: &mut Request| {
        let (has_query, has_body) = (request.uri().query().is_some_and(|it| !it.is_empty()), !request.body().is_end_stream());
        if !has_query && !has_body {
            return Ok(());
        }
        let path = request.extensions().get::<MatchedPath>().and_then(|path| all.get(path.as_str()));
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let Some((_, reads)) = path.into_iter().flatten().find(|(known, _)| known == method) else {
            return Ok(());
        };
        let refusal = match reads {
            Reads { query: false, .. } if has_query => {
                let name = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).next();
                let name = name.map_or_else(|| "query".to_owned(), |(name, _)| name.into_owned());
                Error::bad_input(&name, NO_FIELD)
            }
            Reads { query: true, body: false } if has_body => {
                Error::bad_input("body", format!("is not read with {method}: put the fields into the query"))
            }
            Reads { body: false, .. } if has_body => Error::bad_input("body", "is not read: this address takes none"),
            _ => return Ok(()),
        };
        Err(refusal.into_response())
    })
}
