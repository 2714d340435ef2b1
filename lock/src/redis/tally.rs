//! How often each owner of this process holds an object, so that the last hold can give back what an unanswered command
//! may have taken.
//!
//! 1. Each hold enters, and leaves when it is given back or lost.
//! 2. A command of an owner that has other holds and gets no answer leaves a doubt: nobody can tell whether it has
//!    counted. The last hold then gives back all that Redis counts.
//! 3. While an owner's unanswered command is being undone, the owner is refused: undoing would free its new hold.
//!
//! Next to read: `read_write.rs`.

use crate::{LockError, Owner};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

/// The holds of one object, by owner and kind of hold.
#[derive(Debug)]
pub(super) struct Tally<K>(Mutex<Counts<K>>);

#[derive(Debug)]
struct Counts<K> {
    holds: HashMap<(Owner, K), Holds>,
    returning: HashSet<Owner>,
}

#[derive(Debug, Default)]
struct Holds {
    sure: usize,
    in_doubt: bool,
}

/// What the end of a hold means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// The owner has others.
    Others,
    /// It was the last one.
    Last,
    /// It was the last one, and Redis may count more.
    LastInDoubt,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Mutex::new(Counts { holds: HashMap::new(), returning: HashSet::new() }))
    }
}

impl<K: Copy + Eq + Hash> Tally<K> {
    /// Refuses an owner whose last command is being undone.
    pub(super) fn may_ask(&self, owner: Owner) -> Result<(), LockError> {
        if !self.0.lock().returning.contains(&owner) {
            return Ok(());
        }
        let reason =
            "an earlier command of this owner was not answered, and what it may have taken is being given back";
        Err(LockError::Unavailable { server: "redis", reason: reason.into() })
    }

    pub(super) fn enter(&self, owner: Owner, kind: K) {
        self.0.lock().holds.entry((owner, kind)).or_default().sure += 1;
    }

    pub(super) fn leave(&self, owner: Owner, kind: K) -> Leaves {
        let mut counts = self.0.lock();
        let Some(holds) = counts.holds.get_mut(&(owner, kind)) else { return Leaves::Last };
        holds.sure -= 1;
        if holds.sure > 0 {
            return Leaves::Others;
        }
        let in_doubt = holds.in_doubt;
        counts.holds.remove(&(owner, kind));
        if in_doubt { Leaves::LastInDoubt } else { Leaves::Last }
    }

    /// Notes an unanswered command. `true` where the owner has no hold of this kind: it must be undone, and the owner is
    /// refused until [`returned`](Self::returned).
    pub(super) fn doubt(&self, owner: Owner, kind: K) -> bool {
        let mut counts = self.0.lock();
        if let Some(holds) = counts.holds.get_mut(&(owner, kind)) {
            holds.in_doubt = true;
            return false;
        }
        counts.returning.insert(owner);
        true
    }

    pub(super) fn returned(&self, owner: Owner) {
        self.0.lock().returning.remove(&owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;

    #[test]
    fn the_last_hold_knows_of_the_doubt() {
        let (tally, owner) = (Tally::<()>::default(), Process::new().owner());
        tally.enter(owner, ());
        tally.enter(owner, ());
        assert!(!tally.doubt(owner, ()), "the owner still has holds");
        assert_eq!(tally.leave(owner, ()), Leaves::Others);
        assert_eq!(tally.leave(owner, ()), Leaves::LastInDoubt);
        tally.enter(owner, ());
        assert_eq!(tally.leave(owner, ()), Leaves::Last, "the doubt went with the holds");
    }

    #[test]
    fn an_owner_is_refused_while_its_command_is_undone() {
        let (tally, owner) = (Tally::<()>::default(), Process::new().owner());
        assert!(tally.may_ask(owner).is_ok());
        assert!(tally.doubt(owner, ()));
        assert!(tally.may_ask(owner).is_err());
        tally.returned(owner);
        assert!(tally.may_ask(owner).is_ok());
    }
}
