//! Ctrl-C, SIGTERM, and the terminal that is closed.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The wish to end. From [`Interrupt::listen`] on, these signals no longer end the process by themselves.
#[derive(Debug)]
pub struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interrupt {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if the system does not let it.
    pub fn listen() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|e| Failure::Unusable(format!("no signal handler: {e}")));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    /// The next one.
    ///
    /// # Cancel safety
    ///
    /// No signal is lost.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
