//! `/replays`: list, start, step, watch and cancel replays.

use super::{ActiveReplay, Replays, check_enabled, check_permission};
use crate::http::routes::prelude::*;
use crate::{
    claims,
    error::Error as Domain,
    http::{extract::Admin, sse},
    replay::{
        self, ExpectedResult, Log, NextMove, Pace, ReplayEnd, ReplayEvent, Schedule, StallPoint,
        Timing,
    },
    terminal::bilingual::Bilingual,
};
use async_stream::stream;
use axum::response::sse::Event;
use futures::Stream;
use http::header;

/// The replays of this instance.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct List {
    /// Whether this instance plays replays.
    enabled: bool,
    /// The replays in progress: one, or a race and its cure, and schedules.
    playing: Vec<ReplayView>,
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
    /// The act of its actors.
    #[schema(example = "redis-setnx-ttl")]
    runs: &'static str,
    /// Their act on the cure.
    #[schema(example = "redis-setnx-owner")]
    cured_runs: &'static str,
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
    /// The pace.
    #[serde(default)]
    #[garde(skip)]
    #[param(inline, default = "slow")]
    pace: Pace,
    /// Where A stops, at the pace `timed`.
    #[garde(custom(timed(self.pace)))]
    #[param(inline, default = "read")]
    at: Option<StallPoint>,
    /// How long A stops, in milliseconds, at the pace `timed`.
    #[garde(custom(timed(self.pace)), inner(range(max = 10_000)))]
    #[param(maximum = 10_000, default = 1_500)]
    pause_ms: Option<u64>,
    /// The lease of both actors, in milliseconds, at the pace `timed`.
    #[garde(custom(timed(self.pace)), inner(range(min = 100, max = 10_000)))]
    #[param(minimum = 100, maximum = 10_000, default = 1_000)]
    lease_ms: Option<u64>,
    /// How long after A B starts, in milliseconds, at the pace `timed`.
    #[garde(custom(timed(self.pace)), inner(range(max = 10_000)))]
    #[param(maximum = 10_000, default = 500)]
    after_ms: Option<u64>,
}

/// Times mean nothing at the other paces.
fn timed<T>(pace: Pace) -> impl FnOnce(&Option<T>, &()) -> garde::Result {
    move |time, ()| match time.is_some() && pace != Pace::Timed {
        true => Err(garde::Error::new("only at the pace timed")),
        false => Ok(()),
    }
}

impl StartOptions {
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
#[schema(as = ReplayView)]
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
    /// `running`, `done`, `failed`.
    #[schema(example = "running")]
    state: &'static str,
    /// The address of its events.
    #[schema(example = "/replays/6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b/events")]
    events: String,
}

impl ReplayView {
    fn of(app: &AppState, replay: &ActiveReplay) -> Self {
        let state = match replay.log.end() {
            None => "running",
            Some(ReplayEnd::Done(_)) => "done",
            Some(ReplayEnd::Failed(_)) => "failed",
        };
        Self {
            id: replay.id.to_string(),
            lesson: replay.lesson,
            cured: replay.cured,
            pace: replay.pace,
            instance: app.ctx.instance.clone(),
            state,
            events: format!("/replays/{}/events", replay.id),
        }
    }
}

/// Every lesson that has a replay, in the course's order.
#[utoipa::path(get, path = "/replays", tag = "replays", params(ListFilter),
    responses((status = 200, description = "The replays", body = List)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    Own(replays): Own<Replays>,
    Query(ListFilter { lesson }): Query<ListFilter>,
) -> axum::Json<List> {
    let mut races: Vec<_> = replay::lessons()
        .filter(|(shown, _)| lesson.as_deref().is_none_or(|wanted| wanted == *shown))
        .collect();
    races.sort_by_key(|(shown, _)| claims::lessons().position(|lesson| lesson.id == *shown));
    let listed = races.into_iter().map(|(lesson, race)| ReplayListing {
        lesson,
        title: race.title,
        breaks: race.breaks,
        cure: race.cure,
        runs: race.flaw.act.name(),
        cured_runs: race.cured.act.name(),
        ends: race.flaw.expected,
        cured_ends: race.cured.expected,
        alone: race.is_exclusive(Pace::Slow, &app.ctx.config),
        actors: race.script(false).actors(),
        cured_actors: race.script(true).actors(),
        lasts_ms: race.script(false).lasts_ms(),
        cured_lasts_ms: race.script(true).lasts_ms(),
        scheduled: race.schedule(false),
        cured_scheduled: race.schedule(true),
        timed: race.is_timed(),
        cannot: race.why_not_playable(&app.ctx.config),
    });
    let playing = replays
        .running()
        .iter()
        .map(|replay| ReplayView::of(&app, replay))
        .collect();
    axum::Json(List {
        enabled: app.ctx.config.replays.enabled,
        playing,
        replays: listed.collect(),
    })
}

/// Replays the race of a lesson on the real servers, with at most three actors on the real instances. A replay that
/// breaks servers or stops an instance needs the admin token; so do its steps and its cancellation.
#[utoipa::path(post, path = "/replays/{replay}", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "One of `GET /replays`", example = "2.3"), StartOptions),
    responses(
        (status = 202, description = "It has begun", body = ReplayView),
        (status = 403, description = "Replays are not enabled here"),
        (status = 404, description = "There is no replay of this lesson"),
        (status = 409, description = "Another one is going on here; or in another instance, and one of the two breaks servers"),
    ))]
pub(in crate::http) async fn start(
    admin: Result<Admin, Error>,
    State(app): State<AppState>,
    Own(replays): Own<Replays>,
    Path(lesson): Path<String>,
    Query(how): Query<StartOptions>,
) -> Result<Response, Error> {
    check_enabled(&app)?;
    let (lesson, race) = replay::find(&lesson).ok_or(Error::NoReplay(lesson))?;
    check_permission(race.is_exclusive(how.pace, &app.ctx.config), admin)?;
    if how.pace == Pace::Scheduler && race.schedule(how.cured).is_none() {
        let rule = "this race has no schedule that a person decides: take another pace";
        return Err(Error::bad_input("pace", rule));
    }
    if how.pace == Pace::Timed && !race.is_timed() {
        return Err(Error::bad_input(
            "pace",
            "no lease ends in this race: take another pace",
        ));
    }
    app.instance.wait_until_up(&race.servers(how.cured)).await?;
    let (replay, started) =
        replays.start(&app, (lesson, race), how.cured, how.pace, how.timing())?;
    let stopping = |_| Err(Domain::replay("the instance ends").into());
    started.await.unwrap_or_else(stopping)?;
    let view = ReplayView::of(&app, &replay);
    let location = [(header::LOCATION, view.events.clone())];
    Ok((StatusCode::ACCEPTED, location, axum::Json(view)).into_response())
}

/// Lets a replay at the pace `step` go on by one step.
#[utoipa::path(post, path = "/replays/{replay}/step", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`")),
    responses(
        (status = 204, description = "It goes on"),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn step(
    admin: Result<Admin, Error>,
    Own(replays): Own<Replays>,
    Path(id): Path<String>,
) -> Result<StatusCode, Error> {
    let replay = replays.find(&id)?;
    check_permission(replay.is_exclusive, admin)?;
    replay.steps.request(NextMove::All);
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct NextQuery {
    /// An actor; or `clock`, which ends all leases; `death`; `failover`.
    #[garde(skip)]
    #[param(inline)]
    pub(super) actor: NextMove,
}

/// Lets an actor go on to its next stop, at the pace `scheduler`. Does nothing to an actor that runs or has ended.
#[utoipa::path(post, path = "/replays/{replay}/next", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`"), NextQuery),
    responses(
        (status = 204, description = "It goes on"),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn next(
    admin: Result<Admin, Error>,
    Own(replays): Own<Replays>,
    Path(id): Path<String>,
    Query(NextQuery { actor }): Query<NextQuery>,
) -> Result<StatusCode, Error> {
    let replay = replays.find(&id)?;
    check_permission(replay.is_exclusive, admin)?;
    replay.steps.request(actor);
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels a replay: its actors give back what they hold.
#[utoipa::path(delete, path = "/replays/{replay}", tag = "replays", security((), ("admin" = [])),
    params(("replay" = String, Path, description = "The id from `POST /replays/{replay}`")),
    responses(
        (status = 202, description = "It ends now", body = ReplayView),
        (status = 404, description = "There is no such replay"),
    ))]
pub(in crate::http) async fn cancel(
    admin: Result<Admin, Error>,
    State(app): State<AppState>,
    Own(replays): Own<Replays>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let replay = replays.find(&id)?;
    check_permission(replay.is_exclusive, admin)?;
    replay.cancel.cancel();
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(ReplayView::of(&app, &replay)),
    )
        .into_response())
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
    Own(replays): Own<Replays>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let log = Arc::clone(&replays.find(&id)?.log);
    Ok(sse::response(&app, from_the_beginning(log)))
}

/// All events up to the end.
fn from_the_beginning(log: Arc<Log>) -> impl Stream<Item = Result<Event, axum::Error>> + Send {
    stream! {
        let (mut changes, mut told) = (log.watch(), 0);
        loop {
            // Read the end first, so that all events before it are there.
            let end = log.end();
            for event in log.since(told) {
                told += 1;
                yield Event::default().json_data(event);
            }
            let last = match end {
                Some(ReplayEnd::Done(ending)) => sse::done(ending),
                Some(ReplayEnd::Failed(detail)) => sse::failed(&detail),
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
