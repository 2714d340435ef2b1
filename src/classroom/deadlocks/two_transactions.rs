//! Two transactions on a table of their own, whose statements are sent in a forced order.
//!
//! 1. A statement is sent on its transaction's own connection. Either it is answered, or the server shows that it waits
//!    for a row lock: then others go on without its answer, which is taken before the same transaction's next statement
//!    is sent.
//! 2. A transaction that gets error 1213 was rolled back by the server; one that gets 1205 is still open, and is rolled
//!    back here. Either sends nothing more.
//! 3. It can then be begun again from its first statement (`transaction.rs`).
//!
//! What it survives: to be dropped at any time. **What breaks it**: nothing that would leave a transaction: a connection
//! that is not known to be clean is closed and killed, and then the table is dropped.
//!
//! Next: `transaction.rs`; then `crate::replay`, where a lesson is a race that people follow.

use super::{
    lesson::{COMMIT, DEADLOCK, DeadlockLesson, LOCK_WAIT_TIMEOUT, Side},
    shown::{self, DeadlockPlan, InnodbStatus},
    step::{DeadlockReplay, DeadlockStep},
    table::Table,
    transaction::{self, StatementResult, Transaction, TransactionState, deadlock_or_timeout},
};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::{
    local::{MutexGuard, Mutexes},
    mysql::Conn,
};
use sqlx::Executor;
use std::time::Duration;
use tokio::{task::JoinError, time::timeout};

/// How often the server is asked whether a statement waits: a statement that need not wait is answered sooner.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The row-lock timeout of plays that people follow, in seconds: longer than people and busy machines need.
const FOLLOWED_LOCK_WAIT_S: u32 = 600;

/// What a play locks: there is one play at a time for each `ctx.local`, since each takes three connections. All visitors of the
/// classroom share one `local`; the actors of each replayed product have their own.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PlayTurn;

/// The two transactions of a lesson, and what they have done so far.
pub(crate) struct TwoTransactions {
    lesson: &'static DeadlockLesson,
    cured: bool,
    sides: [Transaction; 2],
    observer: Conn,
    table: Table,
    steps: Vec<DeadlockStep>,
    /// What EXPLAIN says of a statement, before and after the index of the cure.
    plans: Vec<DeadlockPlan>,
    /// From SHOW ENGINE INNODB STATUS.
    latest_deadlock: Option<String>,
    _turn: MutexGuard,
}

impl TwoTransactions {
    /// Opens them, with the cure in force or without it, once no other play goes on with the same `ctx.local`. If people follow,
    /// a wait times out only if the lesson is about that, and not cured.
    /// Errors: [`Error::Timeout`] if other plays or users of the pool take too long, [`Error::Unavailable`] if MySQL is
    /// down.
    pub(crate) async fn open(ctx: &Ctx, lesson: &'static DeadlockLesson, cured: bool, followed: bool) -> Result<Self, Error> {
        let wait = ctx.config.default_wait();
        let turn = ctx.local.of::<Mutexes<_>>().lock(&PlayTurn, wait).await;
        let turn = turn.ok_or_else(|| Error::Timeout { what: "turn to play a deadlock".into(), waited: wait })?;
        let mut observer = ctx.mysql(wait).await?;
        let table = Table::make(ctx, &mut observer).await?;
        let real = |sql: &str| sql.replace("goods", &table.name);
        let mut plans = Vec::new();
        if let Some(sql) = lesson.explain {
            plans.push(shown::plan(&mut observer, "before the index", real(sql)).await?);
        }
        if let Some(index) = lesson.index.filter(|_| cured) {
            observer.execute(real(index).as_str()).await?;
            if let Some(sql) = lesson.explain {
                plans.push(shown::plan(&mut observer, "after the index", real(sql)).await?);
            }
        }
        // One lesson is about the end of the wait, until it is cured. In the others it would only come before the deadlock.
        let has_long_lock_wait = if lesson.error == DEADLOCK { followed } else { cured };
        let wait_s = if has_long_lock_wait { FOLLOWED_LOCK_WAIT_S } else { lesson.wait_s.into() };
        let sides = [Transaction::open(ctx, wait_s).await?, Transaction::open(ctx, wait_s).await?];
        Ok(Self { lesson, cured, sides, observer, table, steps: Vec::new(), plans, latest_deadlock: None, _turn: turn })
    }

    /// Whether the server has ended this transaction with an error.
    pub(crate) fn has_failed(&self, side: Side) -> bool {
        self.sides[side as usize].failed
    }

    /// Whether the last statement waits for a row lock, or has an answer that [`take_answer`](Self::take_answer) has to take.
    pub(crate) fn has_pending_statement(&self, side: Side) -> bool {
        matches!(self.sides[side as usize].state, TransactionState::Waiting(..))
    }

    /// Whether the pending statement has its answer.
    pub(crate) fn is_answered(&self, side: Side) -> bool {
        matches!(&self.sides[side as usize].state, TransactionState::Waiting(_, answer) if answer.is_finished())
    }

    /// Sends a statement of a transaction that has not failed and has no pending statement. Returns its step, with or without an
    /// error; `None` if the server shows that it waits, or, without the privilege PROCESS, that any connection does.
    pub(crate) async fn send(&mut self, side: Side, sql: &'static str) -> Result<Option<DeadlockStep>, Error> {
        let sql = sql.replace("goods", &self.table.name);
        let step = self.steps.len();
        let mut answer = self.sides[side as usize].send(sql.clone())?;
        self.steps.push(DeadlockStep::unanswered(side, 1, sql));
        loop {
            if let Ok(answered) = timeout(POLL_INTERVAL, &mut answer).await {
                return self.record_answer(step, answered).await.map(Some);
            }
            let (status, id) = (InnodbStatus::fetch(&mut self.observer).await?, self.sides[side as usize].id);
            if status.is_waiting(&mut self.observer, id).await? {
                self.steps[step].row_locks = status.row_locks(id);
                self.sides[side as usize].state = TransactionState::Waiting(step, answer);
                return Ok(None);
            }
        }
    }

    /// Waits for the answer of a pending statement, without a limit of its own, and records it; `None` if none is pending.
    pub(crate) async fn take_answer(&mut self, side: Side) -> Result<Option<DeadlockStep>, Error> {
        let transaction = &mut self.sides[side as usize];
        match std::mem::replace(&mut transaction.state, TransactionState::Sent) {
            TransactionState::Waiting(step, answer) => {
                let answered = answer.await;
                self.steps[step].waited_until = Some(self.steps.len());
                self.record_answer(step, answered).await.map(Some)
            }
            state => {
                transaction.state = state;
                Ok(None)
            }
        }
    }

    /// Records the answer of the statement of this step, and returns the step. After error 1205 it rolls the transaction back.
    async fn record_answer(
        &mut self,
        step: usize,
        answered: Result<(Conn, StatementResult), JoinError>,
    ) -> Result<DeadlockStep, Error> {
        let (mut conn, answer) = answered.map_err(|e| Error::Internal(e.to_string()))?;
        let failure = answer.err().map(deadlock_or_timeout).transpose()?;
        let (status, side) = (InnodbStatus::fetch(&mut self.observer).await?, self.steps[step].side);
        let transaction = &mut self.sides[side as usize];
        if let Some((number, message)) = failure {
            if number == DEADLOCK {
                let shown = status.latest_deadlock(&self.table.name);
                self.latest_deadlock = Some(shown.unwrap_or_else(str::to_owned));
            }
            let failed = &mut self.steps[step];
            (failed.error, failed.message, failed.row_locks) = (Some(number), Some(message), None);
            transaction.failed = true;
            if number == LOCK_WAIT_TIMEOUT {
                self.steps.push(transaction::roll_back(&mut conn, side, 1).await?);
            }
        } else {
            self.steps[step].row_locks = status.row_locks(transaction.id);
        }
        transaction.state = TransactionState::Idle(conn);
        Ok(self.steps[step].clone())
    }

    /// Ends the play: takes every answer, with `retry` begins the transactions again that failed, gives the connections back
    /// and drops the table. A transaction that has not failed counts as committed: its script must have been sent to its end.
    pub(crate) async fn end(mut self, retry: bool) -> Result<DeadlockReplay, Error> {
        // Without the privilege, the waits of others make a slow COMMIT look like one that waits.
        for side in Side::BOTH {
            self.take_answer(side).await?;
        }
        let victim = (self.steps.iter().find(|step| step.error.is_some())).cloned();
        let (mut committed, mut retries) = (Vec::new(), 0);
        for side in Side::BOTH {
            let transaction = &mut self.sides[side as usize];
            let mut ended_well = !transaction.failed;
            if retry && transaction.failed {
                let script = self.lesson.script(self.cured);
                let own = script.filter(|(whose, _)| *whose == side);
                let sql = own.map(|(_, sql)| sql.replace("goods", &self.table.name));
                let attempts = transaction.retry_until_committed(side, sql.collect()).await?;
                retries += attempts.last().map_or(0, |step| step.attempt - 1);
                ended_well = attempts.last().is_some_and(|step| step.sql == COMMIT);
                self.steps.extend(attempts);
            }
            if ended_well {
                committed.push(side);
            }
        }
        for transaction in self.sides {
            transaction.close().await?;
        }
        self.table.remove(&mut self.observer).await?;
        self.observer.done();
        Ok(DeadlockReplay {
            lesson: self.lesson.slug,
            cured: self.cured,
            victim: victim.as_ref().map(|step| step.side),
            error: victim.and_then(|step| step.error),
            steps: self.steps,
            committed,
            retries,
            plans: self.plans,
            latest_deadlock: self.latest_deadlock,
        })
    }
}

/// Plays a lesson at once, from its first statement to its last, with or without its cure; with `retry`, a transaction that
/// failed is begun again.
/// Errors: [`Error::Timeout`] if other plays or users of the pool take too long, [`Error::Unavailable`] if MySQL is down.
/// Cancel safety: a play that was begun goes on in the background, and leaves nothing.
pub async fn replay(ctx: &Ctx, lesson: &'static DeadlockLesson, cured: bool, retry: bool) -> Result<DeadlockReplay, Error> {
    let own = ctx.clone();
    let played = ctx.tasks.spawn(async move {
        let mut two = TwoTransactions::open(&own, lesson, cured, false).await?;
        for (side, sql) in lesson.script(cured) {
            two.take_answer(side).await?;
            if !two.has_failed(side) {
                two.send(side, sql).await?;
            }
        }
        two.end(retry).await
    });
    played.await.map_err(|e| Error::Internal(e.to_string()))?
}
