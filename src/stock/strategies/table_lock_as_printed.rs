#![doc = include_str!("table_lock_as_printed.md")]

use super::none;
use crate::stock::*;

/// The name of the lock's row in `tb_lock`, for product 1.
const NAME: &str = "lock-as-printed";
/// Takes the lock, or is refused by the unique key.
const INSERT: &str = "INSERT INTO tb_lock (lock_name, class_name) VALUES (?, ?)";
const DELETE: &str = "DELETE FROM tb_lock WHERE id = ?";

/// The mean pause before a retry: the course's 50 ms.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    chapter: "4.2",
    rank: Rank::AsPrinted("table-lock"),
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql],
    pace: 140,
    names: &[Name::TableLock(NAME)],
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

/// Takes a piece under the row, and then one more, without it, for each insert that was refused before.
async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let name = job.redis_name(NAME);
    // The printed code's calls that wait in their `catch` for the call that they have made again.
    let mut waiting = 0;
    let unlock = loop {
        let insert = sqlx::query(INSERT).bind(name.clone()).bind(module_path!());
        match mysql::insert(ctx, job, insert, delete_row).await? {
            Some(row) => break row,
            None => waiting += 1,
        }
        job.reach(Point::Refused).await;
        poll::pause_before_retry(job, RETRY_PAUSE, || format!("lock {name}")).await?;
    };
    let mut sold = none::read_then_write(ctx, job, None).await;
    unlock.run_now().await;
    // Each such call comes back, and goes on: it has no lock, and deletes no row, for its own has no id.
    for _ in 0..waiting {
        match none::read_then_write(ctx, job, None).await {
            Err(Error::SoldOut) => {}
            again => sold = again,
        }
    }
    sold
}

/// Deletes the row, which frees the lock; a failure is logged.
async fn delete_row(ctx: Ctx, id: u64) {
    let deleted = async {
        let mut conn = ctx.mysql(ctx.config.default_wait()).await?;
        sqlx::query(DELETE).bind(id).execute(&mut *conn).await?;
        conn.done();
        Ok::<_, Error>(())
    };
    if let Err(error) = deleted.await {
        tracing::warn!(%error, "the row stays, and nobody has the lock again");
    }
}
