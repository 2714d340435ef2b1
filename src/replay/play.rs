//! A replay in progress: its actors, what was noted, and what was forced.
//!
//! What happens to locks stands in `leases.rs`, what happens to processes and servers in `inject.rs`.
//!
//! Next: `run.rs`, which does what the steps of a race say.

use super::{
    act::Act,
    actor::{ActorEvent, ActorHost, ActorSpec},
    faults::{Control, Faults},
    observer::Observer,
    options::{Pace, PlayOptions, STEP_TIMEOUT, Timing},
    role::{A, B, Lease, Role},
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

/// At a slow pace, the time between two steps.
const STEP_PAUSE: Duration = Duration::from_millis(700);
/// At a slow pace, how long an actor stays at each point of its work.
const LINGER_MS: u64 = 400;
/// The servers are asked so often whether what is waited for has come.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A lease that does not end before it is ended.
const LONG_LEASE_MS: u64 = 600_000;
/// How long a role waits that is impatient, where leases end by the clock and where they are forced to: longer than a lease that
/// is seen to end.
const IMPATIENT_WAIT_MS: [u64; 2] = [4000, 1000];

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
    pub(super) a_holder_was_killed: bool,
    notes: Vec<String>,
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
        let restop = (pace == Pace::Scheduler).then_some(self.stops);
        let (host, observer) = (self.host_of(role), Arc::clone(&self.observer));
        RunningActor::start(host, role.letter, act, spec, restop, observer).await
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
            side.freeze();
            self.record_forced(true);
            self.record_gone(role, ["dead", "dead"]);
        }
    }

    /// Waits until all who have begun are at their ends; for ever where fewer than `least` have begun.
    pub(super) async fn wait_until_all_end(&self, least: usize) {
        if self.actors.len() < least {
            std::future::pending().await
        }
        for actor in self.actors.values() {
            actor.wait_until_ended().await;
        }
    }

    /// Notes that what ends by itself in the lesson has ended: by itself, or by order.
    pub(super) fn record_forced(&self, forced: bool) {
        let mut recorded = self.forced.lock();
        *recorded = Some(forced || *recorded == Some(true));
    }

    /// It is gone from now on, as is said: nobody hears of it again.
    pub(super) fn record_gone(&self, role: &Role, how: [&str; 2]) {
        let [kind, detail] = how.map(str::to_owned);
        let gone = ActorEvent::Failed { kind, detail };
        self.observer
            .record_event(role.letter, self.act.name(), false, &gone);
    }
}

impl std::fmt::Debug for Play {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Play")
            .field("act", &self.act)
            .finish_non_exhaustive()
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
