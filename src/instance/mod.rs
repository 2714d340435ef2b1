//! The work of an instance besides answering: it probes its servers (`probes.rs`), and prepares one that came up (`startup.rs`).
//!
//! It starts without its servers and watches them while it runs: it logs once that one went or came, and closes the
//! connections to one that went.

mod probes;
mod startup;

#[cfg(test)]
pub(crate) use probes::NamedServer;
pub(crate) use probes::{Role, State, States};

use crate::{ctx::Ctx, error::Error, server::Server};
use probes::{MAX_CACHE_AGE_WHILE_DOWN, Probes};
use startup::Progress;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// How long a request waits for a server that seems down.
const RECOVERY_WAIT: Duration = Duration::from_secs(2);

/// How often the servers are probed while all are up: about this soon an outage is logged, and an empty server prepared.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// From this the pauses double until all servers are up for the first time: an instance that starts before them is ready soon
/// after them.
const FIRST_PROBE_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause while a server is down: a long outage costs few probes.
const MAX_PROBE_PAUSE: Duration = Duration::from_secs(2);

/// Servers that come up within this time after the start are not reported as missing.
const STARTUP_GRACE: Duration = Duration::from_secs(1);

/// An instance's watch over its servers: their last states, and what is prepared on one that came up.
pub(crate) struct ServerWatch {
    ctx: Ctx,
    probes: Probes,
    startup: Progress,
}

impl ServerWatch {
    /// A watch with these clients; nothing is asked or done yet.
    pub(crate) fn new(ctx: Ctx) -> Self {
        Self { ctx, probes: Probes::default(), startup: Progress::default() }
    }

    /// Probes every server, or returns the cached states. A MySQL without its tables counts as down.
    pub(crate) async fn states(&self) -> Arc<States> {
        let states = self.probes.probe(&self.ctx).await;
        if !states.mysql.up || self.startup.has_tables() {
            return states;
        }
        let why = self.startup.obstacle();
        let why = why.map_or_else(|| " yet".into(), |why| format!(" ({why})"));
        let detail = format!("{}, without its tables{why}", states.mysql.detail);
        Arc::new(States { mysql: State::down(detail), ..States::clone(&states) })
    }

    /// Waits until these servers are up. One that seems down is asked again for [`RECOVERY_WAIT`], since it may be slow or
    /// coming back, and is then [`Error::Unavailable`].
    pub(crate) async fn wait_until_up(&self, servers: &[Server]) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let states = self.states().await;
            let Some(&server) = servers.iter().find(|server| !states.of(**server).up) else {
                return Ok(());
            };
            if server == Server::Etcd && states.etcd.is_none() {
                return Err(Error::NoEtcd);
            }
            if begun.elapsed() > RECOVERY_WAIT {
                return Err(Error::Unavailable { server: server.name(), reason: states.of(server).detail.clone() });
            }
            sleep(MAX_CACHE_AGE_WHILE_DOWN).await;
        }
    }

    /// Probes the servers for ever, and logs each change. Makes the tables and puts the stock into Redis at the start, and again
    /// after MySQL was down, but not after Redis was; while MySQL is down, its idle connections are dropped.
    pub(crate) async fn watch(self: Arc<Self>) {
        let started = Instant::now();
        let mut known: Option<Arc<States>> = None;
        let mut pause = FIRST_PROBE_PAUSE;
        loop {
            self.startup.prepare(&self.ctx).await;
            let reached = self.probes.probe(&self.ctx).await;
            // A MySQL that comes back may be empty. Nothing restores what Redis has lost.
            if !reached.mysql.up {
                self.startup.mark_all_steps_undone();
                self.ctx.forget_idle();
            }
            let states = self.states().await;
            let all_up = states.all_up();
            if known.is_some() || all_up || started.elapsed() >= STARTUP_GRACE {
                log_changes(known.as_deref(), &states);
                known = Some(states);
            }
            pause = if all_up { PROBE_INTERVAL } else { (pause * 2).min(MAX_PROBE_PAUSE) };
            sleep(pause).await;
        }
    }
}

/// Logs the servers that came or went since `known`; without `known`, all.
fn log_changes(known: Option<&States>, states: &States) {
    for (server, now) in states.each() {
        let name = server.name();
        match (known.map(|known| known.of(server).up), now.up) {
            (None | Some(true), false) => {
                tracing::warn!("{name} cannot be used ({}); what needs it is answered 503 until it can", now.detail);
            }
            (None | Some(false), true) => tracing::info!("{name} can be used ({})", now.detail),
            _ => {}
        }
        let known = known.map_or(&[][..], |known| &known.of(server).unfit_tables);
        for unfit in now.unfit_tables.iter().filter(|table| !known.contains(table)) {
            tracing::warn!("{unfit}; the strategies that need them are answered 503 until then");
        }
    }
}
