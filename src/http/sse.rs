//! Server-sent events: each is passed on at once, and the stream ends when the instance is told to stop.

use super::app::AppState;
use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt};
use http::HeaderName;
use std::convert::Infallible;

/// nginx passes each event on at once.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// An answer of events.
pub(super) fn response(
    app: &AppState,
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let stopping = app.stopping.clone().cancelled_owned();
    let events = Sse::new(events.take_until(stopping)).keep_alive(KeepAlive::default());
    ([UNBUFFERED], events).into_response()
}
