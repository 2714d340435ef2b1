//! A replay that goes on: its sides, where each of them stands, what was seen, and what may happen to them.
//!
//! 1. A [`Side`] is an actor that is followed. It stands where it is told to, until it is told otherwise.
//! 2. Where a process is to stop, it is that of a role which plays on another instance than the one that directs.
//!
//! Next: `run.rs`, which does what the steps of a race say.

use super::{
    act::Act,
    actor::{ActorEvent, Part},
    event::{Log, ReplayEvent},
    faults::{Control, Faults, Need},
    place::Place,
    role::{A, B, Lease, Role},
    seen::{self, Held, Sights},
    stage::{self, Stage},
};
use crate::{ctx::Ctx, error::Error, fault::Action, section::Point};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Display,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// What must come comes within this, or the replay has failed.
const LONG: Duration = Duration::from_secs(20);
/// At a slow pace, the time between two steps.
const BEAT: Duration = Duration::from_millis(700);
/// At a slow pace, how long an actor stays at each point of its work.
const LINGER_MS: u64 = 400;
/// The servers are asked so often whether what is waited for has come.
const PAUSE: Duration = Duration::from_millis(5);
/// A person who steps through a replay may think so long about one step.
const THOUGHT: Duration = Duration::from_secs(300);
/// By so much a clock jumps: beyond every lease that a race has where leases end by the clock.
const JUMP: Duration = Duration::from_secs(90);
/// A lease that does not end before it is ended.
const LONG_LEASE_MS: u64 = 600_000;
/// How long a role waits that is impatient, where leases end by the clock and where they are forced to: longer than a lease that
/// is seen to end.
const IMPATIENT_MS: [u64; 2] = [4000, 1000];
/// What the lab calls the one that promotes.
pub(super) const SENTINEL: &str = "sentinel";
/// Longer than a Sentinel takes: 4 s without an answer, and then the promotion; one that was itself held up does nothing for 3 s, and
/// one that does not know its replica well tries again after 20.
pub(super) const PROMOTION: Duration = Duration::from_secs(40);
/// A session that nobody ends at once ends by itself within this: it lasts 10 s without a heartbeat.
const SESSION: Duration = Duration::from_secs(30);

/// How fast a replay goes.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// So that people can follow, with the course's leases.
    #[default]
    Slow,
    /// At once. What ends by itself in the lesson is ended by order: leases, sessions, and a holder that only stands still. For
    /// tests, and for a quick verdict.
    Fast,
    /// At once, but leases are the course's and end by their server's clock, sessions end for want of heartbeats, and who dies
    /// is killed (`kill -9`), where a lab takes orders.
    Clock,
    /// Each step when it is asked for.
    Step,
    /// No step of the race: each actor stands still wherever another could come between, until it is asked to go on, so that
    /// whoever asks decides the order. Leases end when the clock is asked to go on, and who dies in the race does so when asked.
    Scheduler,
    /// No step of the race: A stands still once, for so long, and B comes so much later; leases are so long, and end by their
    /// server's clock ([`Timing`]).
    Timed,
}

impl Pace {
    /// Whether leases and sessions are ended by order, so that no order is left to the clock.
    pub(super) fn forces(self) -> bool {
        matches!(self, Self::Fast | Self::Step | Self::Scheduler)
    }

    /// Whether a person decides when it goes on.
    #[must_use]
    pub fn waits_for_people(self) -> bool {
        matches!(self, Self::Step | Self::Scheduler)
    }

    /// What holds where leases end by the clock, and what where they are ended by order.
    pub(super) fn of<T>(self, [by_clock, forced]: [T; 2]) -> T {
        if self.forces() { forced } else { by_clock }
    }
}

/// Who is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
pub enum Who {
    /// The race.
    #[serde(skip)]
    All,
    /// An actor.
    A,
    /// Another one.
    B,
    /// One more.
    C,
    /// The clock of the leases.
    #[serde(rename = "clock")]
    Clock,
    /// Death, which comes for the one who dies in the race.
    #[serde(rename = "death")]
    Death,
    /// The Sentinel, which promotes the replica of the main Redis.
    #[serde(rename = "failover")]
    FailOver,
}

/// Where A stands still at the pace [`Pace::Timed`].
#[derive(Debug, Clone, Copy, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stall {
    /// Inside, before it reads.
    Locked,
    /// Between its read and its write.
    #[default]
    Read,
    /// Between its write and its unlock.
    Written,
}

impl From<Stall> for Point {
    fn from(stall: Stall) -> Self {
        match stall {
            Stall::Locked => Self::Locked,
            Stall::Read => Self::Read,
            Stall::Written => Self::Written,
        }
    }
}

/// What happens when, at the pace [`Pace::Timed`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Where A stands still.
    pub at: Stall,
    /// For how long.
    pub pause: Duration,
    /// The lease that both ask for, in milliseconds.
    pub lease_ms: u64,
    /// So long after A comes B.
    pub after: Duration,
}

/// Lets a replay at the pace [`Pace::Step`] or [`Pace::Scheduler`] go on.
#[derive(Debug, Clone)]
pub struct Steps(Arc<(Semaphore, Mutex<VecDeque<Who>>)>);

impl Default for Steps {
    fn default() -> Self {
        Self(Arc::new((Semaphore::new(0), Mutex::default())))
    }
}

impl Steps {
    /// Asks for the next step: of the race, or of one of those who play.
    pub fn next(&self, who: Who) {
        let (asked, whose) = &*self.0;
        whose.lock().push_back(who);
        asked.add_permits(1);
    }

    /// Waits until a step is asked for: whose.
    pub(super) async fn asked(&self) -> Result<Who, Error> {
        let (asked, whose) = &*self.0;
        let permit = timeout(THOUGHT, asked.acquire()).await;
        permit
            .map_err(|_| Error::replay("nobody asked for the next step"))?
            .map_err(Error::replay)?
            .forget();
        let next = whose.lock().pop_front();
        next.ok_or_else(|| Error::replay("nobody is to go on"))
    }
}

/// Where and how a replay is played.
#[derive(Debug)]
pub struct Terms {
    /// The instances, in the order of the cluster.
    pub places: Vec<Place>,
    /// How fast.
    pub pace: Pace,
    /// For [`Pace::Step`] and [`Pace::Scheduler`]: lets it go on.
    pub steps: Steps,
    /// For [`Pace::Timed`]: what happens when.
    pub timing: Timing,
}

/// A replay that goes on.
pub struct Play {
    /// What the instance that directs it has.
    pub ctx: Ctx,
    /// The product, or the voucher.
    pub stock_id: i64,
    /// What the actors do, where nothing else is said.
    pub(super) act: Act,
    /// Where each stands still at the pace [`Pace::Scheduler`].
    stops: &'static [Point],
    pub(super) terms: Terms,
    pub(super) sights: Sights,
    pub(super) stage: Arc<Stage>,
    /// The faults of the lab that has started this instance; none where no lab has.
    pub(super) faults: Option<Faults>,
    sides: BTreeMap<char, Side>,
    /// The stops of those whose clients have hung up.
    pub(super) hung_up: Vec<watch::Sender<Vec<Point>>>,
    /// What those came to that are at their end, in this order.
    pub(super) ends: Vec<ActorEvent>,
    /// Whether a lease, a session or a holder was ended by order that ends by itself in the lesson; none where there was none.
    pub(super) forced: Mutex<Option<bool>>,
    /// The process of a holder is gone, so that nobody renews its lease.
    is_killed: bool,
    notes: Vec<String>,
}

/// One side of a race that runs.
pub(super) struct Side {
    letter: char,
    stops: watch::Sender<Vec<Point>>,
    came: watch::Receiver<Came>,
    /// How often it was let go on by whoever decides the order.
    let_go: usize,
    /// Nobody hears of it again, though it may stand somewhere for good.
    is_dead: bool,
    _follow: AbortOnDropHandle<()>,
}

/// How far a side has come.
#[derive(Debug, Clone, Default)]
struct Came {
    /// The points that it came by.
    by: Vec<Point>,
    /// Those of them at which it stood still.
    to: Vec<Point>,
    /// What it came to at its end.
    end: Option<ActorEvent>,
}

impl Play {
    /// One that begins now, on these places: of the instances, the one that directs comes last.
    pub(super) fn new(
        ctx: &Ctx,
        act: Act,
        stops: &'static [Point],
        stock_id: i64,
        mut terms: Terms,
        stage: Arc<Stage>,
    ) -> Self {
        let directs = format!(":{}", ctx.config.server.port);
        terms.places.sort_by_key(
            |place| matches!(place, Place::There { url, .. } if url.ends_with(&directs)),
        );
        Self {
            ctx: ctx.clone(),
            stock_id,
            act,
            stops,
            terms,
            sights: Sights::of(ctx, act, stock_id),
            stage,
            faults: Control::of(&ctx.config).map(Faults::new),
            sides: BTreeMap::new(),
            hung_up: Vec::new(),
            ends: Vec::new(),
            forced: Mutex::new(None),
            is_killed: false,
            notes: Vec::new(),
        }
    }

    /// Says what comes now, and keeps the pace.
    pub(super) async fn step(&self, zh: impl Display, en: impl Display) -> Result<(), Error> {
        let words = serde_json::json!({ "zh": zh.to_string(), "en": en.to_string() });
        self.log().add(ReplayEvent {
            value: Some(words),
            ..ReplayEvent::of("step", "step")
        });
        match self.terms.pace {
            Pace::Fast | Pace::Clock | Pace::Scheduler | Pace::Timed => {}
            Pace::Slow => sleep(BEAT).await,
            Pace::Step => drop(self.terms.steps.asked().await?),
        }
        Ok(())
    }

    /// What is seen of the replay.
    pub(super) fn log(&self) -> &Log {
        &self.stage.log
    }

    /// What was told at a point or of a thing, in this order.
    pub(super) fn told(&self, event: &str) -> Vec<String> {
        let seen = self.log().since(0).into_iter();
        seen.filter(|seen| seen.event == event)
            .map(|seen| {
                let told = seen.value.as_ref().and_then(|value| value.as_str());
                told.unwrap_or_default().to_owned()
            })
            .collect()
    }

    /// Notes this.
    pub fn note(&mut self, what: impl Display) {
        self.notes.push(what.to_string());
    }

    /// All that was noted.
    pub(super) fn noted(&self) -> String {
        self.notes.join(" ")
    }

    /// How often they were tried again, all together.
    pub(super) fn retried(&self) -> String {
        let retries = self.ends.iter().map(|end| match end {
            ActorEvent::Done { retries, .. } => *retries,
            _ => 0,
        });
        format!("retries {}", retries.sum::<u32>())
    }

    /// Who got in, in this order: `A C B`.
    pub(super) fn order(&self) -> String {
        self.stage.order()
    }

    /// What each had at its end, as a number.
    pub(super) fn results(&self) -> impl Iterator<Item = i64> {
        self.ends.iter().filter_map(|end| match end {
            ActorEvent::Done { remaining, .. } => *remaining,
            _ => None,
        })
    }

    fn place_of(&self, role: &Role) -> &Place {
        let n = role.on as usize - 'A' as usize;
        &self.terms.places[n % self.terms.places.len()]
    }

    /// What the instance of a role is called: in a lab, as its port.
    pub(super) fn name_of(&self, role: &Role) -> Result<&str, Error> {
        match self.place_of(role) {
            Place::There { url, .. } => url.trim_end_matches('/').rsplit(':').next(),
            Place::Here(_) => None,
        }
        .ok_or_else(|| Error::replay("the instances have no names"))
    }

    /// The side of a role that runs.
    pub(super) fn side(&mut self, role: &Role) -> Result<&mut Side, Error> {
        let side = self.sides.get_mut(&role.letter);
        side.ok_or_else(|| Error::replay(format!("{} does not run", role.letter)))
    }

    /// Takes the side of a role away.
    pub(super) fn take(&mut self, role: &Role) -> Result<Side, Error> {
        let side = self.sides.remove(&role.letter);
        side.ok_or_else(|| Error::replay(format!("{} does not run", role.letter)))
    }

    /// Lets a role run, from its beginning where it does not run yet; it will stand at these points.
    pub(super) async fn send(&mut self, role: &Role, stops: &[Point]) -> Result<&mut Side, Error> {
        match self.sides.get(&role.letter) {
            Some(side) => side.heads_for(stops),
            None => {
                let side = self.start(role, stops).await?;
                self.sides.insert(role.letter, side);
            }
        }
        self.side(role)
    }

    async fn start(&self, role: &Role, stops: &[Point]) -> Result<Side, Error> {
        let pace = self.terms.pace;
        let act = role.act.unwrap_or(self.act);
        let part = Part {
            act: act.name().to_owned(),
            stock_id: self.stock_id,
            lease_ms: match role.lease {
                Lease::Seen(millis) => Some(pace.of([millis, LONG_LEASE_MS])),
                Lease::Runs(millis) => Some(pace.of(millis)),
                Lease::Own => None,
            },
            wait_ms: match role.is_impatient {
                // A person may think for long.
                _ if pace == Pace::Scheduler => LONG_LEASE_MS,
                true => pace.of(IMPATIENT_MS),
                false => LONG.as_millis() as u64,
            },
            linger_ms: if pace == Pace::Slow { LINGER_MS } else { 0 },
            stops: stops.to_vec(),
        };
        self.stage.expects(role.letter);
        let mut actor = self.place_of(role).start(act, part).await?;
        let (coming, came) = watch::channel(Came::default());
        let (stage, stops, letter) = (Arc::clone(&self.stage), actor.stops(), role.letter);
        let (stands_at, stops_again) = (stops.clone(), self.stops);
        let follow = tokio::spawn(async move {
            while let Some(event) = actor.next().await {
                stage.saw(letter, act.name(), act.sells(), &event);
                let mut stands = None;
                coming.send_modify(|came| match event {
                    ActorEvent::Start { .. } | ActorEvent::Sent { .. } => {}
                    ActorEvent::Point { point, .. } => {
                        came.by.push(point);
                        if stands_at.borrow().contains(&point) {
                            came.to.push(point);
                            stands = Some(point);
                        }
                    }
                    end => came.end = Some(end),
                });
                if let Some(at) = stands.filter(|_| pace == Pace::Scheduler) {
                    // It has left the point that it was let go from, and stands there the next time.
                    stands_at.send_replace(stops_again.to_vec());
                    stage.stands(letter, at);
                }
            }
        });
        Ok(Side {
            letter,
            stops,
            came,
            let_go: 0,
            is_dead: false,
            _follow: AbortOnDropHandle::new(follow),
        })
    }

    /// Lets a role begin, or go on from where it stands to where it stands next. One that is on its way, or dead, goes on as it does.
    pub(super) async fn lets_go(&mut self, role: &Role) -> Result<(), Error> {
        let stops = self.stops;
        match self.sides.get_mut(&role.letter) {
            Some(side) => side.goes_on(stops),
            None => drop(self.send(role, stops).await?),
        }
        Ok(())
    }

    /// A comes and stands still for a while, and B comes so much later; both are at their ends then.
    pub(super) async fn goes_by_the_clock(&mut self) -> Result<(), Error> {
        let Timing {
            at,
            pause,
            lease_ms,
            after,
        } = self.terms.timing;
        let leased = |role: Role| role.lease_that_runs(lease_ms, lease_ms);
        let stalls = self
            .send(&leased(A), &[at.into()])
            .await?
            .stalls(at.into(), pause);
        let comes = async {
            sleep(after).await;
            self.send(&leased(B), &[]).await.map(drop)
        };
        let ((), came) = tokio::join!(stalls, comes);
        came?;
        self.all_have_ended(2).await;
        Ok(())
    }

    /// A role that stands somewhere dies there.
    pub(super) fn dies_here(&mut self, role: &Role) {
        if let Some(side) = self.sides.get_mut(&role.letter)
            && side.stands()
        {
            side.is_dead = true;
            self.has_ended(true);
            self.is_gone(role, ["dead", "dead"]);
        }
    }

    /// Waits until all who have begun are at their ends; for ever where fewer than `least` have begun.
    pub(super) async fn all_have_ended(&self, least: usize) {
        if self.sides.len() < least {
            std::future::pending().await
        }
        for side in self.sides.values().filter(|side| !side.is_dead) {
            // One that is gone has ended, too.
            let mut came = side.came.clone();
            drop(came.wait_for(|came| came.end.is_some()).await);
        }
    }

    /// The leases that are held end now.
    pub(super) async fn clock_goes_on(&self) -> Result<(), Error> {
        self.has_ended(true);
        self.sights.end_leases(None).await
    }

    /// The Sentinel, which stood still, promotes the replica.
    pub(super) async fn fails_over(&self) -> Result<(), Error> {
        self.inject(Action::Resume, SENTINEL).await?;
        self.inject(Action::Promote, "replica").await?;
        self.all_reach_redis().await?;
        let words = serde_json::json!({ "zh": "哨兵把从节点升为主节点", "en": "the Sentinel promotes the replica" });
        self.log().add(ReplayEvent {
            value: Some(words),
            ..ReplayEvent::of("step", "promoted")
        });
        Ok(())
    }

    /// Waits until every instance reaches Redis: one that has not yet seen its connection end would fail at its next command.
    pub(super) async fn all_reach_redis(&self) -> Result<(), Error> {
        for place in &self.terms.places {
            until(PROMOTION, "an instance does not reach Redis", || async {
                Ok(place.reaches_redis(self.stock_id).await)
            })
            .await?;
        }
        Ok(())
    }

    /// The lock as its server has it, if anybody has it.
    pub(super) async fn held(&self) -> Result<Option<Held>, Error> {
        self.stage.look(&self.sights).await?;
        Ok(self.sights.read().await?.locks.into_iter().next())
    }

    /// What is left of the lock's lease, in milliseconds; none where nobody has it, or it has none.
    ///
    /// # Errors
    ///
    /// As the server's own.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only reads.
    pub async fn lease_left(&self) -> Result<Option<i64>, Error> {
        Ok(self.held().await?.and_then(|held| held.pttl))
    }

    /// Waits until so many are in the lock's queue besides its holder, as its server has it.
    pub(super) async fn queued(&self, waiting: usize) -> Result<(), Error> {
        let late = format!("no {waiting} are in the queue");
        until(LONG, &late, || async move {
            Ok(self.held().await?.map_or(0, |held| held.queue.len()) > waiting)
        })
        .await
    }

    /// Waits until the lock's lease has ended: nobody has it, or another than before. `by_order`: it is ended here.
    pub(super) async fn lease_ends(&self, by_order: bool) -> Result<(), Error> {
        let before = self.stage.holder();
        if by_order {
            self.sights.end_leases(None).await?;
        }
        self.has_ended(by_order);
        until(LONG, "the lease does not end", || async move {
            let locks = self.sights.read().await?.locks;
            if locks.iter().any(Held::is_for_ever) && self.stage.holder() == before {
                return Err(Error::replay("the lock has no lease that could end"));
            }
            Ok(locks.is_empty() || self.stage.holder() != before)
        })
        .await?;
        // It is told before what comes next is.
        until(LONG, "the end of the lease is not told", || async move {
            Ok(self.stage.sees(<[Held]>::is_empty) || self.stage.holder() != before)
        })
        .await
    }

    /// Waits until the lock's lease is over; its row may stay until another sweeps it away. Where its holder still runs, who
    /// would renew it, it is ended here.
    pub(super) async fn lease_is_over(&self) -> Result<(), Error> {
        let by_order = !self.is_killed;
        if by_order {
            self.sights.end_leases(None).await?;
        }
        self.has_ended(by_order);
        until(LONG, "the lease is not over", || async move {
            let locks = self.sights.read().await?.locks;
            if locks.iter().any(Held::is_for_ever) {
                return Err(Error::replay("the lock has no lease that could be over"));
            }
            Ok(locks.iter().all(|held| held.pttl == Some(0)))
        })
        .await
    }

    /// A lease that somebody has would be over by now. By the clock that is left to whoever comes next: it waits for longer.
    pub(super) async fn a_lease_would_be_over(&self) -> Result<(), Error> {
        if self.terms.pace.forces() {
            self.sights.end_leases(None).await?;
        }
        Ok(())
    }

    /// Notes that what ends by itself in the lesson has ended: by itself, or by order.
    pub(super) fn has_ended(&self, by_order: bool) {
        let mut forced = self.forced.lock();
        *forced = Some(by_order || *forced == Some(true));
    }

    /// A holder dies: by the clock its process is killed, where a lab takes orders and it is not that of the replay itself;
    /// else it stands still for good.
    pub(super) async fn dies(&mut self, role: &Role) -> Result<(), Error> {
        let directs = self.stage.instance_of(role.letter).as_ref() == Some(&self.ctx.instance);
        if self.terms.pace == Pace::Clock && self.faults.is_some() && !directs {
            return self.is_killed(role).await;
        }
        self.has_ended(true);
        self.is_gone(role, ["dead", "dead"]);
        Ok(())
    }

    /// `kill -9` of the process in which a role plays.
    pub(super) async fn is_killed(&mut self, role: &Role) -> Result<(), Error> {
        self.befalls(role, Action::Kill).await?;
        self.is_killed = true;
        self.has_ended(false);
        self.is_gone(role, ["killed", "kill -9"]);
        Ok(())
    }

    /// The clock of a node of Redis jumps beyond every lease; where no lab can let it, or leases are ended by order, the lock's
    /// lease is ended there.
    pub(super) async fn clock_jumps(&self, node: usize) -> Result<(), Error> {
        let by_order = self.terms.pace.forces() || Need::Clocks.missing(&self.ctx.config).is_some();
        if by_order {
            self.sights.end_leases(Some(node)).await?;
        } else {
            let member = seen::node_name(node);
            let done = self.lab()?.inject_by(Action::Jump, &member, JUMP).await;
            done.map_err(|error| Error::replay(format!("jump {member}: {error}")))?;
        }
        self.has_ended(by_order);
        until(LONG, "the lock does not end on the node", || {
            self.sights.node_has_none(node)
        })
        .await
    }

    /// Waits until nobody has the lock. A server that is about to be replaced does not answer.
    pub(super) async fn nobody_has_it(&self) -> Result<(), Error> {
        until(SESSION, "the lock is not free", || async move {
            let seen = self.sights.read().await;
            Ok(seen.is_ok_and(|seen| seen.locks.is_empty()))
        })
        .await
    }

    /// The answers of all nodes of Redis come to the instance of a role so much later; in time again where that is nothing.
    pub(super) async fn hears_late(&self, role: &Role, by: Duration) -> Result<(), Error> {
        let action = if by.is_zero() {
            Action::Mend
        } else {
            Action::Slow
        };
        for node in 0..self.ctx.nodes.len() {
            let way = format!("{}-{}", self.name_of(role)?, seen::node_name(node));
            let done = self.lab()?.inject_by(action, &way, by).await;
            done.map_err(|error| Error::replay(format!("{action} {way}: {error}")))?;
        }
        Ok(())
    }

    /// Waits until a lock was seen in its server.
    pub(super) async fn sees_a_lock(&self) -> Result<(), Error> {
        until(LONG, "nobody has the lock", || async move {
            Ok(self.log().since(0).iter().any(|seen| seen.event == "held"))
        })
        .await
    }

    /// Orders a fault from the lab. It is undone at the end, unless the replay does so itself.
    pub(super) async fn inject(&self, action: Action, member: &str) -> Result<(), Error> {
        let done = self.lab()?.inject(action, member).await;
        done.map_err(|error| Error::replay(format!("{action} {member}: {error}")))
    }

    /// The faults of the lab.
    pub(super) fn lab(&self) -> Result<&Faults, Error> {
        let none = || Error::replay("no lab takes orders");
        self.faults.as_ref().ok_or_else(none)
    }

    /// Something happens to the process in which a role plays, where a lab takes orders.
    pub(super) async fn befalls(&self, role: &Role, action: Action) -> Result<(), Error> {
        let instance = self.stage.instance_of(role.letter);
        let instance =
            instance.ok_or_else(|| Error::replay(format!("{} runs nowhere", role.letter)))?;
        if self.faults.is_some() {
            self.inject(action, &instance).await?;
        } else if action == Action::Pause {
            self.has_ended(true);
        }
        let event = match action {
            Action::Pause => "stopped",
            Action::Resume => "continued",
            _ => return Ok(()),
        };
        self.log().add(ReplayEvent {
            instance: Some(instance),
            ..ReplayEvent::of(role.letter, event)
        });
        Ok(())
    }

    /// It is gone from now on, as is said: nobody hears of it again.
    pub(super) fn is_gone(&self, role: &Role, how: [&str; 2]) {
        let [kind, detail] = how.map(str::to_owned);
        let gone = ActorEvent::Failed { kind, detail };
        self.stage.saw(role.letter, self.act.name(), false, &gone);
    }

    /// Ends the session of a role's process, or waits until ZooKeeper does: nobody has the lock then.
    pub(super) async fn session_ends(&self, role: &Role) -> Result<(), Error> {
        self.session_is_ended(role).await?;
        self.nobody_has_it().await
    }

    /// The session of a role's process is over: ended here, or so long after its last heartbeat that ZooKeeper has ended it.
    pub(super) async fn a_session_would_be_over(&self, role: &Role) -> Result<(), Error> {
        if !self.session_is_ended(role).await? {
            // Its time is what is to pass: nothing is to be seen of a session whose nodes stay.
            let session = Duration::from_millis(self.ctx.config.zookeeper.session_ms);
            sleep(session * 3 / 2).await;
        }
        Ok(())
    }

    /// Ends the session of a role's process where the pace forces it and a lab can; whether it has.
    async fn session_is_ended(&self, role: &Role) -> Result<bool, Error> {
        let can_end_it = self.faults.is_some() && Need::Links.missing(&self.ctx.config).is_none();
        let by_order = self.terms.pace.forces() && can_end_it;
        if by_order {
            self.befalls(role, Action::Expire).await?;
        }
        self.has_ended(by_order);
        Ok(by_order)
    }

    /// Waits until the servers can be read again, and Redis takes writes.
    pub(super) async fn can_be_seen(&self) {
        let back = until(SESSION, "the servers are not back", || async move {
            Ok(self.sights.read().await.is_ok() && self.takes_writes().await)
        });
        if let Err(error) = back.await {
            tracing::error!(%error, "after a replay");
        }
    }

    /// Whether what the ways lead to is the main Redis: one that was the main one until just now only lets itself be read.
    async fn takes_writes(&self) -> bool {
        let role = redis::cmd("INFO")
            .arg("replication")
            .query_async(&mut self.ctx.redis.connection())
            .await;
        role.is_ok_and(|role: String| role.contains("role:master"))
    }
}

impl std::fmt::Debug for Play {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Play")
            .field("act", &self.act)
            .finish_non_exhaustive()
    }
}

impl Side {
    /// Lets it run; it will stand at each of these points.
    fn heads_for(&self, points: &[Point]) {
        self.stops.send_replace(points.to_vec());
    }

    /// Lets it go on so long after it has come to this point.
    fn stalls(&self, at: Point, pause: Duration) -> impl Future<Output = ()> + use<> {
        let (mut came, stops) = (self.came.clone(), self.stops.clone());
        async move {
            let stands = |came: &Came| came.to.contains(&at) || came.end.is_some();
            drop(came.wait_for(stands).await);
            sleep(pause).await;
            stops.send_replace(Vec::new());
        }
    }

    /// Whether it stands somewhere, and was not let go on yet.
    fn stands(&self) -> bool {
        let came = self.came.borrow();
        !self.is_dead && came.end.is_none() && came.to.len() > self.let_go
    }

    /// Lets it go on from where it stands, if it does, to the next of these points.
    fn goes_on(&mut self, stops: &[Point]) {
        if !self.stands() {
            return;
        }
        let came = self.came.borrow().to.clone();
        self.let_go = came.len();
        let others = stops.iter().filter(|stop| Some(*stop) != came.last());
        self.heads_for(&others.copied().collect::<Vec<_>>());
    }

    /// Its client hangs up: what is left are its stops, at which what it has begun besides still stands.
    pub(super) fn hangs_up(self) -> watch::Sender<Vec<Point>> {
        self.stops
    }

    /// Waits until it has come so far.
    async fn until(
        &mut self,
        what: impl Display,
        so_far: impl FnMut(&Came) -> bool,
    ) -> Result<Came, Error> {
        let letter = self.letter;
        let came = timeout(LONG, self.came.wait_for(so_far)).await;
        let came = came.map_err(|_| Error::replay(format!("{letter} does not come to {what}")))?;
        Ok(came.map_err(Error::replay)?.clone())
    }

    /// Waits until it stands at each of these points.
    pub(super) async fn stands_at(&mut self, points: &[Point]) -> Result<(), Error> {
        let stands = |came: &Came| points.iter().all(|point| came.to.contains(point));
        let so_far = |came: &Came| stands(came) || came.end.is_some();
        let came = self.until(format!("{points:?}"), so_far).await?;
        if stands(&came) {
            return Ok(());
        }
        Err(Error::replay(format!(
            "{} has not come to {points:?}, but to its end: {:?}",
            self.letter, came.end
        )))
    }

    /// Waits until it has come by `point` so often, whether it stood there or not.
    pub(super) async fn passes(&mut self, point: Point, times: usize) -> Result<(), Error> {
        let so_far = |came: &Came| came.by.iter().filter(|by| **by == point).count() >= times;
        self.until(point, so_far).await.map(drop)
    }

    /// Lets it run to its end: what it came to. It is seen to leave before another can get in after it.
    pub(super) async fn ends(mut self) -> Result<ActorEvent, Error> {
        let mut leaving = stage::LEAVING.to_vec();
        loop {
            self.heads_for(&leaving);
            let leaves = |came: &Came| came.to.iter().find(|at| leaving.contains(at)).copied();
            let so_far = |came: &Came| leaves(came).is_some() || came.end.is_some();
            let came = self.until("its end", so_far).await;
            match came.ok().and_then(|came| leaves(&came)) {
                Some(point) => leaving.retain(|leaves| *leaves != point),
                None => break,
            }
        }
        self.heads_for(&[]);
        let came = self.until("its end", |came| came.end.is_some()).await?;
        came.end
            .ok_or_else(|| Error::replay(format!("{} is gone", self.letter)))
    }
}

/// Asks again and again until it is so.
pub(super) async fn until<F: Future<Output = Result<bool, Error>>>(
    limit: Duration,
    late: &str,
    is_so: impl Fn() -> F,
) -> Result<(), Error> {
    let so = async {
        while !is_so().await? {
            sleep(PAUSE).await;
        }
        Ok(())
    };
    timeout(limit, so).await.map_err(|_| Error::replay(late))?
}
