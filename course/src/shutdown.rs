//! Ctrl-C, SIGTERM and a closed terminal, handled once for the whole process by [`Shutdown::listen`].
//!
//! The first signal asks the command to end gracefully: its token is cancelled. So does a stdout that takes no more. At the
//! second signal the program drops the command; a lab that it owns kills its servers on drop.

use oversell_lab::terminal::{
    failure::{Failure, unusable},
    stdout,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The tokens that the signals cancel.
#[derive(Debug)]
pub(crate) struct Shutdown {
    /// Cancelled by the first signal, and once stdout takes no more.
    pub(crate) graceful: CancellationToken,
    /// Cancelled by the second one.
    pub(crate) immediate: CancellationToken,
}

impl Shutdown {
    /// Begins to listen: from here on these signals no longer end the process by themselves.
    /// Errors: [`Failure::Unusable`] if the system allows no signal handlers.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|e| unusable!("signals cannot be handled: {e}"));
        let mut signals = [on(SignalKind::interrupt())?, on(SignalKind::terminate())?, on(SignalKind::hangup())?];
        let (graceful, immediate) = (CancellationToken::new(), CancellationToken::new());
        let stages = [graceful.clone(), immediate.clone()];
        tokio::spawn(async move {
            for stage in stages {
                wait_for_signal(&mut signals).await;
                stage.cancel();
            }
        });
        let (gone, graceful_too) = (stdout::gone(), graceful.clone());
        tokio::spawn(async move {
            gone.cancelled().await;
            graceful_too.cancel();
        });
        Ok(Self { graceful, immediate })
    }
}

/// Waits for the next of the three signals.
async fn wait_for_signal([interrupt, terminate, hang_up]: &mut [Signal; 3]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}
