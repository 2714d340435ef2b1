//! One run at a time over all instances: a lock of this project's own library, the row `run` of `tb_lock` with its lease.
//!
//! 1. Look who has it: the row says whose run that is, in the columns that §4 of the course has for it.
//! 2. Take it, with a lease that is renewed for as long as the run goes on.
//! 3. Give it back before the run is said to have ended: who starts the next one then finds it free.
//!
//! MySQL, as most strategies need it anyway, and as its row says more than whose lock it is. What it survives: an instance
//! that dies, whose lease ends. **What breaks it**: a MySQL that does not answer. A run that does not need it starts all
//! the same, kept apart only from those of its own instance; and two at once are slower, but each has a product of its own.
//!
//! Next to read: `run.rs`.

use crate::{
    ctx::Ctx,
    http::{error::Error, problem::RunInProgress},
};
use oversell_lock::{
    Guard, Lease, Lock, LockError,
    mysql::{Caller, Conn},
};
use std::time::Duration;

const NAME: &str = "run";

/// An instance that dies blocks the others for so long.
const LEASE: Lease = Lease::Watchdog(Duration::from_secs(10));

/// How long MySQL may take.
const PATIENCE: Duration = Duration::from_secs(3);

const WHOSE: &str = "SELECT COALESCE(class_name, ''), COALESCE(method_name, ''), COALESCE(server_name, ''), \
                     COALESCE(`desc`, '') FROM tb_lock WHERE lock_name = ? AND expires_at > NOW(3)";

/// Takes the lock for a run of this number and strategy, started by `by`; without one where MySQL does not answer.
///
/// # Errors
///
/// [`Error::RunInProgress`] of the run that has it.
pub(super) async fn alone(
    ctx: &Ctx,
    id: &str,
    strategy: &str,
    by: &str,
) -> Result<Option<Guard>, Error> {
    let caller = Caller {
        class: id.into(),
        method: strategy.into(),
        server: ctx.instance.clone(),
        desc: by.to_owned(),
    };
    let lock = ctx.desk.table_lease_lock(NAME).lease(LEASE).caller(caller);
    loop {
        let taken = match whose(ctx).await {
            Ok(Some(run)) => return Err(run),
            Ok(None) => lock.acquire(PATIENCE).await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(guard) => return Ok(Some(guard)),
            // Somebody was quicker.
            Err(LockError::Taken { .. }) => {}
            Err(error) => {
                tracing::warn!(%error, "this run is kept apart from those of this instance only");
                return Ok(None);
            }
        }
    }
}

async fn whose(ctx: &Ctx) -> Result<Option<Error>, LockError> {
    let unavailable = |error: sqlx::Error| LockError::Unavailable {
        server: "mysql",
        reason: error.into(),
    };
    let mut conn: Conn = ctx.desk.conn(PATIENCE).await.map_err(no_connection)?;
    let read = sqlx::query_as(WHOSE).bind(NAME).fetch_optional(&mut *conn);
    let read = tokio::time::timeout(PATIENCE, read)
        .await
        .map_err(|_| silent())?;
    let row: Option<(String, String, String, String)> = read.map_err(unavailable)?;
    conn.done();
    Ok(row.map(|(id, strategy, instance, by)| {
        Error::RunInProgress(RunInProgress {
            id,
            instance,
            by,
            strategy,
            left_ms: None,
        })
    }))
}

/// All connections are in use: that says nothing of the lock.
fn no_connection(error: LockError) -> LockError {
    if matches!(error, LockError::Taken { .. }) {
        silent()
    } else {
        error
    }
}

fn silent() -> LockError {
    LockError::Unavailable {
        server: "mysql",
        reason: "it did not answer".into(),
    }
}
