//! One side of a race: a job that is followed and stopped at its points, in this instance or in another one.
//!
//! 1. [`start`] runs an act for a product in this instance. Its first event carries the owner of its locks, its last one
//!    the result; between them there is one event for each point that it passes.
//! 2. It stops at the points among its stops until it is given others.
//! 3. Another instance is asked over HTTP: `POST /replays/actors` starts the actor there and answers with its events,
//!    `PUT /replays/actors/{id}` sets its stops. Closing the answer ends the actor.
//! 4. Dropping an actor ends it like a request whose client hangs up: it gives back what it holds.
//!
//! Next: `running_actor.rs`, which directs it.

use super::act::Act;
use crate::{
    ctx::Ctx,
    error::Error,
    http_client::{Answer, Ask, HttpError, client},
    seckill,
    section::{Follower, FollowerEvent, Job, Point},
    shelf,
};
use futures::StreamExt;
use garde::Validate;
use http::StatusCode;
use oversell_lock::Fence;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use utoipa::ToSchema;
use uuid::Uuid;

/// Another instance answers within this, or it is not there.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest that an actor may live, whatever becomes of who follows it.
const MAX_LIFETIME: Duration = Duration::from_secs(600);

/// What an actor is to do.
#[derive(Debug, Clone, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorSpec {
    /// The slug of a strategy, or the name of another act.
    #[garde(skip)]
    #[schema(example = "redis-setnx-owner")]
    pub act: String,
    /// The product, but not product 1, which is on show; or the voucher.
    #[garde(custom(check_stock_id(&self.act)))]
    #[schema(minimum = 2, example = 9_000_001)]
    pub stock_id: i64,
    /// Its lease, instead of the strategy's own, in milliseconds.
    #[garde(inner(range(min = 100, max = 600_000)))]
    #[schema(minimum = 100, maximum = 600_000, example = 3000)]
    pub lease_ms: Option<u64>,
    /// The longest wait for the lock, in milliseconds.
    #[garde(range(max = 600_000))]
    #[schema(maximum = 600_000, example = 30_000)]
    pub wait_ms: u64,
    /// How long it stays at each point of its work, so that people can follow, in milliseconds.
    #[garde(range(max = 5_000))]
    #[schema(maximum = 5_000, example = 400)]
    pub linger_ms: u64,
    /// The points at which it stands still first.
    #[garde(length(max = 8))]
    #[schema(max_items = 8, example = json!(["read"]))]
    pub stops: Vec<Point>,
}

fn check_stock_id(act: &str) -> impl FnOnce(&i64, &()) -> garde::Result {
    let least = if seckill::find(act).is_some() { 1 } else { 2 };
    move |id, ()| match *id < least {
        true => Err(garde::Error::new(format!("lower than {least}"))),
        false => Ok(()),
    }
}

/// What is seen of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActorEvent {
    /// It has begun.
    Start {
        /// The instance on which it runs.
        instance: String,
        /// What its own locks are marked with.
        owner: String,
    },
    /// It comes by a point.
    Point {
        /// Which.
        #[schema(value_type = String)]
        point: Point,
        /// What it has there.
        value: Option<String>,
    },
    /// It sends this statement or command to a server.
    Sent {
        /// The line.
        line: String,
    },
    /// It has sold a piece, or done what it was to do.
    Done {
        /// What it believes is left.
        remaining: Option<i64>,
        /// Its fencing token.
        fence: Option<u64>,
        /// How often it was tried again.
        retries: u32,
        /// Whether its lock was no longer its own at the end; absent where it has none.
        lost: Option<bool>,
    },
    /// It has not.
    Failed {
        /// The kind of refusal that a lesson may be about: `not-had`, `sold-out`, `already-ordered`,
        /// `under-way`, `fenced`, `lost`, `error`.
        kind: String,
        /// Why.
        detail: String,
    },
}

/// An actor that runs.
#[derive(Debug)]
pub struct Actor {
    events: mpsc::UnboundedReceiver<ActorEvent>,
    stops: watch::Sender<Vec<Point>>,
    _task: AbortOnDropHandle<()>,
}

/// Starts an actor in this instance.
pub(super) fn start(ctx: &Ctx, act: Act, spec: ActorSpec) -> Actor {
    let (sender, events) = mpsc::unbounded_channel();
    let (stops, stopping) = watch::channel(spec.stops);
    let (point_sender, mut points) = mpsc::unbounded_channel();
    let job = Job::new(
        spec.stock_id,
        Duration::ZERO,
        Duration::from_millis(spec.wait_ms),
    );
    let linger = Duration::from_millis(spec.linger_ms);
    let job = job
        .asked(spec.lease_ms.map(Duration::from_millis), None)
        .followed(Follower {
            events: point_sender,
            stops: stopping,
            linger,
        });
    let ctx = ctx.clone();
    let task = tokio::spawn(async move {
        let start = ActorEvent::Start {
            instance: ctx.instance.clone(),
            owner: job.owner(&ctx).to_string(),
        };
        let send = |event| drop(sender.send(event));
        send(start);
        let mut running = Box::pin(tokio::time::timeout(MAX_LIFETIME, act.run(&ctx, &job)));
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = points.recv() => send(event.into()),
                outcome = &mut running => break outcome.unwrap_or(Err(Error::TimedOut(MAX_LIFETIME))),
            }
        };
        while let Ok(event) = points.try_recv() {
            send(event.into());
        }
        send(outcome.map_or_else(failure_event, |done| {
            ActorEvent::Done {
                remaining: done.remaining,
                fence: done.fence.map(|Fence(token)| token),
                retries: done.retries,
                lost: done
                    .lock
                    .map(|found| found == crate::section::LockState::Lost),
            }
        }));
    });
    Actor {
        events,
        stops,
        _task: AbortOnDropHandle::new(task),
    }
}

impl From<FollowerEvent> for ActorEvent {
    fn from(event: FollowerEvent) -> Self {
        match event {
            FollowerEvent::Point { point, value } => Self::Point { point, value },
            FollowerEvent::Sent(line) => Self::Sent { line },
        }
    }
}

fn failure_event(error: Error) -> ActorEvent {
    let kind = match error {
        Error::NotHad { .. } | Error::Taken(_) => "not-had",
        Error::SoldOut => "sold-out",
        Error::AlreadyOrdered => "already-ordered",
        Error::OrderUnderWay => "under-way",
        Error::Fenced { .. } => "fenced",
        Error::Lost(_) => "lost",
        _ => "error",
    };
    ActorEvent::Failed {
        kind: kind.to_owned(),
        detail: error.to_string(),
    }
}

impl Actor {
    /// What is seen of it next; nothing where it has ended.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<ActorEvent> {
        self.events.recv().await
    }

    /// Where it stands still.
    #[must_use]
    pub fn stops(&self) -> watch::Sender<Vec<Point>> {
        self.stops.clone()
    }

    /// One whose events come from elsewhere, and whose stops are sent there by `task`.
    pub(super) fn remote(
        events: mpsc::UnboundedReceiver<ActorEvent>,
        stops: watch::Sender<Vec<Point>>,
        task: tokio::task::JoinHandle<()>,
    ) -> Self {
        Self {
            events,
            stops,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

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
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
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
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
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
            Self::Local(ctx) => Ok(start(ctx, act, spec)),
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
