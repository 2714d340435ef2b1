//! What a race is written in: who does what next, and what happens to whom.
//!
//! 1. A role (`role.rs`) begins with the first step that it has, and again with the first one after its end.
//! 2. [`Role::stops_at`] lets it run until it stands at a point, [`Role::finishes`] to its end, which must be a good one.
//!    Another role goes on meanwhile only if an earlier step has let it.
//!
//! Next: `run.rs`, which carries the steps out; then `races/`, one race to a file.

use super::{act::Act, faults::Need, play::Play, role::Role};
use crate::{
    error::Error,
    section::{LockState, Point},
};
use futures::future::BoxFuture;
use oversell_lab::{fault::Action, terminal::bilingual::Bilingual};

/// One step of a race: something that happens next.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Shows a caption, and waits as the pace says.
    Caption(Bilingual),
    /// Something that a role does, or that is done to it.
    Role(Role, RoleStep),
    /// These roles, all started before, run to their ends at the same time, and succeed.
    FinishTogether(&'static [Role]),
    /// Waits until nobody holds the lock, or another than before. Fails if the lock has no lease. If the pace forces
    /// it, the lease is long and ended here.
    LeaseEnds,
    /// Like `LeaseEnds`, for a holder whose process is paused. Without a lab to pause it, its watchdog runs, so the
    /// lease is ended here at every pace.
    UnrenewedLeaseEnds,
    /// Waits until the lease in the lock's row is over; the row may stay. If the holder lives, the lease is ended here.
    RowLeaseEnds,
    /// The time of a lease passes, though the lock has none. By the clock the next wait is longer; else all leases end here.
    LeaseTimePasses,
    /// The clock of this Redis node jumps forward, and the lock ends there; 0 is the main Redis. If the lab cannot do that,
    /// or the pace forces it, only the lease ends there.
    ClockJumps(usize),
    /// Waits until at least this many wait behind the holder.
    QueueHas(usize),
    /// Waits until nobody holds the lock.
    LockIsFree,
    /// What cancelled requests have started goes on.
    CancelledRequestsGoOn,
    /// The lab injects this fault into this member. It is undone at the end if it can be.
    Fault(Action, &'static str),
    /// The lab does this to this member at the end, even if the replay fails.
    FaultAtEnd(Action, &'static str),
    /// Adds this to the notes.
    Note(&'static str),
    /// Notes what this function makes of the events so far.
    NoteFrom(fn(&Play) -> String),
    /// These steps, one after the other.
    All(&'static [Self]),
    /// Runs this function of the race.
    Custom(for<'a> fn(&'a mut Play) -> BoxFuture<'a, Result<(), Error>>),
}

/// The step that shows this caption.
pub const fn say(zh: &'static str, en: &'static str) -> Step {
    Step::Caption(Bilingual::of(zh, en))
}

/// What a role does, or what is done to it. The method of [`Role`] with the same name says it.
#[derive(Debug, Clone, Copy)]
pub enum RoleStep {
    StopsAt([Option<Point>; 2]),
    WillStopAt(Point),
    Continues,
    Waits,
    /// How often it passes the point, by the clock and forced.
    Passes(Point, [usize; 2]),
    Finishes(ExpectedEnd),
    Dies,
    HangsUp,
    GetsPaused,
    GetsResumed,
    GetsKilled,
    LosesSessionAndLock,
    GetsAnswersLate(u64),
    LosesSession,
    LosesLinkTo(&'static str),
}

impl RoleStep {
    /// About how long it takes at the pace [`Slow`](super::Pace::Slow).
    pub(super) fn estimated_ms(self) -> u64 {
        match self {
            Self::StopsAt(_) | Self::Finishes(_) => 450,
            Self::Passes(_, [by_clock, _]) => 1_000 * by_clock as u64,
            Self::LosesSessionAndLock | Self::LosesSession => 11_000,
            _ => 0,
        }
    }
}

/// How a role must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedEnd {
    /// It succeeded.
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
        /// Runs until it stops there; returns at once if it has stopped there since its start.
        stops_at(point: Point) = RoleStep::StopsAt([Some(point), None]);
        /// Runs until it has stopped at one point, and a task that it has started at the other.
        stops_at_both(one: Point, other: Point) = RoleStep::StopsAt([Some(one), Some(other)]);
        /// Runs towards this stop; the next step follows at once.
        will_stop_at(point: Point) = RoleStep::WillStopAt(point);
        /// Runs, without stops; the next step follows at once.
        continues() = RoleStep::Continues;
        /// Runs until it waits for the lock, and goes on waiting.
        waits() = RoleStep::Waits;
        /// Waits until it has passed this point this many times, by the clock or forced, without leaving its stop.
        passes(point: Point, by_clock: usize, forced: usize) = RoleStep::Passes(point, [by_clock, forced]);
        /// Runs to its end, and succeeds.
        finishes() = RoleStep::Finishes(ExpectedEnd::Done);
        /// Succeeds, and its unlock frees a lock: its own, or another's where the lock names no owner.
        finishes_and_unlocks() = RoleStep::Finishes(ExpectedEnd::Unlocked(LockState::Kept));
        /// Succeeds, and its unlock finds the lock lost.
        finishes_with_lock_lost() = RoleStep::Finishes(ExpectedEnd::Unlocked(LockState::Lost));
        /// Fails to get the lock in time.
        times_out() = RoleStep::Finishes(ExpectedEnd::Failed("not-had"));
        /// Fails because the row refuses its fencing token.
        fails_fenced() = RoleStep::Finishes(ExpectedEnd::Failed("fenced"));
        /// Fails, for whatever reason.
        fails() = RoleStep::Finishes(ExpectedEnd::AnyFailure);
        /// Dies: at the pace `Clock`, and with a lab, its process is killed; else it stands still for good.
        dies() = RoleStep::Dies;
        /// Its client hangs up. Tasks that the request has started stop at its stops until [`Step::CancelledRequestsGoOn`].
        hangs_up() = RoleStep::HangsUp;
        /// Pauses its process, like a long garbage collection. Without a lab, only the actor stands still.
        gets_paused() = RoleStep::GetsPaused;
        /// Its process goes on after a pause.
        gets_resumed() = RoleStep::GetsResumed;
        /// Its process is killed (`kill -9`).
        gets_killed() = RoleStep::GetsKilled;
        /// Its session ends, and the lock must then be free.
        loses_session_and_lock() = RoleStep::LosesSessionAndLock;
        /// Delays the answers of the Redis nodes to its instance by this many milliseconds; 0 ends that.
        gets_answers_late(by_ms: u64) = RoleStep::GetsAnswersLate(by_ms);
        /// Its session ends; what it has created may stay.
        loses_session() = RoleStep::LosesSession;
        /// Its instance no longer reaches this member.
        loses_link_to(member: &'static str) = RoleStep::LosesLinkTo(member);
    }
}

impl Step {
    /// The step itself, or the steps that it is made of.
    pub(super) fn flatten(&self) -> Vec<&Self> {
        match self {
            Self::All(steps) => steps.iter().flat_map(Self::flatten).collect(),
            step => vec![step],
        }
    }

    /// The roles that take part in it; none for `All`, which is [flattened](Self::flatten) first.
    pub(super) fn roles(&self) -> &[Role] {
        match self {
            Self::Role(role, _) => std::slice::from_ref(role),
            Self::FinishTogether(roles) => roles,
            _ => &[],
        }
    }

    /// The act that a step gives to its role; `None` if the role has the race's act, or if it is no step of one role.
    pub(super) fn act(&self) -> Option<Act> {
        match self {
            Self::Role(role, _) => role.act,
            _ => None,
        }
    }

    /// What it needs of a lab; `None` if it can be played without one, and for `All`.
    pub(super) fn needs(&self) -> Option<Need> {
        match self {
            Self::Role(_, RoleStep::LosesLinkTo(_) | RoleStep::GetsAnswersLate(_)) => Some(Need::Links),
            Self::Fault(Action::Promote, _) | Self::FaultAtEnd(Action::Promote, _) => Some(Need::Replica),
            Self::Fault(..) | Self::FaultAtEnd(..) => Some(Need::Lab),
            Self::Role(_, RoleStep::GetsKilled | RoleStep::LosesSessionAndLock | RoleStep::LosesSession) => Some(Need::Lab),
            _ => None,
        }
    }
}
