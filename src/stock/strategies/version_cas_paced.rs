//! Beyond §1.7.3: the optimistic lock, of which only a few of an instance try at once, and pause when they have lost.
//!
//! 1. Wait for one of [`AT_ONCE`] places in this process, in order of arrival; the place is kept over all attempts.
//! 2. Read the row and its version; write only if the version still stands.
//! 3. No row changed: pause for a random time, at most 1 ms, then 2, 4, … 32 ms (full jitter), and read anew.
//!
//! What it survives: what `version_cas.rs` does, and a crowd: who waits for a place costs the database nothing, and who
//! has lost does not meet the same rivals again. **What breaks it**: nothing; but who stays long keeps its place, and
//! very many instances are a crowd again. Point for a test: `read`.
//!
//! Next: `redis_watch.rs`, the same idea in Redis.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Point, mysql},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use std::time::Duration;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

/// A plain read, which locks nothing.
const READ: &str =
    "SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?";

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "version-cas-paced",
    chapter: "1.7.3",
    rank: Rank::Beyond("version-cas"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 1_800,
    names: &[],
    title: Bilingual {
        zh: "乐观锁，但只让几个人同时试，失败后随机等待",
        en: "The optimistic lock, a few at once, with a random back-off",
    },
    breaks: Bilingual {
        zh: "不会断；但实例很多时又会拥挤",
        en: "nothing; but very many instances are a crowd again",
    },
    source: include_str!("version_cas_paced.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// How many of an instance try at once.
const AT_ONCE: usize = 2;
/// The bound of the first pause, and of the longest.
const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(32);

const TAKE_ONE: &str =
    "UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ?";

/// The places of this process.
struct Places(Semaphore);

impl Default for Places {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let places = ctx.local.of::<Places>();
    let _place = timeout(job.wait_left(), places.0.acquire())
        .await
        .map_err(|_| job.not_had("turn to try"))?;
    let (mut bound, mut retries) = (FIRST, 0);
    loop {
        let row = mysql::read(ctx, job, READ).await?;
        if row.count <= 0 {
            return Err(Error::SoldOut);
        }
        let since = job.inside().await;
        job.tell(Point::Read, row.count).await;
        let write = sqlx::query(TAKE_ONE)
            .bind(row.count - 1)
            .bind(job.request.stock_id)
            .bind(row.version);
        if job.tried(since, mysql::execute(ctx, job, write).await?) == 1 {
            return Ok(Deducted {
                remaining: Some(row.count - 1),
                fence: None,
                retries,
                lock: None,
            });
        }
        let pause = bound.mul_f64(fastrand::f64());
        if pause >= job.wait_left() {
            return Err(job.not_had("row in db_stock (version)"));
        }
        sleep(pause).await;
        (bound, retries) = ((bound * 2).min(LONGEST), retries + 1);
    }
}
