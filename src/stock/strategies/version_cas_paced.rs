#![doc = include_str!("version_cas_paced.md")]

use crate::stock::*;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

/// A plain read, which locks nothing.
const READ_STOCK: &str = "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "1.7.3",
    rank: Rank::Beyond("version-cas"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 1_800,
    names: &[],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// How many buyers of one instance try at once; others wait for their turn, since more would only refuse each other.
const MAX_CONCURRENT_TRIES: usize = 2;
/// The bound of the first random pause; it doubles with each conflict: short for two that collide, long for a crowd.
const FIRST_CONFLICT_PAUSE: Duration = Duration::from_millis(1);
/// The bound grows no further than this.
const MAX_CONFLICT_PAUSE: Duration = Duration::from_millis(32);

/// Writes the count if the version is as it was read, else changes no row.
const TAKE_ONE: &str = "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ?";

/// The permits to try of this process, for all products together: [`MAX_CONCURRENT_TRIES`].
struct TryPermits(Semaphore);

impl Default for TryPermits {
    fn default() -> Self {
        Self(Semaphore::new(MAX_CONCURRENT_TRIES))
    }
}

/// Waits for a permit to try, then writes one less if the version is the same; after a conflict it pauses for a random time
/// and tries again, as long as the job may wait.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let permits = ctx.local.of::<TryPermits>();
    let _permit = timeout(job.wait_left(), permits.0.acquire()).await.map_err(|_| job.timed_out("turn to try"))?;
    let (mut bound, mut retries) = (FIRST_CONFLICT_PAUSE, 0);
    loop {
        let row = mysql::read(ctx, job, READ_STOCK).await?;
        if row.count <= 0 {
            return Err(Error::SoldOut);
        }
        let since = job.enter_and_stay().await;
        job.reach_with(Point::Read, row.count).await;
        let write = sqlx::query(TAKE_ONE).bind(row.count - 1).bind(job.request.stock_id).bind(row.version);
        if job.record_attempt(since, mysql::execute(ctx, job, write).await?) == 1 {
            return Ok(Deduction { retries, ..Deduction::remaining(row.count - 1) });
        }
        let pause = bound.mul_f64(fastrand::f64());
        if pause >= job.wait_left() {
            return Err(job.timed_out("row in db_stock (version)"));
        }
        sleep(pause).await;
        (bound, retries) = ((bound * 2).min(MAX_CONFLICT_PAUSE), retries + 1);
    }
}
