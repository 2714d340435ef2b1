//! `/replays`: list, start, step, watch and cancel replays; `/replays/actors`: the directing instance starts and directs actors on
//! the other instances.

use crate::http::routes::prelude::*;
use crate::{
    http::{
        queue::{Place, QueueEntry, millis},
        replays::{ReplayRequest, Replays, VisitorReplay},
        sse,
    },
    replay::{
        self, ActorEvent, Anomaly, ExpectedResult, Log, NextMove, Pace, ReplayEnd, ReplayEvent, Schedule, ServerLanes, SetStops,
        StallPoint, StartActor, Timing,
    },
};
use async_stream::stream;
use axum::response::sse::Event;
use futures::Stream;
use oversell_lab::terminal::bilingual::Bilingual;
use std::sync::atomic::Ordering;

/// Limit of the actors in one instance: more than all visitors' replays have on one of three.
const MAX_ACTORS: usize = 500;

/// The replays of this instance.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ReplaysOverview {
    /// Whether this instance plays replays.
    enabled: bool,
    /// The visitor's replays in progress, and those that a teacher shows to all.
    playing: Vec<ReplayView>,
    /// The replay that breaks servers now, whosever it is.
    breaking: Option<BreakingReplay>,
    replays: Vec<ReplayListing>,
}

#[derive(Debug, Default, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ListFilter {
    /// Only the replay of this lesson. All of them are as large as the rest of a first view.
    #[garde(skip)]
    #[param(example = "2.3")]
    lesson: Option<String>,
    /// The replays in progress of all visitors: for administrators, and for the other instances.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    all: bool,
}

/// A replay that breaks servers: meanwhile no other is played.
#[derive(Debug, Serialize, ToSchema)]
struct BreakingReplay {
    #[schema(example = "2.8")]
    lesson: &'static str,
    /// About how long it still takes, in milliseconds.
    #[schema(example = 12_000)]
    left_ms: u64,
}

/// A race that can be replayed.
#[derive(Debug, Serialize, ToSchema)]
struct ReplayListing {
    #[schema(example = "2.3")]
    lesson: &'static str,
    title: Bilingual,
    /// What breaks.
    breaks: Bilingual,
    /// What mends it.
    cure: Bilingual,
    /// What goes wrong in it, by its names in the field.
    anomalies: &'static [Anomaly],
    /// The act of its actors.
    #[schema(example = "redis-setnx-ttl")]
    runs: &'static str,
    /// Their act on the cure.
    #[schema(example = "redis-setnx-owner")]
    cured_runs: &'static str,
    /// Whether each actor places an order for the same user, who may have one; else they take pieces, if any.
    places_orders: bool,
    /// The result that it must have.
    ends: ExpectedResult,
    /// The result that the cure must have.
    cured_ends: ExpectedResult,
    /// Whether it runs alone: it stops or breaks something.
    alone: bool,
    /// The actors.
    #[schema(example = json!(["A", "B"]))]
    actors: Vec<char>,
    /// The actors on the cure.
    #[schema(example = json!(["A", "B"]))]
    cured_actors: Vec<char>,
    /// About how long it takes at the pace `slow`.
    #[schema(example = 6_500)]
    lasts_ms: u64,
    /// The same on the cure.
    #[schema(example = 6_500)]
    cured_lasts_ms: u64,
    /// What its picture shows below the actors.
    shows: ServerLanes,
    /// The same on the cure.
    cured_shows: ServerLanes,
    /// What a person decides at the pace `scheduler`; null if that pace does not play it.
    scheduled: Option<Schedule>,
    /// The same on the cure.
    cured_scheduled: Option<Schedule>,
    /// Whether the pace `timed` plays it.
    timed: bool,
    /// Why it cannot be played here.
    cannot: Option<Bilingual>,
}

/// How a replay is played.
#[derive(Debug, Default, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct StartOptions {
    /// Play the cure.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    cured: bool,
    /// Show it to all visitors: with the admin token where one is set.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    shared: bool,
    /// The pace.
    #[serde(default)]
    #[garde(skip)]
    #[param(inline, default = "slow")]
    pace: Pace,
    /// Where A stops, at the pace `timed`.
    #[garde(custom(only_at_timed_pace(self.pace)))]
    #[param(inline, default = "read")]
    at: Option<StallPoint>,
    /// How long A stops, in milliseconds, at the pace `timed`.
    #[garde(custom(only_at_timed_pace(self.pace)), inner(range(max = 10_000)))]
    #[param(maximum = 10_000, default = 1_500)]
    pause_ms: Option<u64>,
    /// The lease of both actors, in milliseconds, at the pace `timed`.
    #[garde(custom(only_at_timed_pace(self.pace)), inner(range(min = 100, max = 10_000)))]
    #[param(minimum = 100, maximum = 10_000, default = 1_000)]
    lease_ms: Option<u64>,
    /// How long after A B starts, in milliseconds, at the pace `timed`.
    #[garde(custom(only_at_timed_pace(self.pace)), inner(range(max = 10_000)))]
    #[param(maximum = 10_000, default = 500)]
    after_ms: Option<u64>,
}

/// Refuses a time at any other pace than `timed`.
fn only_at_timed_pace<T>(pace: Pace) -> impl FnOnce(&Option<T>, &()) -> garde::Result {
    move |time, ()| require(time.is_none() || pace == Pace::Timed, "only at the pace timed")
}

impl StartOptions {
    /// The times of the pace `timed`, with their defaults.
    fn timing(&self) -> Timing {
        Timing {
            at: self.at.unwrap_or_default(),
            pause: Duration::from_millis(self.pause_ms.unwrap_or(1_500)),
            lease_ms: self.lease_ms.unwrap_or(1_000),
            after: Duration::from_millis(self.after_ms.unwrap_or(500)),
        }
    }
}

/// A started replay.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ReplayView {
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    id: String,
    #[schema(example = "2.3")]
    lesson: &'static str,
    cured: bool,
    pace: Pace,
    /// The instance that directs it.
    #[schema(example = "8000")]
    instance: String,
    /// `waiting`, `running`, `done`, `failed`.
    #[schema(example = "running")]
    state: &'static str,
    /// Whether it is the visitor's own: only they step and cancel it.
    own: bool,
    /// Whether it is shown to all visitors.
    shared: bool,
    /// How many replays end before it begins; 0 once it has begun.
    #[schema(example = 0)]
    position: usize,
    /// About how long it waits, in milliseconds.
    #[schema(example = 0)]
    starts_in_ms: u64,
    /// The address of its events.
    #[schema(example = "/replays/6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b/events")]
    events: String,
}

impl ReplayView {
    /// The replay as this visitor sees it now.
    fn of(app: &AppState, replays: &Replays, replay: &VisitorReplay, visitor: &Visitor) -> Self {
        let Place { position, starts_in } = replays.queue.place_of(replay);
        let state = match replay.log.end() {
            None if position > 0 => "waiting",
            None => "running",
            Some(ReplayEnd::Done(_)) => "done",
            Some(ReplayEnd::Failed(_)) => "failed",
        };
        Self {
            id: replay.ticket.id.to_string(),
            lesson: replay.lesson,
            cured: replay.cured,
            pace: replay.pace,
            instance: app.ctx.instance.clone(),
            state,
            own: replay.ticket.visitor == *visitor,
            shared: replay.is_shared.load(Ordering::Relaxed),
            position,
            starts_in_ms: millis(starts_in),
            events: format!("/replays/{}/events", replay.ticket.id),
        }
    }
}

/// Every lesson that has a replay, in the course's order.
#[utoipa::path(get, path = "/replays", tag = "replays",
    params(ListFilter, Visitor),
    security((), ("admin" = [])), responses((status = 200, description = "The replays", body = ReplaysOverview)))]
pub(in crate::http) async fn list(
    admin: Result<Admin, Error>,
    visitor: Visitor,
    State(app): State<AppState>,
    InstanceState(replays): InstanceState<Replays>,
    Query(ListFilter { lesson, all }): Query<ListFilter>,
) -> Result<axum::Json<ReplaysOverview>, Error> {
    require_token_if(all, admin)?;
    let mut races: Vec<_> =
        replay::lessons().filter(|(shown, _)| lesson.as_deref().is_none_or(|wanted| wanted == *shown)).collect();
    races.sort_by_key(|(shown, _)| claims::lessons().position(|lesson| lesson.id == *shown));
    let listed = races.into_iter().map(|(lesson, race)| {
        let [flaw, cure] = [false, true].map(|cured| race.script(cured));
        ReplayListing {
            lesson,
            title: race.title,
            breaks: race.breaks,
            cure: race.cure,
            anomalies: race.anomalies,
            runs: race.flaw.act.name(),
            cured_runs: race.cured.act.name(),
            places_orders: race.places_orders(),
            ends: race.flaw.expected,
            cured_ends: race.cured.expected,
            alone: race.is_exclusive(Pace::Slow, &app.ctx.config),
            actors: flaw.actors(),
            cured_actors: cure.actors(),
            lasts_ms: flaw.estimated_ms(),
            cured_lasts_ms: cure.estimated_ms(),
            shows: flaw.server_lanes(&app.ctx.config),
            cured_shows: cure.server_lanes(&app.ctx.config),
            scheduled: race.schedule(false),
            cured_scheduled: race.schedule(true),
            timed: race.is_timed(),
            cannot: race.why_not_playable(&app.ctx.config),
        }
    });
    let running = replays.queue.unfinished();
    let breaking = running.iter().find(|replay| replay.ticket.is_exclusive && !replay.is_waiting());
    let playing = running
        .iter()
        .filter(|replay| all || replay.is_shared.load(Ordering::Relaxed) || replay.ticket.visitor == visitor)
        .map(|replay| ReplayView::of(&app, &replays, replay, &visitor));
    Ok(axum::Json(ReplaysOverview {
        enabled: app.ctx.config.replays.enabled,
        playing: playing.collect(),
        breaking: breaking.map(|replay| BreakingReplay { lesson: replay.lesson, left_ms: millis(replay.time_left()) }),
        replays: listed.collect(),
    }))
}

/// Replays the race of a lesson on the real servers, with at most three actors on the real instances. A replay that
/// breaks servers or stops an instance needs the admin token; so do its steps and its cancellation.
#[utoipa::path(post, path = "/replays/{replay}", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "One of `GET /replays`", example = "2.3"), StartOptions, Visitor),
    responses(
        (status = 202, description = "It has begun, or has a place in the queue", body = ReplayView),
        (status = 403, description = "Replays are not enabled here"),
        (status = 404, description = "There is no replay of this lesson"),
        (status = 409, description = "The visitor's own one is going on; or one in another instance, and one of the two breaks servers"),
        (status = 429, description = "The visitor, or all together, have as many as may run"),
    ))]
pub(in crate::http) async fn start(
    admin: Result<Admin, Error>,
    visitor: Visitor,
    State(app): State<AppState>,
    InstanceState(replays): InstanceState<Replays>,
    Path(lesson): Path<String>,
    Query(how): Query<StartOptions>,
) -> Result<Response, Error> {
    check_replays_and_own_locks_enabled(&app)?;
    let (lesson, race) = replay::find(&lesson).ok_or(Error::NoReplay(lesson))?;
    let is_exclusive = race.is_exclusive(how.pace, &app.ctx.config);
    require_token_if(is_exclusive || how.shared, admin)?;
    if how.pace == Pace::Scheduler && race.schedule(how.cured).is_none() {
        let rule = "this race has no schedule that a person decides: take another pace";
        return Err(Error::bad_input("pace", rule));
    }
    if how.pace == Pace::Timed && !race.is_timed() {
        return Err(Error::bad_input("pace", "no lease ends in this race: take another pace"));
    }
    app.server_watch.wait_until_up(&race.servers(how.cured)).await?;
    let request = ReplayRequest { lesson, race, cured: how.cured, pace: how.pace, is_shared: how.shared, timing: how.timing() };
    let replay = replays.start(&app, visitor.clone(), request).await?;
    let view = ReplayView::of(&app, &replays, &replay, &visitor);
    let location = [(header::LOCATION, view.events.clone())];
    Ok((StatusCode::ACCEPTED, location, axum::Json(view)).into_response())
}

/// Lets a replay of the visitor's own, at the pace `step`, go on by one step; an exclusive one takes the admin token too.
#[utoipa::path(post, path = "/replays/{replay}/step", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`"), Visitor),
    responses(
        (status = 204, description = "It goes on"),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn step(
    admin: Result<Admin, Error>,
    visitor: Visitor,
    InstanceState(replays): InstanceState<Replays>,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    let replay = replays.queue.find_own(&id, &visitor)?;
    require_token_if(replay.ticket.is_exclusive, admin)?;
    replay.step(NextMove::Step);
    Ok(StatusCode::NO_CONTENT)
}

/// Who makes the next move in a replay at the pace `scheduler`.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct NextMoveQuery {
    /// An actor; or `clock`, which ends all leases; `death`; `failover`.
    #[garde(skip)]
    #[param(inline)]
    pub(super) actor: NextMove,
}

/// Lets an actor go on to its next stop, at the pace `scheduler`. Does nothing to an actor that runs or has ended.
#[utoipa::path(post, path = "/replays/{replay}/next", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`"), NextMoveQuery, Visitor),
    responses(
        (status = 204, description = "It goes on"),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn next(
    admin: Result<Admin, Error>,
    visitor: Visitor,
    InstanceState(replays): InstanceState<Replays>,
    Path(id): Path<String>,
    Query(NextMoveQuery { actor }): Query<NextMoveQuery>,
) -> Result<StatusCode, Error> {
    let replay = replays.queue.find_own(&id, &visitor)?;
    require_token_if(replay.ticket.is_exclusive, admin)?;
    replay.step(actor);
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels a replay: its actors give back what they hold.
#[utoipa::path(delete, path = "/replays/{replay}", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`"), Visitor),
    responses(
        (status = 202, description = "It ends now", body = ReplayView),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn cancel(
    admin: Result<Admin, Error>,
    visitor: Visitor,
    State(app): State<AppState>,
    InstanceState(replays): InstanceState<Replays>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let replay = replays.queue.find_own(&id, &visitor)?;
    require_token_if(replay.ticket.is_exclusive, admin)?;
    replay.ticket.cancel.cancel();
    Ok((StatusCode::ACCEPTED, axum::Json(ReplayView::of(&app, &replays, &replay, &visitor))).into_response())
}

/// The events of a replay, from its beginning: one for each thing that an actor or a server did, then `done` with the
/// result, or `failed` with the reason.
#[utoipa::path(get, path = "/replays/{replay}/events", tag = "replays",
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`")),
    responses(
        (status = 200, description = "Server-sent events; the last one is an `ReplayResult`", body = ReplayEvent, content_type = "text/event-stream"),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn events(
    State(app): State<AppState>,
    InstanceState(replays): InstanceState<Replays>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let log = Arc::clone(&replays.queue.find(&id)?.log);
    Ok(sse::stream_response(&app, from_the_beginning(log)))
}

/// All events of a replay, from the first one to its end.
fn from_the_beginning(log: Arc<Log>) -> impl Stream<Item = Result<Event, axum::Error>> + Send {
    stream! {
        let (mut changes, mut told) = (log.watch(), 0);
        loop {
            // Read the end first, so that all events before it are there.
            let end = log.end();
            for event in log.events_from(told) {
                told += 1;
                yield Event::default().json_data(event);
            }
            let last = match end {
                Some(ReplayEnd::Done(ending)) => sse::done_event(ending),
                Some(ReplayEnd::Failed(detail)) => sse::failed_event(&detail),
                None => match changes.changed().await {
                    Ok(()) => continue,
                    Err(_) => break,
                },
            };
            yield last;
            break;
        }
    }
}

/// Starts an actor of a replay, and answers with its events. Closing the answer ends the actor.
#[utoipa::path(post, path = "/replays/actors", tag = "replays", request_body = StartActor, security((), ("admin" = [])),
    responses(
        (status = 200, description = "Server-sent events", body = ActorEvent, content_type = "text/event-stream"),
        (status = 403, description = "Replays are not enabled here"),
        (status = 404, description = "There is no such act"),
    ))]
pub(in crate::http) async fn start_actor(
    _: Admin,
    State(app): State<AppState>,
    InstanceState(replays): InstanceState<Replays>,
    Json(StartActor { id, spec }): Json<StartActor>,
) -> Result<Response, Error> {
    check_replays_and_own_locks_enabled(&app)?;
    if replays.actors.lock().len() >= MAX_ACTORS {
        return Err(Error::Overloaded("actors"));
    }
    let mut actor = replay::start_by_name(&app.ctx, spec)?;
    replays.actors.lock().insert(id, actor.stops());
    let playing = RegisteredActor { replays, id };
    let events = stream! {
        let _until_the_answer_ends = playing;
        while let Some(event) = actor.next().await {
            yield Event::default().json_data(event);
        }
    };
    Ok(sse::stream_response(&app, events))
}

/// Sets the points at which an actor stops.
#[utoipa::path(put, path = "/replays/actors/{actor}", tag = "replays", request_body = SetStops, security((), ("admin" = [])),
    params(("actor" = Uuid, Path, description = "The id under which it was started")),
    responses(
        (status = 204, description = "It goes on, unless it stands at one of these"),
        (status = 404, description = "There is no such actor"),
    ))]
pub(in crate::http) async fn direct_actor(
    _: Admin,
    InstanceState(replays): InstanceState<Replays>,
    Path(id): Path<Uuid>,
    Json(SetStops { stops }): Json<SetStops>,
) -> Result<StatusCode, Error> {
    let actor = replays.actors.lock().get(&id).cloned().ok_or(Error::NoActor(id))?;
    actor.send_replace(stops);
    Ok(StatusCode::NO_CONTENT)
}

/// An actor that plays here for another instance; dropping this unregisters it.
struct RegisteredActor {
    replays: Arc<Replays>,
    id: Uuid,
}

impl Drop for RegisteredActor {
    fn drop(&mut self) {
        self.replays.actors.lock().remove(&self.id);
    }
}

/// Refuses a request without the admin token where one is needed, such as for an exclusive replay.
fn require_token_if(needs_token: bool, admin: Result<Admin, Error>) -> Result<(), Error> {
    if needs_token { admin.map(drop) } else { Ok(()) }
}

/// Fails if `replays.enabled` is off, which the scripts of students need too.
pub(super) fn check_replays_and_own_locks_enabled(app: &AppState) -> Result<(), Error> {
    app.ctx.config.replays.enabled.then_some(()).ok_or(Error::NoReplays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::replays::tests::replay;

    /// Its next step is a fail-over.
    #[tokio::test]
    async fn only_an_administrator_steps_an_exclusive_replay() {
        for is_exclusive in [true, false] {
            let replays = Arc::new(Replays::default());
            let one = replay("one", "2.8", Pace::Scheduler, is_exclusive);
            replays.queue.add(&one).expect("a place");
            let next = async |admin| {
                let actor = Query(NextMoveQuery { actor: NextMove::FailOver });
                let id = Path(one.ticket.id.to_string());
                let visitor = Visitor::named("one");
                next(admin, visitor, InstanceState(Arc::clone(&replays)), id, actor).await
            };
            let stranger = next(Err(Error::Unauthorized)).await;
            assert_eq!(stranger.is_err(), is_exclusive, "{stranger:?}");
            assert!(next(Ok(Admin)).await.is_ok());
        }
    }
}
