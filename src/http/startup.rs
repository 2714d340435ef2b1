//! What an instance does once its servers are there: make the tables, put the stock into Redis.
//!
//! It starts without them, tries until it is done, and says once which are missing.

use super::app::App;
use crate::{ctx::Ctx, stock::shelf};
use sqlx::migrate::Migrator;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Held while the tables are made: three instances start at once. (sqlx takes a lock of its own for that, with an
/// endless wait, which MariaDB refuses: it answers NULL and nothing is locked.)
const LOCK: &str = "SELECT GET_LOCK('oversell.migrations', 30)";
const UNLOCK: &str = "SELECT RELEASE_LOCK('oversell.migrations')";

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A server that is not there for this long is reported as missing.
const GRACE: Duration = Duration::from_secs(1);

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// What is done already.
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
}

/// Tries until everything is done.
pub(super) async fn prepare(app: App) {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut reported = false;
    loop {
        let missing = attempt(&app).await;
        if missing.is_empty() {
            tracing::info!("every server is there");
            return;
        }
        if !reported && started.elapsed() >= GRACE {
            reported = true;
            tracing::warn!("waiting for {}; what needs them is answered 503 until then", missing.join("; "));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Does what is not done yet; gives the servers that are missing, and why.
async fn attempt(app: &App) -> Vec<String> {
    let (mysql, redis) = tokio::join!(
        once(&app.startup.migrated, migrate(&app.ctx)),
        once(&app.startup.seeded, async { shelf::seed(&app.ctx).await.map_err(|e| e.to_string()) }),
    );
    let zookeeper = app.ctx.zk.session().map(drop).map_err(|e| e.to_string());
    [("mysql", mysql), ("redis", redis), ("zookeeper", zookeeper)]
        .into_iter()
        .filter_map(|(server, done)| done.err().map(|reason| format!("{server} ({reason})")))
        .collect()
}

async fn once(done: &AtomicBool, step: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    if !done.load(Ordering::Relaxed) {
        tokio::time::timeout(PATIENCE, step).await.map_err(|_| "no answer".to_owned())??;
        done.store(true, Ordering::Relaxed);
    }
    Ok(())
}

async fn migrate(ctx: &Ctx) -> Result<(), String> {
    let mut conn = ctx.desk.conn(PATIENCE).await.map_err(|e| e.to_string())?;
    let locked: Option<i64> = sqlx::query_scalar(LOCK).fetch_one(&mut *conn).await.map_err(|e| e.to_string())?;
    if locked != Some(1) {
        return Err("another instance is making the tables".into());
    }
    MIGRATIONS.run_direct(&mut *conn).await.map_err(|e| e.to_string())?;
    sqlx::query(UNLOCK).execute(&mut *conn).await.map_err(|e| e.to_string())?;
    conn.done();
    Ok(())
}
