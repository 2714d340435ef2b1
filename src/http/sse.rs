//! Server-sent events, each sent at once; the stream ends when the instance stops.

use super::app::AppState;
use axum::{
    Error,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt};
use http::HeaderName;
use serde::Serialize;
use std::time::Duration;

/// A reader takes a stream without one for one of an instance that stands still.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// nginx passes each event on at once.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// The last event of what has ended as it should.
pub(super) fn done(with: impl Serialize) -> Result<Event, Error> {
    Event::default().event("done").json_data(with)
}

/// The last event of what has failed.
pub(super) fn failed(detail: &str) -> Result<Event, Error> {
    let event = Event::default().event("failed");
    event.json_data(serde_json::json!({ "detail": detail }))
}

pub(super) fn response(
    app: &AppState,
    events: impl Stream<Item = Result<Event, Error>> + Send + 'static,
) -> Response {
    let stopping = app.stopping.clone().cancelled_owned();
    let events =
        Sse::new(events.take_until(stopping)).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE));
    ([UNBUFFERED], events).into_response()
}
