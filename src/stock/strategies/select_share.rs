//! §1.7.2, [003] The shared lock: two who read under it and both want to write deadlock.
//!
//! 1. Begin a transaction; read under `LOCK IN SHARE MODE`: others may read so too.
//! 2. Write one less: the shared lock must become an exclusive one, and waits for the other readers, who wait for
//!    us. The server picks a victim and rolls it back (error 1213).
//! 3. The victim starts anew, at once, on whatever connection is free, as long as it may wait.
//!
//! What it survives: any number of instances; never oversells. **What breaks it**: nothing but its price: most of
//! the work is thrown away. Who reads in order to write takes `FOR UPDATE`.
//!
//! Points for a replay: `waits`, `locked`, `read`, `conflict`, `written`, `committed`.
//!
//! Next: `version_cas.rs`, which locks nothing at all.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Point, mysql},
    server::Server,
    stock::{Promise, Store, Strategy},
};
use oversell_lock::mysql::Conn;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "select-share",
    chapter: "1.7.2",
    rank: Rank::Course,
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql],
    pace: 270,
    names: &[],
    title: Bilingual {
        zh: "共享锁升级：互相等待，死锁后重试",
        en: "A shared lock upgraded: deadlocks, retried",
    },
    breaks: Bilingual {
        zh: "不会超卖；但死锁不断",
        en: "never oversells, but deadlocks all the time",
    },
    source: include_str!("select_share.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let mut retries = 0;
    loop {
        let mut conn = ctx.mysql(job.wait_left()).await?;
        let tried = in_transaction(&mut conn, job).await;
        if let Some(count) = mysql::rolled_back(conn, tried).await? {
            return Ok(Deducted {
                remaining: Some(count),
                fence: None,
                retries,
                lock: None,
            });
        }
        if job.wait_left().is_zero() {
            return Err(job.not_had("row in db_stock (deadlocks)"));
        }
        retries += 1;
    }
}

/// One attempt: what is left; `None` where the server has rolled it back to end a deadlock.
async fn in_transaction(conn: &mut Conn, job: &Job) -> Result<Option<i64>, Error> {
    mysql::begin(conn).await?;
    job.at(Point::Waits).await;
    let select = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? LOCK IN SHARE MODE";
    let count = mysql::read_locked(conn, job, select).await?;
    job.at(Point::Locked).await;
    if count <= 0 {
        return Err(Error::SoldOut);
    }
    job.inside().await;
    job.tell(Point::Read, count).await;
    let update = sqlx::query("UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?")
        .bind(count - 1)
        .bind(job.request.stock_id);
    if !mysql::execute_or_deadlock(conn, job, update).await? {
        job.at(Point::Conflict).await;
        return Ok(None);
    }
    job.tell(Point::Written, count - 1).await;
    job.leave();
    mysql::commit(conn, job).await?;
    job.at(Point::Committed).await;
    Ok(Some(count - 1))
}
