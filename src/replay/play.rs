//! A replay in progress: its actors, its notes, and what it has forced.
//!
//! `leases.rs` has what happens to locks, `inject.rs` what happens to processes and servers.
//!
//! Next: `running_actor.rs`, one actor and its stops.

use super::{
    act::Act,
    actor::{ActorEvent, ActorHost, ActorSpec},
    faults::{Faults, LabControl},
    observer::Observer,
    options::{Pace, PlayOptions, STEP_TIMEOUT, Timing},
    role::{A, B, Role, RoleLease},
    running_actor::RunningActor,
    servers::ServerReader,
};
use crate::{
    ctx::Ctx,
    error::Error,
    replay_log::{Log, ReplayEvent},
    section::Point,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, fmt::Display, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// How long a caption stays before the next step at a slow pace, so that people can read it.
const STEP_PAUSE: Duration = Duration::from_millis(700);
/// How long an actor stays at `locked`, `read` and `written` at a slow pace.
const LINGER_MS: u64 = 400;
/// How often [`poll_until`] asks: short, so that the next step follows its condition at once.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Longer than a replay: a lease that only the replay ends, and the wait for a lock at the pace `Scheduler`.
const BEYOND_REPLAY_MS: u64 = 600_000;
/// How long an impatient role waits, by the clock and forced: longer than a lease that is seen to end.
const IMPATIENT_WAIT_MS: [u64; 2] = [4000, 1000];

/// A replay in progress. Dropping it ends its actors, and undoes no fault.
pub struct Play {
    /// The context of the directing instance.
    pub ctx: Ctx,
    /// The product, or the voucher.
    pub stock_id: i64,
    /// What a role does unless it has an act of its own.
    pub(super) act: Act,
    /// Where actors stop at the pace [`Pace::Scheduler`]; else a step says where.
    schedule_stops: &'static [Point],
    pub(super) options: PlayOptions,
    pub(super) reader: ServerReader,
    pub(super) observer: Arc<Observer>,
    /// `None` if no lab has started this instance.
    pub(super) faults: Option<Faults>,
    actors: BTreeMap<char, RunningActor>,
    /// Keeps the tasks of cancelled requests stopped.
    pub(super) cancelled: Vec<watch::Sender<Vec<Point>>>,
    /// The ends of the actors that a step ran to their ends, in the order of the steps.
    pub(super) finished_ends: Vec<ActorEvent>,
    /// Whether the replay itself ended a lease, session or holder; `None` if none ended.
    pub(super) forced: Mutex<Option<bool>>,
    /// No watchdog renews the lease of a killed holder.
    pub(super) a_holder_was_killed: bool,
    pub(super) notes: Vec<String>,
}

impl Play {
    /// Starts without actors. The directing instance becomes the last host, because a role on another one can be killed.
    pub(super) fn new(
        ctx: &Ctx,
        act: Act,
        schedule_stops: &'static [Point],
        stock_id: i64,
        mut options: PlayOptions,
        observer: Arc<Observer>,
    ) -> Self {
        let directs = format!(":{}", ctx.config.server.port);
        options.hosts.sort_by_key(|host| matches!(host, ActorHost::Remote { url, .. } if url.ends_with(&directs)));
        Self {
            ctx: ctx.clone(),
            stock_id,
            act,
            schedule_stops,
            options,
            reader: ServerReader::new(ctx, act, stock_id),
            observer,
            faults: LabControl::from_config(&ctx.config).map(Faults::new),
            actors: BTreeMap::new(),
            cancelled: Vec::new(),
            finished_ends: Vec::new(),
            forced: Mutex::new(None),
            a_holder_was_killed: false,
            notes: Vec::new(),
        }
    }

    /// Shows a caption; then waits 0.7 s at the pace `Slow`, for a person at `Step`, and else not.
    pub(super) async fn announce(&self, zh: impl Display, en: impl Display) -> Result<(), Error> {
        self.log().add(ReplayEvent::caption(zh, en));
        match self.options.pace {
            Pace::Fast | Pace::Clock | Pace::Scheduler | Pace::Timed => {}
            Pace::Slow => sleep(STEP_PAUSE).await,
            Pace::Step => drop(self.options.moves.wait_for_next().await?),
        }
        Ok(())
    }

    pub(super) fn log(&self) -> &Log {
        &self.observer.log
    }

    /// The values of all events of this name; an event without a text counts as an empty one.
    pub(super) fn values_of(&self, event: &str) -> Vec<String> {
        let seen = self.log().events_from(0).into_iter();
        seen.filter(|seen| seen.event == event)
            .map(|seen| {
                let told = seen.value.as_ref().and_then(|value| value.as_str());
                told.unwrap_or_default().to_owned()
            })
            .collect()
    }

    /// Adds a note; all notes together must be those that the race expects.
    pub fn add_note(&mut self, what: impl Display) {
        self.notes.push(what.to_string());
    }

    /// The retries of all actors that have succeeded, together, as a note: `retries 1`.
    pub(super) fn retry_note(&self) -> String {
        let retries = self.finished_ends.iter().map(|end| match end {
            ActorEvent::Done { retries, .. } => *retries,
            _ => 0,
        });
        format!("retries {}", retries.sum::<u32>())
    }

    /// The actors in the order of acquisition: `A C B`.
    pub(super) fn acquisition_order(&self) -> String {
        self.observer.acquisition_order()
    }

    /// The numbers that actors reported at their ends: what one believes is left, or a count of the race.
    pub(super) fn reported_numbers(&self) -> impl Iterator<Item = i64> {
        self.finished_ends.iter().filter_map(|end| match end {
            ActorEvent::Done { remaining, .. } => *remaining,
            _ => None,
        })
    }

    /// The instance on which this role runs; if there are fewer than roles, they share.
    fn host_of(&self, role: &Role) -> &ActorHost {
        let n = role.on as usize - 'A' as usize;
        &self.options.hosts[n % self.options.hosts.len()]
    }

    /// The lab's name of the role's instance: its port. An error if the replay runs in this instance alone.
    pub(super) fn instance_name(&self, role: &Role) -> Result<&str, Error> {
        match self.host_of(role) {
            ActorHost::Remote { url, .. } => url.trim_end_matches('/').rsplit(':').next(),
            ActorHost::Local(_) => None,
        }
        .ok_or_else(|| Error::replay("the replay runs in one instance, and needs the instances of a cluster (cluster.instances)"))
    }

    /// The running actor of this role; an error if it does not run.
    pub(super) fn actor(&mut self, role: &Role) -> Result<&mut RunningActor, Error> {
        let actor = self.actors.get_mut(&role.letter);
        actor.ok_or_else(|| Error::replay(format!("{} does not run", role.letter)))
    }

    /// Takes the running actor of this role out of the play; an error if it does not run.
    pub(super) fn take_actor(&mut self, role: &Role) -> Result<RunningActor, Error> {
        let actor = self.actors.remove(&role.letter);
        actor.ok_or_else(|| Error::replay(format!("{} does not run", role.letter)))
    }

    /// Starts a role with these stops, or gives them to its actor; one that has ended and was not taken out does not start again.
    pub(super) async fn start_or_redirect(&mut self, role: &Role, stops: &[Point]) -> Result<&mut RunningActor, Error> {
        match self.actors.get(&role.letter) {
            Some(actor) => actor.set_stops(stops),
            None => {
                let actor = self.start_actor(role, stops).await?;
                self.actors.insert(role.letter, actor);
            }
        }
        self.actor(role)
    }

    /// Starts the actor of a role. A role without an act has the race's. `A.lease(3000)` is `RoleLease::EndedByStep`: 3 s by the
    /// clock, and 600 s where the pace forces timeouts. A role without a lease has 30 s by the clock, not its strategy's.
    async fn start_actor(&self, role: &Role, stops: &[Point]) -> Result<RunningActor, Error> {
        let pace = self.options.pace;
        let act = role.act.unwrap_or(self.act);
        let spec = ActorSpec {
            act: act.name().to_owned(),
            stock_id: self.stock_id,
            lease_ms: Some(match role.lease {
                RoleLease::EndedByStep(millis) => pace.pick([millis, BEYOND_REPLAY_MS]),
                RoleLease::EndsByItself(millis) => pace.pick(millis),
            }),
            wait_ms: match role.is_impatient {
                _ if pace == Pace::Scheduler => BEYOND_REPLAY_MS,
                true => pace.pick(IMPATIENT_WAIT_MS),
                false => STEP_TIMEOUT.as_millis() as u64,
            },
            linger_ms: if pace == Pace::Slow { LINGER_MS } else { 0 },
            stops: stops.to_vec(),
        };
        let restop = (pace == Pace::Scheduler).then_some(self.schedule_stops);
        let (host, observer) = (self.host_of(role), Arc::clone(&self.observer));
        RunningActor::start_and_follow(host, role.letter, act, spec, restop, observer).await
    }

    /// Starts a role, or lets it go on to its next stop. Does nothing to one that runs, has ended or is dead.
    pub(super) async fn advance(&mut self, role: &Role) -> Result<(), Error> {
        let stops = self.schedule_stops;
        match self.actors.get_mut(&role.letter) {
            Some(actor) => actor.advance(stops),
            None => drop(self.start_or_redirect(role, stops).await?),
        }
        Ok(())
    }

    /// Plays the pace [`Pace::Timed`]: A stops once for a given time, B starts after a given time; returns once both have ended.
    pub(super) async fn run_timed(&mut self) -> Result<(), Error> {
        let Timing { at, pause, lease_ms, after } = self.options.timing;
        let leased = |role: Role| role.self_ending_lease(lease_ms, lease_ms);
        let stalls = self.start_or_redirect(&leased(A), &[at.into()]).await?.resume_after(at.into(), pause);
        let comes = async {
            sleep(after).await;
            self.start_or_redirect(&leased(B), &[]).await.map(drop)
        };
        let ((), progress) = tokio::join!(stalls, comes);
        progress?;
        self.wait_until_all_end(2).await;
        Ok(())
    }

    /// Leaves a role that stands at a stop there for good, and logs that it has died. Does nothing to any other.
    pub(super) fn freeze_if_stopped(&mut self, role: &Role) {
        if let Some(actor) = self.actors.get_mut(&role.letter)
            && actor.is_stopped()
        {
            actor.is_frozen = true;
            self.record_forced(true);
            self.record_gone(role, ["dead", "dead"]);
        }
    }

    /// Waits until every started actor has ended or is frozen. Never completes if fewer than `least` were started when it was
    /// called: for `select!`.
    pub(super) async fn wait_until_all_end(&self, least: usize) {
        if self.actors.len() < least {
            std::future::pending().await
        }
        for actor in self.actors.values() {
            actor.wait_until_ended().await;
        }
    }

    /// Records whether a lease, session or holder was ended by the replay (`forced`) or by its own timeout. Forced once stays so.
    pub(super) fn record_forced(&self, forced: bool) {
        let mut recorded = self.forced.lock();
        *recorded = Some(forced || *recorded == Some(true));
    }

    /// Logs the end of a role that will send no more events; `how` has the kind and the detail of its failure.
    pub(super) fn record_gone(&self, role: &Role, how: [&str; 2]) {
        let [kind, detail] = how.map(str::to_owned);
        let gone = ActorEvent::Failed { kind, detail };
        self.observer.record_event(role.letter, self.act.name(), false, &gone);
    }
}

/// Polls until `condition` is true. Fails at once with an error of `condition`, and after `limit` with the reason `late`.
pub(super) async fn poll_until<F: Future<Output = Result<bool, Error>>>(
    limit: Duration,
    late: &str,
    condition: impl Fn() -> F,
) -> Result<(), Error> {
    let polling = async {
        while !condition().await? {
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    timeout(limit, polling).await.map_err(|_| Error::replay(late))?
}
