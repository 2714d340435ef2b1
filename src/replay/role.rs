//! Who plays in a race: [`A`], [`B`] and [`C`]. Each has an instance of its own, unless it plays [on that of
//! another](Role::on_instance_of), and the act of the race, unless it is [given another](Role::acting).
//!
//! Next: `step.rs`, what roles do.

use super::act::Act;

/// The actor A, on an instance of its own, with the race's act and a lease of 30 s that a step ends.
pub const A: Role = Role::of('A');
/// The actor B, otherwise like [`A`].
pub const B: Role = Role::of('B');
/// The actor C, otherwise like [`A`].
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
    /// By the clock this long; forced, it lasts until a step ends it.
    EndedByStep(u64),
    /// By the clock, and forced: no step has to end it.
    EndsByItself([u64; 2]),
}

impl Role {
    const fn of(letter: char) -> Self {
        Self { letter, on: letter, act: None, lease: RoleLease::EndedByStep(30_000), is_impatient: false }
    }

    /// The same role on the instance of `other`.
    pub const fn on_instance_of(self, other: Self) -> Self {
        let on = other.on;
        Self { on, ..self }
    }

    pub const fn acting(self, act: Act) -> Self {
        let act = Some(act);
        Self { act, ..self }
    }

    /// The same role with a lease of this many milliseconds. If the pace forces leases, it lasts until a step ends it.
    pub const fn lease(self, millis: u64) -> Self {
        let lease = RoleLease::EndedByStep(millis);
        Self { lease, ..self }
    }

    /// The same role with a lease in milliseconds: by the clock, and if the pace forces leases. No step has to end it.
    pub const fn self_ending_lease(self, by_clock: u64, forced: u64) -> Self {
        let lease = RoleLease::EndsByItself([by_clock, forced]);
        Self { lease, ..self }
    }

    /// The same role, which waits for a lock 4 s by the clock and 1 s forced; others wait 20 s. At the pace `Scheduler` all
    /// wait 600 s.
    pub const fn impatient(self) -> Self {
        Self { is_impatient: true, ..self }
    }
}
