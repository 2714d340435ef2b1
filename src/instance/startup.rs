//! What an instance does once a server is there, perhaps an empty one: make the tables in MySQL, put the stock into Redis.

use crate::{ctx::Ctx, migrations::migrator, shelf};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Held while the tables are made: three instances start at once. (sqlx takes a lock of its own for that, with an
/// endless wait, which MariaDB refuses: it answers NULL and nothing is locked.)
const LOCK: &str = "SELECT GET_LOCK('oversell.migrations', 30)";
const UNLOCK: &str = "SELECT RELEASE_LOCK('oversell.migrations')";

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

    /// Does what is not done yet. What fails is tried again, and shows in the states.
    pub(super) async fn prepare(&self, ctx: &Ctx) {
        let migrate = async {
            tokio::time::timeout(PATIENCE, migrate(ctx))
                .await
                .map_err(|e| e.to_string())?
        };
        let seed = async { shelf::seed(ctx).await.map_err(|e| e.to_string()) };
        once(&self.migrated, migrate).await;
        if self.migrated() {
            once(&self.seeded, seed).await;
        }
    }

    /// The next server may be an empty one.
    pub(super) fn forget(&self) {
        self.migrated.store(false, Ordering::Relaxed);
        self.seeded.store(false, Ordering::Relaxed);
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
    if let Err(error) = migrator().run_direct(&mut *conn).await {
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
