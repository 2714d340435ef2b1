//! Replays: the race of a lesson, forced on the real servers by actors on the real instances; and the same race on its cure.
//!
//! 1. A race is a file in `races/`, which registers itself: the steps of its actors ([`Step`]).
//! 2. An actor is a real job of a real strategy. It is followed, and stops at its named points, in this instance or in
//!    another one (`actor.rs`).
//! 3. What the actors do and what the servers hold becomes a list of events (`observer.rs`).
//! 4. Each replay of a race must have the result that the race declares: pieces sold, pieces gone, actors inside at once.
//!
//! From request to effect: `http/routes/replays.rs`, `http/replays.rs` (its turn comes in `http/queue.rs`), the race in
//! `races/`, `run.rs`, `play.rs`, `running_actor.rs`, `actor.rs` (on another instance through `start_actor` there), the strategy
//! and what it calls. POST answers with the address of the events, and GET sends them. Leases end in `leases.rs`, faults come
//! from `inject.rs`. The way back: `section/points.rs`, `actor.rs`, `running_actor.rs`, `observer.rs`, `src/replay_log.rs`,
//! `from_the_beginning` in `routes/replays.rs`. The verdict: `RaceScript::judge` in `run.rs` compares what `observer.rs` has
//! counted, sold and inside, and the pieces gone (`act.rs`) with what the race expects (`race.rs`).
//!
//! The strategy is the `act` of the variant. Lesson 2.3 is `races/late_delete.rs`, with `redis-setnx-ttl` as the flaw and
//! `redis-setnx-owner` as the cure; what both share of their lock is in `section/redis_polling.rs`.
//!
//! **What it cannot do**: be sure of an order that the clock decides. At a slow pace the leases are the course's, and a machine
//! that stands still for seconds may let one end too soon. The replay then fails.
//!
//! Next: `step.rs`, then `races/`.

mod act;
mod actor;
mod deadlock;
mod faults;
mod inject;
mod leases;
mod observer;
mod options;
mod own_clients;
mod play;
mod race;
mod races;
mod role;
mod run;
mod running_actor;
mod servers;
mod shared_reads;
mod step;

pub use crate::replay_log::{Log, ReplayEnd, ReplayEvent, ReplayResult};
pub use act::{Act, CustomAct, place_order};
pub use actor::{Actor, ActorEvent, ActorHost, ActorSpec, SetStops, StartActor};
pub use faults::{Faults, LabControl};
pub use options::{MoveRequests, NextMove, Pace, PlayOptions, StallPoint, Timing};
pub use play::Play;
pub use race::{Anomaly, ExpectedResult, Goal, Race, RaceScript, Schedule, ServerLanes, Variant};
pub use role::{A, B, C, Role};
pub use step::{ExpectedEnd, RoleStep, Step, say};

use crate::{ctx::Ctx, error::Error, seckill, stock};
use deadlock::RACES as DEADLOCKS;

/// All races: the files of `races/`, and one race per deadlock lesson.
pub fn races() -> impl Iterator<Item = &'static Race> {
    races::FILES.iter().copied().chain(DEADLOCKS.iter())
}

/// The ids of all lessons, each with the race that shows it.
pub fn lessons() -> impl Iterator<Item = (&'static str, &'static Race)> {
    races().flat_map(|race| race.lessons.iter().map(move |lesson| (*lesson, race)))
}

/// The race that shows this lesson, with the lesson's id.
pub fn find(lesson: &str) -> Option<(&'static str, &'static Race)> {
    lessons().find(|(shown, _)| *shown == lesson)
}

/// The act of this name: a strategy, else a step of the seckill, else a race's own act or deadlock lesson.
fn act_by_name(name: &str) -> Option<Act> {
    let strategy = || stock::find(name).map(|strategy| Act::Strategy(strategy.slug));
    let order = || seckill::find(name).map(|step| Act::Order(step.slug));
    let of_a_race = || races().flat_map(Race::acts).find(|act| act.name() == name);
    strategy().or_else(order).or_else(of_a_race)
}

/// Starts an actor in this process.
/// Errors: [`Error::NoStrategy`] if there is no such act, or that of a client that cannot be made. A server that is down is no
/// error here: the actor's last event says so.
pub fn start_by_name(ctx: &Ctx, spec: ActorSpec) -> Result<Actor, Error> {
    let act = act_by_name(&spec.act).ok_or_else(|| Error::NoStrategy(spec.act.clone()))?;
    actor::start(ctx, spec, act)
}
