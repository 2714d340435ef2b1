//! Ctrl-C, SIGTERM and a closed terminal, handled once for the whole process by [`Shutdown::listen`].
//!
//! The first signal asks the command to end gracefully: its token is cancelled. So does a stdout that takes no more. The second
//! signal drops the command at once;
//! a lab that it owns stops its servers on drop.

use crate::terminal::{
    failure::{Failure, unusable},
    stdout,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The signals to stop that have come so far.
#[derive(Debug)]
pub struct Shutdown {
    /// Cancelled by the first signal.
    pub asked: CancellationToken,
    /// Cancelled by the second one.
    pub at_once: CancellationToken,
}

impl Shutdown {
    /// Begins to listen: from here on these signals no longer end the process by themselves.
    /// Errors: [`Failure::Unusable`] if the system allows no signal handlers.
    pub fn listen() -> Result<Self, Failure> {
        let on = |kind| signal(kind).map_err(|e| unusable!("signals cannot be handled: {e}"));
        let mut signals = [
            on(SignalKind::interrupt())?,
            on(SignalKind::terminate())?,
            on(SignalKind::hangup())?,
        ];
        let (asked, at_once) = (CancellationToken::new(), CancellationToken::new());
        let stages = [asked.clone(), at_once.clone()];
        tokio::spawn(async move {
            for stage in stages {
                next(&mut signals).await;
                stage.cancel();
            }
        });
        let (gone, asked_too) = (stdout::gone(), asked.clone());
        tokio::spawn(async move {
            gone.cancelled().await;
            asked_too.cancel();
        });
        Ok(Self { asked, at_once })
    }
}

async fn next([interrupt, terminate, hang_up]: &mut [Signal; 3]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}
