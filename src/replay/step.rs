//! What a race is written in: who does what next, and what happens to whom.
//!
//! 1. Who plays in a race: the roles [`A`], [`B`] and [`C`]. Each has an instance of its own, unless it plays [on that of
//!    another](Role::on_instance_of), and the act of the race, unless it is [given another](Role::acting). It begins with the
//!    first step that it has, and again with the first one after its end.
//! 2. [`Role::stops_at`] lets it run until it stands at a point, [`Role::finishes`] to its end, which must be a good one.
//!    Others go on meanwhile only where a step lets them.
//!
//! Next: `run.rs`, which carries the steps out; then `races/`, one race to a file.

use super::{act::Act, faults::Need, play::Play};
use crate::{
    error::Error,
    fault::Action,
    section::{LockState, Point},
    terminal::bilingual::Bilingual,
};
use futures::future::BoxFuture;

pub const A: Role = Role::of('A');
pub const B: Role = Role::of('B');
pub const C: Role = Role::of('C');

/// Who plays: an actor of a race, with its instance, its act and its lease.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    pub(super) letter: char,
    /// The role on whose instance it plays.
    pub(super) on: char,
    pub(super) act: Option<Act>,
    pub(super) lease: Lease,
    pub(super) is_impatient: bool,
}

/// The lease that a role asks for, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lease {
    /// By the clock this long; forced, it lasts until the step `LeaseEnds`.
    EndedByStep(u64),
    /// By the clock and forced: the lease ends or is renewed by itself.
    EndsByItself([u64; 2]),
    /// The strategy's own.
    Default,
}

impl Role {
    const fn of(letter: char) -> Self {
        Self {
            letter,
            on: letter,
            act: None,
            lease: Lease::EndedByStep(30_000),
            is_impatient: false,
        }
    }

    #[must_use]
    pub const fn on_instance_of(self, other: Self) -> Self {
        let on = other.on;
        Self { on, ..self }
    }

    #[must_use]
    pub const fn acting(self, act: Act) -> Self {
        let act = Some(act);
        Self { act, ..self }
    }

    /// In milliseconds. If the pace forces leases, it lasts until the step `LeaseEnds`.
    #[must_use]
    pub const fn lease(self, millis: u64) -> Self {
        let lease = Lease::EndedByStep(millis);
        Self { lease, ..self }
    }

    /// In milliseconds. No step ends it.
    #[must_use]
    pub const fn self_ending_lease(self, by_clock: u64, forced: u64) -> Self {
        let lease = Lease::EndsByItself([by_clock, forced]);
        Self { lease, ..self }
    }

    /// The strategy's own lease.
    #[must_use]
    pub const fn default_lease(self) -> Self {
        let lease = Lease::Default;
        Self { lease, ..self }
    }

    /// It waits 4 s by the clock and 1 s forced; other roles wait for longer than any race takes.
    #[must_use]
    pub const fn impatient(self) -> Self {
        Self {
            is_impatient: true,
            ..self
        }
    }
}

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Shows a caption, and waits as the pace says.
    Say(Bilingual),
    /// Something that a role does, or that is done to it.
    Role(Role, RoleStep),
    /// These roles run to their ends at the same time.
    FinishTogether(&'static [Role]),
    /// Waits until nobody holds the lock, or another than before. Fails if the lock has no lease. If the pace forces
    /// it, the lease is long and ended here.
    LeaseEnds,
    /// Like `LeaseEnds`, for a holder whose process is paused. Without a lab to pause it, its watchdog runs, so the
    /// lease is ended here at every pace.
    UnrenewedLeaseEnds,
    /// Waits until the lease in the lock's row is over; the row may stay.
    RowLeaseEnds,
    /// The time of a lease passes, though the lock has none.
    LeaseTimePasses,
    /// The clock of this Redis node jumps forward, and the lock ends there. 0 is the main Redis.
    ClockJumps(usize),
    /// Waits until this many wait behind the holder.
    QueueHas(usize),
    /// Waits until nobody holds the lock.
    LockIsFree,
    /// What cancelled requests have started goes on.
    CancelledRequestsGoOn,
    /// The lab injects this fault into this member.
    Fault(Action, &'static str),
    /// The lab does this to this member at the end, even if the replay fails.
    FaultAtEnd(Action, &'static str),
    Note(&'static str),
    /// Notes what this function makes of the events so far.
    NoteFrom(fn(&Play) -> String),
    All(&'static [Self]),
    Custom(for<'a> fn(&'a mut Play) -> BoxFuture<'a, Result<(), Error>>),
}

#[must_use]
pub const fn say(zh: &'static str, en: &'static str) -> Step {
    Step::Say(Bilingual::of(zh, en))
}

/// What a role does, or what is done to it.
#[derive(Debug, Clone, Copy)]
pub enum RoleStep {
    /// Runs until it has stopped at each of these points.
    RunUntilStopped([Option<Point>; 2]),
    /// Runs towards this stop; no step waits for it.
    Run(Option<Point>),
    /// Runs until it waits for the lock, and goes on waiting.
    RunUntilWaiting,
    /// Passes this point this often, by the clock and forced, without leaving its stop.
    PassPoint(Point, [usize; 2]),
    Finish(ExpectedEnd),
    /// Dies: by the clock, and with a lab, its process is killed; else it stands still for good.
    Die,
    /// Its client hangs up. What the request has started stands still until [`Step::CancelledRequestsGoOn`].
    Cancel,
    /// Pauses its process, like a long garbage collection. Without a lab, only the actor stands still.
    PauseProcess,
    ResumeProcess,
    /// `kill -9`.
    KillProcess,
    /// Its session ends, and the lock must then be free.
    LoseSessionAndLock,
    /// In milliseconds: how late the answers of the Redis nodes reach its instance; 0 ends that.
    DelayAnswers(u64),
    /// Its session ends; what it has created may stay.
    LoseSession,
    /// Its instance no longer reaches this member.
    CutLink(&'static str),
}

impl RoleStep {
    /// About how long it takes at the pace [`Slow`](super::Pace::Slow).
    pub(super) fn lasts_ms(self) -> u64 {
        match self {
            Self::RunUntilStopped(_) | Self::Finish(_) => 450,
            Self::PassPoint(_, [by_clock, _]) => 1_000 * by_clock as u64,
            Self::LoseSessionAndLock | Self::LoseSession => 11_000,
            _ => 0,
        }
    }
}

/// How a role must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedEnd {
    Done,
    /// It succeeded, and its unlock found the lock's state to be this.
    Unlocked(LockState),
    /// It failed, for whatever reason.
    Refused,
    /// It failed for this reason: a kind of [`ActorEvent::Failed`](super::ActorEvent::Failed).
    Failed(&'static str),
}

/// The steps of a role, each as a method of [`Role`].
macro_rules! steps {
    ($($(#[doc = $doc:literal])* $name:ident($($of:ident: $kind:ty),*) = $step:expr;)*) => {$(
        $(#[doc = $doc])*
        #[must_use]
        pub const fn $name(self $(, $of: $kind)*) -> Step {
            Step::Role(self, $step)
        }
    )*};
}

impl Role {
    steps! {
        /// Runs until it stops there.
        stops_at(point: Point) = RoleStep::RunUntilStopped([Some(point), None]);
        /// Runs until it has stopped at one point, and a task that it has started at the other.
        stops_at_both(one: Point, other: Point) = RoleStep::RunUntilStopped([Some(one), Some(other)]);
        /// Runs towards this stop; no step waits for it.
        will_stop_at(point: Point) = RoleStep::Run(Some(point));
        /// Runs, without stops.
        continues() = RoleStep::Run(None);
        /// Runs until it waits for the lock, and goes on waiting.
        waits() = RoleStep::RunUntilWaiting;
        /// Passes this point this often, by the clock and forced, without leaving its stop.
        passes(point: Point, by_clock: usize, forced: usize) = RoleStep::PassPoint(point, [by_clock, forced]);
        /// Runs to its end, and succeeds.
        finishes() = RoleStep::Finish(ExpectedEnd::Done);
        /// Succeeds, and its unlock finds the lock to be its own.
        finishes_with_lock_kept() = RoleStep::Finish(ExpectedEnd::Unlocked(LockState::Kept));
        /// Succeeds, and its unlock finds the lock lost.
        finishes_with_lock_lost() = RoleStep::Finish(ExpectedEnd::Unlocked(LockState::Lost));
        /// Fails to get the lock in time.
        times_out() = RoleStep::Finish(ExpectedEnd::Failed("not-had"));
        /// Fails because the row refuses its fencing token.
        fails_fenced() = RoleStep::Finish(ExpectedEnd::Failed("fenced"));
        /// Fails for this reason: a kind of [`ActorEvent::Failed`](super::ActorEvent::Failed).
        fails_as(kind: &'static str) = RoleStep::Finish(ExpectedEnd::Failed(kind));
        /// Fails, for whatever reason.
        fails() = RoleStep::Finish(ExpectedEnd::Refused);
        /// Dies.
        dies() = RoleStep::Die;
        /// Its client hangs up.
        hangs_up() = RoleStep::Cancel;
        gets_paused() = RoleStep::PauseProcess;
        gets_resumed() = RoleStep::ResumeProcess;
        gets_killed() = RoleStep::KillProcess;
        /// Its session ends, and the lock must then be free.
        loses_session_and_lock() = RoleStep::LoseSessionAndLock;
        /// In milliseconds: how late the answers of the Redis nodes reach its instance; 0 ends that.
        gets_answers_late(by_ms: u64) = RoleStep::DelayAnswers(by_ms);
        /// Its session ends; what it has created may stay.
        loses_session() = RoleStep::LoseSession;
        loses_link_to(member: &'static str) = RoleStep::CutLink(member);
    }
}

impl Step {
    /// The step itself, or the steps that it is made of.
    pub(super) fn each(&self) -> Vec<&Self> {
        match self {
            Self::All(steps) => steps.iter().flat_map(Self::each).collect(),
            step => vec![step],
        }
    }

    pub(super) fn roles(&self) -> &[Role] {
        match self {
            Self::Role(role, _) => std::slice::from_ref(role),
            Self::FinishTogether(roles) => roles,
            _ => &[],
        }
    }

    /// The act of a role that does something else than the others.
    pub(super) fn act(&self) -> Option<Act> {
        match self {
            Self::Role(role, _) => role.act,
            _ => None,
        }
    }

    pub(super) fn needs(&self) -> Option<Need> {
        match self {
            Self::Role(_, RoleStep::CutLink(_) | RoleStep::DelayAnswers(_)) => Some(Need::Links),
            Self::Fault(Action::Promote, _) | Self::FaultAtEnd(Action::Promote, _) => {
                Some(Need::Replica)
            }
            Self::Fault(..) | Self::FaultAtEnd(..) => Some(Need::Lab),
            Self::Role(
                _,
                RoleStep::KillProcess | RoleStep::LoseSessionAndLock | RoleStep::LoseSession,
            ) => Some(Need::Lab),
            _ => None,
        }
    }
}
