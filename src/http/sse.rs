//! Server-sent events, each sent at once; the stream ends when the instance stops.

use super::{app::AppState, error::Error as HttpError};
use axum::{
    Error,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt, future::ready, stream};
use http::HeaderName;
use serde::Serialize;
use std::time::Duration;

/// How often a stream without events sends a sign of life; a reader takes a silent stream for one of an instance that stands
/// still.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// This header makes nginx pass each event on at once.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// The event `done`, the last one of a stream that ended as it should.
pub(super) fn done_event(with: impl Serialize) -> Result<Event, Error> {
    Event::default().event("done").json_data(with)
}

/// The event `failed`, the last one of a stream that failed.
pub(super) fn failed_event(detail: &str) -> Result<Event, Error> {
    let event = Event::default().event("failed");
    event.json_data(serde_json::json!({ "detail": detail }))
}

/// The response that streams these events until the instance stops.
pub(super) fn stream_response(app: &AppState, events: impl Stream<Item = Result<Event, Error>> + Send + 'static) -> Response {
    let Some(permit) = app.streams.try_take() else {
        return HttpError::Overloaded("streams of events").into_response();
    };
    let stopping = app.stopping.clone().cancelled_owned();
    // A comment, which no reader hears: what stands between may keep the head of an answer until something follows it.
    let opened = stream::once(ready(Ok(Event::default().comment(""))));
    let events = opened.chain(events).take_until(stopping).inspect(move |_| {
        let _until_it_ends = &permit;
    });
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL));
    ([UNBUFFERED], events).into_response()
}
