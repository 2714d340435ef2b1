//! An actor of a race: a job that is followed and stopped at its points, in this instance or in another one.
//!
//! 1. [`start`] runs an act for a product in this instance. Its first event carries the owner of its locks, its last one
//!    the result; between them there is one event for each point that it passes.
//! 2. It stops at the points among its stops until it is given others.
//! 3. Another instance is asked over HTTP: `POST /replays/actors` starts the actor there and answers with its events,
//!    `PUT /replays/actors/{id}` sets its stops. Closing the answer ends the actor.
//! 4. Dropping an actor ends it like a request whose client hangs up: it gives back what it holds.
//!
//! The job passes its points in `section/points.rs`. Its commands to the servers are seen in `section/redis_tap.rs` and by its
//! `own_clients.rs`, its statements in `section/mysql.rs`.
//!
//! Next: `act.rs`, what an actor does.

use super::{
    act::{Act, place_order},
    own_clients::OwnClients,
};
use crate::{
    config::require,
    ctx::Ctx,
    error::Error,
    seckill,
    seckill::SeckillError,
    section::{
        Deduction, Job, LockState, RedisTap,
        points::{Follower, FollowerEvent, Point},
    },
    stock, stock_admin,
};
use futures::StreamExt;
use garde::Validate;
use http::StatusCode;
use oversell_lab::clients::http_client::{Answer, Ask, HttpError, client};
use oversell_lock::Fence;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use utoipa::ToSchema;
use uuid::Uuid;

/// Time limit of one answer of another instance; a slower instance counts as down.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// An actor that its replay does not end is ended after this, longer than any step waits for a person.
const MAX_LIFETIME: Duration = Duration::from_secs(600);

/// What an actor must do.
#[derive(Debug, Clone, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorSpec {
    /// The slug of a strategy, or the name of another act.
    #[garde(skip)]
    #[schema(example = "redis-setnx-owner")]
    pub act: String,
    /// The product, but not product 1, which the page shows; or the voucher.
    #[garde(custom(check_stock_id(&self.act)))]
    #[schema(minimum = 2, example = 9_000_001)]
    pub stock_id: i64,
    /// Its lease in milliseconds, instead of the strategy's own.
    #[garde(inner(range(min = 100, max = 600_000)))]
    #[schema(minimum = 100, maximum = 600_000, example = 3000)]
    pub lease_ms: Option<u64>,
    /// The longest wait for the lock, in milliseconds.
    #[garde(range(max = 600_000))]
    #[schema(maximum = 600_000, example = 30_000)]
    pub wait_ms: u64,
    /// How long it stays at each point of its work, in milliseconds, so that people can follow.
    #[garde(range(max = 5_000))]
    #[schema(maximum = 5_000, example = 400)]
    pub linger_ms: u64,
    /// The points at which it stops first.
    #[garde(length(max = 8))]
    #[schema(max_items = 8, example = json!(["read"]))]
    pub stops: Vec<Point>,
}

/// The check of a stock id: at least 1 for a voucher, 2 for a product, because the page shows product 1.
fn check_stock_id(act: &str) -> impl FnOnce(&i64, &()) -> garde::Result {
    let least = if seckill::find(act).is_some() { 1 } else { 2 };
    move |id, ()| require(*id >= least, format_args!("lower than {least}"))
}

/// An event of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActorEvent {
    /// It has started.
    Start {
        instance: String,
        /// The mark of its own locks.
        owner: String,
    },
    /// It has passed a point.
    Point {
        #[schema(value_type = String)]
        point: Point,
        /// The value that it has there.
        value: Option<String>,
    },
    /// It has sent this statement or command to a server. Further lines are the text of its script.
    Sent { line: String },
    /// The server has answered this statement or command.
    Answered { line: String, answer: String },
    /// It has succeeded.
    Done {
        /// What it believes is left.
        remaining: Option<i64>,
        /// Its fencing token.
        fence: Option<u64>,
        /// The number of retries.
        retries: u32,
        /// Whether its lock was lost at the unlock; absent without a lock.
        lost: Option<bool>,
    },
    /// It has failed.
    Failed {
        /// `not-had`, `sold-out`, `already-ordered`, `under-way`, `fenced`, `lost`, or `error`.
        kind: String,
        /// The reason.
        detail: String,
    },
}

/// A started actor, of this instance or another: its events and its stops. Dropping it ends it.
#[derive(Debug)]
pub struct Actor {
    events: mpsc::UnboundedReceiver<ActorEvent>,
    stops: watch::Sender<Vec<Point>>,
    _task: AbortOnDropHandle<()>,
}

/// Does the act for this job. An order's voucher and user both have the job's stock id as number.
async fn run_act(act: Act, ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    match act {
        Act::Strategy(slug) => {
            let strategy = stock::find(slug).ok_or_else(|| Error::NoStrategy(slug.to_owned()))?;
            // Not `Strategy::deduct`: an actor prints nothing on the console.
            (strategy.spec.deduct)(ctx, job).await
        }
        Act::Order(slug) => {
            let id = job.request.stock_id;
            place_order(ctx, job, slug, id, id).await
        }
        Act::Custom(custom) => (custom.run)(ctx, job).await,
        Act::Deadlock(_) => Err(Error::Internal("it is played as a whole".into())),
    }
}

/// Starts the actor as a task of this instance, and reports its points and its commands to the servers as events. Fails only
/// if a client cannot be made; an error of the act is its last event.
pub(super) fn start(ctx: &Ctx, spec: ActorSpec, act: Act) -> Result<Actor, Error> {
    let (sender, events) = mpsc::unbounded_channel();
    let (stops, stopping) = watch::channel(spec.stops);
    let (point_sender, mut points) = mpsc::unbounded_channel();
    let job = Job::new(spec.stock_id, Duration::ZERO, Duration::from_millis(spec.wait_ms));
    let linger = Duration::from_millis(spec.linger_ms);
    let job = job.with_options(spec.lease_ms.map(Duration::from_millis), None).with_follower(Follower {
        events: point_sender,
        stops: stopping,
        linger,
    });
    let tap = |connection, node: Option<usize>| {
        let name = node.and_then(|n| stock_admin::NODES.get(n).copied());
        RedisTap::new(connection, job.observation.points(), name)
    };
    let ctx = ctx.for_actors_of(spec.stock_id).with_redis_over(tap)?;
    let names = act.reset_scope().names;
    let (own, ctx) = OwnClients::new(&ctx, names, job.observation.points())?;
    let task = tokio::spawn(async move {
        let start = ActorEvent::Start { instance: ctx.instance.clone(), owner: job.owner(&ctx).to_string() };
        let send = |event| drop(sender.send(event));
        send(start);
        let running = async {
            own.wait_until_connected().await?;
            run_act(act, &ctx, &job).await
        };
        let mut running = Box::pin(tokio::time::timeout(MAX_LIFETIME, running));
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = points.recv() => send(event.into()),
                outcome = &mut running => break outcome.unwrap_or(Err(Error::RequestTimeout(MAX_LIFETIME))),
            }
        };
        while let Ok(event) = points.try_recv() {
            send(event.into());
        }
        send(outcome.map_or_else(failure_event, |done| ActorEvent::Done {
            remaining: done.remaining,
            fence: done.fence.map(|Fence(token)| token),
            retries: done.retries,
            lost: done.lock.map(|found| found == LockState::Lost),
        }));
    });
    Ok(Actor { events, stops, _task: AbortOnDropHandle::new(task) })
}

impl From<FollowerEvent> for ActorEvent {
    fn from(event: FollowerEvent) -> Self {
        match event {
            FollowerEvent::Point { point, value } => Self::Point { point, value },
            FollowerEvent::Sent(line) => Self::Sent { line },
            FollowerEvent::Answered { line, answer } => Self::Answered { line, answer },
        }
    }
}

/// The last event of an actor that failed with this error.
fn failure_event(error: Error) -> ActorEvent {
    let kind = match error {
        Error::Timeout { .. } | Error::Taken(_) => "not-had",
        Error::SoldOut => "sold-out",
        Error::Seckill(SeckillError::AlreadyOrdered) => "already-ordered",
        Error::Seckill(SeckillError::OrderUnderWay) => "under-way",
        Error::Fenced { .. } => "fenced",
        Error::Lost(_) => "lost",
        _ => "error",
    };
    ActorEvent::Failed { kind: kind.to_owned(), detail: error.to_string() }
}

impl Actor {
    /// The next event; `None` after the last one, or once its instance has ended the connection.
    pub async fn next(&mut self) -> Option<ActorEvent> {
        self.events.recv().await
    }

    /// The sender that sets the points at which it stops.
    pub fn stops(&self) -> watch::Sender<Vec<Point>> {
        self.stops.clone()
    }
}

/// An instance on which actors run: this one, or another one over HTTP.
#[derive(Debug, Clone)]
pub enum ActorHost {
    Local(Ctx),
    Remote {
        url: String,
        /// Its admin token, which is this instance's too.
        token: Option<SecretString>,
    },
}

/// Starts an actor on another instance.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartActor {
    /// The id under which its stops are set.
    #[garde(skip)]
    pub id: Uuid,
    /// What it must do.
    #[garde(dive)]
    pub spec: ActorSpec,
}

/// The stops of an actor.
#[derive(Debug, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetStops {
    /// The points at which it stops from now on. It goes on from any other.
    #[garde(length(max = 8))]
    #[schema(max_items = 8, example = json!(["checked"]))]
    pub stops: Vec<Point>,
}

impl ActorHost {
    /// Starts an actor there; another instance finds the act by its name in `spec`.
    pub(super) async fn start(&self, act: Act, spec: ActorSpec) -> Result<Actor, Error> {
        match self {
            Self::Local(ctx) => start(ctx, spec, act),
            Self::Remote { url, token } => start_remote(url, token.clone(), spec).await,
        }
    }

    /// Whether Redis answers this instance when it reads the stock of the product; `false` also if no store has the product, or
    /// the instance does not answer.
    pub(super) async fn reaches_redis(&self, stock_id: i64) -> bool {
        match self {
            Self::Local(ctx) => (stock_admin::read(ctx, stock_id).await).is_ok_and(|it| it.redis.is_some()),
            Self::Remote { url, .. } => {
                let at = format!("{}/stock?stock_id={stock_id}", url.trim_end_matches('/'));
                let answer = client().get(at).timeout(REPLY_TIMEOUT).answer().await;
                let levels = answer.and_then(|answer| answer.json::<Value>());
                levels.is_ok_and(|levels| levels["redis"].is_object())
            }
        }
    }
}

/// Starts an actor on the instance at `url`. A task forwards its events from there, and its stops to there.
async fn start_remote(url: &str, token: Option<SecretString>, spec: ActorSpec) -> Result<Actor, Error> {
    let (sender, received) = mpsc::unbounded_channel();
    let (stops, mut stopping) = watch::channel(spec.stops.clone());
    let request = StartActor { id: Uuid::new_v4(), spec };
    let at = format!("{}/replays/actors", url.trim_end_matches('/'));
    let started = client().post(&at).json(&request).token(token.as_ref());
    let started = started.events(REPLY_TIMEOUT).await;
    let mut events = started.map_err(|error| Error::NoActor { at: url.to_owned(), reason: error.to_string() })?;
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
                        // The actor has ended, and its last events are still to be read.
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
    Ok(Actor { events: received, stops, _task: AbortOnDropHandle::new(task) })
}
