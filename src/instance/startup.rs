//! What an instance does once a server is there: make the tables in MySQL, put the stock into Redis.
//!
//! It starts without its servers, and watches them as long as it runs: it says once that one went or came, does what a
//! server that came (perhaps empty) needs, and forgets the connections to one that went.

use super::{Instance, probes::States};
use crate::{ctx::Ctx, server::Server, shelf};
use sqlx::migrate::Migrator;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Held while the tables are made: three instances start at once. (sqlx takes a lock of its own for that, with an
/// endless wait, which MariaDB refuses: it answers NULL and nothing is locked.)
const LOCK: &str = "SELECT GET_LOCK('oversell.migrations', 30)";
const UNLOCK: &str = "SELECT RELEASE_LOCK('oversell.migrations')";

const ALL: [Server; 3] = [Server::MySql, Server::Redis, Server::ZooKeeper];

/// How often servers that are there are looked at.
const EACH: Duration = Duration::from_secs(1);

/// How often one that is missing is tried, at first and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// At the start, a server that is not there for this long is reported as missing.
const GRACE: Duration = Duration::from_secs(1);

/// How long making the tables may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// What is done already, since its server came.
#[derive(Debug, Default)]
pub(super) struct Progress {
    migrated: AtomicBool,
    seeded: AtomicBool,
}

impl Progress {
    /// Whether the tables are there.
    pub(super) fn migrated(&self) -> bool {
        self.migrated.load(Ordering::Relaxed)
    }

    fn forget(&self, server: Server) {
        // A MySQL that comes back may be another one. What Redis has lost, no instance puts there.
        if server == Server::MySql {
            self.migrated.store(false, Ordering::Relaxed);
            self.seeded.store(false, Ordering::Relaxed);
        }
    }
}

/// Watches the servers, for as long as it is let.
pub(crate) async fn watch(instance: Arc<Instance>) {
    let started = Instant::now();
    let mut known: Option<Arc<States>> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        prepare(&instance).await;
        let reached = instance.probes.reach(&instance.ctx).await;
        for server in ALL.into_iter().filter(|server| !reached.of(*server).up) {
            instance.startup.forget(server);
        }
        if !reached.mysql.up {
            instance.ctx.forget_idle();
        }
        let states = instance.states().await;
        let all_there = ALL.iter().all(|server| states.of(*server).up);
        if known.is_some() || all_there || started.elapsed() >= GRACE {
            report(known.as_deref(), &states);
            known = Some(states);
        }
        pause = if all_there {
            EACH
        } else {
            (pause * 2).min(LONGEST_PAUSE)
        };
        tokio::time::sleep(pause).await;
    }
}

/// Says what is new.
fn report(known: Option<&States>, states: &States) {
    for server in ALL {
        let (now, before) = (states.of(server), known.map(|known| known.of(server).up));
        let name = server.name();
        match (before, now.up) {
            (None | Some(true), false) => {
                tracing::warn!(
                    "{name} is missing ({}); what needs it is answered 503 until it is there",
                    now.detail
                );
            }
            (None | Some(false), true) => tracing::info!("{name} is there ({})", now.detail),
            _ => {}
        }
    }
}

/// Does what is not done yet. What fails is tried again, and shows in the states.
async fn prepare(instance: &Instance) {
    let migrate = async {
        tokio::time::timeout(PATIENCE, migrate(&instance.ctx))
            .await
            .map_err(|e| e.to_string())?
    };
    let seed = async { shelf::seed(&instance.ctx).await.map_err(|e| e.to_string()) };
    once(&instance.startup.migrated, migrate).await;
    if instance.startup.migrated() {
        once(&instance.startup.seeded, seed).await;
    }
}

async fn once(done: &AtomicBool, step: impl Future<Output = Result<(), String>>) {
    if done.load(Ordering::Relaxed) {
        return;
    }
    match step.await {
        Ok(()) => done.store(true, Ordering::Relaxed),
        Err(error) => tracing::debug!(%error, "not yet"),
    }
}

async fn migrate(ctx: &Ctx) -> Result<(), String> {
    let mut conn = ctx.desk.conn(PATIENCE).await.map_err(|e| e.to_string())?;
    let locked: Option<i64> = sqlx::query_scalar(LOCK)
        .fetch_one(&mut *conn)
        .await
        .map_err(|e| e.to_string())?;
    if locked != Some(1) {
        return Err("another instance is making the tables".into());
    }
    if let Err(error) = MIGRATIONS.run_direct(&mut *conn).await {
        tracing::error!(%error, "the tables cannot be made");
        return Err(error.to_string());
    }
    sqlx::query(UNLOCK)
        .execute(&mut *conn)
        .await
        .map_err(|e| e.to_string())?;
    conn.done();
    Ok(())
}
