//! Plays a lesson: two transactions, statement by statement, in the order of its script.
//!
//! 1. A statement is sent on its transaction's own connection. Either it is answered, or the server shows that it waits
//!    for a row lock: then the script goes on without its answer, which is read before the same transaction's next
//!    statement is sent.
//! 2. A transaction that gets error 1213 was rolled back by the server; one that gets 1205 is still open, and is rolled
//!    back here. Either sends nothing more.
//! 3. With `retry`, it is then begun anew from its first statement (`transaction.rs`).
//!
//! What it survives: a client that goes away (a play ends by itself, and drops its table); an instance that is told to
//! end. **What breaks it**: nothing that would leave a transaction: a connection that is not known to be clean is
//! closed and killed.
//!
//! Next: `followed.rs`, then `transaction.rs`.

use super::{
    COMMIT, DEADLOCK, DeadlockLesson, DeadlockPlan, DeadlockStep, LOCK_WAIT_TIMEOUT, Side,
    followed::{DeadlockSight, Follower},
    shown::{self, Status},
    table,
    transaction::{self, Answer, State, Transaction, refused},
};
use crate::{ctx::Ctx, error::Error};
use oversell_lock::mysql::Conn;
use serde::Serialize;
use sqlx::Executor;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinError,
    time::timeout,
};
use utoipa::ToSchema;

/// The server is asked so often whether a statement waits.
const LOOK: Duration = Duration::from_millis(5);

/// A statement waits so long for a row lock, in seconds, where the end of the wait is not to be seen: who follows a play may
/// take their time, and so may a busy machine.
const PATIENT_S: u32 = 600;

/// One play at a time in one instance: each needs three connections.
#[derive(Default)]
struct Turn(Arc<Mutex<()>>);

/// What a play came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadlockReplay {
    /// The lesson.
    #[schema(example = "opposite-order")]
    pub lesson: &'static str,
    /// Whether the cure was in force.
    pub cured: bool,
    /// Every statement, in the order in which they were sent.
    pub steps: Vec<DeadlockStep>,
    /// The transaction that got the error.
    pub victim: Option<Side>,
    /// The error.
    #[schema(example = 1213)]
    pub error: Option<u16>,
    /// Which transactions were committed in the end.
    pub committed: Vec<Side>,
    /// How often a whole transaction was begun anew.
    #[schema(example = 0)]
    pub retries: usize,
    /// The plan of the statement that the lesson is about.
    pub plans: Vec<DeadlockPlan>,
    /// The part LATEST DETECTED DEADLOCK of SHOW ENGINE INNODB STATUS, or why it is not shown; absent where there was no
    /// deadlock.
    pub latest_deadlock: Option<String>,
}

/// Plays a lesson, with or without its cure.
///
/// # Errors
///
/// [`Error::NotHad`] where other plays or users of the pool take too long, [`Error::Unavailable`] where MySQL is down.
///
/// # Cancel safety
///
/// A play that was begun goes on in the background, and leaves nothing.
pub async fn replay(
    ctx: &Ctx,
    lesson: &'static DeadlockLesson,
    cured: bool,
    retry: bool,
) -> Result<DeadlockReplay, Error> {
    spawned(
        ctx,
        lesson,
        How {
            cured,
            retry,
            follower: Follower::default(),
        },
    )
    .await
}

/// The same without a retry, followed: each statement waits until `follower` lets it go on.
///
/// # Errors
///
/// As [`replay`].
///
/// # Cancel safety
///
/// As [`replay`]; with its follower gone, it goes on by itself.
pub async fn replay_followed(
    ctx: &Ctx,
    lesson: &'static DeadlockLesson,
    cured: bool,
    follower: mpsc::UnboundedSender<DeadlockSight>,
) -> Result<DeadlockReplay, Error> {
    spawned(
        ctx,
        lesson,
        How {
            cured,
            retry: false,
            follower: Follower(Some(follower)),
        },
    )
    .await
}

/// How a lesson is played.
struct How {
    cured: bool,
    retry: bool,
    follower: Follower,
}

async fn spawned(
    ctx: &Ctx,
    lesson: &'static DeadlockLesson,
    how: How,
) -> Result<DeadlockReplay, Error> {
    let wait = ctx.config.wait();
    let turn = timeout(wait, Arc::clone(&ctx.local.of::<Turn>().0).lock_owned()).await;
    let turn = turn.map_err(|_| Error::NotHad {
        what: "turn to play a deadlock".into(),
        waited: wait,
    })?;
    let own = ctx.clone();
    let played = ctx.tasks.spawn(async move {
        let _turn = turn;
        let (mut conn, table) = (own.mysql(wait).await?, table::name());
        table::make(&mut conn, &table).await?;
        let played = on_table(&own, &mut conn, &table, lesson, how).await;
        table::drop(&mut conn, &table).await?;
        conn.done();
        played
    });
    played.await.map_err(|e| Error::Internal(e.to_string()))?
}

async fn on_table(
    ctx: &Ctx,
    desk: &mut Conn,
    table: &str,
    lesson: &'static DeadlockLesson,
    how: How,
) -> Result<DeadlockReplay, Error> {
    let How {
        cured,
        retry,
        follower,
    } = how;
    let real = |sql: &str| sql.replace("goods", table);
    let mut plans = Vec::new();
    if let Some(sql) = lesson.explain {
        plans.push(shown::plan(desk, "before the index", real(sql)).await?);
    }
    if let Some(index) = lesson.index.filter(|_| cured) {
        desk.execute(real(index).as_str()).await?;
        if let Some(sql) = lesson.explain {
            plans.push(shown::plan(desk, "after the index", real(sql)).await?);
        }
    }
    // The end of the wait is what one lesson is about, until it is cured. In the others it would only come before the
    // deadlock.
    let is_patient = if lesson.error == DEADLOCK {
        follower.0.is_some()
    } else {
        cured
    };
    let wait_s = if is_patient {
        PATIENT_S
    } else {
        lesson.wait_s.into()
    };
    let sides = [
        Transaction::open(ctx, wait_s).await?,
        Transaction::open(ctx, wait_s).await?,
    ];
    let mut play = Play {
        desk,
        table,
        sides,
        follower,
        steps: Vec::new(),
        latest_deadlock: None,
    };
    let script = if cured { lesson.cured } else { lesson.uncured };
    for step in script {
        let (side, sql) = step.parts();
        play.send(side, sql).await?;
    }
    let failed = |steps: &[DeadlockStep]| steps.iter().find(|step| step.error.is_some()).cloned();
    let victim = failed(&play.steps);
    let mut committed = Vec::new();
    let mut retries = 0;
    for side in [Side::A, Side::B] {
        let transaction = &mut play.sides[side as usize];
        let mut ended_well = !transaction.failed;
        if retry && transaction.failed {
            let own = script
                .iter()
                .map(|step| step.parts())
                .filter(|(whose, _)| *whose == side);
            let sql: Vec<_> = own.map(|(_, sql)| real(sql)).collect();
            let attempts = transaction.begin_anew(side, sql).await?;
            retries += attempts.last().map_or(0, |step| step.attempt - 1);
            ended_well = attempts.last().is_some_and(|step| step.sql == COMMIT);
            play.steps.extend(attempts);
        }
        if ended_well {
            committed.push(side);
        }
    }
    for transaction in play.sides {
        transaction.close().await?;
    }
    Ok(DeadlockReplay {
        lesson: lesson.slug,
        cured,
        victim: victim.as_ref().map(|step| step.side),
        error: victim.and_then(|step| step.error),
        steps: play.steps,
        committed,
        retries,
        plans,
        latest_deadlock: play.latest_deadlock,
    })
}

/// The two transactions, and what they have done so far.
struct Play<'a> {
    desk: &'a mut Conn,
    table: &'a str,
    sides: [Transaction; 2],
    follower: Follower,
    steps: Vec<DeadlockStep>,
    latest_deadlock: Option<String>,
}

impl Play<'_> {
    /// Sends a statement, unless its transaction has failed; returns once it is answered, or the server shows that it
    /// waits.
    async fn send(&mut self, side: Side, sql: &'static str) -> Result<(), Error> {
        self.hear(side).await?;
        if self.sides[side as usize].failed {
            return Ok(());
        }
        self.follower.next(side, sql).await;
        let sql = sql.replace("goods", self.table);
        let step = self.steps.len();
        let mut answer = self.sides[side as usize].send(sql.clone())?;
        self.steps.push(DeadlockStep::sent(side, 1, sql));
        loop {
            if let Ok(answered) = timeout(LOOK, &mut answer).await {
                return self.note(step, answered).await;
            }
            let (status, id) = (Status::ask(self.desk).await?, self.sides[side as usize].id);
            if status.waits(self.desk, id).await? {
                self.steps[step].row_locks = status.row_locks(id);
                self.sides[side as usize].state = State::Waiting(step, answer);
                self.follower.tell(DeadlockSight::Waits(side));
                return Ok(());
            }
        }
    }

    /// The answer that a transaction still waits for, if there is one.
    async fn hear(&mut self, side: Side) -> Result<(), Error> {
        let transaction = &mut self.sides[side as usize];
        match std::mem::replace(&mut transaction.state, State::Sent) {
            State::Waiting(step, answer) => {
                let answered = answer.await;
                self.steps[step].waited_until = Some(self.steps.len());
                self.note(step, answered).await
            }
            state => {
                transaction.state = state;
                Ok(())
            }
        }
    }

    /// Notes what a statement came to; a transaction that failed is rolled back.
    async fn note(
        &mut self,
        step: usize,
        answered: Result<(Conn, Answer), JoinError>,
    ) -> Result<(), Error> {
        let (mut conn, answer) = answered.map_err(|e| Error::Internal(e.to_string()))?;
        let refused = answer.map_or_else(refused, |()| Ok(None))?;
        let (status, side) = (Status::ask(self.desk).await?, self.steps[step].side);
        let transaction = &mut self.sides[side as usize];
        if let Some((number, message)) = refused {
            if number == DEADLOCK {
                self.latest_deadlock = Some(
                    status
                        .latest_deadlock(self.table)
                        .unwrap_or_else(str::to_owned),
                );
            }
            let failed = &mut self.steps[step];
            (failed.error, failed.message, failed.row_locks) = (Some(number), Some(message), None);
            transaction.failed = true;
            if number == LOCK_WAIT_TIMEOUT {
                self.steps
                    .push(transaction::roll_back(&mut conn, side, 1).await?);
            }
        } else {
            self.steps[step].row_locks = status.row_locks(transaction.id);
        }
        transaction.state = State::Idle(conn);
        self.follower
            .tell(DeadlockSight::Answered(self.steps[step].clone()));
        Ok(())
    }
}
