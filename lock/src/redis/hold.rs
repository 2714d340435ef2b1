//! A hold of a lock that this process has: whose it is, and every way it can end.
//!
//! 1. A task keeps it ([`lease`]).
//! 2. It ends by being handed to the next waiter of this process, or by being freed for the others. Processes take
//!    turns: after [`BATCH`] hand-overs, or [`BATCH_TIME`], it is freed, and the next of this process waits for
//!    [`YIELD`] where another process is there to take it.
//! 3. An owner that takes its lock again has a second hold, with a keeper of its own. All share one [`Place`] at the
//!    head of this process's line; they end in any order, and only the last one frees the lock.
//!
//! What it survives: a holder that is dropped anywhere (the value frees itself), a release that gets no answer (tried
//! again until the lease has ended). A command of one hold among several that gets no answer is not tried again: nobody
//! can tell whether it has counted. The count in Redis may be one too high then, and the last one gives back all.
//! **What breaks it**: a process that is stopped beyond its lease; an owner that two clients use at once.
//!
//! Next to read: `lua/hand_over.lua`.

use super::{
    client::{Handed, Holds, Line, RedisClient},
    lease::{self, Held},
    terms::Terms,
};
use crate::{
    Fence, Guard, LockError, Owner,
    local::{Head, Turn, Waiter},
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// After so many hand-overs in a row another process gets its turn.
pub const BATCH: u32 = 32;
/// After so long a row of hand-overs another process gets its turn.
pub const BATCH_TIME: Duration = Duration::from_millis(20);
/// For so long the next of this process stands back, where another process waits.
pub const YIELD: Duration = Duration::from_millis(2);

const RETRY: Duration = Duration::from_millis(100);

/// Who of this process has the lock.
#[derive(Debug, Default)]
pub(super) struct Inside(Mutex<Option<(Owner, Weak<Place>)>>);

/// An owner's place at the head of this process's line, as long as it has a hold. Dropped in doubt, it gives back all
/// in the background.
#[derive(Debug)]
pub(super) struct Place {
    client: RedisClient,
    line: Arc<Line>,
    terms: Terms,
    batch: Batch,
    /// Redis may count more holds than there are.
    in_doubt: AtomicBool,
    /// Gone once the lock is given back.
    head: Option<Head<Hold, Terms>>,
}

/// A row of hand-overs inside one process.
#[derive(Debug, Clone, Copy)]
struct Batch {
    since: Instant,
    length: u32,
}

/// A hold of the lock. Dropping it gives it back in the background.
#[derive(Debug)]
pub(super) struct Hold {
    terms: Terms,
    fence: Option<Fence>,
    /// When the command was sent that began the lease.
    leased: Instant,
    /// Gone once the hold has ended.
    place: Option<Arc<Place>>,
}

impl Inside {
    /// The place of `owner`, if it is the one who has the lock.
    pub(super) fn place_of(&self, owner: Owner) -> Option<Arc<Place>> {
        let inside = self.0.lock();
        inside.as_ref().filter(|(holder, _)| *holder == owner).and_then(|(_, place)| place.upgrade())
    }

    fn enter(&self, owner: Owner, place: &Arc<Place>) {
        *self.0.lock() = Some((owner, Arc::downgrade(place)));
    }
}

impl Place {
    /// Notes that a command of one of several holds has no answer.
    pub(super) fn doubt(&self) {
        self.in_doubt.store(true, Ordering::Relaxed);
    }

    fn lost(&self) -> LockError {
        LockError::Lost { name: self.line.name.clone() }
    }

    /// The last hold ends: to the next waiter of this process, or to whoever comes.
    async fn give_back(mut self) -> Result<(), LockError> {
        let Some(head) = self.head.take() else { return Err(self.lost()) };
        let in_doubt = self.in_doubt.load(Ordering::Relaxed);
        if !in_doubt
            && self.batch.length < BATCH
            && self.batch.since.elapsed() < BATCH_TIME
            && let Some(next) = head.next()
        {
            return self.hand_over(head, next).await;
        }
        match self.client.release(&self.line, &self.terms, if in_doubt { Holds::All } else { Holds::One }).await {
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
                self.client.spawn(free_unanswered(self.client.clone(), Arc::clone(&self.line), self.terms));
                Err(error)
            }
        }
    }

    /// Makes the lock the next waiter's.
    async fn hand_over(&self, head: Head<Hold, Terms>, next: Waiter<Hold, Terms>) -> Result<(), LockError> {
        let (leased, terms) = (Instant::now(), *next.asks());
        match self.client.hand_over(&self.line, self.terms.owner, &terms).await {
            Ok(Handed::Done(fence)) => {
                let batch = Batch { length: self.batch.length + 1, ..self.batch };
                let hold = Hold::begin(&self.client, &self.line, terms, fence, leased, batch, head);
                // A waiter that has gone meanwhile gives the hold back, and dropping it frees the lock.
                drop(next.give(Turn::Handed(hold)));
                Ok(())
            }
            Ok(Handed::Lost) => {
                drop(next.give(Turn::Contend(head)));
                Err(self.lost())
            }
            Ok(Handed::HoldsLeft) => {
                let released = self.client.release(&self.line, &self.terms, Holds::One).await;
                drop(next.give(Turn::Contend(head)));
                released.map(drop)
            }
            Err(error) => {
                // It may have run or not: both owners are given up.
                for terms in [self.terms, terms] {
                    self.client.spawn(free_unanswered(self.client.clone(), Arc::clone(&self.line), terms));
                }
                drop(next.give(Turn::Failed(error.clone())));
                head.fail(&error);
                Err(error)
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(head) = self.head.take() else { return };
        if !self.in_doubt.load(Ordering::Relaxed) || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (client, line, terms) = (self.client.clone(), Arc::clone(&self.line), self.terms);
        self.client.spawn(async move {
            free_unanswered(client, line, terms).await;
            drop(head);
        });
    }
}

impl Hold {
    /// The first hold of an owner.
    pub(super) fn first(
        client: &RedisClient,
        line: &Arc<Line>,
        terms: Terms,
        fence: Option<Fence>,
        leased: Instant,
        head: Head<Hold, Terms>,
    ) -> Self {
        Self::begin(client, line, terms, fence, leased, Batch { since: leased, length: 0 }, head)
    }

    /// One more hold of the owner that has `place`.
    pub(super) fn again(place: Arc<Place>, terms: Terms, fence: Option<Fence>, leased: Instant) -> Self {
        Self { terms, fence, leased, place: Some(place) }
    }

    fn begin(
        client: &RedisClient,
        line: &Arc<Line>,
        terms: Terms,
        fence: Option<Fence>,
        leased: Instant,
        batch: Batch,
        head: Head<Hold, Terms>,
    ) -> Self {
        let (client, line) = (client.clone(), Arc::clone(line));
        let in_doubt = AtomicBool::new(false);
        let place = Arc::new(Place { client, line, terms, batch, in_doubt, head: Some(head) });
        place.line.inside.enter(terms.owner, &place);
        Self { terms, fence, leased, place: Some(place) }
    }

    /// A guard for it, and a task that keeps it until its holder gives it back.
    pub(super) fn guarded(self, client: &RedisClient) -> Guard {
        let (guard, keeper) = Guard::new(self.name(), self.fence);
        let (lease, leased) = (self.terms.lease, self.leased);
        client.spawn(lease::keep(self, lease, leased, keeper));
        guard
    }
}

impl Held for Hold {
    fn name(&self) -> &str {
        self.place.as_ref().map_or("", |place| &place.line.name)
    }

    async fn renew(&self) -> Result<bool, LockError> {
        match &self.place {
            Some(place) => place.client.renew(&place.line, &self.terms).await,
            None => Ok(false),
        }
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        let gone = LockError::Lost { name: self.name().to_owned() };
        let Some(place) = self.place.take() else { return Err(gone) };
        let shared = match Arc::try_unwrap(place) {
            Ok(last) => return last.give_back().await,
            Err(shared) => shared,
        };
        match shared.client.release(&shared.line, &self.terms, Holds::One).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(gone),
            Err(error) => {
                shared.doubt();
                Err(error)
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            place.doubt();
        }
    }
}

/// Frees what an unanswered command may have taken, and tries until Redis has answered or the lease has ended. The
/// owner has no other hold, so nothing that is still needed can be freed.
pub(super) async fn free_unanswered(client: RedisClient, line: Arc<Line>, terms: Terms) {
    let ends = Instant::now() + terms.lease.duration();
    while client.release(&line, &terms, Holds::All).await.is_err() && Instant::now() < ends {
        sleep(RETRY).await;
    }
}
