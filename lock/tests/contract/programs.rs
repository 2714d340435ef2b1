//! Random programs: three processes with two named owners each, and unnamed ones, acquire, re-enter, release, drop and
//! disappear at any time. The connections of two of them are delayed, muted, cut or refused; the third finds out what
//! is free. Their calls are recorded (`recorder.rs`) and judged (`history/checker.rs`).
//!
//! Each program comes from a seed; a failing one is reduced to fewer steps that fail too, and the verdict names both.
//! `OVERSELL_PROGRAM_SEED=n` runs that seed alone.
//!
//! Next to read: `subjects.rs`, the locks that programs run on.

use super::{
    checker::{Asks, History, Promise, Share, Verdict, judge, seen},
    harness::soak,
    recorder::{Grant, Recorder},
    refusals::{Refusal, Refuser},
    support::*,
};
use fastrand::Rng;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use tokio::time::{Instant, sleep};

/// What programs need to know of an engine.
pub(crate) trait ProgramServer: Server {
    /// After this time an unrenewed hold is over: longer than the short leases of programs.
    const EXPIRY: Duration = Duration::from_millis(350);
    /// The length of a program.
    const STEPS: usize = 60;
    /// The longest time of an answer on a muted connection, by the timeouts of [`client_over`]'s clients.
    ///
    /// [`client_over`]: Self::client_over
    const REPLY_TIMEOUT: Duration;
    /// Answers are delayed by up to three times this.
    const REPLY_DELAY: Duration = Duration::from_millis(120);
    /// The temporary refusals of its servers.
    const REFUSALS: &'static [Refusal] = &[];

    /// `host:port` of each server.
    fn servers(&self) -> Vec<String>;

    /// A proxy that can refuse in the server's place.
    fn refuser(_: String) -> Option<std::io::Result<Refuser>> {
        None
    }

    /// A process with clients at these addresses.
    fn client_over(&self, addresses: &[String]) -> impl Future<Output = Self::Client> + Send;
}

/// An acquire that is about to begin.
pub(crate) struct Acquisition {
    pub(crate) share: Share,
    pub(crate) taken: BoxFuture<'static, Answer<Vec<Grant>>>,
}

pub(crate) struct Subject<S: ProgramServer> {
    pub(crate) permits: u32,
    /// Whether one owner may hold it more than once.
    pub(crate) reentrant: bool,
    pub(crate) take: Take<S>,
    pub(crate) left: Left<S>,
    /// The events that programs must reach, or they prove nothing.
    pub(crate) wanted: Vec<&'static str>,
}

/// Acquires; an odd number asks for the other half, or for more.
type Take<S> = Box<dyn Fn(&<S as Server>::Client, &str, Ask, Duration, u8) -> Acquisition + Send + Sync>;

/// Its entries on the server.
type Left<S> = Box<dyn for<'a> Fn(&'a S, &'a str) -> BoxFuture<'a, Vec<String>> + Send + Sync>;

/// The extra time for a busy machine.
pub(crate) const BUSY: Duration = SOON;
/// How long a busy machine may be too slow for the clients' timeouts.
const SLOW_MACHINE_TIME: Duration = Duration::from_secs(60);

/// A process's connections to the servers.
pub(crate) struct Wire {
    mute: Mute,
    refuser: Option<Refuser>,
}

impl Wire {
    pub(crate) fn to<S: ProgramServer>(server: String) -> Result<Self> {
        let refuser = S::refuser(server.clone()).transpose()?;
        let mute = Mute::to(refuser.as_ref().map_or(server, Refuser::address))?;
        Ok(Self { mute, refuser })
    }

    pub(crate) fn address(&self) -> String {
        self.mute.address()
    }

    fn heal(&self) {
        self.mute.delay(Duration::ZERO);
        self.delay(Duration::ZERO);
        self.mute.heal();
        self.refuse(None);
    }

    fn cut(&self) {
        self.mute.cut();
        self.mute.mend();
    }

    fn delay(&self, late: Duration) {
        if let Some(refuser) = &self.refuser {
            refuser.delay(late);
        }
    }

    fn refuse(&self, refusal: Option<Refusal>) {
        if let Some(refuser) = &self.refuser {
            refuser.refuse(refusal);
        }
    }
}

struct Party<S: ProgramServer> {
    client: S::Client,
    wires: Vec<Wire>,
    owners: [Owner; 2],
}

impl<S: ProgramServer> Party<S> {
    async fn of(server: &S) -> Result<Self> {
        let wires = server.servers().into_iter().map(Wire::to::<S>);
        let wires: Vec<_> = wires.collect::<Result<_>>()?;
        let addresses: Vec<_> = wires.iter().map(Wire::address).collect();
        let client = server.client_over(&addresses).await;
        let owners = [S::owner(&client), S::owner(&client)];
        Ok(Self { client, wires, owners })
    }
}

#[derive(Debug, Clone, Copy)]
struct Actor {
    process: usize,
    /// The index of the process's owner; `None`: a fresh one.
    owner: Option<usize>,
}

/// A step. Numbers pick one of the present objects, modulo their count.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Begins to acquire, with a wait in milliseconds.
    Ask {
        who: Actor,
        lease: Lease,
        wait: u64,
        half: u8,
    },
    /// Drops a pending acquire.
    GoAway(usize),
    Release(usize),
    Drop(usize),
    /// Injects a fault into a process's connections.
    Wire {
        process: usize,
        event: Event,
    },
    Pass(Duration),
    /// Waits for every pending acquire.
    Answered,
    /// Waits until every hold is lost.
    Lost,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// Delays each answer by this many times [`ProgramServer::REPLY_DELAY`].
    Late(u32),
    /// Delays each request: one sent after this ends may overtake it.
    LateRequests(u32),
    /// Mutes this many servers.
    Silence(usize),
    /// Closes connections, and accepts new ones.
    Cut,
    /// This many servers refuse.
    Refuse {
        servers: usize,
        how: usize,
    },
    Heal,
    /// Mutes them until every hold is over.
    Expire,
}

impl Event {
    pub(crate) fn random(dice: &mut Rng) -> Self {
        let servers = dice.usize(1..=5);
        match dice.u8(0..10) {
            0 => Self::Late(dice.u32(0..4)),
            1 => Self::Silence(servers),
            2 => Self::Cut,
            3 | 4 => Self::Refuse { servers, how: dice.usize(0..64) },
            5..8 => Self::Heal,
            8 => Self::Expire,
            _ => Self::LateRequests(dice.u32(0..5)),
        }
    }

    /// Injects the fault; the caller waits if it takes time.
    pub(crate) fn to<S: ProgramServer>(self, wires: &[Wire]) {
        match self {
            Self::Late(by) => {
                for wire in wires {
                    wire.mute.delay(S::REPLY_DELAY * by);
                }
            }
            Self::LateRequests(by) => wires.iter().for_each(|wire| wire.delay(S::REPLY_DELAY * by)),
            Self::Silence(servers) => wires.iter().take(servers).for_each(|wire| wire.mute.mute()),
            Self::Expire => wires.iter().for_each(|wire| wire.mute.mute()),
            Self::Cut => wires.iter().for_each(Wire::cut),
            Self::Refuse { servers, how } => {
                let refusal = how.checked_rem(S::REFUSALS.len()).map(|n| S::REFUSALS[n]);
                wires.iter().take(servers).for_each(|wire| wire.refuse(refusal));
            }
            Self::Heal => wires.iter().for_each(Wire::heal),
        }
    }
}

impl Step {
    fn random(dice: &mut Rng) -> Self {
        match dice.u8(0..20) {
            0..7 => {
                let process = dice.usize(0..3);
                let owner = [None, Some(0), Some(0), Some(1)][dice.usize(0..4)];
                let lease = match dice.u8(0..4) {
                    0 => Lease::Watchdog(SOON * 3),
                    1 => Lease::Watchdog(Duration::from_millis(300)),
                    _ => Lease::Fixed(Duration::from_millis(60)),
                };
                ask(process, owner, lease, dice.u64(0..4) * 100, dice.u8(0..4))
            }
            7 => Self::GoAway(dice.usize(0..8)),
            8..12 => Self::Release(dice.usize(0..8)),
            12 => Self::Drop(dice.usize(0..8)),
            13..17 => Self::Wire { process: dice.usize(0..2), event: Event::random(dice) },
            _ => Self::Pass(Duration::from_millis(dice.u64(0..40))),
        }
    }
}

fn ask(process: usize, owner: Option<usize>, lease: Lease, wait: u64, half: u8) -> Step {
    let who = Actor { process, owner };
    Step::Ask { who, lease, wait, half }
}

fn program<S: ProgramServer>(seed: u64) -> Vec<Step> {
    let mut dice = Rng::with_seed(seed);
    (0..S::STEPS).map(|_| Step::random(&mut dice)).collect()
}

/// One holds it without a word from the servers, so that it cannot learn that they have lost it, and another waits for it. Each asks
/// again and again: a busy machine, or the loss, may break off a call.
fn one_waits_while_another_hears_nothing() -> Vec<Step> {
    let lease = Lease::Watchdog(Duration::from_secs(16));
    let asks = |process, wait| [ask(process, None, lease, wait, 0), Step::Answered].repeat(6);
    let wire = |event| [Step::Wire { process: 0, event }];
    let release = [Step::Release(0); 2];
    [&asks(0, 0)[..], &wire(Event::Silence(5)), &asks(1, 2000), &wire(Event::Heal), &release].concat()
}

/// A program that reaches every event, however busy the machine is: it waits before each step for what must have
/// happened.
fn program_with_every_event<S: ProgramServer>(subject: &Subject<S>) -> Vec<Step> {
    // A Redlock node may take a tenth of it to answer.
    let lease = Lease::Watchdog(Duration::from_secs(4));
    let brief = ask(0, None, Lease::Watchdog(Duration::from_secs(1)), 10_000, 1);
    let ask = |process, owner, wait, half| ask(process, owner, lease, wait, half);
    let wire = |process, event| Step::Wire { process, event };
    let all = Event::Silence(5);
    let mut steps = vec![
        // A waiter that learns of its turn after a cut, with a wait above any delay. The holder re-enters meanwhile, as
        // a reader if it can.
        ask(0, Some(0), 10_000, 0),
        Step::Answered,
        ask(1, None, 40_000, 0),
        Step::Pass(Duration::from_millis(200)),
        ask(0, Some(0), 100, 1),
        Step::Pass(Duration::from_millis(200)),
        wire(1, Event::Cut),
        Step::Release(0),
        // A writer that keeps reading excludes the others.
        Step::Pass(Duration::from_millis(200)),
        Step::Release(0),
        Step::Answered,
        Step::Release(0),
        // Two readers; without readers, the second is not in time.
        ask(0, None, 10_000, 1),
        Step::Answered,
        ask(2, None, 2000, 1),
        Step::Answered,
        Step::Release(0),
        Step::Release(0),
        // A renewed lease, a reader's if there are readers, excludes others beyond its length.
        brief,
        Step::Answered,
        Step::Pass(Duration::from_millis(1500)),
        ask(2, None, 0, 0),
        Step::Answered,
        Step::Release(0),
        Step::Release(0),
        // One that enters twice, and others that want to; a semaphore has three permits.
        ask(0, Some(0), 10_000, 0),
        Step::Answered,
        ask(0, Some(0), 10_000, 0),
        Step::Answered,
        ask(1, None, 100, 0),
        Step::Answered,
        ask(1, None, 0, 0),
        Step::Answered,
        ask(1, None, 10_000, 0),
        Step::GoAway(0),
        wire(0, all),
    ];
    steps.extend(subject.wanted.contains(&"lost").then_some(Step::Lost));
    steps.extend([
        Step::Release(0),
        Step::Release(0),
        wire(0, Event::Heal),
        wire(1, all),
        ask(1, None, 300, 0),
        Step::Answered,
        wire(1, Event::Heal),
    ]);
    for how in 0..S::REFUSALS.len() {
        let refuses = wire(1, Event::Refuse { servers: 5, how });
        // A refused login also refuses new connections.
        steps.extend([refuses, wire(1, Event::Cut)]);
        steps.extend([ask(1, None, 300, 0), Step::Answered]);
    }
    steps.push(wire(1, Event::Heal));
    steps
}

/// The server is silent or refuses: a free lock is not reported as taken, and what is carried out all the same, with a
/// long lease, is undone, and nothing else.
fn programs_with_a_free_lock<S: ProgramServer>() -> Vec<Vec<Step>> {
    let refusals = (0..S::REFUSALS.len()).map(|how| Event::Refuse { servers: 5, how });
    let event = refusals.chain([Event::Silence(5)]);
    let lease = Lease::Watchdog(Duration::from_secs(60));
    let asks = |event| {
        let wire = |event| Step::Wire { process: 1, event };
        let ask = |process, owner, wait| ask(process, owner, lease, wait, 0);
        // Connected, with loaded scripts.
        let mut steps = vec![ask(1, None, 10_000), Step::Answered, Step::Release(0)];
        steps.push(Step::Pass(Duration::from_millis(500)));
        steps.extend([wire(event), ask(1, None, 0), Step::Answered]);
        // The owner re-enters meanwhile, in vain, and keeps what it had.
        steps.extend([wire(Event::Heal), ask(1, Some(0), 10_000), Step::Answered]);
        steps.extend([wire(event), ask(1, Some(0), 0), Step::Answered]);
        steps.extend([wire(Event::Heal), ask(2, None, 1000), Step::Answered]);
        // A release meanwhile succeeds later.
        steps.extend([wire(event), Step::Release(0)]);
        let moment = Step::Pass(Duration::from_millis(100));
        steps.extend([moment, wire(Event::Heal)]);
        // As does a hand-off to another waiter of its process, right after the acquire.
        let soon = Step::Pass(Duration::from_millis(8));
        steps.extend([moment, ask(1, None, 10_000), ask(1, None, 10_000), soon]);
        steps.extend([wire(event), Step::Release(0), moment, wire(Event::Heal)]);
        steps
    };
    event.map(asks).collect()
}

/// A request takes longer than its caller waits: its undo arrives first, or another request of the same owner comes
/// between. Each has a long lease.
fn late_requests<S: ProgramServer>() -> [Vec<Step>; 3] {
    let lease = Lease::Watchdog(Duration::from_secs(60));
    let ask = |process, owner, wait| ask(process, owner, lease, wait, 0);
    let late = |by| Step::Wire { process: 1, event: Event::LateRequests(by) };
    let (soon, comes) = (Duration::from_millis(100), Step::Pass(S::REPLY_DELAY * 4));
    // Connected, with loaded scripts; later requests are delayed.
    let begin = |then: &[Step]| {
        let known = [ask(1, None, 10_000), Step::Answered, Step::Release(0)];
        [&known[..], &[Step::Pass(soon * 5)], then].concat()
    };
    let asks = |wait| [late(4), ask(1, None, wait), Step::Pass(soon), late(0)];
    let again = ask(1, Some(0), 10_000);
    let dropped = [again, Step::Answered, late(4), Step::Drop(0), Step::Pass(soon)];
    let and_again = [late(0), again, Step::Answered, comes];
    let another = [ask(2, None, 3000), Step::Answered];
    [
        begin(&[&asks(0)[..], &[Step::Answered, comes]].concat()),
        begin(&[&asks(10_000)[..], &[Step::GoAway(0), comes]].concat()),
        begin(&[&dropped[..], &and_again, &another].concat()),
    ]
}

/// A running program.
struct Run<'a, S: ProgramServer> {
    server: &'static S,
    subject: &'a Subject<S>,
    name: String,
    parties: [Party<S>; 3],
    recorder: Arc<Recorder>,
    asking: Vec<(usize, JoinHandle<()>)>,
    asked: usize,
}

/// Unnamed contenders are numbered from here.
const UNNAMED: usize = 100;

impl<'a, S: ProgramServer> Run<'a, S> {
    async fn new(server: &'static S, subject: &'a Subject<S>) -> Result<Self> {
        let promise = Promise { permits: subject.permits, members: 0, answer: S::REPLY_TIMEOUT + BUSY, news: BUSY };
        Ok(Self {
            server,
            subject,
            name: name(),
            parties: [Party::of(server).await?, Party::of(server).await?, Party::of(server).await?],
            recorder: Recorder::new(promise),
            asking: Vec::new(),
            asked: UNNAMED,
        })
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Ask { who, lease, wait, half } => {
                self.asked += 1;
                let party = &self.parties[who.process];
                let owner = who.owner.filter(|_| self.subject.reentrant);
                let by = owner.map_or(self.asked, |owner| 2 * who.process + owner);
                let ask = Ask { owner: owner.map(|owner| party.owners[owner]), lease: Some(lease) };
                let wait = Duration::from_millis(wait);
                let Acquisition { share, taken } = (self.subject.take)(&party.client, &self.name, ask, wait, half);
                let recorder = self.recorder.clone();
                let call = recorder.asks(by, Asks::Hold(share), wait);
                recorder.leased(call, lease.duration());
                let task = tokio::spawn(async move { recorder.entered(call, taken.await) });
                self.asking.push((call, task));
            }
            Step::GoAway(n) => {
                if let Some(n) = n.checked_rem(self.asking.len()) {
                    let (call, task) = self.asking.swap_remove(n);
                    self.recorder.goes_away(call, task).await;
                }
            }
            Step::Release(n) => drop(self.recorder.take(n).map(|held| self.recorder.release(held))),
            Step::Drop(n) => drop(self.recorder.take(n)),
            Step::Wire { process, event } => {
                event.to::<S>(&self.parties[process].wires);
                if let Event::Expire = event {
                    self.pass(S::EXPIRY, |_| false).await;
                    Event::Heal.to::<S>(&self.parties[process].wires);
                }
            }
            Step::Pass(time) => self.pass(time, |_| false).await,
            Step::Answered => self.pass(SLOW_MACHINE_TIME, Self::has_answers).await,
            Step::Lost => self.pass(SLOW_MACHINE_TIME, |run| run.recorder.has_lost_all()).await,
        }
        self.recorder.look();
        self.asking.retain(|(_, task)| !task.is_finished());
    }

    fn has_answers(&self) -> bool {
        self.asking.iter().all(|(_, task)| task.is_finished())
    }

    /// Waits, or less if that is enough.
    async fn pass(&mut self, time: Duration, is_enough: impl Fn(&Self) -> bool) {
        let end = Instant::now() + time;
        while Instant::now() < end && !is_enough(self) {
            let rest = end.saturating_duration_since(Instant::now());
            sleep(rest.min(Duration::from_millis(10))).await;
            self.recorder.look();
        }
    }

    /// Releases all; then every undo is done, and each process can acquire.
    async fn end(mut self) -> History {
        for party in &self.parties {
            Event::Heal.to::<S>(&party.wires);
        }
        for (n, (call, task)) in self.asking.drain(..).enumerate() {
            if n % 2 == 0 {
                self.recorder.goes_away(call, task).await;
            }
        }
        while !self.recorder.is_over() {
            sleep(Duration::from_millis(10)).await;
            for n in 0.. {
                match self.recorder.take(0) {
                    Some(held) if n % 2 == 0 => drop(self.recorder.release(held)),
                    Some(held) => drop(held),
                    None => break,
                }
            }
        }
        while self.recorder.take(0).is_some() {}
        for (process, party) in self.parties.iter().enumerate() {
            let ask = Ask { owner: None, lease: Some(Lease::Watchdog(SOON)) };
            let take = || (self.subject.take)(&party.client, &self.name, ask, SOON, 0).taken;
            let answered = async {
                loop {
                    match take().await {
                        // The machine is too slow for the client's timeout, which says nothing about the lock.
                        Err(LockError::Unavailable { .. }) => {
                            sleep(Duration::from_millis(100)).await;
                        }
                        answer => break answer.map(drop),
                    }
                }
            };
            let came_to = match timeout(SLOW_MACHINE_TIME, answered).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            let left = (self.subject.left)(self.server, &self.name).await;
            self.recorder.left(format!("process {process} cannot have it: {came_to}, beside {left:?}"));
        }
        let left = async || (self.subject.left)(self.server, &self.name).await;
        if until("nothing is left", async || left().await.is_empty()).await.is_err() {
            left().await.into_iter().for_each(|left| self.recorder.left(left));
        }
        self.recorder.history()
    }
}

async fn run<S: ProgramServer>(server: &'static S, subject: &Subject<S>, steps: &[Step]) -> Result<History> {
    let mut run = Run::new(server, subject).await?;
    for step in steps {
        run.step(*step).await;
    }
    Ok(run.end().await)
}

/// Removes halves, quarters, … of the steps while it still fails.
async fn shorten<S: ProgramServer>(server: &'static S, subject: &Subject<S>, failing: &mut (Vec<Step>, Verdict)) -> Result {
    let mut part = failing.0.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < failing.0.len() {
            let mut rest = failing.0.clone();
            rest.drain(at..(at + part).min(rest.len()));
            match judge(&run(server, subject, &rest).await?) {
                Verdict::Kept => at += part,
                still => *failing = (rest, still),
            }
        }
        part /= 2;
    }
    Ok(())
}

/// The seeds of the programs that run at the same time: some fixed ones, and a new one.
pub(crate) fn seeds(of: &str, programs: u64) -> Vec<u64> {
    let given = std::env::var("OVERSELL_PROGRAM_SEED");
    let given = given.ok().and_then(|seed| seed.parse().ok());
    let chosen = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("programs with {of}: OVERSELL_PROGRAM_SEED={chosen}");
    let programs = if soak() { 8 * programs } else { programs };
    let fixed = if given.is_some() { 0 } else { programs };
    (0..fixed).chain([chosen]).collect()
}

/// The programs per run.
const FIXED_SEEDS: u64 = 5;
/// The most runs of the program that reaches everything, alone: a busy machine may be too slow for a lease.
const MAX_FULL_PROGRAM_RUNS: usize = 8;

/// Random programs with this lock keep every rule, whatever happens to the servers.
pub(crate) async fn ensure_rules_kept<S: ProgramServer>(
    of: &str,
    server: &'static S,
    subject: &Subject<S>,
    meanwhile: impl Future<Output = Result>,
) -> Result {
    let seeds = seeds(of, FIXED_SEEDS);
    let programs: Vec<_> = seeds.iter().map(|seed| program::<S>(*seed)).collect();
    let play = |program| run(server, subject, program);
    let (histories, disturbed) = tokio::join!(try_join_all(programs.iter().map(|program| play(program))), meanwhile);
    disturbed?;
    let mut histories = histories?;
    for ((seed, program), history) in seeds.iter().zip(&programs).zip(&histories) {
        let kept = fail_with_shortest_program(server, subject, program, history).await;
        kept.with_context(|| format!("{of}, seed {seed}"))?;
    }
    let mut planned = programs_with_a_free_lock::<S>();
    planned.extend(late_requests::<S>());
    let histories_of = planned.iter().map(|program| play(program));
    for (n, history) in try_join_all(histories_of).await?.iter().enumerate() {
        let verdict = judge(history);
        let kept = verdict == Verdict::Kept;
        ensure!(kept, "{of}: {verdict:?} after {:?}", planned[n]);
    }
    let unseen = |histories: &[History]| {
        let seen: BTreeSet<_> = seen(histories);
        let mut wanted = subject.wanted.iter();
        wanted.find(|wanted| !seen.contains(*wanted)).copied()
    };
    let through = program_with_every_event(subject);
    for _ in 0..MAX_FULL_PROGRAM_RUNS {
        let history = play(&through).await?;
        let kept = fail_with_shortest_program(server, subject, &through, &history).await;
        kept.with_context(|| format!("{of}, through everything"))?;
        histories.push(history);
        if unseen(&histories).is_none() {
            return Ok(());
        }
    }
    bail!("{of}: no program came to: {:?}", unseen(&histories))
}

/// Checks that the programs see this twin break a rule, and which one.
pub(crate) async fn ensure_rule_broken<S: ProgramServer>(server: &'static S, subject: &Subject<S>, by: &str) -> Result {
    let mut programs = programs_with_a_free_lock::<S>();
    programs.extend([program_with_every_event(subject), one_waits_while_another_hears_nothing()]);
    ensure_broken_by(server, subject, by, &programs).await
}

/// Checks that a program sees two holders after a `loss`, which comes while one waits for the other.
pub(crate) async fn ensure_loss_is_seen<S: ProgramServer>(
    server: &'static S,
    subject: &Subject<S>,
    loss: impl Future<Output = Result>,
) -> Result {
    let programs = [one_waits_while_another_hears_nothing()];
    let (lost, seen) = tokio::join!(loss, ensure_broken_by(server, subject, "both hold it", &programs));
    lost.and(seen)
}

async fn ensure_broken_by<S: ProgramServer>(
    server: &'static S,
    subject: &Subject<S>,
    by: &str,
    programs: &[Vec<Step>],
) -> Result {
    let histories = try_join_all(programs.iter().map(|program| run(server, subject, program))).await?;
    let verdicts: Vec<_> = histories.iter().map(judge).collect();
    let found = |verdict: &Verdict| matches!(verdict, Verdict::Broken(rule) if rule.contains(by));
    ensure!(verdicts.iter().any(found), "not caught: {verdicts:?}");
    Ok(())
}

/// Fails if a program broke a rule, with the shortest program that still does.
async fn fail_with_shortest_program<S: ProgramServer>(
    server: &'static S,
    subject: &Subject<S>,
    program: &[Step],
    history: &History,
) -> Result {
    let verdict = judge(history);
    if verdict == Verdict::Kept {
        return Ok(());
    }
    eprintln!("{verdict:?}");
    let mut short = (program.to_vec(), verdict);
    // It ends in time, or this is as far as it came.
    let shorter = timeout(SOON * 2, shorten(server, subject, &mut short));
    shorter.await.unwrap_or(Ok(()))?;
    bail!("in short: {:?}, after {:?}", short.1, short.0)
}
