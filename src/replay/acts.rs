//! What an actor can do: any strategy, and what the lessons have besides.

use super::races;
use crate::stock::{self, Deduct, Name, Store, Strategy};

/// One thing to do, with the names that it writes in the servers.
#[derive(Clone, Copy)]
pub(super) struct Act {
    /// What it is called.
    pub(super) name: &'static str,
    /// What it writes in the servers besides the stock, for product 1.
    pub(super) names: &'static [Name],
    /// Where the pieces that it takes are counted; none where it takes none.
    pub(super) store: Option<Store>,
    /// Does it.
    pub(super) run: Deduct,
}

/// Those that are no strategies.
const ALL: &[&[Act]] = &[
    races::node_types::ACTS,
    races::zk_reentry::ACTS,
    races::herd::ACTS,
    races::zk_read_write::ACTS,
    races::zk_barriers::ACTS,
    races::zk_counts::ACTS,
];

impl Act {
    /// What the shelf is set and cleared by: the store of an act that takes nothing is Redis, where its names are.
    pub(super) fn scope(&self) -> Strategy {
        Strategy { names: self.names, store: self.store.unwrap_or(Store::Redis), ..stock::ALL[0] }
    }
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Act").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The act of this name.
pub(super) fn find(name: &str) -> Option<Act> {
    let strategy = stock::find(name).map(|strategy| Act {
        name: strategy.slug,
        names: strategy.names,
        store: Some(strategy.store),
        run: strategy.deduct,
    });
    strategy.or_else(|| ALL.iter().copied().flatten().find(|act| act.name == name).copied())
}
