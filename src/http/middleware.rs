//! What surrounds every request, in one layer: who answers, under which number, within which limits, and what an
//! error looks like.
//!
//! One layer instead of one for each of these: an error of any of them is rendered and logged in one place, and
//! the hot path is walked once.

use super::{
    app::App,
    format::Format,
    problem::{Failed, Problem},
};
use crate::{error::Error, server::Server};
use axum::{
    body::HttpBody,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

const INSTANCE: HeaderName = HeaderName::from_static("x-instance");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A request id that a client sends is taken up to this length.
const LONGEST_ID: usize = 64;

/// The layer.
pub(super) async fn around(State(app): State<App>, request: Request, next: Next) -> Response {
    let format = Format::of(request.headers());
    let id = request_id(request.headers());
    let method = request.method().clone();
    let uri = request.uri().clone();

    let mut response = within_limits(&app, request, next).await;
    if let Some(error) = take_error(&app, &mut response) {
        if error.server() == Some(Server::MySql.name()) {
            app.ctx.forget_idle();
        }
        let problem = Problem::from(&*error);
        log(&error, problem.code(), &id, &method, &uri);
        let allow = response.headers_mut().remove(header::ALLOW);
        response = problem.render(format, id.to_str().unwrap_or_default());
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    tracing::debug!(target: "oversell::access", status = response.status().as_u16(), %method, %uri, id = ?id);

    let headers = response.headers_mut();
    headers.insert(INSTANCE, app.name.clone());
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    response
}

/// Runs the handler, unless too many are running; not beyond the time limit; and survives its panic.
///
/// When the client hangs up, this future is dropped, and the handler with it.
async fn within_limits(app: &App, request: Request, next: Next) -> Response {
    let server = &app.ctx.config.server;
    if request.body().size_hint().lower() > server.body_limit as u64 {
        return Error::TooLarge(server.body_limit).into_response();
    }
    let permit = app.permits.try_acquire();
    if permit.is_err() && !is_for_operators(request.uri()) {
        return Error::Overloaded.into_response();
    }
    let limit = Duration::from_millis(server.request_timeout_ms);
    let handler = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(limit, handler).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Error::Panicked(words(&*panic)).into_response(),
        Err(_) => Error::TimedOut(limit).into_response(),
    }
}

/// Those who look why an instance is overloaded are let in.
fn is_for_operators(uri: &Uri) -> bool {
    uri.path().starts_with("/health/") || uri.path() == "/metrics"
}

/// The error of a handler, or the one that the bare status of a framework's refusal stands for.
fn take_error(app: &App, response: &mut Response) -> Option<Arc<Error>> {
    if let Some(Failed(error)) = response.extensions_mut().remove() {
        return Some(error);
    }
    let status = response.status();
    let error = match status {
        StatusCode::NOT_FOUND => Error::NoRoute,
        StatusCode::METHOD_NOT_ALLOWED => Error::NoMethod,
        StatusCode::PAYLOAD_TOO_LARGE => Error::TooLarge(app.ctx.config.server.body_limit),
        status if status.is_client_error() => {
            Error::BadInput { field: "request".into(), rule: status.canonical_reason().unwrap_or("is refused").into() }
        }
        _ => return None,
    };
    Some(Arc::new(error))
}

/// Once for each request that failed: loudly where it is our fault, softly where it is the client's.
fn log(error: &Error, status: StatusCode, id: &HeaderValue, method: &Method, uri: &Uri) {
    let status_code = status.as_u16();
    match (error, status) {
        (Error::Unavailable { server, reason } | Error::Unknown { server, reason }, _) => {
            tracing::warn!(status = status_code, %method, %uri, request_id = ?id, %server, %reason, "request failed");
        }
        (_, StatusCode::INTERNAL_SERVER_ERROR) => {
            tracing::error!(status = status_code, %method, %uri, request_id = ?id, %error, "request failed");
        }
        (_, StatusCode::SERVICE_UNAVAILABLE) => {
            tracing::warn!(status = status_code, %method, %uri, request_id = ?id, %error, "request failed");
        }
        _ => tracing::debug!(status = status_code, %method, %uri, request_id = ?id, %error, "request refused"),
    }
}

/// The client's, where it is short and plain; else one of our own.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let plain = |id: &&HeaderValue| {
        let id = id.as_bytes();
        (1..=LONGEST_ID).contains(&id.len())
            && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
    };
    match headers.get(REQUEST_ID).filter(plain) {
        Some(id) => id.clone(),
        None => HeaderValue::try_from(format!("{:016x}", fastrand::u64(..))).unwrap_or(NO_STORE),
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into())
}
