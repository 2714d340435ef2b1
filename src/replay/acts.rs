//! What an actor can do: any strategy, and what the lessons have besides.

use crate::stock::{self, Deduct, Name, Store};

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
const ALL: &[Act] = &[];

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
    strategy.or_else(|| ALL.iter().find(|act| act.name == name).copied())
}
