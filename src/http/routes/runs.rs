//! `/runs`: start one, see how it stands, watch it, cancel it.

use crate::http::routes::prelude::*;
use crate::{
    claims::Target,
    http::{
        runs::{
            Runs,
            run::{Progress, RunState, RunUpdate, RunView},
        },
        sse,
        visitor::origin,
    },
    load::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX},
    stock,
};
use async_stream::stream;
use axum::{extract::ConnectInfo, response::sse::Event};
use futures::Stream;
use http::HeaderMap;
use std::net::SocketAddr;
use tokio::sync::watch;

/// The most requests of a run, threads × loops; more are refused.
const MAX_REQUESTS: i64 = 100_000;

#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub(in crate::http) struct RunRequest {
    #[schema(example = "none")]
    strategy: String,
    #[serde(default)]
    #[schema(inline, default = "one")]
    target: Target,
    /// Connections; threads × loops is at most 100000.
    #[garde(dive)]
    #[schema(inline, default = 100)]
    threads: Option<BoundedInteger<1, 1_000>>,
    /// Requests of each.
    #[garde(dive)]
    #[schema(inline, default = 50)]
    loops: Option<BoundedInteger<1, 10_000>>,
    /// How long each stays inside the critical section, in milliseconds.
    #[garde(dive)]
    #[schema(inline, default = 0)]
    hold_ms: Option<HoldMs>,
    /// The stock at the start.
    #[garde(dive)]
    #[schema(inline, default = 5000)]
    count: Option<BoundedInteger<0, 1_000_000>>,
}

/// Starts a run of load, on a product of its own that is removed at its end.
#[utoipa::path(post, path = "/runs", tag = "load", request_body = RunRequest,
    security((), ("admin" = [])), params(Visitor),
    responses(
        (status = 202, description = "It has begun, or has a place in the queue: `position`, `starts_in_ms`", body = RunView),
        (status = 404, description = "There is no such strategy"),
        (status = 429, description = "The visitor, or all together, have as many as may wait"),
    ))]
pub(in crate::http) async fn start(
    _: Admin,
    visitor: Visitor,
    State(app): State<AppState>,
    InstanceState(runs): InstanceState<Runs>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    Json(wanted): Json<RunRequest>,
) -> Result<Response, Error> {
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer);
    let mut plan = plan_of(&app, &wanted)?;
    plan.visitor = visitor.has_id().then(|| visitor.id().to_owned());
    let by = origin(&headers, peer);
    let run = runs.start(&app, plan, by, visitor.clone()).await?;
    let view = runs.view(&run, &visitor);
    let location = [(header::LOCATION, view.about.events.clone())];
    Ok((StatusCode::ACCEPTED, location, axum::Json(view)).into_response())
}

/// The visitor's run that waits or is under way; else the one under way, whosever it is; else the visitor's last one.
#[utoipa::path(get, path = "/runs/current", tag = "load", params(Visitor),
    responses(
        (status = 200, description = "How it stands; once it has ended, its row", body = RunView),
        (status = 204, description = "There was none yet"),
    ))]
pub(in crate::http) async fn current(visitor: Visitor, InstanceState(runs): InstanceState<Runs>) -> Response {
    match runs.current(&visitor) {
        Some(run) => {
            if run.ticket.visitor == visitor {
                run.ticket.note_sign_of_life();
            }
            axum::Json(runs.view(&run, &visitor)).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Cancels a run of the visitor's, in the queue or under way; one that has ended stays as it is.
#[utoipa::path(delete, path = "/runs/{id}", tag = "load", security((), ("admin" = [])),
    params(("id" = String, Path, description = "From `POST /runs`"), Visitor),
    responses(
        (status = 202, description = "It ends now", body = RunView),
        (status = 404, description = "There is no such run"),
    ))]
pub(in crate::http) async fn cancel(
    _: Admin,
    visitor: Visitor,
    InstanceState(runs): InstanceState<Runs>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let run = runs.find_own(&id, &visitor)?;
    run.ticket.cancel.cancel();
    Ok((StatusCode::ACCEPTED, axum::Json(runs.view(&run, &visitor))).into_response())
}

/// Watches a run: event `progress` about five times a second, the newest first; then `done` with the row, or `failed`
/// with the reason.
#[utoipa::path(get, path = "/runs/{id}/events", tag = "load",
    params(("id" = String, Path, description = "From `POST /runs`")),
    responses(
        (status = 200, description = "Server-sent events", body = Progress, content_type = "text/event-stream"),
        (status = 404, description = "There is no such run"),
    ))]
pub(in crate::http) async fn events(
    State(app): State<AppState>,
    InstanceState(runs): InstanceState<Runs>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let updates = runs.find(&id)?.watch();
    Ok(sse::stream_response(&app, until_the_end(updates)))
}

/// Each update as events, up to and with the one that ends the run.
fn until_the_end(mut updates: watch::Receiver<RunUpdate>) -> impl Stream<Item = Result<Event, axum::Error>> + Send {
    stream! {
        updates.mark_changed();
        while updates.changed().await.is_ok() {
            let RunUpdate { progress, state } = updates.borrow_and_update().clone();
            yield Event::default().event("progress").json_data(progress);
            let last = match state {
                RunState::Waiting | RunState::Running => continue,
                RunState::Done { row } | RunState::Cancelled { row } => sse::done_event(row),
                RunState::Failed { detail } => sse::failed_event(&detail),
            };
            yield last;
            break;
        }
    }
}

/// The plan of a request; by default 100 threads of 50 loops each, and 5000 pieces.
fn plan_of(app: &AppState, wanted: &RunRequest) -> Result<Plan, Error> {
    let strategy = stock::find(&wanted.strategy).ok_or_else(|| Error::no_strategy(wanted.strategy.clone()))?;
    let (target, base) = match wanted.target {
        Target::One => (ONE_INSTANCE, app.own_address()),
        Target::Three if app.ctx.config.cluster.http.is_empty() => {
            let rule = "cannot be three: this instance does not know its cluster (setting cluster.http)";
            return Err(Error::bad_input("target", rule));
        }
        Target::Three => (THREE_BEHIND_NGINX, app.ctx.config.cluster.http.clone()),
    };
    let (threads, loops) = (wanted.threads.map_or(100, BoundedInteger::get), wanted.loops.map_or(50, BoundedInteger::get));
    if threads * loops > MAX_REQUESTS {
        return Err(Error::bad_input("loops", format!("times threads must be at most {MAX_REQUESTS}")));
    }
    let mut plan = Plan::new(&base, target, strategy.slug);
    (plan.threads, plan.loops) = (threads.unsigned_abs() as usize, loops.unsigned_abs() as usize);
    plan.hold_ms = wanted.hold_ms.map_or(0, BoundedInteger::get).unsigned_abs();
    plan.count = wanted.count.map_or(5000, BoundedInteger::get);
    plan.draws = true;
    plan.token = app.ctx.config.admin_token();
    plan.check().map_err(|rule| Error::bad_input("hold_ms", rule))?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, StreamExt};

    #[test]
    fn the_events_end_with_the_run_though_its_state_stays() {
        let sender = watch::Sender::new(RunUpdate::default());
        let mut events = Box::pin(until_the_end(sender.subscribe()));
        assert!(events.next().now_or_never().flatten().is_some(), "the newest state comes at once");
        assert!(events.next().now_or_never().is_none(), "it goes on");
        sender.send_replace(RunUpdate { state: RunState::Failed { detail: "why".into() }, ..RunUpdate::default() });
        let last = events.collect::<Vec<_>>().now_or_never().expect("it has ended");
        assert_eq!(last.len(), 2, "progress, and the end");
    }
}
