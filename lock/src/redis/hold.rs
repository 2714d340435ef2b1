//! A lock that this process has: who owns it, and every way it can end.
//!
//! 1. A task keeps it ([`lease`]).
//! 2. It ends by being handed to the next waiter of this process, or by being freed for the others. Processes take
//!    turns: after [`BATCH`] hand-overs, or [`BATCH_TIME`], it is freed, and the next of this process waits for
//!    [`YIELD`] where another process is there to take it.
//!
//! What it survives: a holder that is dropped anywhere (the value frees itself), a release that gets no answer (tried
//! again until the lease has ended). **What breaks it**: a process that is stopped beyond its lease.
//!
//! Next to read: `lua/hand_over.lua`.

use super::{
    client::{Line, RedisClient},
    lease::{self, Held},
};
use crate::{
    Keeper, LockError, Owner,
    local::{Head, Turn, Waiter},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// After so many hand-overs in a row another process gets its turn.
pub const BATCH: u32 = 32;
/// After so long a row of hand-overs another process gets its turn.
pub const BATCH_TIME: Duration = Duration::from_millis(20);
/// For so long the next of this process stands back, where another process waits.
pub const YIELD: Duration = Duration::from_millis(2);

const RETRY: Duration = Duration::from_millis(100);

/// A hold of the lock. Dropping it frees the lock in the background.
#[derive(Debug)]
pub(super) struct Hold {
    client: RedisClient,
    line: Arc<Line>,
    owner: Owner,
    /// When the command was sent that began or last renewed the lease.
    leased: Instant,
    batch: Batch,
    /// This process's place at the head; gone once the hold has ended.
    head: Option<Head<Hold>>,
}

/// A row of hand-overs inside one process.
#[derive(Debug, Clone, Copy)]
struct Batch {
    since: Instant,
    length: u32,
}

impl Hold {
    pub(super) fn new(client: RedisClient, line: Arc<Line>, owner: Owner, leased: Instant, head: Head<Hold>) -> Self {
        let batch = Batch { since: leased, length: 0 };
        Self { client, line, owner, leased, batch, head: Some(head) }
    }

    /// Keeps it until its holder gives it back.
    pub(super) async fn keep(self, keeper: Keeper) {
        let (lease, leased) = (self.client.lease(), self.leased);
        lease::keep(self, lease, leased, keeper).await;
    }

    fn lost(&self) -> LockError {
        LockError::Lost { name: self.line.name.clone() }
    }

    /// Makes the lock the next waiter's.
    async fn hand_over(&self, head: Head<Hold>, next: Waiter<Hold>) -> Result<(), LockError> {
        let leased = Instant::now();
        match self.client.hand_over(&self.line.name, self.owner, next.owner()).await {
            Ok(true) => {
                let batch = Batch { length: self.batch.length + 1, ..self.batch };
                let (client, line) = (self.client.clone(), Arc::clone(&self.line));
                let hold = Hold { client, line, owner: next.owner(), leased, batch, head: Some(head) };
                // A waiter that has gone meanwhile gives the hold back, and dropping it frees the lock.
                drop(next.give(Turn::Handed(hold)));
                Ok(())
            }
            Ok(false) => {
                drop(next.give(Turn::Contend(head)));
                Err(self.lost())
            }
            Err(error) => {
                // It may have run or not: both owners are given up.
                for owner in [self.owner, next.owner()] {
                    self.client.spawn(free_unanswered(self.client.clone(), Arc::clone(&self.line), owner));
                }
                drop(next.give(Turn::Failed(error.clone())));
                head.fail(&error);
                Err(error)
            }
        }
    }
}

impl Held for Hold {
    fn name(&self) -> &str {
        &self.line.name
    }

    async fn renew(&self) -> Result<bool, LockError> {
        self.client.renew(&self.line.name, self.owner).await
    }

    /// To the next waiter of this process, or to whoever comes.
    async fn give_back(mut self) -> Result<(), LockError> {
        let Some(head) = self.head.take() else {
            return Err(self.lost());
        };
        if self.batch.length < BATCH
            && self.batch.since.elapsed() < BATCH_TIME
            && let Some(next) = head.next()
        {
            return self.hand_over(head, next).await;
        }
        match self.client.release(&self.line, self.owner).await {
            Ok(None) => Err(self.lost()),
            Ok(Some(told)) => {
                if self.line.others(told) > 0 && head.has_waiters() {
                    self.client.spawn(async move {
                        sleep(YIELD).await;
                        drop(head);
                    });
                }
                Ok(())
            }
            Err(error) => {
                self.client.spawn(free_unanswered(self.client.clone(), Arc::clone(&self.line), self.owner));
                Err(error)
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(head) = self.head.take() else { return };
        let (client, line, owner) = (self.client.clone(), Arc::clone(&self.line), self.owner);
        if tokio::runtime::Handle::try_current().is_ok() {
            self.client.spawn(async move {
                free_unanswered(client, line, owner).await;
                drop(head);
            });
        }
    }
}

/// Frees what an unanswered command may have taken, and tries until Redis has answered or the lease has ended. The
/// owner is nobody else's, so nothing of another can be freed.
pub(super) async fn free_unanswered(client: RedisClient, line: Arc<Line>, owner: Owner) {
    let ends = Instant::now() + client.lease().duration();
    while client.release(&line, owner).await.is_err() && Instant::now() < ends {
        sleep(RETRY).await;
    }
}
