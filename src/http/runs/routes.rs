//! `/runs`: start one, see how it stands, watch it, cancel it.

use super::{
    super::{
        answer::Problem,
        app::App,
        fields::{Fields, FromBody},
        listen::Peer,
    },
    run::{End, Progress, State as RunState, View},
};
use crate::{error::Error, load::run::Plan, stock};
use axum::{
    Extension, Json,
    extract::{Path, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, StatusCode, header};
use secrecy::ExposeSecret;
use std::convert::Infallible;
use tokio_stream::wrappers::WatchStream;
use utoipa::ToSchema;

const MOST_THREADS: i64 = 1_000;
const MOST_LOOPS: i64 = 10_000;
const MOST_REQUESTS: i64 = 100_000;
const LONGEST_HOLD_MS: i64 = 60_000;
const MOST_PIECES: i64 = 1_000_000;

/// nginx passes each event on at once.
const UNBUFFERED: (HeaderName, &str) = (HeaderName::from_static("x-accel-buffering"), "no");

/// What to run.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "read field by field; here for the documentation")]
pub(in super::super) struct Wanted {
    #[schema(example = "none")]
    strategy: String,
    /// `one`: this instance; `three`: `cluster.http`.
    #[schema(default = "one", example = "one")]
    target: Option<String>,
    /// Connections; threads × loops is at most 100000.
    #[schema(minimum = 1, maximum = 1_000, default = 100)]
    threads: Option<u32>,
    /// Requests of each.
    #[schema(minimum = 1, maximum = 10_000, default = 50)]
    loops: Option<u32>,
    /// How long each stays inside the critical section, in milliseconds.
    #[schema(minimum = 0, maximum = 60_000, default = 0)]
    hold_ms: Option<u32>,
    /// The stock at the start.
    #[schema(minimum = 0, maximum = 1_000_000, default = 5000)]
    count: Option<u32>,
}

/// Starts a run of load, on a product of its own that is removed at its end.
#[utoipa::path(post, path = "/runs", tag = "load", request_body = Wanted, operation_id = "start_run",
    security((), ("admin" = [])),
    responses(
        (status = 202, description = "It has begun", body = View),
        (status = 400, description = "A field is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The admin token is asked for", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such strategy", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Another run is in progress: whose, and how long still", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = Problem, content_type = "application/problem+json"),
    ))]
pub(in super::super) async fn start(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    FromBody(fields): FromBody,
) -> Result<Response, Error> {
    app.admit_admin(&headers)?;
    let run = app.runs.start(&app, plan(&app, &fields)?, origin(&headers, peer.map(|Extension(peer)| peer)))?;
    let view = run.view();
    let location = [(header::LOCATION, view.events().to_owned())];
    Ok((StatusCode::ACCEPTED, location, Json(view)).into_response())
}

/// The current run of this instance, or the last one.
#[utoipa::path(get, path = "/runs/current", tag = "load", operation_id = "current_run",
    responses(
        (status = 200, description = "How it stands; once it has ended, its row", body = View),
        (status = 204, description = "There was none yet"),
    ))]
pub(in super::super) async fn current(State(app): State<App>) -> Response {
    match app.runs.latest() {
        Some(run) => Json(run.view()).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Cancels a run; one that has ended stays as it is.
#[utoipa::path(delete, path = "/runs/{id}", tag = "load", operation_id = "cancel_run", security((), ("admin" = [])),
    params(("id" = String, Path, description = "From `POST /runs`")),
    responses(
        (status = 202, description = "It ends now", body = View),
        (status = 401, description = "The admin token is asked for", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(in super::super) async fn cancel(
    State(app): State<App>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    app.admit_admin(&headers)?;
    let run = app.runs.find(&id)?;
    run.cancel();
    Ok((StatusCode::ACCEPTED, Json(run.view())).into_response())
}

/// Watches a run: event `progress` about five times a second, the newest first; then `done` with the row, or `failed`
/// with the reason.
#[utoipa::path(get, path = "/runs/{id}/events", tag = "load", operation_id = "watch_run",
    params(("id" = String, Path, description = "From `POST /runs`")),
    responses(
        (status = 200, description = "Server-sent events", body = Progress, content_type = "text/event-stream"),
        (status = 404, description = "There is no such run", body = Problem, content_type = "application/problem+json"),
    ))]
pub(in super::super) async fn events(State(app): State<App>, Path(id): Path<String>) -> Result<Response, Error> {
    let states = WatchStream::new(app.runs.find(&id)?.watch());
    let stopping = app.stopping.clone().cancelled_owned();
    let events = Sse::new(until_the_end(states).take_until(stopping)).keep_alive(KeepAlive::default());
    Ok(([UNBUFFERED], events).into_response())
}

/// Each state as events, up to and with the one that ends the run.
fn until_the_end(
    states: impl Stream<Item = RunState> + Unpin + Send,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let until_ended = stream::unfold(Some(states), async |states| {
        let mut states = states?;
        let state = states.next().await?;
        let more = state.end.is_none().then_some(states);
        Some((state, more))
    });
    until_ended.flat_map(|RunState { progress, end }| {
        let progress = Event::default().event("progress").json_data(progress);
        let end = end.map(|end| match end {
            End::Done(row) | End::Cancelled(row) => Event::default().event("done").json_data(row),
            End::Failed(reason) => Event::default().event("failed").json_data(serde_json::json!({ "detail": reason })),
        });
        // An event is refused only where its data cannot be written as JSON; these can.
        stream::iter([Some(progress), end].into_iter().flatten().filter_map(Result::ok).map(Ok))
    })
}

fn plan(app: &App, fields: &Fields) -> Result<Plan, Error> {
    fields.only(&["strategy", "target", "threads", "loops", "hold_ms", "count"])?;
    let bad = |field: &str, rule: &str| Error::BadInput { field: field.into(), rule: rule.into() };
    let slug = fields.text("strategy")?.ok_or_else(|| bad("strategy", "is missing"))?;
    let strategy = stock::find(slug).ok_or_else(|| Error::NoStrategy(slug.into()))?;
    let target = fields.text("target")?.unwrap_or("one");
    let base = match target {
        "one" => app.own_address(),
        "three" if app.ctx.config.cluster.http.is_empty() => {
            return Err(bad(
                "target",
                "cannot be three: this instance does not know its cluster (setting cluster.http)",
            ));
        }
        "three" => app.ctx.config.cluster.http.clone(),
        _ => return Err(bad("target", "must be one or three")),
    };
    let number = |name, range, default| Ok::<_, Error>(fields.number(name, range)?.unwrap_or(default));
    let threads = number("threads", 1..=MOST_THREADS, 100)?;
    let loops = number("loops", 1..=MOST_LOOPS, 50)?;
    if threads * loops > MOST_REQUESTS {
        return Err(bad("loops", "times threads must be at most 100000"));
    }
    let token = &app.ctx.config.admin.token;
    let mut plan = Plan::new(&base, target, strategy.slug);
    (plan.threads, plan.loops) = (threads.unsigned_abs() as usize, loops.unsigned_abs() as usize);
    plan.hold_ms = number("hold_ms", 0..=LONGEST_HOLD_MS, 0)?.unsigned_abs();
    plan.count = number("count", 0..=MOST_PIECES, 5000)?;
    plan.token = (!token.expose_secret().is_empty()).then(|| token.clone());
    plan.check().map_err(|rule| bad("hold_ms", &rule))?;
    Ok(plan)
}

/// Who asks, for others to read: the first address that a proxy names, else the one at the other end. Only a label.
fn origin(headers: &HeaderMap, peer: Option<Peer>) -> String {
    let named = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok()).and_then(|v| v.split(',').next());
    let named = named.and_then(|address| address.trim().parse().ok());
    named.or(peer.map(|Peer(address)| address)).map_or_else(|| "somebody".into(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use tokio::sync::watch;

    #[test]
    fn the_events_end_with_the_run_though_its_state_stays() {
        let state = watch::Sender::new(RunState::default());
        let mut events = Box::pin(until_the_end(WatchStream::new(state.subscribe())));
        assert!(events.next().now_or_never().flatten().is_some(), "the newest state comes at once");
        assert!(events.next().now_or_never().is_none(), "it goes on");
        let end = Some(End::Failed("why".into()));
        state.send_replace(RunState { end, ..RunState::default() });
        let last = events.collect::<Vec<_>>().now_or_never().expect("it has ended");
        assert_eq!(last.len(), 2, "progress, and the end");
    }
}
