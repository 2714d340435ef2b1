//! An owner's place at the head of this process's line, while it has the lock: what its holds share.
//!
//! 1. The first hold makes it, each further one joins it, and each leaves it when it is given back or lost.
//! 2. The last to leave gives the lock back: to the next waiter of this process, by one script, or to whoever comes.
//!    Processes take turns: after [`BATCH`] hand-overs, or [`BATCH_TIME`], the lock is freed, and the next of this
//!    process waits for [`YIELD`] where another process is there to take it.
//! 3. Where all holds are lost, nothing is given back: what they had is another's, or ends with its lease. The next of
//!    this process may try.
//!
//! What it survives: a release that gets no answer (tried again until the lease has ended; until then its owner cannot
//! take the lock). A command of one hold among several that gets no answer is not tried again, for nobody can tell
//! whether it has counted: the last hold then gives back all that Redis counts. **What breaks it**: an owner that two
//! clients use at once.
//!
//! Next to read: `lua/hand_over.lua`.

use super::{
    client::{Handed, Holds, Line, RedisClient},
    hold::Hold,
    terms::{Taken, Terms},
};
use crate::{
    LockError, Owner,
    local::{Head, Turn, Waiter},
};
use parking_lot::Mutex;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

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

/// See the file.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) client: RedisClient,
    pub(super) line: Arc<Line>,
    terms: Terms,
    batch: Batch,
    state: Mutex<State>,
    /// Somebody has found out that the lock is lost.
    revoked: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// How many holds are neither lost nor given back.
    sure: usize,
    /// Redis may count more holds than there are.
    in_doubt: bool,
    /// `None` for an owner that got in past the line, and once nobody is sure.
    head: Option<Head<Hold, Terms>>,
}

/// A row of hand-overs inside one process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    since: Instant,
    length: u32,
}

/// What the last hold of a place leaves behind.
pub(super) struct Last {
    head: Option<Head<Hold, Terms>>,
    in_doubt: bool,
}

impl Inside {
    /// The place of `owner`, if it is the one who has the lock.
    pub(super) fn place_of(&self, owner: Owner) -> Option<Arc<Place>> {
        let inside = self.0.lock();
        let place = inside.as_ref().filter(|(holder, _)| *holder == owner)?.1.upgrade()?;
        let sure = place.state.lock().sure > 0;
        sure.then_some(place)
    }

    fn enter(&self, owner: Owner, place: &Arc<Place>) {
        *self.0.lock() = Some((owner, Arc::downgrade(place)));
    }
}

impl Batch {
    fn begins(since: Instant) -> Self {
        Self { since, length: 0 }
    }
}

impl Place {
    /// For the first hold of an owner, which `head` has let in; without one it got in past the line.
    pub(super) fn new(
        client: &RedisClient,
        line: &Arc<Line>,
        taken: &Taken,
        head: Option<Head<Hold, Terms>>,
    ) -> Arc<Self> {
        Self::in_row(client, line, taken, head, Batch::begins(taken.leased))
    }

    fn in_row(
        client: &RedisClient,
        line: &Arc<Line>,
        taken: &Taken,
        head: Option<Head<Hold, Terms>>,
        batch: Batch,
    ) -> Arc<Self> {
        let (state, revoked) = (Mutex::new(State { sure: 1, in_doubt: false, head }), CancellationToken::new());
        let place = Arc::new(Self {
            client: client.clone(),
            line: Arc::clone(line),
            terms: taken.terms,
            batch,
            state,
            revoked,
        });
        line.inside.enter(taken.terms.owner, &place);
        place
    }

    /// A command for one more hold has no answer: the last hold gives back what it may have taken.
    pub(super) fn doubt(&self) {
        let mut state = self.state.lock();
        state.in_doubt = true;
        if state.sure == 0 {
            free_unanswered(&self.client, &self.line, self.terms);
        }
    }

    /// One more hold; `false` where the last one has gone meanwhile.
    pub(super) fn join(&self) -> bool {
        let mut state = self.state.lock();
        let sure = state.sure > 0;
        state.sure += usize::from(sure);
        sure
    }

    /// One hold less; what is left behind, where it was the last.
    pub(super) fn leave(&self) -> Option<Last> {
        let mut state = self.state.lock();
        state.sure -= 1;
        (state.sure == 0).then(|| Last { head: state.head.take(), in_doubt: state.in_doubt })
    }

    /// One hold is lost. What Redis still counts of it goes with the last; where that is this one, with its lease.
    pub(super) fn lose(&self) {
        self.state.lock().in_doubt = true;
        drop(self.leave());
    }

    /// Tells every hold that it is lost.
    pub(super) fn revoke(&self) {
        self.revoked.cancel();
    }

    /// Completes once [`revoke`](Self::revoke) was called.
    pub(super) async fn revoked(&self) {
        self.revoked.cancelled().await;
    }

    pub(super) fn lost(&self) -> LockError {
        LockError::Lost { name: self.line.name.clone() }
    }

    /// The last hold ends: to the next waiter of this process, or to whoever comes.
    pub(super) async fn give_back(&self, Last { mut head, in_doubt }: Last) -> Result<(), LockError> {
        let in_row = self.batch.length < BATCH && self.batch.since.elapsed() < BATCH_TIME;
        if let Some(next) = head.as_ref().filter(|_| in_row && !in_doubt).and_then(Head::next)
            && let Some(head) = head.take()
        {
            return self.hand_over(head, next).await;
        }
        match self.client.release(&self.line, &self.terms, if in_doubt { Holds::All } else { Holds::One }).await {
            Ok(None) => Err(self.lost()),
            Ok(Some(told)) => {
                if let Some(head) = head
                    && self.line.others(told) > 0
                    && head.has_waiters()
                {
                    self.client.spawn(async move {
                        sleep(YIELD).await;
                        drop(head);
                    });
                }
                Ok(())
            }
            Err(error) => {
                free_unanswered(&self.client, &self.line, self.terms);
                Err(error)
            }
        }
    }

    /// Makes the lock the next waiter's.
    async fn hand_over(&self, head: Head<Hold, Terms>, next: Waiter<Hold, Terms>) -> Result<(), LockError> {
        let (leased, terms) = (Instant::now(), *next.asks());
        match self.client.hand_over(&self.line, self.terms.owner, &terms).await {
            Ok(Handed::Done(fence)) => {
                let taken = Taken { terms, fence, leased };
                let batch = Batch { length: self.batch.length + 1, ..self.batch };
                let place = Self::in_row(&self.client, &self.line, &taken, Some(head), batch);
                // A waiter that has gone meanwhile gives the hold back, and dropping it frees the lock.
                drop(next.give(Turn::Handed(Hold::new(place, taken))));
                Ok(())
            }
            Ok(Handed::Lost) => {
                drop(next.give(Turn::Contend(head)));
                Err(self.lost())
            }
            Ok(Handed::HoldsLeft) => {
                let released = self.client.release(&self.line, &self.terms, Holds::One).await;
                drop(next.give(Turn::Contend(head)));
                if released.is_err() {
                    free_unanswered(&self.client, &self.line, self.terms);
                }
                released.map(drop)
            }
            Err(error) => {
                // It may have run or not: both owners are given up.
                for terms in [self.terms, terms] {
                    free_unanswered(&self.client, &self.line, terms);
                }
                drop(next.give(Turn::Failed(error.clone())));
                head.fail(&error);
                Err(error)
            }
        }
    }
}

impl Last {
    /// Gives all back in the background; the next of this process may try after that.
    pub(super) fn abandon(self, place: &Place) {
        let freed = free_unanswered(&place.client, &place.line, place.terms);
        place.client.spawn(async move {
            freed.await.ok();
            drop(self.head);
        });
    }
}

/// Frees, in the background, what an unanswered command may have taken, and tries until Redis has answered or the lease
/// has ended. Until then the owner cannot take the lock, so nothing that is still needed can be freed.
pub(super) fn free_unanswered(client: &RedisClient, line: &Arc<Line>, terms: Terms) -> JoinHandle<()> {
    line.returning.lock().insert(terms.owner);
    let (own, line) = (client.clone(), Arc::clone(line));
    client.spawn(async move {
        let ends = Instant::now() + terms.lease.duration();
        while own.release(&line, &terms, Holds::All).await.is_err() && Instant::now() < ends {
            sleep(RETRY).await;
        }
        line.returning.lock().remove(&terms.owner);
    })
}
