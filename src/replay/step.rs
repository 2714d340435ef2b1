//! What a race is written in: who does what next, and what happens to whom.
//!
//! 1. A role (`role.rs`) begins with the first step that it has, and again with the first one after its end.
//! 2. [`Role::stops_at`] lets it run until it stands at a point, [`Role::finishes`] to its end, which must be a good one.
//!    Others go on meanwhile only where a step lets them.
//!
//! Next: `run.rs`, which carries the steps out; then `races/`, one race to a file.

use super::{act::Act, faults::Need, play::Play, role::Role};
use crate::{
    bilingual::Bilingual,
    error::Error,
    fault::Action,
    section::{LockState, Point},
};
use futures::future::BoxFuture;

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Says what comes now, and keeps the pace.
    Say(Bilingual),
    /// A role does something, or something is done to it.
    Role(Role, RoleStep),
    /// These run to their ends at the same time.
    FinishTogether(&'static [Role]),
    /// The lease of the lock ends: nobody has the lock, or another than before. By the clock its time passes; where the pace
    /// forces it, it is long, so that the order is never left to the clock, and is ended here. A lock without a lease fails.
    LeaseEnds,
    /// The same, of a holder whose process is paused, so that nobody renews the lease; where no lab can pause one, the lease
    /// is ended here at every pace.
    UnrenewedLeaseEnds,
    /// The lease of a dead holder is over, and the lock's row may stay there until another sweeps it away.
    RowLeaseEnds,
    /// The lock has no lease: one would be over by now.
    LeaseTimePasses,
    /// The clock of the Redis node of this number jumps forward (0 is the main one): the lock ends there.
    ClockJumps(usize),
    /// So many are in the lock's queue besides its holder, as its server has it.
    QueueHas(usize),
    /// Nobody has the lock any more.
    LockIsFree,
    /// What was begun for clients that have hung up stands nowhere any more.
    CancelledRequestsGoOn,
    /// The lab breaks or mends a member.
    Fault(Action, &'static str),
    /// The lab does so at the end, however that comes.
    FaultAtEnd(Action, &'static str),
    /// The race notes this.
    Note(&'static str),
    /// The race notes what it has seen so far.
    NoteFrom(fn(&Play) -> String),
    /// All of these, one after the other.
    All(&'static [Self]),
    /// What only this race does.
    Custom(for<'a> fn(&'a mut Play) -> BoxFuture<'a, Result<(), Error>>),
}

/// Says what comes now, in both languages.
#[must_use]
pub const fn say(zh: &'static str, en: &'static str) -> Step {
    Step::Say(Bilingual::of(zh, en))
}

/// What a role does, or what is done to it.
#[derive(Debug, Clone, Copy)]
pub enum RoleStep {
    /// It runs until it stands at each of these points.
    RunUntilStopped([Option<Point>; 2]),
    /// It runs, and will stand at this point; nobody waits for that.
    Run(Option<Point>),
    /// It has begun to wait for what another has, and goes on waiting.
    RunUntilWaiting,
    /// It comes by this point so often, where leases end by the clock and where they are forced, while it stands where it stands.
    PassPoint(Point, [usize; 2]),
    /// It runs to its end, which must be this one.
    Finish(ExpectedEnd),
    /// Nobody hears of it again: by the clock its process is killed, where a lab takes orders; else it stands still for good.
    Die,
    /// Its client hangs up. What it has begun besides stands where it was told to until [`Step::CancelledRequestsGoOn`].
    Cancel,
    /// Its process is stopped, as a long garbage collection does; where no lab takes orders, it alone stands still.
    PauseProcess,
    /// Its process goes on.
    ResumeProcess,
    /// `kill -9` of its process.
    KillProcess,
    /// Its session ends, and its lock with it.
    LoseSessionAndLock,
    /// The answers of the Redis nodes come to its instance so much later, in milliseconds; 0: in time again.
    DelayAnswers(u64),
    /// Its session is over, and what it has made there may stay.
    LoseSession,
    /// Its instance does not reach this member any more.
    CutLink(&'static str),
}

impl RoleStep {
    /// About how long it takes at the pace [`Slow`](super::Pace::Slow), in milliseconds.
    pub(super) fn lasts_ms(self) -> u64 {
        match self {
            Self::RunUntilStopped(_) | Self::Finish(_) => 450,
            Self::PassPoint(_, [by_clock, _]) => 1_000 * by_clock as u64,
            Self::LoseSessionAndLock | Self::LoseSession => 11_000,
            _ => 0,
        }
    }
}

/// The end to which a role must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedEnd {
    /// It has done what it was to do.
    Done,
    /// The same, and its unlock has found this.
    Unlocked(LockState),
    /// It has failed, whatever the reason.
    Refused,
    /// It has failed for this kind of reason: see [`ActorEvent::Failed`](super::ActorEvent::Failed).
    Failed(&'static str),
}

/// What a role may do, each as a step: its step, and what it takes.
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
        /// It runs until it stands at this point.
        stops_at(point: Point) = RoleStep::RunUntilStopped([Some(point), None]);
        /// It runs until it stands at the one point, and what it has begun besides at the other.
        stops_at_both(one: Point, other: Point) = RoleStep::RunUntilStopped([Some(one), Some(other)]);
        /// It runs, and will stand at this point.
        will_stop_at(point: Point) = RoleStep::Run(Some(point));
        /// It runs, and stands nowhere.
        continues() = RoleStep::Run(None);
        /// It has begun to wait for what another has.
        waits() = RoleStep::RunUntilWaiting;
        /// It comes by this point so often, where leases end by the clock and where they are forced, while it stands where it stands.
        passes(point: Point, by_clock: usize, forced: usize) = RoleStep::PassPoint(point, [by_clock, forced]);
        /// It runs to its end, and has done what it was to do.
        finishes() = RoleStep::Finish(ExpectedEnd::Done);
        /// The same, and its unlock finds that the lock is its own.
        finishes_with_lock_kept() = RoleStep::Finish(ExpectedEnd::Unlocked(LockState::Kept));
        /// The same, and its unlock finds that the lock is its own no more.
        finishes_with_lock_lost() = RoleStep::Finish(ExpectedEnd::Unlocked(LockState::Lost));
        /// It has waited in vain.
        times_out() = RoleStep::Finish(ExpectedEnd::Failed("not-had"));
        /// The row refuses its fencing token.
        fails_fenced() = RoleStep::Finish(ExpectedEnd::Failed("fenced"));
        /// It fails for this kind of reason: see [`ActorEvent::Failed`](super::ActorEvent::Failed).
        fails_as(kind: &'static str) = RoleStep::Finish(ExpectedEnd::Failed(kind));
        /// It is refused, whatever the reason.
        fails() = RoleStep::Finish(ExpectedEnd::Refused);
        /// It dies, and nobody hears of it again.
        dies() = RoleStep::Die;
        /// Its client hangs up.
        hangs_up() = RoleStep::Cancel;
        /// Its process is stopped.
        gets_paused() = RoleStep::PauseProcess;
        /// Its process goes on.
        gets_resumed() = RoleStep::ResumeProcess;
        /// Its process is killed.
        gets_killed() = RoleStep::KillProcess;
        /// Its session ends.
        loses_session_and_lock() = RoleStep::LoseSessionAndLock;
        /// The Redis nodes' answers come to its instance so much later, in milliseconds; 0: in time again.
        gets_answers_late(by_ms: u64) = RoleStep::DelayAnswers(by_ms);
        /// Its session ends, and its lock stays where it does not go with it.
        loses_session() = RoleStep::LoseSession;
        /// Its instance does not reach this member.
        loses_link_to(member: &'static str) = RoleStep::CutLink(member);
    }
}

impl Step {
    /// It, or all those of which it is made.
    pub(super) fn each(&self) -> Vec<&Self> {
        match self {
            Self::All(steps) => steps.iter().flat_map(Self::each).collect(),
            step => vec![step],
        }
    }

    /// Who plays in it.
    pub(super) fn roles(&self) -> &[Role] {
        match self {
            Self::Role(role, _) => std::slice::from_ref(role),
            Self::FinishTogether(roles) => roles,
            _ => &[],
        }
    }

    /// What is done in it, where that is not what the others do.
    pub(super) fn act(&self) -> Option<Act> {
        match self {
            Self::Role(role, _) => role.act,
            _ => None,
        }
    }

    /// What it needs of a lab.
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
