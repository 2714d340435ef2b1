//! One run at a time over all instances: a lock of this project's own library, the row `run` of `tb_lock` with its lease.
//!
//! 1. Look who has it: the row says whose run that is, in the columns that §4 of the course has for it. A row without an end is
//!    somebody's, too: who has written it by hand takes it away.
//! 2. Take it, with a lease that is renewed for as long as the run goes on.
//! 3. Give it back before the run is said to have ended: who starts the next one then finds it free.
//!
//! MySQL, as most strategies need it anyway, and as its row says more than whose lock it is. What it survives: an instance
//! that dies, whose lease ends. **What breaks it**: a MySQL that does not answer. A run that does not need it starts all
//! the same, kept apart only from those of its own instance; and two at once are slower, but each has a product of its own.
//!
//! Next to read: `run.rs`.

use crate::{ctx::Ctx, error::Error as Domain, section::session::Session};
use oversell_lock::{Guard, Lease, LockError, mysql::RowDescription};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// The name of the lock's row in `tb_lock`.
const NAME: &str = "run";

/// The lease of the lock, which is also how long a dead instance blocks the others.
const LEASE: Lease = Lease::Watchdog(Duration::from_secs(10));

/// How long a person waits at each step: for a connection, for the query of the current run, and for the lock if another instance is
/// faster.
const MYSQL_TIMEOUT: Duration = Duration::from_secs(3);

/// Id, strategy, instance and client of the run that has the lock, as [`RunElsewhere`] has them.
const CURRENT_RUN: &str = "SELECT COALESCE(class_name, ''), COALESCE(method_name, ''), COALESCE(server_name, ''), \
                     COALESCE(`desc`, '') FROM tb_lock WHERE lock_name = ? \
                     AND (expires_at IS NULL OR expires_at > NOW(3))";

/// A run of load in another instance.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct RunElsewhere {
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    id: String,
    /// The instance that sends it, and knows how it stands.
    #[schema(example = "8000")]
    instance: String,
    /// The address of the client that started it.
    #[schema(example = "127.0.0.1")]
    by: String,
    #[schema(example = "none")]
    strategy: String,
}

/// Takes the lock that excludes runs of other instances, for a run of the client `by`. `None` if MySQL does not give it, which is
/// logged.
/// Errors: the run that has it.
pub(super) async fn acquire_run_lock(ctx: &Ctx, id: &str, strategy: &str, by: &str) -> Result<Option<Guard>, RunElsewhere> {
    let description =
        RowDescription { class: id.into(), method: strategy.into(), server: ctx.instance.clone(), desc: by.to_owned() };
    let lock = ctx.admin_pool.table_lease_lock(NAME).lease(LEASE).description(description);
    let error = loop {
        match current_run(ctx).await {
            Ok(Some(run)) => return Err(run),
            Ok(None) => {}
            Err(error) => break error,
        }
        match lock.acquire(MYSQL_TIMEOUT).await {
            Ok(guard) => return Ok(Some(guard)),
            // Another instance was faster.
            Err(LockError::Taken { .. }) => {}
            Err(error) => break error.into(),
        }
    };
    tracing::warn!(%error, "this run is kept apart from those of this instance only");
    Ok(None)
}

/// The run that has the lock; `None` if nobody has it, or its lease has ended.
async fn current_run(ctx: &Ctx) -> Result<Option<RunElsewhere>, Domain> {
    let mut conn = ctx.admin_conn(MYSQL_TIMEOUT).await?;
    let read = sqlx::query_as(CURRENT_RUN).bind(NAME);
    let row: Option<(String, String, String, String)> =
        Session::of(&conn).bounded(MYSQL_TIMEOUT, read.fetch_optional(&mut *conn)).await?;
    conn.done();
    Ok(row.map(|(id, strategy, instance, by)| RunElsewhere { id, instance, by, strategy }))
}
