//! A replay that goes on: its actors, where each of them stands, what was seen, and what may happen to them.
//!
//! 1. A [`RunningActor`] is an actor that is followed. It stands where it is told to, until it is told otherwise.
//! 2. Where a process is to stop, it is that of a role which plays on another instance than the one that directs.
//!
//! Next: `run.rs`, which does what the steps of a race say.

use super::{
    act::Act,
    actor::{ActorEvent, ActorSpec},
    event::{Log, ReplayEvent},
    faults::{Control, Faults, Need},
    host::ActorHost,
    observer::{self, Observer},
    role::{A, B, Lease, Role},
    servers::{self, LockEntry, ServerReader},
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
const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// At a slow pace, the time between two steps.
const STEP_PAUSE: Duration = Duration::from_millis(700);
/// At a slow pace, how long an actor stays at each point of its work.
const LINGER_MS: u64 = 400;
/// The servers are asked so often whether what is waited for has come.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A person who steps through a replay may think so long about one step.
const PERSON_TIMEOUT: Duration = Duration::from_secs(300);
/// By so much a clock jumps: beyond every lease that a race has where leases end by the clock.
const CLOCK_JUMP: Duration = Duration::from_secs(90);
/// A lease that does not end before it is ended.
const LONG_LEASE_MS: u64 = 600_000;
/// How long a role waits that is impatient, where leases end by the clock and where they are forced to: longer than a lease that
/// is seen to end.
const IMPATIENT_WAIT_MS: [u64; 2] = [4000, 1000];
/// What the lab calls the one that promotes.
pub(super) const SENTINEL: &str = "sentinel";
/// Longer than a Sentinel takes: 4 s without an answer, and then the promotion; one that was itself held up does nothing for 3 s, and
/// one that does not know its replica well tries again after 20.
pub(super) const PROMOTION_TIMEOUT: Duration = Duration::from_secs(40);
/// A session that nobody ends at once ends by itself within this: it lasts 10 s without a heartbeat.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

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
    pub(super) fn forces_timeouts(self) -> bool {
        matches!(self, Self::Fast | Self::Step | Self::Scheduler)
    }

    /// Whether a person decides when it goes on.
    #[must_use]
    pub fn waits_for_people(self) -> bool {
        matches!(self, Self::Step | Self::Scheduler)
    }

    /// What holds where leases end by the clock, and what where they are ended by order.
    pub(super) fn pick<T>(self, [by_clock, forced]: [T; 2]) -> T {
        if self.forces_timeouts() {
            forced
        } else {
            by_clock
        }
    }
}

/// Who is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
pub enum NextMove {
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
pub enum StallPoint {
    /// Inside, before it reads.
    Locked,
    /// Between its read and its write.
    #[default]
    Read,
    /// Between its write and its unlock.
    Written,
}

impl From<StallPoint> for Point {
    fn from(stall: StallPoint) -> Self {
        match stall {
            StallPoint::Locked => Self::Locked,
            StallPoint::Read => Self::Read,
            StallPoint::Written => Self::Written,
        }
    }
}

/// What happens when, at the pace [`Pace::Timed`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Where A stands still.
    pub at: StallPoint,
    /// For how long.
    pub pause: Duration,
    /// The lease that both ask for, in milliseconds.
    pub lease_ms: u64,
    /// So long after A comes B.
    pub after: Duration,
}

/// Lets a replay at the pace [`Pace::Step`] or [`Pace::Scheduler`] go on.
#[derive(Debug, Clone)]
pub struct StepRequests(Arc<(Semaphore, Mutex<VecDeque<NextMove>>)>);

impl Default for StepRequests {
    fn default() -> Self {
        Self(Arc::new((Semaphore::new(0), Mutex::default())))
    }
}

impl StepRequests {
    /// Asks for the next step: of the race, or of one of those who play.
    pub fn request(&self, who: NextMove) {
        let (permits, moves) = &*self.0;
        moves.lock().push_back(who);
        permits.add_permits(1);
    }

    /// Waits until a step is asked for: whose.
    pub(super) async fn wait_for_next(&self) -> Result<NextMove, Error> {
        let (permits, moves) = &*self.0;
        let permit = timeout(PERSON_TIMEOUT, permits.acquire()).await;
        permit
            .map_err(|_| Error::replay("nobody asked for the next step"))?
            .map_err(Error::replay)?
            .forget();
        let next = moves.lock().pop_front();
        next.ok_or_else(|| Error::replay("nobody is to go on"))
    }
}

/// Where and how a replay is played.
#[derive(Debug)]
pub struct PlayOptions {
    /// The instances, in the order of the cluster.
    pub hosts: Vec<ActorHost>,
    /// How fast.
    pub pace: Pace,
    /// For [`Pace::Step`] and [`Pace::Scheduler`]: lets it go on.
    pub steps: StepRequests,
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
    pub(super) options: PlayOptions,
    pub(super) reader: ServerReader,
    pub(super) observer: Arc<Observer>,
    /// The faults of the lab that has started this instance; none where no lab has.
    pub(super) faults: Option<Faults>,
    actors: BTreeMap<char, RunningActor>,
    /// The stops of those whose clients have hung up.
    pub(super) cancelled: Vec<watch::Sender<Vec<Point>>>,
    /// What those progress to that are at their end, in this order.
    pub(super) actor_ends: Vec<ActorEvent>,
    /// Whether a lease, a session or a holder was ended by order that ends by itself in the lesson; none where there was none.
    pub(super) forced: Mutex<Option<bool>>,
    /// The process of a holder is gone, so that nobody renews its lease.
    a_holder_was_killed: bool,
    notes: Vec<String>,
}

/// One side of a race that runs.
pub(super) struct RunningActor {
    letter: char,
    stops: watch::Sender<Vec<Point>>,
    progress: watch::Receiver<ActorProgress>,
    /// How often it was let go on by whoever decides the order.
    releases: usize,
    /// Nobody hears of it again, though it may stand somewhere for good.
    is_frozen: bool,
    _follow: AbortOnDropHandle<()>,
}

/// How far a side has come.
#[derive(Debug, Clone, Default)]
struct ActorProgress {
    /// The points that it progress by.
    passed: Vec<Point>,
    /// Those of them at which it stood still.
    stopped_at: Vec<Point>,
    /// What it progress to at its end.
    end: Option<ActorEvent>,
}

impl Play {
    /// One that begins now, on these hosts: of the instances, the one that directs comes last.
    pub(super) fn new(
        ctx: &Ctx,
        act: Act,
        stops: &'static [Point],
        stock_id: i64,
        mut options: PlayOptions,
        observer: Arc<Observer>,
    ) -> Self {
        let directs = format!(":{}", ctx.config.server.port);
        options.hosts.sort_by_key(
            |host| matches!(host, ActorHost::Remote { url, .. } if url.ends_with(&directs)),
        );
        Self {
            ctx: ctx.clone(),
            stock_id,
            act,
            stops,
            options,
            reader: ServerReader::of(ctx, act, stock_id),
            observer,
            faults: Control::of(&ctx.config).map(Faults::new),
            actors: BTreeMap::new(),
            cancelled: Vec::new(),
            actor_ends: Vec::new(),
            forced: Mutex::new(None),
            a_holder_was_killed: false,
            notes: Vec::new(),
        }
    }

    /// Says what comes now, and keeps the pace.
    pub(super) async fn announce(&self, zh: impl Display, en: impl Display) -> Result<(), Error> {
        let words = serde_json::json!({ "zh": zh.to_string(), "en": en.to_string() });
        self.log().add(ReplayEvent {
            value: Some(words),
            ..ReplayEvent::of("step", "step")
        });
        match self.options.pace {
            Pace::Fast | Pace::Clock | Pace::Scheduler | Pace::Timed => {}
            Pace::Slow => sleep(STEP_PAUSE).await,
            Pace::Step => drop(self.options.steps.wait_for_next().await?),
        }
        Ok(())
    }

    /// What is seen of the replay.
    pub(super) fn log(&self) -> &Log {
        &self.observer.log
    }

    /// What was told at a point or of a thing, in this order.
    pub(super) fn values_of(&self, event: &str) -> Vec<String> {
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
    pub(super) fn all_notes(&self) -> String {
        self.notes.join(" ")
    }

    /// How often they were tried again, all together.
    pub(super) fn retry_note(&self) -> String {
        let retries = self.actor_ends.iter().map(|end| match end {
            ActorEvent::Done { retries, .. } => *retries,
            _ => 0,
        });
        format!("retries {}", retries.sum::<u32>())
    }

    /// Who got in, in this order: `A C B`.
    pub(super) fn acquisition_order(&self) -> String {
        self.observer.acquisition_order()
    }

    /// What each had at its end, as a number.
    pub(super) fn results(&self) -> impl Iterator<Item = i64> {
        self.actor_ends.iter().filter_map(|end| match end {
            ActorEvent::Done { remaining, .. } => *remaining,
            _ => None,
        })
    }

    fn host_of(&self, role: &Role) -> &ActorHost {
        let n = role.on as usize - 'A' as usize;
        &self.options.hosts[n % self.options.hosts.len()]
    }

    /// What the instance of a role is called: in a lab, as its port.
    pub(super) fn instance_name(&self, role: &Role) -> Result<&str, Error> {
        match self.host_of(role) {
            ActorHost::Remote { url, .. } => url.trim_end_matches('/').rsplit(':').next(),
            ActorHost::Local(_) => None,
        }
        .ok_or_else(|| Error::replay("the instances have no names"))
    }

    /// The side of a role that runs.
    pub(super) fn actor(&mut self, role: &Role) -> Result<&mut RunningActor, Error> {
        let side = self.actors.get_mut(&role.letter);
        side.ok_or_else(|| Error::replay(format!("{} does not run", role.letter)))
    }

    /// Takes the side of a role away.
    pub(super) fn take_actor(&mut self, role: &Role) -> Result<RunningActor, Error> {
        let side = self.actors.remove(&role.letter);
        side.ok_or_else(|| Error::replay(format!("{} does not run", role.letter)))
    }

    /// Lets a role run, from its beginning where it does not run yet; it will stand at these points.
    pub(super) async fn run(
        &mut self,
        role: &Role,
        stops: &[Point],
    ) -> Result<&mut RunningActor, Error> {
        match self.actors.get(&role.letter) {
            Some(side) => side.set_stops(stops),
            None => {
                let side = self.start_actor(role, stops).await?;
                self.actors.insert(role.letter, side);
            }
        }
        self.actor(role)
    }

    async fn start_actor(&self, role: &Role, stops: &[Point]) -> Result<RunningActor, Error> {
        let pace = self.options.pace;
        let act = role.act.unwrap_or(self.act);
        let spec = ActorSpec {
            act: act.name().to_owned(),
            stock_id: self.stock_id,
            lease_ms: match role.lease {
                Lease::EndedByStep(millis) => Some(pace.pick([millis, LONG_LEASE_MS])),
                Lease::EndsByItself(millis) => Some(pace.pick(millis)),
                Lease::Default => None,
            },
            wait_ms: match role.is_impatient {
                // A person may think for long.
                _ if pace == Pace::Scheduler => LONG_LEASE_MS,
                true => pace.pick(IMPATIENT_WAIT_MS),
                false => STEP_TIMEOUT.as_millis() as u64,
            },
            linger_ms: if pace == Pace::Slow { LINGER_MS } else { 0 },
            stops: stops.to_vec(),
        };
        self.observer.actor_starting(role.letter);
        let mut actor = self.host_of(role).start(act, spec).await?;
        let (coming, progress) = watch::channel(ActorProgress::default());
        let (observer, stops, letter) = (Arc::clone(&self.observer), actor.stops(), role.letter);
        let (stands_at, stops_again) = (stops.clone(), self.stops);
        let follow = tokio::spawn(async move {
            while let Some(event) = actor.next().await {
                observer.record_event(letter, act.name(), act.sells(), &event);
                let mut stands = None;
                coming.send_modify(|progress| match event {
                    ActorEvent::Start { .. } | ActorEvent::Sent { .. } => {}
                    ActorEvent::Point { point, .. } => {
                        progress.passed.push(point);
                        if stands_at.borrow().contains(&point) {
                            progress.stopped_at.push(point);
                            stands = Some(point);
                        }
                    }
                    end => progress.end = Some(end),
                });
                if let Some(at) = stands.filter(|_| pace == Pace::Scheduler) {
                    // It has left the point that it was let go from, and stands there the next time.
                    stands_at.send_replace(stops_again.to_vec());
                    observer.record_stop(letter, at);
                }
            }
        });
        Ok(RunningActor {
            letter,
            stops,
            progress,
            releases: 0,
            is_frozen: false,
            _follow: AbortOnDropHandle::new(follow),
        })
    }

    /// Lets a role begin, or go on from where it stands to where it stands next. One that is on its way, or dead, goes on as it does.
    pub(super) async fn advance(&mut self, role: &Role) -> Result<(), Error> {
        let stops = self.stops;
        match self.actors.get_mut(&role.letter) {
            Some(side) => side.advance(stops),
            None => drop(self.run(role, stops).await?),
        }
        Ok(())
    }

    /// A comes and stands still for a while, and B comes so much later; both are at their ends then.
    pub(super) async fn run_timed(&mut self) -> Result<(), Error> {
        let Timing {
            at,
            pause,
            lease_ms,
            after,
        } = self.options.timing;
        let leased = |role: Role| role.self_ending_lease(lease_ms, lease_ms);
        let stalls = self
            .run(&leased(A), &[at.into()])
            .await?
            .stall(at.into(), pause);
        let comes = async {
            sleep(after).await;
            self.run(&leased(B), &[]).await.map(drop)
        };
        let ((), progress) = tokio::join!(stalls, comes);
        progress?;
        self.wait_until_all_end(2).await;
        Ok(())
    }

    /// A role that stands somewhere dies there.
    pub(super) fn freeze_if_stopped(&mut self, role: &Role) {
        if let Some(side) = self.actors.get_mut(&role.letter)
            && side.is_stopped()
        {
            side.is_frozen = true;
            self.record_forced(true);
            self.record_gone(role, ["dead", "dead"]);
        }
    }

    /// Waits until all who have begun are at their ends; for ever where fewer than `least` have begun.
    pub(super) async fn wait_until_all_end(&self, least: usize) {
        if self.actors.len() < least {
            std::future::pending().await
        }
        for side in self.actors.values().filter(|side| !side.is_frozen) {
            // One that is gone has ended, too.
            let mut progress = side.progress.clone();
            drop(progress.wait_for(|progress| progress.end.is_some()).await);
        }
    }

    /// The leases that are held end now.
    pub(super) async fn end_all_leases(&self) -> Result<(), Error> {
        self.record_forced(true);
        self.reader.end_leases(None).await
    }

    /// The Sentinel, which stood still, promotes the replica.
    pub(super) async fn fail_over(&self) -> Result<(), Error> {
        self.inject(Action::Resume, SENTINEL).await?;
        self.inject(Action::Promote, "replica").await?;
        self.wait_until_all_reach_redis().await?;
        let words = serde_json::json!({ "zh": "哨兵把从节点升为主节点", "en": "the Sentinel promotes the replica" });
        self.log().add(ReplayEvent {
            value: Some(words),
            ..ReplayEvent::of("step", "promoted")
        });
        Ok(())
    }

    /// Waits until every instance reaches Redis: one that has not yet seen its connection end would fail at its next command.
    pub(super) async fn wait_until_all_reach_redis(&self) -> Result<(), Error> {
        for host in &self.options.hosts {
            poll_until(
                PROMOTION_TIMEOUT,
                "an instance does not reach Redis",
                || async { Ok(host.reaches_redis(self.stock_id).await) },
            )
            .await?;
        }
        Ok(())
    }

    /// The lock as its server has it, if anybody has it.
    pub(super) async fn first_lock(&self) -> Result<Option<LockEntry>, Error> {
        self.observer.refresh(&self.reader).await?;
        Ok(self.reader.read().await?.locks.into_iter().next())
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
        Ok(self.first_lock().await?.and_then(|held| held.pttl))
    }

    /// Waits until so many are in the lock's queue besides its holder, as its server has it.
    pub(super) async fn wait_until_queued(&self, waiting: usize) -> Result<(), Error> {
        let late = format!("no {waiting} are in the queue");
        poll_until(STEP_TIMEOUT, &late, || async move {
            Ok(self.first_lock().await?.map_or(0, |held| held.queue.len()) > waiting)
        })
        .await
    }

    /// Waits until the lock's lease has ended: nobody has it, or another than before. `forced`: it is ended here.
    pub(super) async fn wait_until_lease_ends(&self, forced: bool) -> Result<(), Error> {
        let before = self.observer.last_holder();
        if forced {
            self.reader.end_leases(None).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lease does not end", || async move {
            let locks = self.reader.read().await?.locks;
            if locks.iter().any(LockEntry::has_no_lease) && self.observer.last_holder() == before {
                return Err(Error::replay("the lock has no lease that could end"));
            }
            Ok(locks.is_empty() || self.observer.last_holder() != before)
        })
        .await?;
        // It is told before what comes next is.
        poll_until(
            STEP_TIMEOUT,
            "the end of the lease is not told",
            || async move {
                Ok(self.observer.locks_satisfy(<[LockEntry]>::is_empty)
                    || self.observer.last_holder() != before)
            },
        )
        .await
    }

    /// Waits until the lock's lease is over; its row may stay until another sweeps it away. Where its holder still runs, who
    /// would renew it, it is ended here.
    pub(super) async fn wait_until_row_lease_ends(&self) -> Result<(), Error> {
        let forced = !self.a_holder_was_killed;
        if forced {
            self.reader.end_leases(None).await?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lease is not over", || async move {
            let locks = self.reader.read().await?.locks;
            if locks.iter().any(LockEntry::has_no_lease) {
                return Err(Error::replay("the lock has no lease that could be over"));
            }
            Ok(locks.iter().all(|held| held.pttl == Some(0)))
        })
        .await
    }

    /// A lease that somebody has would be over by now. By the clock that is left to whoever comes next: it waits for longer.
    pub(super) async fn pass_lease_time(&self) -> Result<(), Error> {
        if self.options.pace.forces_timeouts() {
            self.reader.end_leases(None).await?;
        }
        Ok(())
    }

    /// Notes that what ends by itself in the lesson has ended: by itself, or by order.
    pub(super) fn record_forced(&self, forced: bool) {
        let mut recorded = self.forced.lock();
        *recorded = Some(forced || *recorded == Some(true));
    }

    /// A holder dies: by the clock its process is killed, where a lab takes orders and it is not that of the replay itself;
    /// else it stands still for good.
    pub(super) async fn kill_or_freeze(&mut self, role: &Role) -> Result<(), Error> {
        let directs = self.observer.instance_of(role.letter).as_ref() == Some(&self.ctx.instance);
        if self.options.pace == Pace::Clock && self.faults.is_some() && !directs {
            return self.kill(role).await;
        }
        self.record_forced(true);
        self.record_gone(role, ["dead", "dead"]);
        Ok(())
    }

    /// `kill -9` of the process in which a role plays.
    pub(super) async fn kill(&mut self, role: &Role) -> Result<(), Error> {
        self.inject_at(role, Action::Kill).await?;
        self.a_holder_was_killed = true;
        self.record_forced(false);
        self.record_gone(role, ["killed", "kill -9"]);
        Ok(())
    }

    /// The clock of a node of Redis jumps beyond every lease; where no lab can let it, or leases are ended by order, the lock's
    /// lease is ended there.
    pub(super) async fn jump_clock(&self, node: usize) -> Result<(), Error> {
        let forced =
            self.options.pace.forces_timeouts() || Need::Clocks.missing(&self.ctx.config).is_some();
        if forced {
            self.reader.end_leases(Some(node)).await?;
        } else {
            let member = servers::node_name(node);
            let done = self
                .lab()?
                .inject_by(Action::Jump, &member, CLOCK_JUMP)
                .await;
            done.map_err(|error| Error::replay(format!("jump {member}: {error}")))?;
        }
        self.record_forced(forced);
        poll_until(STEP_TIMEOUT, "the lock does not end on the node", || {
            self.reader.is_free_on_node(node)
        })
        .await
    }

    /// Waits until nobody has the lock. A server that is about to be replaced does not answer.
    pub(super) async fn wait_until_free(&self) -> Result<(), Error> {
        poll_until(SESSION_TIMEOUT, "the lock is not free", || async move {
            let seen = self.reader.read().await;
            Ok(seen.is_ok_and(|seen| seen.locks.is_empty()))
        })
        .await
    }

    /// The answers of all nodes of Redis come to the instance of a role so much later; in time again where that is nothing.
    pub(super) async fn delay_answers(&self, role: &Role, by: Duration) -> Result<(), Error> {
        let action = if by.is_zero() {
            Action::Mend
        } else {
            Action::Slow
        };
        for node in 0..self.ctx.nodes.len() {
            let way = format!("{}-{}", self.instance_name(role)?, servers::node_name(node));
            let done = self.lab()?.inject_by(action, &way, by).await;
            done.map_err(|error| Error::replay(format!("{action} {way}: {error}")))?;
        }
        Ok(())
    }

    /// Waits until a lock was seen in its server.
    pub(super) async fn wait_until_locked(&self) -> Result<(), Error> {
        poll_until(STEP_TIMEOUT, "nobody has the lock", || async move {
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
    pub(super) async fn inject_at(&self, role: &Role, action: Action) -> Result<(), Error> {
        let instance = self.observer.instance_of(role.letter);
        let instance =
            instance.ok_or_else(|| Error::replay(format!("{} runs nowhere", role.letter)))?;
        if self.faults.is_some() {
            self.inject(action, &instance).await?;
        } else if action == Action::Pause {
            self.record_forced(true);
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
    pub(super) fn record_gone(&self, role: &Role, how: [&str; 2]) {
        let [kind, detail] = how.map(str::to_owned);
        let gone = ActorEvent::Failed { kind, detail };
        self.observer
            .record_event(role.letter, self.act.name(), false, &gone);
    }

    /// Ends the session of a role's process, or waits until ZooKeeper does: nobody has the lock then.
    pub(super) async fn end_session_and_wait(&self, role: &Role) -> Result<(), Error> {
        self.end_session_if_forced(role).await?;
        self.wait_until_free().await
    }

    /// The session of a role's process is over: ended here, or so long after its last heartbeat that ZooKeeper has ended it.
    pub(super) async fn end_session(&self, role: &Role) -> Result<(), Error> {
        if !self.end_session_if_forced(role).await? {
            // Its time is what is to pass: nothing is to be seen of a session whose nodes stay.
            let session = Duration::from_millis(self.ctx.config.zookeeper.session_ms);
            sleep(session * 3 / 2).await;
        }
        Ok(())
    }

    /// Ends the session of a role's process where the pace forces it and a lab can; whether it has.
    async fn end_session_if_forced(&self, role: &Role) -> Result<bool, Error> {
        let can_end_it = self.faults.is_some() && Need::Links.missing(&self.ctx.config).is_none();
        let forced = self.options.pace.forces_timeouts() && can_end_it;
        if forced {
            self.inject_at(role, Action::Expire).await?;
        }
        self.record_forced(forced);
        Ok(forced)
    }

    /// Waits until the servers can be read again, and Redis takes writes.
    pub(super) async fn wait_until_readable(&self) {
        let back = poll_until(SESSION_TIMEOUT, "the servers are not back", || async move {
            Ok(self.reader.read().await.is_ok() && self.main_takes_writes().await)
        });
        if let Err(error) = back.await {
            tracing::error!(%error, "after a replay");
        }
    }

    /// Whether what the ways lead to is the main Redis: one that was the main one until just now only lets itself be read.
    async fn main_takes_writes(&self) -> bool {
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

impl RunningActor {
    /// Lets it run; it will stand at each of these points.
    fn set_stops(&self, points: &[Point]) {
        self.stops.send_replace(points.to_vec());
    }

    /// Lets it go on so long after it has come to this point.
    fn stall(&self, at: Point, pause: Duration) -> impl Future<Output = ()> + use<> {
        let (mut progress, stops) = (self.progress.clone(), self.stops.clone());
        async move {
            let stands = |progress: &ActorProgress| {
                progress.stopped_at.contains(&at) || progress.end.is_some()
            };
            drop(progress.wait_for(stands).await);
            sleep(pause).await;
            stops.send_replace(Vec::new());
        }
    }

    /// Whether it stands somewhere, and was not let go on yet.
    fn is_stopped(&self) -> bool {
        let progress = self.progress.borrow();
        !self.is_frozen && progress.end.is_none() && progress.stopped_at.len() > self.releases
    }

    /// Lets it go on from where it stands, if it does, to the next of these points.
    fn advance(&mut self, stops: &[Point]) {
        if !self.is_stopped() {
            return;
        }
        let stopped_at = self.progress.borrow().stopped_at.clone();
        self.releases = stopped_at.len();
        let others = stops.iter().filter(|stop| Some(*stop) != stopped_at.last());
        self.set_stops(&others.copied().collect::<Vec<_>>());
    }

    /// Its client hangs up: what is left are its stops, at which what it has begun besides still stands.
    pub(super) fn into_stops(self) -> watch::Sender<Vec<Point>> {
        self.stops
    }

    /// Waits until it has come so far.
    async fn wait_for(
        &mut self,
        what: impl Display,
        so_far: impl FnMut(&ActorProgress) -> bool,
    ) -> Result<ActorProgress, Error> {
        let letter = self.letter;
        let progress = timeout(STEP_TIMEOUT, self.progress.wait_for(so_far)).await;
        let progress =
            progress.map_err(|_| Error::replay(format!("{letter} does not come to {what}")))?;
        Ok(progress.map_err(Error::replay)?.clone())
    }

    /// Waits until it stands at each of these points.
    pub(super) async fn wait_until_stopped_at(&mut self, points: &[Point]) -> Result<(), Error> {
        let stands = |progress: &ActorProgress| {
            points
                .iter()
                .all(|point| progress.stopped_at.contains(point))
        };
        let so_far = |progress: &ActorProgress| stands(progress) || progress.end.is_some();
        let progress = self.wait_for(format!("{points:?}"), so_far).await?;
        if stands(&progress) {
            return Ok(());
        }
        Err(Error::replay(format!(
            "{} has not come to {points:?}, but to its end: {:?}",
            self.letter, progress.end
        )))
    }

    /// Waits until it has come by `point` so often, whether it stood there or not.
    pub(super) async fn wait_until_passed(
        &mut self,
        point: Point,
        times: usize,
    ) -> Result<(), Error> {
        let so_far = |progress: &ActorProgress| {
            progress.passed.iter().filter(|by| **by == point).count() >= times
        };
        self.wait_for(point, so_far).await.map(drop)
    }

    /// Lets it run to its end: what it progress to. It is seen to leave before another can get in after it.
    pub(super) async fn finish(mut self) -> Result<ActorEvent, Error> {
        let mut leaving = observer::EXIT_POINTS.to_vec();
        loop {
            self.set_stops(&leaving);
            let leaves = |progress: &ActorProgress| {
                progress
                    .stopped_at
                    .iter()
                    .find(|at| leaving.contains(at))
                    .copied()
            };
            let so_far =
                |progress: &ActorProgress| leaves(progress).is_some() || progress.end.is_some();
            let progress = self.wait_for("its end", so_far).await;
            match progress.ok().and_then(|progress| leaves(&progress)) {
                Some(point) => leaving.retain(|leaves| *leaves != point),
                None => break,
            }
        }
        self.set_stops(&[]);
        let progress = self
            .wait_for("its end", |progress| progress.end.is_some())
            .await?;
        progress
            .end
            .ok_or_else(|| Error::replay(format!("{} is gone", self.letter)))
    }
}

/// Asks again and again until it is so.
pub(super) async fn poll_until<F: Future<Output = Result<bool, Error>>>(
    limit: Duration,
    late: &str,
    condition: impl Fn() -> F,
) -> Result<(), Error> {
    let so = async {
        while !condition().await? {
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    timeout(limit, so).await.map_err(|_| Error::replay(late))?
}
