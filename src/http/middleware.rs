//! The layers around every request, outermost first: [`limit_and_log`], which gives it a number that is in every line that is logged
//! meanwhile, makes an answer of every error and adds the headers; then limits and refusals, from tower-http.
//!
//! A layer that is a function costs a boxed future and a clone of all layers below it for each request, so there is one.

use super::{
    app::AppState,
    format::Format,
    guard::{self, Hosts},
    problem::Problem,
    visitor,
};
use crate::{
    error::Error as Domain,
    http::error::{Error, HandlerError},
    server::Server,
};
use axum::{
    BoxError, Router,
    body::Body,
    error_handling::HandleErrorLayer,
    extract::{ConnectInfo, Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, uri::PathAndQuery};
use parking_lot::Mutex;
use std::{
    any::Any,
    collections::HashMap,
    fmt::{self, Display, Write as _},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tower::{ServiceBuilder, limit::GlobalConcurrencyLimitLayer, load_shed::LoadShedLayer};
use tower_http::{
    catch_panic::CatchPanicLayer,
    limit::RequestBodyLimitLayer,
    timeout::{RequestBodyDeadlineLayer, TimeoutLayer},
};
use tracing::Instrument;

const INSTANCE: HeaderName = HeaderName::from_static("x-instance");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A request id of a client with more bytes is replaced, so that the log stays readable.
const MAX_ID_LEN: usize = 64;

/// The status of the timeout layer; nothing else here answers so.
const TIMEOUT_STATUS: StatusCode = StatusCode::GATEWAY_TIMEOUT;

/// Answers 503 of one kind are logged once in this time.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// It takes this many addresses to use up `server.concurrency`, so that one client cannot keep all others out. Loads come
/// from this machine, which has no such bound.
const MIN_CLIENTS_TO_FILL: usize = 4;

/// All routes with their middleware. Those for operators have no concurrency limit: an overloaded instance can still be
/// examined.
pub(super) fn with_middleware(app: &AppState, routes: Router, operating: Router) -> Router {
    let server = &app.ctx.config.server;
    let at_once = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(async |_: BoxError| Error::Overloaded("requests (server.concurrency)")))
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(server.concurrency));
    let hosts = Hosts::from_config(&app.ctx.config);
    let every = ServiceBuilder::new()
        .layer(from_fn_with_state((app.clone(), Arc::default()), limit_and_log))
        .layer(CatchPanicLayer::custom(panic_response))
        .layer(TimeoutLayer::with_status_code(TIMEOUT_STATUS, Duration::from_millis(server.request_timeout_ms)))
        .layer(RequestBodyLimitLayer::new(server.body_limit))
        .layer(RequestBodyDeadlineLayer::new(Duration::from_millis(server.header_timeout_ms)))
        .layer(guard::refuse_other_origins(&app.ctx.config))
        .layer(guard::refuse_unknown_host(hosts));
    routes.layer(at_once).merge(operating).layer(every)
}

/// Serves `/instances/NAME/…` with the name of this instance as `/…`, and other paths as they are: nginx passes such a path to
/// that instance alone, so that a client can choose one.
pub(super) fn called_by_name(app: &AppState, service: Router) -> Router {
    let prefix: Arc<str> = format!("/instances/{}", app.ctx.instance).into();
    let rename = move |mut request: Request| {
        if let Some(path) = path_after(&prefix, request.uri()) {
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = Some(path);
            *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        }
        request
    };
    // Around the whole router, which has chosen the handler before a layer of its own is asked.
    Router::new().fallback_service(ServiceBuilder::new().map_request(rename).service(service))
}

/// The path behind the prefix; `None` if the path has another beginning, or nothing with a `/` follows.
fn path_after(prefix: &str, uri: &Uri) -> Option<PathAndQuery> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(prefix)?;
    rest.starts_with('/').then(|| rest.parse().ok())?
}

/// The outermost layer: limits the requests of one address (but not of this machine's), gives each a request id, logs and
/// measures it, makes an answer of its error, and adds the headers that all answers have.
async fn limit_and_log(State((app, throttle)): State<(AppState, Arc<Throttle>)>, request: Request, next: Next) -> Response {
    let (begun, method) = (Instant::now(), request.method().clone());
    let format = Format::from_headers(request.headers());
    let id = request_id(request.headers());
    let shown_id = id.to_str().unwrap_or_default();
    let span = tracing::info_span!("request", id = shown_id, %method, uri = %Printable(request.uri()));
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let sender = visitor::sender(request.headers(), peer.map(|peer| peer.0));
    let sender = sender.filter(|address| !address.to_canonical().is_loopback());
    let until_answered = sender.map(|address| app.requests_by_address.count(address));
    let under_way = sender.map_or(0, |address| app.requests_by_address.get(address));
    let max_of_one_address = app.ctx.config.server.concurrency.div_ceil(MIN_CLIENTS_TO_FILL);
    let handled = async {
        let mut response = match under_way > max_of_one_address as u64 {
            true => Error::too_many("requests of one address", max_of_one_address).into_response(),
            false => next.run(request).await,
        };
        if let Some(error) = take_error(&app, &mut response) {
            response = failure_response(&app, &throttle, &error, response, format, shown_id);
        }
        let (status, took) = (response.status(), begun.elapsed());
        app.metrics.record_answer(&method, status, took);
        tracing::debug!(status = status.as_u16(), ?took, "answered");
        response
    };
    let mut response = handled.instrument(span).await;
    // A stream is under way until it ends.
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
        response = response.map(|body| {
            Body::from_stream(body.into_data_stream().inspect(move |_| {
                let _until_it_ends = &until_answered;
            }))
        });
    }
    let headers = response.headers_mut();
    headers.insert(INSTANCE, app.name.clone());
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    headers.insert(REQUEST_ID, id);
    response
}

/// The response of a request that failed, in the form that the client reads. The error is logged once; one of MySQL drops all
/// idle connections to it.
fn failure_response(
    app: &AppState,
    throttle: &Throttle,
    error: &Error,
    mut response: Response,
    format: Format,
    id: &str,
) -> Response {
    if let Error::Domain(error) = error
        && error.server() == Some(Server::MySql.name())
    {
        app.ctx.forget_idle();
    }
    let problem = Problem::from(error);
    log_error(throttle, error, &problem);
    let allow = response.headers_mut().remove(header::ALLOW);
    let mut rendered = problem.render(format, id);
    if let Some(allow) = allow {
        rendered.headers_mut().insert(header::ALLOW, allow);
    }
    rendered
}

/// Takes the error of a handler out of the response; without one, makes the error of a bare 4xx or of a timeout. `None` for any
/// other response.
fn take_error(app: &AppState, response: &mut Response) -> Option<Arc<Error>> {
    if let Some(HandlerError(error)) = response.extensions_mut().remove() {
        return Some(error);
    }
    let server = &app.ctx.config.server;
    let error = match response.status() {
        StatusCode::NOT_FOUND => Error::NoRoute,
        StatusCode::METHOD_NOT_ALLOWED => Error::NoMethod,
        StatusCode::PAYLOAD_TOO_LARGE => Error::TooLarge(server.body_limit),
        TIMEOUT_STATUS => Domain::RequestTimeout(Duration::from_millis(server.request_timeout_ms)).into(),
        status if status.is_client_error() => Error::bad_input("request", status.canonical_reason().unwrap_or("is refused")),
        _ => return None,
    };
    Some(Arc::new(error))
}

/// Logs each internal error (500), and of the answers 503 one a second per kind with a count of the others. All else goes to
/// debug.
fn log_error(throttle: &Throttle, error: &Error, problem: &Problem) {
    let status = problem.status.as_u16();
    match problem.status {
        StatusCode::INTERNAL_SERVER_ERROR => {
            tracing::error!(status, error = %Printable(error), "request failed")
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            if let Some(others) = throttle.admit(problem.kind, Instant::now()) {
                tracing::warn!(status, error = %Printable(error), others, "request failed");
            }
        }
        _ => tracing::debug!(status, error = %Printable(error), "request refused"),
    }
}

/// Shows a value with its invisible characters escaped, so that input writes no line, colour or direction of its own into the
/// log.
struct Printable<T>(T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_string().chars().try_for_each(|c| match c {
            '"' | '\'' | '\\' => f.write_char(c),
            c => write!(f, "{}", c.escape_debug()),
        })
    }
}

/// Passes one event of a kind each second, and counts the others.
#[derive(Debug, Default)]
struct Throttle(Mutex<HashMap<&'static str, (Instant, u64)>>);

impl Throttle {
    /// The number of events suppressed since the last one that passed; `None` if this one is suppressed too.
    fn admit(&self, kind: &'static str, now: Instant) -> Option<u64> {
        let mut kinds = self.0.lock();
        let Some((last, others)) = kinds.get_mut(kind) else {
            kinds.insert(kind, (now, 0));
            return Some(0);
        };
        if now.duration_since(*last) < LOG_INTERVAL {
            *others += 1;
            return None;
        }
        *last = now;
        Some(std::mem::take(others))
    }
}

/// The request id: that of the client if it is short and plain, else 16 hexadecimal digits.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |id: &&HeaderValue| {
        let id = id.as_bytes();
        (1..=MAX_ID_LEN).contains(&id.len()) && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
    };
    let given = headers.get(REQUEST_ID).filter(is_plain);
    given.cloned().unwrap_or_else(|| {
        let id = format!("{:016x}", fastrand::u64(..));
        HeaderValue::try_from(id).expect("digits fit a header")
    })
}

/// The response of a handler that panicked; the panic's words are for the log only.
fn panic_response(panic: Box<dyn Any + Send>) -> Response {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Domain(Domain::Panicked(words.unwrap_or_else(|| "no words".into()))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_shows_what_cannot_be_seen_as_an_escape() {
        for (sent, logged) in [
            ("/mine?a=\u{9b}31m", "/mine?a=\\u{9b}31m"),
            ("next\u{85}line\n", "next\\u{85}line\\n"),
            ("\u{202e}txt\u{2066}\u{2028}", "\\u{202e}txt\\u{2066}\\u{2028}"),
            ("\x1b[1m", "\\u{1b}[1m"),
            ("it's \"小明\" é \\ ✓", "it's \"小明\" é \\ ✓"),
        ] {
            assert_eq!(Printable(sent).to_string(), logged);
        }
    }

    #[test]
    fn a_flood_is_logged_once_a_second_for_each_kind() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(throttle.admit("overloaded", start), Some(0));
        assert!((1..1000).all(|ms| throttle.admit("overloaded", after(ms)).is_none()));
        assert_eq!(throttle.admit("not-had", after(500)), Some(0), "another kind has its own second");
        assert_eq!(throttle.admit("overloaded", after(1000)), Some(999));
        assert_eq!(throttle.admit("overloaded", after(2000)), Some(0));
    }
}
