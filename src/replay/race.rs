//! What a race is: its words, who does what in which order without the cure and with it, and how either must end.

use super::{
    act::{Act, INITIAL_PIECES},
    faults::Need,
    options::Pace,
    role::Role,
    step::{RoleStep, Step},
};
use crate::{
    bilingual::Bilingual,
    config::Config,
    replay_log::ReplayResult,
    section::{Name, Point},
    server::Server,
};
use serde::Serialize;
use utoipa::ToSchema;

const NOT_ENABLED: Bilingual = Bilingual::of(
    "这里没有开启重演（replays.enabled）",
    "replays are not enabled here (replays.enabled)",
);

/// Where another could come between what an actor has done and what it does next.
const STOPS_BETWEEN_STEPS: &[Point] = &[
    Point::Read,
    Point::Checked,
    Point::Written,
    Point::Conflict,
    Point::Released,
];
/// Where who gets in before whom is decided: whoever was refused asks again when it is let go on.
const STOPS_AT_ENTRY: &[Point] = &[Point::Read, Point::Refused];
/// Where only whether one is inside counts.
const STOPS_INSIDE: &[Point] = &[Point::Read];

/// A race and its cure.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// The lessons that it shows, as the course numbers them.
    pub lessons: &'static [&'static str],
    /// What happens.
    pub title: Bilingual,
    /// What breaks.
    pub breaks: Bilingual,
    /// What mends it.
    pub cure: Bilingual,
    /// What both begin with.
    pub begin: &'static [Step],
    /// How it goes on without the cure.
    pub flaw: Variant,
    /// How it goes on with it.
    pub cured: Variant,
}

/// A race without its cure, or with it.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// What its actors do, where nothing else is said.
    pub act: Act,
    /// What happens after the steps that both begin with.
    pub steps: &'static [Step],
    /// How it ends, each time.
    pub expected: ExpectedResult,
}

/// What is played.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    /// What its actors do, where nothing else is said.
    pub act: Act,
    /// So many pieces are there at first.
    pub pieces: i64,
    /// What happens, part after part.
    pub steps: [&'static [Step]; 2],
    /// How it must end.
    pub expected: ExpectedResult,
    /// Where whoever watches decides the order, each stands still at these points.
    pub stops: &'static [Point],
}

impl Script {
    /// One of these steps alone.
    #[must_use]
    pub const fn of(act: Act, steps: &'static [Step], expected: ExpectedResult) -> Self {
        Self {
            act,
            pieces: INITIAL_PIECES,
            steps: [steps, &[]],
            expected,
            stops: STOPS_BETWEEN_STEPS,
        }
    }

    fn each(&self) -> impl Iterator<Item = &'static Step> {
        self.steps.into_iter().flatten().flat_map(Step::each)
    }

    /// Who plays in it, each as it begins.
    pub(super) fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for role in self.each().flat_map(Step::roles) {
            if roles.iter().all(|known| known.letter != role.letter) {
                roles.push(*role);
            }
        }
        roles.sort_by_key(|role| role.letter);
        roles
    }

    /// Who plays in it. The two transactions of a deadlock have no steps of their own.
    #[must_use]
    pub fn actors(&self) -> Vec<char> {
        match self.act {
            Act::Deadlock(_) => vec!['A', 'B'],
            _ => self.roles().iter().map(|role| role.letter).collect(),
        }
    }

    /// About how long it takes at the pace [`Slow`](super::Pace::Slow), in milliseconds: so that its picture has room for all of it.
    #[must_use]
    pub fn lasts_ms(&self) -> u64 {
        let of_step = |step: &Step| match step {
            Step::Say(_) => 700,
            Step::LeaseEnds | Step::UnrenewedLeaseEnds | Step::RowLeaseEnds => 1_500,
            Step::FinishTogether(_) => 900,
            Step::Role(_, role_step) => role_step.lasts_ms(),
            _ => 0,
        };
        self.each().map(of_step).sum()
    }

    /// Who dies in it.
    pub(super) fn dying_role(&self) -> Option<&'static Role> {
        self.each().find_map(|step| match step {
            Step::Role(role, RoleStep::Die) => Some(role),
            _ => None,
        })
    }

    /// Whether a replica of the main Redis is promoted in it.
    pub(super) fn has_failover(&self) -> bool {
        self.each().any(|step| step.needs() == Some(Need::Replica))
    }

    /// What the lab is told to break in it, and to do at its end.
    pub(super) fn lab_steps(&self) -> impl Iterator<Item = &'static Step> {
        self.each()
            .filter(|step| matches!(step, Step::Fault(..) | Step::FaultAtEnd(..)))
    }

    /// Whether a lease ends in it.
    pub(super) fn has_clock(&self) -> bool {
        self.each().any(|step| {
            matches!(
                step,
                Step::LeaseEnds | Step::UnrenewedLeaseEnds | Step::RowLeaseEnds
            )
        })
    }
}

/// What goes wrong in a race, which an order brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Anomaly {
    /// More was sold than is gone.
    Oversold,
    /// One waits for what nobody will give back.
    Stuck,
    /// One who came later got in first.
    Overtaken,
    /// MySQL has ended a transaction: a deadlock, or the end of its wait.
    Deadlock,
}

/// What whoever watches a race can decide at the pace [`Scheduler`](super::Pace::Scheduler).
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Schedule {
    /// What the right order brings about without the cure, and none with it.
    pub goal: Anomaly,
    /// Who plays.
    #[schema(example = json!(["A", "B"]))]
    pub actors: Vec<char>,
    /// Whether the clock can be let end a lease.
    pub clock: bool,
    /// Who can be let die where it stands.
    #[schema(example = "A")]
    pub dies: Option<char>,
    /// Whether the replica of the main Redis can be promoted, which has heard of nothing since the race began.
    pub fails_over: bool,
    /// Where each stands still.
    #[schema(value_type = Vec<Point>, example = json!(["read", "written"]))]
    pub stops: &'static [Point],
}

impl Race {
    /// Who and what can be let go on in it, with the cure or without it; `None` where no order goes wrong, where its actors do
    /// different things, or where something breaks in it besides the main Redis.
    #[must_use]
    pub fn schedule(&self, cured: bool) -> Option<Schedule> {
        let one_act = !self.steps().any(|step| step.act().is_some());
        let script = self.script(cured);
        if !one_act || (self.needs_lab() && !script.has_failover()) {
            return None;
        }
        Some(Schedule {
            goal: self.anomaly()?,
            actors: script.actors(),
            clock: script.has_clock(),
            dies: script.dying_role().map(|role| role.letter),
            fails_over: script.has_failover(),
            stops: script.stops,
        })
    }

    /// Whether it can be played at the pace [`Timed`](super::Pace::Timed): a lease ends in it, and so more is sold than is gone.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        (self.schedule(false)).is_some_and(|of| of.goal == Anomaly::Oversold && of.clock)
    }

    fn anomaly(&self) -> Option<Anomaly> {
        let Variant { act, expected, .. } = self.flaw;
        match act {
            Act::Deadlock(_) => Some(Anomaly::Deadlock),
            _ if expected.sold > expected.gone => Some(Anomaly::Oversold),
            _ => expected.anomaly,
        }
    }

    /// It, with the cure or without it.
    #[must_use]
    pub fn variant(&self, cured: bool) -> &Variant {
        if cured { &self.cured } else { &self.flaw }
    }

    /// What is played, with the cure or without it.
    #[must_use]
    pub fn script(&self, cured: bool) -> Script {
        let Variant {
            act,
            steps,
            expected,
        } = *self.variant(cured);
        let script = Script {
            steps: [self.begin, steps],
            ..Script::of(act, steps, expected)
        };
        let stops = match self.anomaly() {
            _ if script.has_failover() => STOPS_INSIDE,
            Some(Anomaly::Overtaken) => STOPS_AT_ENTRY,
            _ => STOPS_BETWEEN_STEPS,
        };
        Script { stops, ..script }
    }

    fn steps(&self) -> impl Iterator<Item = &'static Step> {
        let parts = [self.begin, self.flaw.steps, self.cured.steps];
        parts.into_iter().flatten().flat_map(Step::each)
    }

    /// What its actors do.
    pub(super) fn acts(&self) -> impl Iterator<Item = Act> {
        let of_roles = self.steps().filter_map(Step::act);
        [self.flaw.act, self.cured.act].into_iter().chain(of_roles)
    }

    /// What it needs of a lab.
    fn needs(&self) -> impl Iterator<Item = Need> {
        let nodes = self.acts().any(|act| {
            act.scope()
                .names
                .iter()
                .any(|name| matches!(name, Name::RedisNodes(_)))
        });
        let ordered = self.steps().filter_map(Step::needs);
        ordered.chain(nodes.then_some(Need::Nodes))
    }

    /// Whether it orders faults, which only a lab carries out.
    #[must_use]
    pub fn needs_lab(&self) -> bool {
        self.needs().next().is_some()
    }

    /// Whether it breaks something at this pace, or stops or kills a whole process, as it does where a lab takes orders: then
    /// it takes an administrator, and nothing else can be played at the same time.
    #[must_use]
    pub fn is_exclusive(&self, pace: Pace, config: &Config) -> bool {
        let in_a_lab = Need::Lab.missing(config).is_none();
        let stops = |step: &Step| match step {
            Step::Role(_, RoleStep::PauseProcess | RoleStep::ResumeProcess) => in_a_lab,
            Step::Role(_, RoleStep::Die) => in_a_lab && pace == Pace::Clock,
            _ => false,
        };
        match pace {
            // Its steps are not played: nothing stops in it.
            Pace::Scheduler | Pace::Timed => self.script(false).has_failover(),
            _ => self.needs_lab() || self.steps().any(stops),
        }
    }

    /// The servers without which it cannot be played, with the cure or without it.
    #[must_use]
    pub fn servers(&self, cured: bool) -> Vec<Server> {
        self.variant(cured).act.servers()
    }

    /// Why it cannot be played here, if it cannot.
    #[must_use]
    pub fn why_not_playable(&self, config: &Config) -> Option<Bilingual> {
        if !config.replays.enabled {
            return Some(NOT_ENABLED);
        }
        self.needs().find_map(|need| need.missing(config))
    }
}

/// How a race must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExpectedResult {
    /// How many actors were told that they had bought a piece.
    #[schema(example = 3)]
    pub sold: i64,
    /// How many pieces left the shelf.
    #[schema(example = 2)]
    pub gone: i64,
    /// The most that were inside at once.
    #[schema(example = 2)]
    pub inside: usize,
    /// What the lesson noted besides.
    #[schema(example = "")]
    pub saw: &'static str,
    /// The same, for people.
    pub said: Bilingual,
    /// What has gone wrong, where that is not to be seen by what was sold.
    #[serde(skip)]
    anomaly: Option<Anomaly>,
}

impl ExpectedResult {
    /// Nothing is sold, nobody is inside, nothing is noted.
    pub const NOTHING: Self = Self {
        sold: 0,
        gone: 0,
        inside: 0,
        saw: "",
        said: Bilingual::of("", ""),
        anomaly: None,
    };

    /// So many are sold, and so many gone.
    #[must_use]
    pub const fn sold(sold: i64, gone: i64) -> Self {
        Self {
            sold,
            gone,
            ..Self::NOTHING
        }
    }

    /// At most so many are inside at once.
    #[must_use]
    pub const fn inside(self, inside: usize) -> Self {
        Self { inside, ..self }
    }

    /// This has gone wrong.
    #[must_use]
    pub const fn with_anomaly(self, anomaly: Anomaly) -> Self {
        let anomaly = Some(anomaly);
        Self { anomaly, ..self }
    }

    /// This is noted, which is so in Chinese and so in English.
    #[must_use]
    pub const fn noting(self, saw: &'static str, zh: &'static str, en: &'static str) -> Self {
        let said = Bilingual::of(zh, en);
        Self { saw, said, ..self }
    }

    /// Whether it has ended so.
    pub(super) fn matches(&self, result: &ReplayResult) -> bool {
        (self.sold, self.gone, self.inside, self.saw)
            == (result.sold, result.gone, result.inside, &*result.saw)
    }
}
