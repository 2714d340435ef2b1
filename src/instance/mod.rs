//! What an instance does besides answering: it asks its servers whether they are there (`probes.rs`), does what one that
//! came needs (`startup.rs`), and writes the orders that wait in the stream.
//!
//! It starts without its servers, and watches them as long as it runs: it says once that one went or came, and forgets the
//! connections to one that went.

mod probes;
mod startup;

#[cfg(test)]
pub(crate) use probes::NamedServer;
pub(crate) use probes::{Role, State, States};

use crate::{ctx::Ctx, error::Error, seckill::consumer::Consumer, server::Server};
use probes::{MAX_AGE_WHILE_DOWN, Probes};
use startup::Progress;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// For how long a server that is needed and seems down is asked again.
const RECOVERY_WAIT: Duration = Duration::from_secs(2);

/// How often servers that are there are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// How often one that is missing is tried, at first and at last.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(100);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// At the start, a server that is not there for this long is reported as missing.
const STARTUP_GRACE: Duration = Duration::from_secs(1);

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

    /// Asks every server, or repeats what they said a moment ago. A MySQL whose tables are not made yet is not up.
    pub(crate) async fn states(&self) -> Arc<States> {
        let states = self.probes.probe(&self.ctx).await;
        if !states.mysql.up || self.startup.migrated() {
            return states;
        }
        let why = self.startup.obstacle();
        let why = why.map_or_else(|| " yet".into(), |why| format!(" ({why})"));
        let detail = format!("{}, without its tables{why}", states.mysql.detail);
        Arc::new(States {
            mysql: State::down(detail),
            ..States::clone(&states)
        })
    }

    /// Returns once these are up. One that seems down is asked again for a while: it may be slow, or just coming back.
    pub(crate) async fn wait_until_up(&self, servers: &[Server]) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let states = self.states().await;
            let Some(&server) = servers.iter().find(|server| !states.of(**server).up) else {
                return Ok(());
            };
            if begun.elapsed() > RECOVERY_WAIT {
                return Err(Error::Unavailable {
                    server: server.name(),
                    reason: states.of(server).detail.clone(),
                });
            }
            sleep(MAX_AGE_WHILE_DOWN).await;
        }
    }

    /// Watches the servers, for as long as it is let.
    pub(crate) async fn watch(self: Arc<Self>) {
        let started = Instant::now();
        let mut known: Option<Arc<States>> = None;
        let mut pause = MIN_RETRY_PAUSE;
        loop {
            self.startup.prepare(&self.ctx).await;
            let reached = self.probes.probe(&self.ctx).await;
            // A MySQL that comes back may be another one. What Redis has lost, no instance puts there.
            if !reached.mysql.up {
                self.startup.forget();
                self.ctx.forget_idle();
            }
            let states = self.states().await;
            let all_up = states.all_up();
            if known.is_some() || all_up || started.elapsed() >= STARTUP_GRACE {
                report(known.as_deref(), &states);
                known = Some(states);
            }
            pause = if all_up {
                WATCH_INTERVAL
            } else {
                (pause * 2).min(MAX_RETRY_PAUSE)
            };
            sleep(pause).await;
        }
    }
}

/// Says what is new.
fn report(known: Option<&States>, states: &States) {
    for (server, now) in states.each() {
        let name = server.name();
        match (known.map(|known| known.of(server).up), now.up) {
            (None | Some(true), false) => {
                tracing::warn!(
                    "{name} cannot be used ({}); what needs it is answered 503 until it can",
                    now.detail
                );
            }
            (None | Some(false), true) => tracing::info!("{name} can be used ({})", now.detail),
            _ => {}
        }
    }
}

/// Writes the orders that wait in the stream, until the instance closes and what is left is written.
pub(crate) async fn consume(ctx: Ctx) {
    Consumer::new(ctx).run().await;
}
