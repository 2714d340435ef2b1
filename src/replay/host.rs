//! Where an actor runs: in this instance, or in another one, which is asked over HTTP.
//!
//! `POST /replays/actors` starts one there and answers with what is seen of it, event by event; `PUT /replays/actors/{id}`
//! gives it other stops. Where the answer is closed, the actor is ended.

use super::{
    act::Act,
    actor::{self, Actor, ActorEvent, ActorSpec},
};
use crate::{
    ctx::Ctx,
    error::Error,
    http_client::{Answer, Ask, HttpError, client},
    section::Point,
    shelf,
};
use futures::StreamExt;
use http::StatusCode;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use utoipa::ToSchema;
use uuid::Uuid;

/// Another instance answers within this, or it is not there.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// An instance on which actors run.
#[derive(Debug, Clone)]
pub enum ActorHost {
    /// This one.
    Local(Ctx),
    /// Another one.
    Remote {
        /// Its address.
        url: String,
        /// Its admin token, if it has one: it is this instance's.
        token: Option<SecretString>,
    },
}

/// An actor for another instance: it is called by this id from then on.
#[derive(Debug, Serialize, Deserialize, garde::Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartActor {
    /// What it is called from now on.
    #[garde(skip)]
    pub id: Uuid,
    /// What it is to do.
    #[garde(dive)]
    pub part: ActorSpec,
}

/// The stops of an actor.
#[derive(Debug, Serialize, Deserialize, garde::Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetStops {
    /// The points at which it stands still from now on; it goes on from any other.
    #[garde(length(max = 8))]
    #[schema(max_items = 8, example = json!(["checked"]))]
    pub stops: Vec<Point>,
}

impl ActorHost {
    /// Starts an actor.
    pub(super) async fn start(&self, act: Act, spec: ActorSpec) -> Result<Actor, Error> {
        match self {
            Self::Local(ctx) => Ok(actor::start(ctx, act, spec)),
            Self::Remote { url, token } => start_remote(url, token.clone(), spec).await,
        }
    }

    /// Whether it reaches Redis, where it looks for the stock of this product.
    pub(super) async fn reaches_redis(&self, stock_id: i64) -> bool {
        match self {
            Self::Local(ctx) => {
                (shelf::read(ctx, stock_id).await).is_ok_and(|it| it.redis.is_some())
            }
            Self::Remote { url, .. } => {
                let at = format!("{}/stock?stock_id={stock_id}", url.trim_end_matches('/'));
                let answer = client().get(at).timeout(REPLY_TIMEOUT).answer().await;
                let shelf = answer.and_then(|answer| answer.json::<Value>());
                shelf.is_ok_and(|shelf| shelf["redis"].is_object())
            }
        }
    }
}

async fn start_remote(
    url: &str,
    token: Option<SecretString>,
    spec: ActorSpec,
) -> Result<Actor, Error> {
    let (sender, received) = mpsc::unbounded_channel();
    let (stops, mut stopping) = watch::channel(spec.stops.clone());
    let request = StartActor {
        id: Uuid::new_v4(),
        part: spec,
    };
    let at = format!("{}/replays/actors", url.trim_end_matches('/'));
    let started = client().post(&at).json(&request).token(token.as_ref());
    let started = started.events(REPLY_TIMEOUT).await;
    let mut events = started.map_err(|e| no_actor(url, &e))?;
    let at = format!("{at}/{}", request.id);
    let task = tokio::spawn(async move {
        loop {
            tokio::select! {
                event = events.next() => match event.and_then(Result::ok).map(|event| serde_json::from_str(&event.data)) {
                    Some(Ok(event)) => drop(sender.send(event)),
                    _ => return,
                },
                Ok(()) = stopping.changed() => {
                    let stops = SetStops { stops: stopping.borrow_and_update().clone() };
                    let update = client().put(&at).json(&stops).timeout(REPLY_TIMEOUT);
                    match update.token(token.as_ref()).answer().await.and_then(Answer::success) {
                        // One that is not there any more has come to its end, and its last events are still to be read.
                        Ok(_) | Err(HttpError::Refused { status: StatusCode::NOT_FOUND, .. }) => {}
                        Err(error) => {
                            let detail = format!("the instance does not answer: {error}");
                            drop(sender.send(ActorEvent::Failed { kind: "error".to_owned(), detail }));
                            return;
                        }
                    }
                }
            }
        }
    });
    Ok(Actor::remote(received, stops, task))
}

fn no_actor(url: &str, error: &HttpError) -> Error {
    Error::NoActor {
        at: url.to_owned(),
        reason: error.to_string(),
    }
}
