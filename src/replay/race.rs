//! What a race is: its words, the steps of its actors without the cure and with it, and how either must end. A script is a
//! race as it is played.
//!
//! Next: `run.rs`, which plays a script.

use super::{
    act::{Act, INITIAL_PIECES},
    faults::Need,
    options::Pace,
    role::Role,
    step::{RoleStep, Step},
};
use crate::{
    config::Config,
    replay_log::ReplayResult,
    section::{Name, Point},
    server::Server,
};
use oversell_lab::terminal::bilingual::Bilingual;
use serde::Serialize;
use utoipa::ToSchema;

/// Why no replay can be played where `replays.enabled` is off.
const NOT_ENABLED: Bilingual =
    Bilingual::of("这里没有开启重演（replays.enabled）", "replays are not enabled here (replays.enabled)");

/// Where actors stop at the pace `Scheduler` in most races, so that another can come in between.
const STOPS_BETWEEN_STEPS: &[Point] = &[Point::Read, Point::Checked, Point::Written, Point::Conflict, Point::Released];
/// The stops of a race for the order of entry ([`Goal::Overtaken`]). A refused actor asks again when it goes on.
const STOPS_AT_ENTRY: &[Point] = &[Point::Read, Point::Refused];
/// The stop of a race with a fail-over: inside, since only the number of actors inside counts.
const STOPS_INSIDE: &[Point] = &[Point::Read];

/// A race: its lessons, its words, and its two variants.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// The ids of the lessons that it shows.
    pub lessons: &'static [&'static str],
    pub title: Bilingual,
    /// What goes wrong without the cure, in words.
    pub breaks: Bilingual,
    /// What the cure does, in words.
    pub cure: Bilingual,
    /// What goes wrong without the cure, by its names in the field; one at least.
    pub anomalies: &'static [Anomaly],
    /// The steps that both variants begin with.
    pub begin: &'static [Step],
    pub flaw: Variant,
    pub cured: Variant,
}

/// A race without its cure, or with it.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The act of every role that has none of its own.
    pub act: Act,
    /// The steps after `begin`.
    pub steps: &'static [Step],
    pub expected: ExpectedResult,
}

/// The steps to play, and the result that they must have.
#[derive(Debug, Clone, Copy)]
pub struct RaceScript {
    /// The act of every role that has none of its own.
    pub act: Act,
    pub pieces: i64,
    /// The race's `begin`, then the steps of the variant.
    pub steps: [&'static [Step]; 2],
    pub expected: ExpectedResult,
    /// Where actors stop at the pace [`Scheduler`](super::Pace::Scheduler).
    pub schedule_stops: &'static [Point],
}

/// What goes wrong in a race, by its name in the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Anomaly {
    /// A holder whose lease had ended released the lock of the next one.
    LateRelease,
    /// A write was lost under another one.
    LostUpdate,
    /// Both found that they may, before either did it.
    CheckThenAct,
    /// Two hold one lock.
    TwoHolders,
    /// One purchase has taken two pieces.
    Doubled,
    /// An actor waits for something that nobody will release.
    Stuck,
    /// A later actor got in first.
    Overtaken,
    /// MySQL ended a transaction: a deadlock, or a lock wait timeout.
    Deadlock,
    /// Commands of another came between those of one actor.
    Interleaved,
    /// Too few servers are left, and nobody gets the lock.
    Unavailable,
    /// An actor went on before those whom it should have waited for.
    Early,
    /// More were let through than the limit says.
    OverLimit,
    /// One release wakes all who wait.
    Herd,
    /// Those wait for each other who could be inside together.
    Serialized,
}

/// What a right schedule brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// More was sold than has left the stock.
    Oversold,
    /// An actor waits for something that nobody will release.
    Stuck,
    /// A later actor got in first.
    Overtaken,
    /// MySQL ends a transaction: a deadlock, or a lock wait timeout.
    Deadlock,
}

/// What a person can decide at the pace [`Scheduler`](super::Pace::Scheduler).
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Schedule {
    /// What a right schedule brings about without the cure, and none does with it.
    pub goal: Goal,
    /// The actors.
    #[schema(example = json!(["A", "B"]))]
    pub actors: Vec<char>,
    /// Whether leases can be ended.
    pub clock: bool,
    /// The actor that can be killed where it stands.
    #[schema(example = "A")]
    pub dies: Option<char>,
    /// Whether the replica of the main Redis can be promoted. It has received no write since the race began.
    pub fails_over: bool,
    /// Where actors stop.
    #[schema(value_type = Vec<Point>, example = json!(["read", "written"]))]
    pub stops: &'static [Point],
}

/// What a picture shows below its actors: with it a page decides how high the picture is before the race begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerLanes {
    /// A lock on several nodes has a lane for each.
    #[schema(example = 1)]
    pub locks: usize,
    /// Whether the server lists who waits for a lock.
    pub queue: bool,
    /// Whether the pieces left are shown.
    pub stock: bool,
    /// Whether the fencing token of the row is shown.
    pub fence: bool,
}

impl Race {
    /// What a person can decide in it. `None` if no schedule goes wrong, if a client hangs up in it, if its actors do
    /// different things, or if it needs a lab and has no fail-over.
    pub fn schedule(&self, cured: bool) -> Option<Schedule> {
        let one_act = !self.steps().any(|step| step.act().is_some());
        let hangs_up = (self.steps()).any(|step| matches!(step, Step::Role(_, RoleStep::HangsUp)));
        let script = self.script(cured);
        if !one_act || hangs_up || (self.needs_lab() && !script.has_failover()) {
            return None;
        }
        Some(Schedule {
            goal: self.goal()?,
            actors: script.actors(),
            clock: script.has_clock(),
            dies: script.dying_role().map(|role| role.letter),
            fails_over: script.has_failover(),
            stops: script.schedule_stops,
        })
    }

    /// Whether the pace [`Timed`](super::Pace::Timed) plays it: without the cure, the end of a lease makes it oversell.
    pub fn is_timed(&self) -> bool {
        (self.schedule(false)).is_some_and(|of| of.goal == Goal::Oversold && of.clock)
    }

    /// What a schedule can bring about: a deadlock, else overselling, else the first anomaly that is a goal, else nothing.
    pub(super) fn goal(&self) -> Option<Goal> {
        let Variant { act, expected, .. } = self.flaw;
        if matches!(act, Act::Deadlock(_)) {
            return Some(Goal::Deadlock);
        }
        if expected.sold > expected.gone {
            return Some(Goal::Oversold);
        }
        self.anomalies.iter().find_map(|anomaly| match anomaly {
            // A patient actor waits inside of its act, where nobody can stop it.
            Anomaly::Stuck if self.steps().flat_map(Step::roles).any(|role| role.is_impatient) => Some(Goal::Stuck),
            Anomaly::Overtaken => Some(Goal::Overtaken),
            _ => None,
        })
    }

    /// Whether each actor places an order for the same user, who may have one.
    pub fn places_orders(&self) -> bool {
        matches!(self.flaw.act, Act::Order(_))
    }

    pub fn variant(&self, cured: bool) -> &Variant {
        if cured { &self.cured } else { &self.flaw }
    }

    pub fn script(&self, cured: bool) -> RaceScript {
        let Variant { act, steps, expected } = *self.variant(cured);
        let script = RaceScript { steps: [self.begin, steps], ..RaceScript::of(act, steps, expected) };
        let schedule_stops = match self.goal() {
            _ if script.has_failover() => STOPS_INSIDE,
            Some(Goal::Overtaken) => STOPS_AT_ENTRY,
            _ => STOPS_BETWEEN_STEPS,
        };
        RaceScript { schedule_stops, ..script }
    }

    /// The steps of both variants, one by one.
    fn steps(&self) -> impl Iterator<Item = &'static Step> {
        let parts = [self.begin, self.flaw.steps, self.cured.steps];
        parts.into_iter().flatten().flat_map(Step::flatten)
    }

    /// The acts of both variants and of all roles; one may come several times.
    pub(super) fn acts(&self) -> impl Iterator<Item = Act> {
        let of_roles = self.steps().filter_map(Step::act);
        [self.flaw.act, self.cured.act].into_iter().chain(of_roles)
    }

    /// What the steps and acts of both variants need of a lab. A jump of a clock counts as no need: the lease is ended instead.
    fn needs(&self) -> impl Iterator<Item = Need> {
        let names = || self.acts().flat_map(|act| act.reset_scope().names);
        let nodes = names().any(|name| matches!(name, Name::RedisNodes(_)));
        let etcd = names().any(|name| matches!(name, Name::Etcd(_)));
        let ordered = self.steps().filter_map(Step::needs);
        ordered.chain(nodes.then_some(Need::Nodes)).chain(etcd.then_some(Need::Etcd))
    }

    /// Whether it needs anything of a lab: a fault, or the five Redis nodes.
    pub fn needs_lab(&self) -> bool {
        self.needs().next().is_some()
    }

    /// Whether a replay of either variant breaks servers, stops processes, or uses the five Redis nodes. Such a replay needs the
    /// admin token and cannot run beside another.
    pub fn is_exclusive(&self, pace: Pace, config: &Config) -> bool {
        let in_a_lab = Need::Lab.what_is_missing(config).is_none();
        let stops = |step: &Step| match step {
            Step::Role(_, RoleStep::GetsPaused | RoleStep::GetsResumed) => in_a_lab,
            Step::Role(_, RoleStep::Dies) => in_a_lab && pace == Pace::Clock,
            _ => false,
        };
        match pace {
            // Only the faults of a fail-over are injected: the other steps are not played.
            Pace::Scheduler | Pace::Timed => self.script(false).has_failover(),
            _ => self.needs_lab() || self.steps().any(stops),
        }
    }

    /// The servers that the act of this variant needs, one perhaps twice; acts of single roles do not count.
    pub fn servers(&self, cured: bool) -> Vec<Server> {
        self.variant(cured).act.servers()
    }

    /// Why this instance cannot play it, by its configuration and its lab; `None` if it can. Servers are not asked.
    pub fn why_not_playable(&self, config: &Config) -> Option<Bilingual> {
        if !config.replays.enabled {
            return Some(NOT_ENABLED);
        }
        let missing = self.needs().filter(|need| need.what_is_missing(config).is_some());
        missing.max()?.what_is_missing(config)
    }
}

impl RaceScript {
    /// A script with the course's number of pieces, whose actors can be stopped at all points between steps.
    pub const fn of(act: Act, steps: &'static [Step], expected: ExpectedResult) -> Self {
        Self { act, pieces: INITIAL_PIECES, steps: [steps, &[]], expected, schedule_stops: STOPS_BETWEEN_STEPS }
    }

    fn flatten(&self) -> impl Iterator<Item = &'static Step> {
        self.steps.into_iter().flatten().flat_map(Step::flatten)
    }

    /// Each role once, as its first step has it, in the order of letters.
    pub(super) fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for role in self.flatten().flat_map(Step::roles) {
            if roles.iter().all(|known| known.letter != role.letter) {
                roles.push(*role);
            }
        }
        roles.sort_by_key(|role| role.letter);
        roles
    }

    /// The letters of the actors. The two transactions of a deadlock are A and B, though its steps do not name them.
    pub fn actors(&self) -> Vec<char> {
        match self.act {
            Act::Deadlock(_) => vec!['A', 'B'],
            _ => self.roles().iter().map(|role| role.letter).collect(),
        }
    }

    /// What its picture shows below the actors.
    pub fn server_lanes(&self, config: &Config) -> ServerLanes {
        let names = self.act.reset_scope().names;
        let lanes = |name: &Name| match name {
            Name::RedisNodes(_) => config.node_urls().len(),
            Name::RedisCount(_) | Name::Fence => 0,
            _ => 1,
        };
        ServerLanes {
            locks: names.iter().map(lanes).sum(),
            queue: names.iter().any(|name| matches!(name, Name::ZooKeeper(_) | Name::Etcd(_))),
            stock: self.act.piece_store().is_some(),
            fence: names.contains(&Name::Fence),
        }
    }

    /// About how long it takes at the pace [`Slow`](super::Pace::Slow), from which the page takes the width of its picture.
    pub fn estimated_ms(&self) -> u64 {
        let of_step = |step: &Step| match step {
            Step::Caption(_) => 700,
            Step::LeaseEnds | Step::UnrenewedLeaseEnds | Step::RowLeaseEnds => 1_500,
            Step::FinishTogether(_) => 900,
            Step::Role(_, role_step) => role_step.estimated_ms(),
            _ => 0,
        };
        self.flatten().map(of_step).sum()
    }

    /// The first role with the step [`RoleStep::Dies`]; one that is only killed does not count.
    pub(super) fn dying_role(&self) -> Option<&'static Role> {
        self.flatten().find_map(|step| match step {
            Step::Role(role, RoleStep::Dies) => Some(role),
            _ => None,
        })
    }

    /// Whether the lab promotes the replica.
    pub(super) fn has_failover(&self) -> bool {
        self.flatten().any(|step| step.needs() == Some(Need::Replica))
    }

    /// The faults of servers, which a schedule starts with. Those of roles are left out.
    pub(super) fn lab_steps(&self) -> impl Iterator<Item = &'static Step> {
        self.flatten().filter(|step| matches!(step, Step::Fault(..) | Step::FaultAtEnd(..)))
    }

    /// Whether a lease ends in it, so that a person can end leases.
    pub(super) fn has_clock(&self) -> bool {
        self.flatten().any(|step| matches!(step, Step::LeaseEnds | Step::UnrenewedLeaseEnds | Step::RowLeaseEnds))
    }
}

/// The result that a race must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExpectedResult {
    /// How many actors were told that they had bought a piece.
    #[schema(example = 3)]
    pub sold: i64,
    /// How many pieces have left the stock.
    #[schema(example = 2)]
    pub gone: i64,
    /// The most actors inside at once.
    #[schema(example = 2)]
    pub inside: usize,
    /// What the race noted.
    #[schema(example = "")]
    pub notes: &'static str,
    /// The note for people.
    pub said: Bilingual,
}

impl ExpectedResult {
    /// Nothing is sold, gone or noted, and nobody is inside.
    pub const NOTHING: Self = Self { sold: 0, gone: 0, inside: 0, notes: "", said: Bilingual::of("", "") };

    /// `sold` buyers are told that they have a piece, `gone` pieces have left the stock, and nobody is inside.
    pub const fn sold(sold: i64, gone: i64) -> Self {
        Self { sold, gone, ..Self::NOTHING }
    }

    /// The same, with this many actors inside at once.
    pub const fn inside(self, inside: usize) -> Self {
        Self { inside, ..self }
    }

    /// The race must note `notes`; people read `zh` and `en`.
    pub const fn noting(self, notes: &'static str, zh: &'static str, en: &'static str) -> Self {
        let said = Bilingual::of(zh, en);
        Self { notes, said, ..self }
    }

    /// Whether the numbers and notes of a replay are exactly these.
    pub(super) fn matches(&self, result: &ReplayResult) -> bool {
        (self.sold, self.gone, self.inside, self.notes) == (result.sold, result.gone, result.inside, &*result.notes)
    }
}

#[cfg(test)]
mod tests {
    use crate::replay::races;

    /// A result that both variants must have would make none of them wrong.
    #[test]
    fn each_race_names_what_goes_wrong_and_its_cure_ends_otherwise() {
        for race in races() {
            let lessons = race.lessons;
            assert!(!race.anomalies.is_empty(), "{lessons:?} names nothing");
            assert_ne!(race.flaw.expected, race.cured.expected, "{lessons:?}");
        }
    }
}
