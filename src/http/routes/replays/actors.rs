//! `/replays/actors`: the directing instance starts and directs actors on the other instances.

use super::{Replays, check_enabled};
use crate::http::routes::prelude::*;
use crate::{
    http::{extract::Admin, sse},
    replay::{self, ActorEvent, SetStops, StartActor},
};
use async_stream::stream;
use axum::response::sse::Event;
use uuid::Uuid;

const MAX_ACTORS: usize = 32;

/// Starts an actor of a replay, and answers with its events. Closing the answer ends the actor.
#[utoipa::path(post, path = "/replays/actors", tag = "replays", request_body = StartActor, security((), ("admin" = [])),
    responses(
        (status = 200, description = "Server-sent events", body = ActorEvent, content_type = "text/event-stream"),
        (status = 403, description = "Replays are not enabled here"),
        (status = 404, description = "There is no such act"),
    ))]
pub(in crate::http) async fn play(
    _: Admin,
    State(app): State<AppState>,
    Own(replays): Own<Replays>,
    Json(StartActor { id, part: spec }): Json<StartActor>,
) -> Result<Response, Error> {
    check_enabled(&app)?;
    if replays.actors.lock().len() >= MAX_ACTORS {
        return Err(Error::Overloaded);
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
    Ok(sse::response(&app, events))
}

/// Sets the points at which an actor stops.
#[utoipa::path(put, path = "/replays/actors/{actor}", tag = "replays", request_body = SetStops, security((), ("admin" = [])),
    params(("actor" = Uuid, Path, description = "The id under which it was started")),
    responses(
        (status = 204, description = "It goes on, unless it stands at one of these"),
        (status = 404, description = "There is no such actor"),
    ))]
pub(in crate::http) async fn direct(
    _: Admin,
    Own(replays): Own<Replays>,
    Path(id): Path<Uuid>,
    Json(SetStops { stops }): Json<SetStops>,
) -> Result<StatusCode, Error> {
    let actor = replays
        .actors
        .lock()
        .get(&id)
        .cloned()
        .ok_or(Error::NoActor(id))?;
    actor.send_replace(stops);
    Ok(StatusCode::NO_CONTENT)
}

/// Unregisters an actor when its answer ends.
struct RegisteredActor {
    replays: Arc<Replays>,
    id: Uuid,
}

impl Drop for RegisteredActor {
    fn drop(&mut self) {
        self.replays.actors.lock().remove(&self.id);
    }
}
