//! What the lock with a lease in the table promises beyond the contract: its sweep, its hold count, and no connection
//! while it waits.

use crate::{redis::outages::outlives_silence, support::*, table::LEASE};
use sqlx::{Connection, MySqlConnection};

/// The row's hold count; `None` without a row.
async fn hold_count_of_row(table: &Table, name: &str) -> Option<i64> {
    sqlx::query_scalar("SELECT CAST(holds AS SIGNED) FROM tb_lock WHERE lock_name = ?")
        .bind(name)
        .fetch_optional(&mut table.outsider().await)
        .await
        .expect("an answer")
}

/// The row of a dead process, with or without a lease.
async fn insert_row_of_dead_process(outsider: &mut MySqlConnection, name: &str, seconds: Option<i64>) -> Result {
    let insert = "INSERT INTO tb_lock (lock_name, owner, expires_at) VALUES (?, 'dead', NOW(3) + INTERVAL ? SECOND)";
    let insert = sqlx::query(insert).bind(name).bind(seconds);
    insert.execute(outsider).await?;
    Ok(())
}

/// Nobody gets in before its lease ends, and somebody does after it; without a lease nobody ever does.
#[apply(test!)]
async fn the_row_of_a_dead_holder_is_swept_when_its_lease_has_ended(table: &Table) -> Result {
    let (ends, stays, pool) = (name(), name(), table.client().await);
    let mut outsider = table.outsider().await;
    insert_row_of_dead_process(&mut outsider, &ends, Some(3600)).await?;
    insert_row_of_dead_process(&mut outsider, &stays, None).await?;
    let lock = pool.table_lease_lock(&ends).lease(LEASE);
    ensure_taken("before its lease has ended", lock.try_acquire().await)?;
    // Ends the lease now, however long the test took.
    sqlx::query("UPDATE tb_lock SET expires_at = NOW(3) WHERE lock_name = ?").bind(&ends).execute(&mut outsider).await?;
    let next = take(&lock).await?;
    let never = pool.table_lease_lock(&stays).acquire(SHORT).await;
    ensure_taken("beside a row without an end", never)?;
    table.delete(&stays).await;
    Ok(next.release().await?)
}

/// What has ended is not freed by force: an operator is told that nobody had it.
#[apply(test!)]
async fn a_lease_that_has_ended_is_not_freed_by_force(table: &Table) -> Result {
    let (ended, runs, stays, pool) = (name(), name(), name(), table.client().await);
    let mut outsider = table.outsider().await;
    for (name, seconds) in [(&ended, Some(-1)), (&runs, Some(3600)), (&stays, None)] {
        insert_row_of_dead_process(&mut outsider, name, seconds).await?;
        let freed = pool.table_lease_lock(name).force_unlock().await?;
        ensure_equal(&format!("a row whose lease ends in {seconds:?} s"), freed, seconds != Some(-1))?;
        ensure_none(table.left(name).await)?;
    }
    Ok(())
}

/// A stranger's transaction and a re-entry deadlock, and the server ends the cheaper one, the re-entry's statement: it
/// is repeated, and succeeds. A release likewise.
#[apply(test!)]
async fn a_deadlock_with_a_stranger_ends_no_hold(table: &Table) -> Result {
    let (name, pool) = (name(), table.client().await);
    let lock = pool.table_lease_lock(&name).owner(pool.owner());
    let lock = lock.lease(Lease::Watchdog(SOON));
    let outer = take(&lock).await?;
    let inner = async move { lock.acquire(SOON).await };
    let inner = deadlocked(table, &name, inner).await??;
    ensure_equal("holds", hold_count_of_row(table, &name).await, Some(2))?;
    deadlocked(table, &name, inner.release()).await??;
    ensure_equal("holds", hold_count_of_row(table, &name).await, Some(1))?;
    deadlocked(table, &name, outer.release()).await??;
    ensure_equal("holds that are left", hold_count_of_row(table, &name).await, None)
}

/// Runs `statement` into a deadlock with a transaction that is more expensive to roll back.
async fn deadlocked<T: Send + 'static>(
    table: &Table,
    name: &str,
    statement: impl Future<Output = Answer<T>> + Send + 'static,
) -> Result<Answer<T>> {
    let (mut human, mut outsider) = (table.outsider().await, table.outsider().await);
    let mut stranger = human.begin().await?;
    let mut run = async |sql: &str, text: &str| {
        let statement = sqlx::query(sql).bind(text).execute(&mut *stranger).await;
        statement.map(drop).context("the stranger")
    };
    for n in 0..20 {
        let insert = "INSERT INTO tb_lock (lock_name) VALUES (?)";
        run(insert, &format!("{n} of {name}")).await?;
    }
    // Locks the row by its number first and its name last: the opposite order of a search by name.
    let id: i64 = sqlx::query_scalar("SELECT id FROM tb_lock WHERE lock_name = ?").bind(name).fetch_one(&mut outsider).await?;
    let by_number = "SELECT id FROM tb_lock WHERE id = ? FOR UPDATE";
    run(by_number, &id.to_string()).await?;
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut outsider).await?;
    let waiting = if version.contains("MariaDB") {
        "SELECT COUNT(*) FROM information_schema.INNODB_TRX t \
         JOIN information_schema.INNODB_LOCKS l ON l.lock_id = t.trx_requested_lock_id \
         WHERE t.trx_state = 'LOCK WAIT' AND l.lock_data = ?"
    } else {
        "SELECT COUNT(*) FROM performance_schema.data_locks WHERE lock_status = 'WAITING' AND lock_data = ?"
    };
    let statement = tokio::spawn(statement);
    let mut count = async |sql| {
        let count = sqlx::query_scalar::<_, i64>(sql).bind(id.to_string());
        count.fetch_one(&mut outsider).await
    };
    while count(waiting).await? == 0 {
        ensure!(!statement.is_finished(), "it waited for no stranger");
        // MariaDB caches this view for 100 ms.
        tokio::time::sleep(Duration::from_millis(110)).await;
    }
    let by_name = "SELECT id FROM tb_lock WHERE lock_name = ? FOR UPDATE";
    run(by_name, name).await?;
    stranger.rollback().await?;
    Ok(statement.await?)
}

/// A waiter holds no connection: one is enough for a crowd and the holder.
#[apply(test!)]
async fn a_waiter_holds_no_connection(table: &Table) -> Result {
    let (name, pool) = (name(), table.pool(&table.address(), 1));
    let held = take(&pool.table_lease_lock(&name)).await?;
    let crowd = [(); 5].map(|()| spawn_pass(pool.table_lease_lock(&name)));
    held.release().await?;
    for waiter in crowd {
        waiter.await??;
    }
    Ok(())
}

/// The caller has the pool's only connection for longer than the lease.
#[apply(test!)]
async fn a_renewal_needs_no_connection_of_the_pool(table: &Table) -> Result {
    let lease = Duration::from_secs(5);
    let pool = table.pool(&table.address(), 1);
    let lock = pool.table_lease_lock(&name());
    let guard = take(&lock.lease(Lease::Watchdog(lease))).await?;
    let all = pool.conn(SOON).await?;
    ensure_unavailable("another one", pool.conn(Duration::ZERO).await.map(drop))?;
    let renewed = async || guard.sure_for().unwrap_or_default() > lease.mul_f64(0.8);
    for _ in 0..4 {
        let waits = async || !renewed().await || guard.is_lost();
        until("the next renewal is due", waits).await?;
        let decided = async || renewed().await || guard.is_lost();
        until("it is renewed or lost", decided).await?;
        ensure_kept("a lease beside a pool in use", &guard)?;
    }
    ensure_equal("connections in use", pool.counts(), (1, 0))?;
    all.done();
    Ok(guard.release().await?)
}

/// A connection turns silent, and new ones are answered.
#[apply(test!)]
async fn a_silent_connection_costs_no_short_lease(table: &'static Table) -> Result {
    let mute = Mute::to(table.address())?;
    let family = table.family("table_lease");
    outlives_silence(family.process_at(&mute.address()).await, &mute).await
}
