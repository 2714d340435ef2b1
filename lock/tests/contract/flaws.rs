//! A lock that is wrong in one way at a time, for each clause of the contract that has no twin of its own: a wrapper of a few
//! lines around the honest `RedisLock`.

use super::{
    Verdict, clauses,
    family::{Family, Process, name},
    redis::Redis,
    twins::caught,
};
use oversell_lock::{
    Fence, Guard, Lock, LockError,
    redis::{RedisClient, RedisLock},
};
use redis::AsyncTypedCommands;
use std::{mem, sync::Arc, time::Duration};
use tokio::sync::{Mutex, oneshot};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Flaw {
    /// Each process has a lock of its own.
    Apart,
    /// It does not wait.
    Impatient,
    /// Who waits in vain leaves something on the server.
    Littering,
    /// What is had after the caller has gone is kept.
    Detached,
    /// What is given back is kept.
    Keeping,
    /// A server that is down is a lock that is taken.
    Confusing,
    /// A loss is not told, and the process's next one waits until it is found out.
    Deaf,
    /// Every hold has the same token.
    Stale,
}

/// Every flaw, and the name of the trial in which it is caught.
pub(crate) const ALL: [(Flaw, &str); 8] = [
    (Flaw::Apart, "a_lock_for_each_process_is_caught"),
    (Flaw::Impatient, "one_that_does_not_wait_is_caught"),
    (Flaw::Littering, "one_that_leaves_something_is_caught"),
    (
        Flaw::Detached,
        "one_that_keeps_what_nobody_waits_for_is_caught",
    ),
    (Flaw::Keeping, "one_that_keeps_what_is_given_back_is_caught"),
    (
        Flaw::Confusing,
        "one_that_takes_silence_for_taken_is_caught",
    ),
    (Flaw::Deaf, "one_that_does_not_hear_of_its_loss_is_caught"),
    (Flaw::Stale, "one_with_an_old_token_is_caught"),
];

/// Its clauses must find the flaw, and for this reason.
pub(crate) async fn is_caught(twin: Arc<Flawed>) -> Verdict {
    let again = || Arc::clone(&twin);
    match twin.flaw {
        Flaw::Apart => caught(
            in_some_try(|| clauses::two_processes_exclude_each_other(again())).await,
            " overlaps",
        ),
        Flaw::Impatient => {
            let ends =
                in_some_try(|| clauses::a_wait_ends_in_taken_and_leaves_nothing(again())).await;
            caught(ends, "gave up after")
        }
        Flaw::Littering => caught(
            clauses::a_wait_ends_in_taken_and_leaves_nothing(again()).await,
            "the server had",
        ),
        Flaw::Detached => caught(
            clauses::a_dropped_acquire_leaves_nothing(again()).await,
            "must be had",
        ),
        Flaw::Keeping => {
            let dropped = clauses::a_dropped_guard_releases(again());
            let (dropped, panicked) =
                tokio::join!(dropped, clauses::a_panicking_holder_releases(again()));
            caught(dropped, "must be had").and(caught(panicked, "must be had"))
        }
        Flaw::Confusing => {
            caught(
                clauses::a_server_that_is_down_is_not_a_lock_that_is_taken(again()).await,
                "with the server down: Err(Taken",
            )?;
            let waiter = clauses::a_waiter_is_told_that_the_server_went_down(again()).await;
            caught(waiter, "the waiter has Ok(Err(Taken")
        }
        Flaw::Deaf => {
            let told = clauses::a_holder_is_told_that_its_lock_is_lost(again());
            let (told, tried) =
                tokio::join!(told, clauses::a_lost_hold_lets_its_own_process_try(again()));
            caught(told, "the holder was never told").and(caught(tried, "must be had"))
        }
        Flaw::Stale => caught(
            clauses::fencing_tokens_grow(again()).await,
            "after Some(Fence(1))",
        ),
    }
}

/// What a clause comes to that does not see its flaw each time: two that are let in at once need not meet, and a try may
/// take as long as a wait.
async fn in_some_try<F: Future<Output = Verdict>>(clause: impl Fn() -> F) -> Verdict {
    const TRIES: usize = 20;
    let mut verdict = Ok(());
    for _ in 0..TRIES {
        verdict = clause().await;
        if verdict.is_err() {
            break;
        }
    }
    verdict
}

pub(crate) struct Flawed {
    honest: Arc<Redis>,
    flaw: Flaw,
}

/// Its process.
pub(crate) struct FlawedProcess {
    client: RedisClient,
    server: Arc<Redis>,
    flaw: Flaw,
    /// What the deaf one holds.
    held: Arc<Mutex<()>>,
    own: String,
}

/// Its contender.
pub(crate) struct FlawedLock {
    honest: RedisLock,
    server: Arc<Redis>,
    flaw: Flaw,
    held: Arc<Mutex<()>>,
}

impl Flawed {
    pub(crate) fn at(url: String, flaw: Flaw) -> Self {
        Self {
            honest: Arc::new(Redis::at(url)),
            flaw,
        }
    }
}

impl Family for Flawed {
    const NAME: &'static str = "twin_redis_with_one_flaw";
    const QUEUES: bool = false;
    type Process = FlawedProcess;

    fn server(&self) -> String {
        self.honest.server()
    }

    async fn process_at(&self, address: &str) -> FlawedProcess {
        let client = self.honest.process_at(address).await;
        FlawedProcess {
            client,
            server: self.honest.clone(),
            flaw: self.flaw,
            held: Arc::default(),
            own: name(),
        }
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.honest.left(name).await
    }

    async fn take_away(&self, holder: &FlawedProcess, name: &str) {
        self.honest.take_away(&holder.client, name).await;
    }
}

impl Process for FlawedProcess {
    type Lock = FlawedLock;

    fn lock(&self, name: &str) -> FlawedLock {
        let honest = match self.flaw {
            Flaw::Apart => self.client.lock(&format!("{name}{}", self.own)),
            _ => self.client.lock(name),
        };
        FlawedLock {
            honest,
            server: self.server.clone(),
            flaw: self.flaw,
            held: self.held.clone(),
        }
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

impl Lock for FlawedLock {
    fn name(&self) -> &str {
        self.honest.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let taken = || LockError::Taken {
            name: self.name().into(),
            waited: wait,
        };
        match self.flaw {
            Flaw::Apart => self.honest.acquire(wait).await,
            Flaw::Impatient => self.honest.try_acquire().await,
            Flaw::Littering => {
                let had = self.honest.acquire(wait).await;
                if had.is_err() {
                    self.server
                        .outsider()
                        .await
                        .set(format!("{}-waiter", self.name()), "")
                        .await
                        .expect("an answer");
                }
                had
            }
            Flaw::Detached => {
                let (reply, answer) = oneshot::channel();
                let honest = self.honest.clone();
                tokio::spawn(
                    async move { reply.send(honest.acquire(wait).await).map_err(mem::forget) },
                );
                answer.await.expect("an answer")
            }
            Flaw::Keeping => Ok(kept(
                self.honest.acquire(wait).await?,
                None,
                |guard| async {
                    mem::forget(guard);
                    Ok(())
                },
            )),
            Flaw::Confusing => self.honest.acquire(wait).await.map_err(|_| taken()),
            Flaw::Deaf => {
                let held = tokio::time::timeout(wait, self.held.clone().lock_owned())
                    .await
                    .map_err(|_| taken())?;
                let guard = self.honest.acquire(wait).await?;
                Ok(kept(guard, None, |guard| async {
                    drop(held);
                    guard.release().await
                }))
            }
            Flaw::Stale => Ok(kept(
                self.honest.acquire(wait).await?,
                Some(Fence(1)),
                Guard::release,
            )),
        }
    }
}

/// A guard that tells nothing, and does this in the end.
fn kept<F>(
    honest: Guard,
    fence: Option<Fence>,
    end: impl FnOnce(Guard) -> F + Send + 'static,
) -> Guard
where
    F: Future<Output = Result<(), LockError>> + Send + 'static,
{
    let (guard, mut keeper) = Guard::new(honest.name(), fence);
    tokio::spawn(async move {
        let asked = keeper.asked_to_release().await;
        asked.done(end(honest).await);
    });
    guard
}
