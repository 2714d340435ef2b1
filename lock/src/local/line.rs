//! The line in which this process's contenders for one remote lock wait.
//!
//! The server sees processes instead of requests: a thousand waiters here are one contender there.
//!
//! 1. The first waiter is the [`Head`]: it contends at the server, and stays at the head while it holds the lock.
//! 2. Later waiters wait here, in order of arrival.
//! 3. When the head's value is dropped, the next waiter becomes the head. Or the lock itself is handed to
//!    [`Head::take_next`], if the server can rename its owner in one step.
//!
//! A waiter that gives up, before or after its turn came, passes the turn on. The line is fair only within this process.
//!
//! Next to read: `redis/hold.rs`, which drops the head at the end of a hold.

use crate::LockError;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// One process's waiters for one lock. `T` is what a holder hands off, `A` what a waiter asks for.
#[derive(Debug)]
pub(crate) struct Line<T, A = ()>(Mutex<LineState<T, A>>);

/// Whether there is a head, and the waiters behind it.
#[derive(Debug)]
struct LineState<T, A> {
    has_head: bool,
    waiting: VecDeque<LineWaiter<T, A>>,
    /// Waiters that gave up are removed when the line reaches this length.
    sweep_at: usize,
}

/// How many waiters a line has when those that gave up are first removed from it.
const FIRST_SWEEP_LENGTH: usize = 64;

/// One waiter in a line, as the head sees it: what it asks for, and the channel by which it gets its turn.
#[derive(Debug)]
pub(crate) struct LineWaiter<T, A = ()> {
    request: A,
    turn: oneshot::Sender<Turn<T, A>>,
}

/// What a waiter gets at its turn: the head, the lock itself, or an error.
#[derive(Debug)]
pub(crate) enum Turn<T, A = ()> {
    /// It is the head, and contends at the server.
    Contend(Arc<Head<T, A>>),
    /// It has the lock, which the last holder has handed off.
    Handed(T),
    /// The error of the head's command: the server is unavailable, for all waiters; or it refused to hand off to this one.
    Failed(LockError),
}

/// The head of a line, shared by the contender, its tries, its hold and the waiters that it has invited. When the last of them
/// drops it, the next waiter becomes the head.
#[derive(Debug)]
pub(crate) struct Head<T, A = ()> {
    line: Arc<Line<T, A>>,
    /// Whether its drop makes the next waiter the head: not if it was sent to a waiter that had gone, because the sender
    /// then goes on to the next waiter.
    makes_next_head: bool,
}

impl<T, A> Default for Line<T, A> {
    fn default() -> Self {
        Self(Mutex::new(LineState { has_head: false, waiting: VecDeque::new(), sweep_at: FIRST_SWEEP_LENGTH }))
    }
}

impl<T, A> Line<T, A> {
    /// Waits for a turn, at most `wait`; `None` if none came, at once for a zero `wait`. Without a head in the line the caller
    /// is the head at once.
    ///
    /// # Cancel safety
    ///
    /// Safe: the place in the line is given up, and a turn that had come passes on.
    pub(crate) async fn join(self: &Arc<Self>, request: A, wait: Duration) -> Option<Turn<T, A>> {
        let turn = {
            let mut state = self.0.lock();
            if !state.has_head {
                state.has_head = true;
                return Some(Turn::Contend(Head::new(self)));
            }
            if wait.is_zero() {
                return None;
            }
            state.remove_abandoned_waiters();
            let (turn, given) = oneshot::channel();
            state.waiting.push_back(LineWaiter { request, turn });
            given
        };
        tokio::time::timeout(wait, turn).await.ok()?.ok()
    }

    /// Whether there is no head, and so no waiter.
    pub(crate) fn is_empty(&self) -> bool {
        !self.0.lock().has_head
    }

    /// Removes and returns the next waiter; without one, the line has no head any more.
    fn take_next_or_end(&self) -> Option<LineWaiter<T, A>> {
        let mut state = self.0.lock();
        let next = state.pop_live_waiter();
        state.has_head = next.is_some();
        next
    }
}

impl<T, A> LineState<T, A> {
    /// Removes the waiters that gave up if the line has reached `sweep_at`: they must not pile up behind a head that stays for
    /// hours.
    fn remove_abandoned_waiters(&mut self) {
        if self.waiting.len() >= self.sweep_at {
            self.waiting.retain(|waiter| !waiter.turn.is_closed());
            self.sweep_at = FIRST_SWEEP_LENGTH.max(self.waiting.len() * 2);
        }
    }

    /// Removes and returns the first waiter that has not given up, and removes those before it.
    fn pop_live_waiter(&mut self) -> Option<LineWaiter<T, A>> {
        loop {
            let waiter = self.waiting.pop_front()?;
            if !waiter.turn.is_closed() {
                return Some(waiter);
            }
        }
    }
}

impl<T, A> Head<T, A> {
    fn new(line: &Arc<Line<T, A>>) -> Arc<Self> {
        Arc::new(Self { line: Arc::clone(line), makes_next_head: true })
    }

    /// Removes and returns the next waiter that has not given up; `None` if there is none. The caller must give it a turn.
    #[must_use]
    pub(crate) fn take_next(&self) -> Option<LineWaiter<T, A>> {
        self.line.0.lock().pop_live_waiter()
    }

    /// Lets the waiters at the front contend beside the present ones, up to the first one that `may` refuses. When all of
    /// them have left, the next waiter becomes the head.
    pub(crate) fn invite_while(self: &Arc<Self>, mut may: impl FnMut(&A) -> bool) {
        loop {
            let mut state = self.line.0.lock();
            let Some(next) = state.waiting.front() else {
                return;
            };
            if !next.turn.is_closed() && !may(&next.request) {
                return;
            }
            let next = state.waiting.pop_front();
            drop(state);
            if let Some(next) = next {
                drop(next.give_turn(Turn::Contend(Arc::clone(self))));
            }
        }
    }

    /// Gives all waiters behind the head this error, and removes them from the line.
    pub(crate) fn fail_waiters(&self, error: &LockError) {
        while let Some(waiter) = self.take_next() {
            drop(waiter.give_turn(Turn::Failed(error.clone())));
        }
    }

    /// Whether anybody waits behind the head.
    #[must_use]
    pub(crate) fn has_waiters(&self) -> bool {
        self.line.0.lock().waiting.iter().any(|w| !w.turn.is_closed())
    }
}

impl<T, A> Drop for Head<T, A> {
    /// Makes the next waiter the head, unless this head came back from a waiter that had gone.
    fn drop(&mut self) {
        if !self.makes_next_head {
            return;
        }
        while let Some(waiter) = self.line.take_next_or_end() {
            let turn = Turn::Contend(Head::new(&self.line));
            let Err(Turn::Contend(mut returned)) = waiter.give_turn(turn) else {
                return;
            };
            // The waiter had gone. The drop of the head that came back would do the same as this loop, by recursion.
            let Some(head) = Arc::get_mut(&mut returned) else {
                return;
            };
            head.makes_next_head = false;
        }
    }
}

impl<T, A> LineWaiter<T, A> {
    #[must_use]
    pub(crate) fn request(&self) -> &A {
        &self.request
    }

    /// Gives the waiter this turn, or returns it if the waiter has gone.
    ///
    /// # Errors
    ///
    /// The turn, for another waiter.
    pub(crate) fn give_turn(self, turn: Turn<T, A>) -> Result<(), Turn<T, A>> {
        self.turn.send(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, future::BoxFuture};

    const WAIT_LIMIT: Duration = Duration::from_secs(60);

    fn head<T>(turn: Option<Turn<T>>) -> Arc<Head<T>> {
        match turn {
            Some(Turn::Contend(head)) => head,
            _ => panic!("not at the head"),
        }
    }

    /// A waiter behind those that came before.
    fn waiter(line: &Arc<Line<()>>) -> BoxFuture<'_, Option<Turn<()>>> {
        let mut waiter = line.join((), WAIT_LIMIT).boxed();
        assert!((&mut waiter).now_or_never().is_none());
        waiter
    }

    #[tokio::test]
    async fn the_head_passes_on_in_order_of_arrival() {
        let line = Arc::new(Line::<()>::default());
        let first = head(line.join((), WAIT_LIMIT).await);
        let (second, mut third) = (waiter(&line), waiter(&line));
        drop(first);
        assert!((&mut third).now_or_never().is_none());
        drop(head(second.await));
        drop(head(third.await));
        assert!(!line.0.lock().has_head);
    }

    #[tokio::test]
    async fn a_turn_that_nobody_reads_passes_itself_on() {
        let line = Arc::new(Line::<()>::default());
        let first = head(line.join((), WAIT_LIMIT).await);
        let (dropped, last) = (waiter(&line), waiter(&line));
        drop(first);
        drop(dropped);
        drop(head(last.await));
        assert!(!line.0.lock().has_head);
    }

    #[tokio::test]
    async fn invited_waiters_share_the_head_and_the_next_follows_them() {
        let line = Arc::new(Line::<(), u32>::default());
        let join = |n| {
            let mut waiter = line.join(n, WAIT_LIMIT).boxed();
            let turn = (&mut waiter).now_or_never();
            (waiter, turn)
        };
        let (_, Some(Some(Turn::Contend(first)))) = join(0) else {
            panic!("not at the head");
        };
        let [(one, _), (gone, _), (two, _), (mut big, _), (mut small, _)] = [1, 1, 1, 9, 1].map(join);
        drop(gone);
        first.invite_while(|n| *n == 1);
        let (Some(Turn::Contend(one)), Some(Turn::Contend(two))) = (one.await, two.await) else {
            panic!("not invited");
        };
        assert!((&mut big).now_or_never().is_none() && (&mut small).now_or_never().is_none());
        drop((first, one));
        assert!((&mut big).now_or_never().is_none(), "one is still there");
        drop(two);
        assert!(matches!(big.await, Some(Turn::Contend(_))));
        assert!(matches!(small.await, Some(Turn::Contend(_))));
    }

    #[tokio::test]
    async fn a_failure_reaches_all_who_wait() {
        let line = Arc::new(Line::<()>::default());
        let first = head(line.join((), WAIT_LIMIT).await);
        let waiters: Vec<_> = (0..3).map(|_| waiter(&line)).collect();
        first.fail_waiters(&LockError::unavailable("redis", "gone"));
        drop(first);
        for waiter in waiters {
            assert!(matches!(waiter.await, Some(Turn::Failed(LockError::Unavailable { .. }))));
        }
        assert!(!line.0.lock().has_head);
    }

    #[tokio::test]
    async fn waiters_that_gave_up_behind_a_head_that_stays_take_no_memory() {
        let line = Arc::new(Line::<()>::default());
        let _head = head(line.join((), WAIT_LIMIT).await);
        let _patient = waiter(&line);
        for _ in 0..10_000 {
            drop(waiter(&line));
        }
        assert!(line.0.lock().waiting.len() <= FIRST_SWEEP_LENGTH);
    }

    #[tokio::test]
    async fn a_thousand_waiters_that_gave_up_leave_the_head_free() {
        let line = Arc::new(Line::<()>::default());
        let first = head(line.join((), WAIT_LIMIT).await);
        let gone: Vec<_> = (0..1000).map(|_| waiter(&line)).collect();
        drop(gone);
        drop(first);
        assert!(!line.0.lock().has_head);
        assert!(line.join((), Duration::ZERO).await.is_some());
    }
}
