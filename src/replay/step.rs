//! What a race is written in: who does what next, and what happens to whom.
//!
//! 1. A role (`role.rs`) begins with the first step that it has, and again with the first one after its end.
//! 2. [`Role::stops_at`] lets it run until it stands at a point, [`Role::finishes`] to its end, which must be a good one.
//!    Others go on meanwhile only where a step lets them.
//!
//! Next: `run.rs`, which carries the steps out; then `races/`, one race to a file.

use super::{act::Act, faults::Need, play::Play, role::Role};
use crate::{
    error::Error,
    fault::Action,
    section::{LockState, Point},
    terminal::bilingual::Bilingual,
};
use futures::future::BoxFuture;

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

pub const fn say(zh: &'static str, en: &'static str) -> Step {
    Step::Say(Bilingual::of(zh, en))
}

/// What a role does, or what is done to it: each is a method of [`Role`].
#[derive(Debug, Clone, Copy)]
pub enum RoleStep {
    /// Runs until it has stopped at each of these points.
    RunUntilStopped([Option<Point>; 2]),
    Run(Option<Point>),
    RunUntilWaiting,
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
    LoseSessionAndLock,
    DelayAnswers(u64),
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
    AnyFailure,
    /// It failed for this reason: a kind of [`ActorEvent::Failed`](super::ActorEvent::Failed).
    Failed(&'static str),
}

/// The steps of a role, each as a method of [`Role`].
macro_rules! steps {
    ($($(#[doc = $doc:literal])* $name:ident($($of:ident: $kind:ty),*) = $step:expr;)*) => {$(
        $(#[doc = $doc])*
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
        /// Succeeds, and its unlock frees a lock: its own, or another's where the lock names no owner.
        finishes_and_unlocks() = RoleStep::Finish(ExpectedEnd::Unlocked(LockState::Kept));
        /// Succeeds, and its unlock finds the lock lost.
        finishes_with_lock_lost() = RoleStep::Finish(ExpectedEnd::Unlocked(LockState::Lost));
        /// Fails to get the lock in time.
        times_out() = RoleStep::Finish(ExpectedEnd::Failed("not-had"));
        /// Fails because the row refuses its fencing token.
        fails_fenced() = RoleStep::Finish(ExpectedEnd::Failed("fenced"));
        /// Fails for this reason: a kind of [`ActorEvent::Failed`](super::ActorEvent::Failed).
        fails_as(kind: &'static str) = RoleStep::Finish(ExpectedEnd::Failed(kind));
        /// Fails, for whatever reason.
        fails() = RoleStep::Finish(ExpectedEnd::AnyFailure);
        dies() = RoleStep::Die;
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
