//! What an instance does besides answering: it asks its servers whether they are there (`probes.rs`), and does what one
//! that came needs (`startup.rs`).

mod probes;
mod startup;

pub(crate) use probes::States;
pub(crate) use startup::watch;

use crate::ctx::Ctx;
use probes::Probes;
use startup::Progress;

/// The servers of one instance, and what is done in them.
pub(crate) struct Instance {
    ctx: Ctx,
    probes: Probes,
    startup: Progress,
}

impl Instance {
    /// An instance with these clients; nothing is asked or done yet.
    pub(crate) fn new(ctx: Ctx) -> Self {
        Self { ctx, probes: Probes::default(), startup: Progress::default() }
    }
}
