//! Who plays in a race: [`A`], [`B`] and [`C`]. Each has an instance of its own, unless it plays [on that of
//! another](Role::on_instance_of), and the act of the race, unless it is [given another](Role::acting).
//!
//! Next: `step.rs`, what roles do.

use super::act::Act;

pub const A: Role = Role::of('A');
pub const B: Role = Role::of('B');
pub const C: Role = Role::of('C');

/// An actor of a race: its letter, its instance, its act and its lease.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    pub(super) letter: char,
    /// The role on whose instance it plays.
    pub(super) on: char,
    pub(super) act: Option<Act>,
    pub(super) lease: RoleLease,
    pub(super) is_impatient: bool,
}

/// The lease that a role asks for, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum RoleLease {
    /// By the clock this long; forced, it lasts until the step `LeaseEnds`.
    EndedByStep(u64),
    /// By the clock and forced: the lease ends or is renewed by itself.
    EndsByItself([u64; 2]),
    Default,
}

impl Role {
    const fn of(letter: char) -> Self {
        Self {
            letter,
            on: letter,
            act: None,
            lease: RoleLease::EndedByStep(30_000),
            is_impatient: false,
        }
    }

    pub const fn on_instance_of(self, other: Self) -> Self {
        let on = other.on;
        Self { on, ..self }
    }

    pub const fn acting(self, act: Act) -> Self {
        let act = Some(act);
        Self { act, ..self }
    }

    /// In milliseconds. If the pace forces leases, it lasts until the step `LeaseEnds`.
    pub const fn lease(self, millis: u64) -> Self {
        let lease = RoleLease::EndedByStep(millis);
        Self { lease, ..self }
    }

    /// In milliseconds. No step ends it.
    pub const fn self_ending_lease(self, by_clock: u64, forced: u64) -> Self {
        let lease = RoleLease::EndsByItself([by_clock, forced]);
        Self { lease, ..self }
    }

    pub const fn default_lease(self) -> Self {
        let lease = RoleLease::Default;
        Self { lease, ..self }
    }

    /// It waits 4 s by the clock and 1 s forced; other roles wait for longer than any race takes.
    pub const fn impatient(self) -> Self {
        Self {
            is_impatient: true,
            ..self
        }
    }
}
