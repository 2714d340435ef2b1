//! What an instance does besides answering: it asks its servers whether they are there (`probes.rs`), and does what one
//! that came needs (`startup.rs`). And it writes the orders that wait in the stream.

mod probes;
mod startup;

pub(crate) use probes::{State, States};
pub(crate) use startup::watch;

use crate::{ctx::Ctx, seckill::consumer::Consumer};
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
        Self {
            ctx,
            probes: Probes::default(),
            startup: Progress::default(),
        }
    }
}

/// Writes the orders that wait in the stream, until the instance closes and what is left is written.
pub(crate) async fn consume(ctx: Ctx) {
    Consumer::new(ctx).run().await;
}
