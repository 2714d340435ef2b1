//! Who plays in a race: [`A`], [`B`] and [`C`], each on an instance of its own unless it plays [beside](Role::on_instance_of) another,
//! and each with the act of the race unless it [does](Role::acting) something else.
//!
//! Next: `step.rs`, what they do.

use super::act::Act;

/// The first role.
pub const A: Role = Role::of('A');
/// The second.
pub const B: Role = Role::of('B');
/// The third.
pub const C: Role = Role::of('C');

/// One side of a race, and how it begins.
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
    /// So long where leases end by the clock; where the pace forces them, it is long, and is ended by the step `LeaseEnds`.
    EndedByStep(u64),
    /// So long where leases end by the clock, and so long where they are forced: it ends or is renewed by itself.
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

    /// It plays on the same instance as the other.
    #[must_use]
    pub const fn on_instance_of(self, other: Self) -> Self {
        let on = other.on;
        Self { on, ..self }
    }

    /// It does this, whatever the others do.
    #[must_use]
    pub const fn acting(self, act: Act) -> Self {
        let act = Some(act);
        Self { act, ..self }
    }

    /// Its lease is so long, in milliseconds; where the pace forces leases, it lasts until the step `LeaseEnds`.
    #[must_use]
    pub const fn lease(self, millis: u64) -> Self {
        let lease = Lease::EndedByStep(millis);
        Self { lease, ..self }
    }

    /// Its lease is so long where leases end by the clock and so long where they are forced, in milliseconds, and nobody ends it.
    #[must_use]
    pub const fn self_ending_lease(self, by_clock: u64, forced: u64) -> Self {
        let lease = Lease::EndsByItself([by_clock, forced]);
        Self { lease, ..self }
    }

    /// It asks for no lease: it has the strategy's own.
    #[must_use]
    pub const fn default_lease(self) -> Self {
        let lease = Lease::Default;
        Self { lease, ..self }
    }

    /// It waits 4 s where leases end by the clock and 1 s where they are forced, instead of longer than any race takes.
    #[must_use]
    pub const fn impatient(self) -> Self {
        Self {
            is_impatient: true,
            ..self
        }
    }
}
