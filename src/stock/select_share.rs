//! §1.7.2, [003] The shared lock: two who read under it and both want to write deadlock.
//!
//! 1. Begin a transaction; read under `LOCK IN SHARE MODE`: others may read so too.
//! 2. Write one less: the shared lock must become an exclusive one, and waits for the other readers, who wait for
//!    us. The server picks a victim and rolls it back (error 1213).
//! 3. The victim starts anew after a random pause, as long as it may wait.
//!
//! What it survives: any number of instances; never oversells. **What breaks it**: nothing but its price: most of
//! the work is thrown away. Who reads in order to write takes `FOR UPDATE`.
//!
//! Next: `version_cas.rs`, which locks nothing at all.

use super::{Deducted, Job, Promise, Server, Store, Strategy, Title, retry::Backoff, row};
use crate::{ctx::Ctx, error::Error};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "select-share",
    chapter: "1.7.2",
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    beyond: false,
    names: &[],
    title: Title {
        zh: "共享锁升级：互相等待，死锁后重试", en: "A shared lock upgraded: deadlocks, retried"
    },
    breaks: Title { zh: "不会超卖；但死锁不断", en: "never oversells, but deadlocks all the time" },
    source: include_str!("select_share.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    // One connection for all attempts: no more contend at once than the pool has, and the others wait in its line.
    let mut conn = ctx.mysql(job.wait_left()).await?;
    let mut backoff = Backoff::new(job, "row in db_stock (deadlocks)");
    loop {
        row::begin(&mut conn).await?;
        let count = row::read_locked(&mut conn, job, row::SHARED).await?;
        if count <= 0 {
            row::rollback(&mut conn).await?;
            conn.done();
            return Err(Error::SoldOut);
        }
        job.inside().await;
        if row::write_or_deadlock(&mut conn, job.stock_id, count - 1).await? {
            row::commit(&mut conn).await?;
            conn.done();
            return Ok(Deducted { remaining: Some(count - 1), fence: None, retries: backoff.retries(), lock: None });
        }
        backoff.pause().await?;
    }
}
