//! `TableLeaseLock` under the contract: its lease, its sweep, re-entry; and the twins that are wrong by one line each.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    table::{Contender, Kind, Table},
    twins::caught,
};
use oversell_lock::{Guard, Lease, Lock, LockError, mysql::TableLeaseLock};
use sqlx::MySqlConnection;
use std::{sync::Arc, time::Duration};

/// A renewed lease, which a busy machine does not lose, and whose loss is found out within a test.
const LEASE: Lease = Lease::Watchdog(Duration::from_secs(9));
/// A renewed lease, which a test can see through to its end.
const SHORT: Lease = Lease::Watchdog(Duration::from_secs(6));
/// One that ends within the test.
const BRIEF: Lease = Lease::Fixed(Duration::from_millis(400));

pub(crate) struct Leased;

impl Kind for Leased {
    const NAME: &'static str = "table_lease";
    type Lock = TableLeaseLock;

    fn of(contender: &Contender, name: &str) -> TableLeaseLock {
        contender.pool.table_lease_lock(name).lease(LEASE)
    }
}

fn lock(contender: &Contender, name: &str) -> TableLeaseLock {
    Leased::of(contender, name)
}

/// What the row says of its holds; `None` where there is no row.
async fn holds(table: &Table<Leased>, name: &str) -> Option<i64> {
    let select = "SELECT CAST(holds AS SIGNED) FROM tb_lock WHERE lock_name = ?";
    sqlx::query_scalar(select)
        .bind(name)
        .fetch_optional(&mut table.outsider().await)
        .await
        .expect("an answer")
}

/// What a process that died has left: a row, with an end or without one.
async fn leave(outsider: &mut MySqlConnection, name: &str, millis: Option<i64>) {
    let insert = "INSERT INTO tb_lock (lock_name, owner, expires_at) VALUES (?, 'dead', NOW(3) + INTERVAL ? MICROSECOND)";
    let insert = sqlx::query(insert)
        .bind(name)
        .bind(millis.map(|ms| ms * 1000));
    insert.execute(outsider).await.expect("a row");
}

/// Nobody gets in before its lease ends, and somebody does after that; where it has no lease, nobody ever does.
pub(crate) async fn the_row_of_a_dead_holder_is_swept_when_its_lease_has_ended(
    table: Arc<Table<Leased>>,
) -> Verdict {
    let (ends, stays, process) = (name(), name(), table.process().await);
    let mut outsider = table.outsider().await;
    leave(&mut outsider, &ends, Some(3_600_000)).await;
    leave(&mut outsider, &stays, None).await;
    let early = lock(&process, &ends).acquire(Duration::ZERO).await;
    ensure(matches!(early, Err(LockError::Taken { .. })), || {
        format!("before its lease has ended: {early:?}")
    })?;
    // It ends here, however long all that took.
    let end = "UPDATE tb_lock SET expires_at = NOW(3) WHERE lock_name = ?";
    sqlx::query(end)
        .bind(&ends)
        .execute(&mut outsider)
        .await
        .map_err(|e| e.to_string())?;
    let next = says(
        "after its lease has ended",
        lock(&process, &ends).acquire(SOON).await,
    )?;
    let never = lock(&process, &stays)
        .acquire(Duration::from_millis(300))
        .await;
    ensure(matches!(never, Err(LockError::Taken { .. })), || {
        format!("beside a row without an end: {never:?}")
    })?;
    table.take_away(&process, &stays).await;
    says("release", next.release().await)
}

pub(crate) async fn a_renewed_lease_outlives_its_length(table: Arc<Table<Leased>>) -> Verdict {
    let (name, own, other) = (name(), table.process().await, table.process().await);
    let held = says("held", lock(&own, &name).lease(SHORT).acquire(SOON).await)?;
    // What is not renewed has ended by then, and this one would have swept it away.
    let refused = lock(&other, &name).acquire(SHORT.duration() * 3 / 2).await;
    ensure(matches!(refused, Err(LockError::Taken { .. })), || {
        format!("after its length: {refused:?}")
    })?;
    ensure(!held.is_lost(), || {
        "the holder was told that it is lost".into()
    })?;
    says("release", held.release().await)
}

/// The twin of the one above: a lease that nobody renews ends while its holder lives, who is told before another has the
/// lock, and whose late release frees nothing of the other.
pub(crate) async fn a_fixed_lease_ends_and_its_late_release_frees_nothing(
    table: Arc<Table<Leased>>,
) -> Verdict {
    let (name, own, other) = (name(), table.process().await, table.process().await);
    let first = says(
        "the first",
        lock(&own, &name).lease(BRIEF).acquire(SOON).await,
    )?;
    let second = says(
        "the second, once the lease has ended",
        lock(&other, &name).acquire(SOON).await,
    )?;
    ensure(first.is_lost(), || {
        "another has the lock, and its holder was not told".into()
    })?;
    let late = first.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || {
        format!("the late release: {late:?}")
    })?;
    ensure(holds(&table, &name).await == Some(1), || {
        "the late release has freed another's lock".into()
    })?;
    says("release", second.release().await)
}

/// Three holds of one owner, given back in no order: only the last one lets the others in.
async fn frees_with_the_last_hold<L: Lock>(
    table: &Table<Leased>,
    name: &str,
    other: &Contender,
    lock_: L,
) -> Verdict {
    let first = says("the first hold", lock_.acquire(SOON).await)?;
    let second = says("once more", lock_.acquire(SOON).await)?;
    let third = says("once more", lock_.acquire(SOON).await)?;
    for (guard, left) in [(first, 2), (third, 1)] {
        says("one hold's release", guard.release().await)?;
        let counted = holds(table, name).await;
        ensure(counted == Some(left), || {
            format!("{counted:?} holds where {left} must be left")
        })?;
        let refused = lock(other, name).acquire(Duration::ZERO).await;
        ensure(matches!(refused, Err(LockError::Taken { .. })), || {
            format!("beside the owner: {refused:?}")
        })?;
    }
    ensure(!second.is_lost(), || "the last hold was lost".into())?;
    says("the last release", second.release().await)?;
    ensure(holds(table, name).await.is_none(), || {
        "a row is left".into()
    })
}

pub(crate) async fn an_owner_takes_its_lock_again(table: Arc<Table<Leased>>) -> Verdict {
    let (name, own, other) = (name(), table.process().await, table.process().await);
    let lock = lock(&own, &name).owner(own.pool.owner());
    frees_with_the_last_hold(&table, &name, &other, lock).await
}

/// The twin: the same lock, whose release does not count.
struct FreesWithTheFirst(TableLeaseLock, Arc<Table<Leased>>);

impl Lock for FreesWithTheFirst {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let honest = self.0.acquire(wait).await?;
        let (guard, mut keeper) = Guard::new(self.name(), None);
        let (name, table) = (self.name().to_owned(), Arc::clone(&self.1));
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            // Here the honest lock gives one hold back.
            table.delete(&name).await;
            honest.release().await.ok();
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

pub(crate) async fn a_release_that_does_not_count_is_caught(table: Arc<Table<Leased>>) -> Verdict {
    let (name, own, other) = (name(), table.process().await, table.process().await);
    let lock = FreesWithTheFirst(
        lock(&own, &name).owner(own.pool.owner()),
        Arc::clone(&table),
    );
    caught(
        frees_with_the_last_hold(&table, &name, &other, lock).await,
        "holds where 2 must be left",
    )
}

/// The lock was lost and nobody has told its owner yet, who takes it again: that finds the loss out. The hold from before
/// is lost, and the new one is not.
pub(crate) async fn a_re_entry_does_not_hide_a_loss(table: Arc<Table<Leased>>) -> Verdict {
    let (name, own, other) = (name(), table.process().await, table.process().await);
    let lock_ = lock(&own, &name).owner(own.pool.owner());
    let before = says("before", lock_.acquire(SOON).await)?;
    table.take_away(&own, &name).await;
    let between = says("between", lock(&other, &name).acquire(Duration::ZERO).await)?;
    says("between", between.release().await)?;
    let after = says("after", lock_.acquire(SOON).await)?;
    tokio::time::timeout(SOON, before.lost())
        .await
        .map_err(|_| "the hold from before was not told")?;
    let late = before.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || {
        format!("the hold from before: {late:?}")
    })?;
    ensure(
        holds(&table, &name).await == Some(1) && !after.is_lost(),
        || "the new hold went with the old one".into(),
    )?;
    says("release", after.release().await)
}

/// The second hold is asked for, and the answer is lost: the first one keeps the lock, and its release frees it.
pub(crate) async fn an_unanswered_re_entry_leaves_the_outer_hold_and_no_other(
    table: Arc<Table<Leased>>,
) -> Verdict {
    let (name, other) = (name(), table.process().await);
    let mute = Mute::to(table.server()).await;
    // On the one connection that it has, every statement has been prepared once.
    let own = table.process_with(&mute.address(), 1).await;
    let lock_ = lock(&own, &name)
        .lease(Lease::Watchdog(SOON))
        .owner(own.pool.owner());
    let outer = says("outer", lock_.acquire(SOON).await)?;
    says(
        "once more",
        says("once more", lock_.acquire(SOON).await)?
            .release()
            .await,
    )?;
    mute.mute();
    let inner = lock_.acquire(SOON);
    let asked = until("the second hold is in the table", || async {
        holds(&table, &name).await == Some(2)
    });
    tokio::select! {
        inner = inner => return Err(format!("without an answer: {inner:?}")),
        asked = asked => asked?,
    }
    // It is given up here, while its statement is under way.
    mute.heal().await;
    let refused = lock(&other, &name).try_acquire().await;
    ensure(matches!(refused, Err(LockError::Taken { .. })), || {
        format!("beside the outer hold: {refused:?}")
    })?;
    ensure(!outer.is_lost(), || "the outer hold was lost".into())?;
    says("release", outer.release().await)?;
    ensure(holds(&table, &name).await.is_none(), || {
        "the hold that nobody knows of is left".into()
    })
}

/// A stranger's transaction and a re-entry each hold what the other waits for, and the server ends the re-entry's
/// statement, being the cheaper one: it is asked again, and gets in. A release likewise.
pub(crate) async fn a_deadlock_with_a_stranger_ends_no_hold(table: Arc<Table<Leased>>) -> Verdict {
    let (name, own) = (name(), table.process().await);
    let lock_ = lock(&own, &name)
        .lease(Lease::Watchdog(SOON))
        .owner(own.pool.owner());
    let outer = says("outer", lock_.acquire(SOON).await)?;
    let inner = lock_.clone();
    let inner = deadlocked(&table, &name, async move { inner.acquire(SOON).await }).await?;
    let inner = says("the second hold", inner)?;
    ensure(holds(&table, &name).await == Some(2), || {
        "the second hold is not in the table".into()
    })?;
    says(
        "its release",
        deadlocked(&table, &name, inner.release()).await?,
    )?;
    says(
        "the last release",
        deadlocked(&table, &name, outer.release()).await?,
    )?;
    ensure(holds(&table, &name).await.is_none(), || {
        "a row is left".into()
    })
}

/// Runs `statement` into a deadlock with a transaction that costs more to roll back.
async fn deadlocked<T: Send + 'static>(
    table: &Table<Leased>,
    name: &str,
    statement: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let (mut stranger, mut outsider) = (table.outsider().await, table.outsider().await);
    let mut run = async |sql: &str, text: &str| {
        let statement = sqlx::query(sql).bind(text).execute(&mut stranger).await;
        statement
            .map(drop)
            .map_err(|e| format!("the stranger: {e}"))
    };
    run("START TRANSACTION", "").await?;
    for n in 0..20 {
        run(
            "INSERT INTO tb_lock (lock_name) VALUES (?)",
            &format!("{n} of {name}"),
        )
        .await?;
    }
    // The row by its number here, the entry of its name last: the other way round than who looks for it by name.
    let id: i64 = sqlx::query_scalar("SELECT id FROM tb_lock WHERE lock_name = ?")
        .bind(name)
        .fetch_one(&mut outsider)
        .await
        .map_err(|e| e.to_string())?;
    run(
        "SELECT id FROM tb_lock WHERE id = ? FOR UPDATE",
        &id.to_string(),
    )
    .await?;
    let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX t \
                   JOIN information_schema.INNODB_LOCKS l ON l.lock_id = t.trx_requested_lock_id \
                   WHERE t.trx_state = 'LOCK WAIT' AND l.lock_data = ?";
    let statement = tokio::spawn(statement);
    let mut count = async |sql| {
        sqlx::query_scalar::<_, i64>(sql)
            .bind(id.to_string())
            .fetch_one(&mut outsider)
            .await
    };
    while count(waiting).await.map_err(|e| e.to_string())? == 0 {
        ensure(!statement.is_finished(), || {
            "it has not waited for the stranger".into()
        })?;
        // The server shows what it has shown before to whoever asks again within 100 ms.
        tokio::time::sleep(Duration::from_millis(110)).await;
    }
    run(
        "SELECT id FROM tb_lock WHERE lock_name = ? FOR UPDATE",
        name,
    )
    .await?;
    run("ROLLBACK", "").await?;
    statement.await.map_err(|e| e.to_string())
}

/// Two tasks of one owner wait for another's lock, and each goes on only when both are inside.
pub(crate) async fn tasks_of_one_owner_come_in_together(table: Arc<Table<Leased>>) -> Verdict {
    let (name, own) = (name(), table.process().await);
    let held = says("held", lock(&own, &name).acquire(SOON).await)?;
    let (owner, both) = (own.pool.owner(), Arc::new(tokio::sync::Barrier::new(2)));
    let tasks = [(), ()].map(|()| {
        let (lock, both) = (lock(&own, &name).owner(owner), Arc::clone(&both));
        tokio::spawn(async move {
            let guard = lock.acquire(SOON).await?;
            both.wait().await;
            guard.release().await
        })
    });
    says("release", held.release().await)?;
    for task in tasks {
        says("both inside", task.await.map_err(|e| e.to_string())?)?;
    }
    ensure(holds(&table, &name).await.is_none(), || {
        "a row is left".into()
    })
}

/// Who waits has no connection while it does: one is enough for a crowd and the holder.
pub(crate) async fn who_waits_holds_no_connection(table: Arc<Table<Leased>>) -> Verdict {
    let (name, process) = (name(), table.process_with(&table.server(), 1).await);
    let held = says("held", lock(&process, &name).acquire(SOON).await)?;
    let crowd = [(); 5].map(|()| {
        let lock = lock(&process, &name);
        tokio::spawn(async move { lock.acquire(SOON * 3).await?.release().await })
    });
    says("release", held.release().await)?;
    for waiter in crowd {
        says("a turn", waiter.await.map_err(|e| e.to_string())?)?;
    }
    Ok(())
}

/// The twin: a sweep that does not look whether the lease has ended.
pub(crate) struct SweepsAll;

/// Its contender.
pub(crate) struct Sweeper(TableLeaseLock, Contender);

impl Kind for SweepsAll {
    const NAME: &'static str = "twin_table_that_sweeps_all";
    type Lock = Sweeper;

    fn of(contender: &Contender, name: &str) -> Sweeper {
        Sweeper(Leased::of(contender, name), contender.clone())
    }
}

impl Lock for Sweeper {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let mut conn = self.1.pool.conn(SOON).await?;
        // Here the honest lock looks at `expires_at`.
        sqlx::query("DELETE FROM tb_lock WHERE lock_name = ?")
            .bind(self.name())
            .execute(&mut *conn)
            .await
            .ok();
        conn.done();
        self.0.acquire(wait).await
    }
}

pub(crate) async fn is_caught(twin: Arc<Table<SweepsAll>>) -> Verdict {
    caught(
        super::clauses::a_wait_ends_in_taken_and_leaves_nothing(twin).await,
        "after the wait: Ok(Guard",
    )
}
