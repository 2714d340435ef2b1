//! Records each call of a lock and its answer, and looks at every guard whenever another enters: the history that
//! `history/checker.rs` judges.

use super::{
    checker::{Answer, Asks, Call, History, Look, Promise, Time},
    support::{Arc, Duration, Guard, JoinHandle, LockError, Result},
};
use oversell_lock::{local::MutexGuard, redis::Permit};
use parking_lot::Mutex;
use tokio::time::Instant;

/// A contender's hold.
pub(crate) enum Grant {
    Guard(Guard),
    Permit(Permit),
    Local(MutexGuard),
}

impl Grant {
    fn is_lost(&self) -> bool {
        match self {
            Self::Guard(guard) => guard.is_lost(),
            Self::Permit(permit) => permit.is_lost(),
            Self::Local(_) => false,
        }
    }

    fn fence(&self) -> Option<u64> {
        match self {
            Self::Guard(guard) => guard.fence().map(|fence| fence.0),
            Self::Permit(_) | Self::Local(_) => None,
        }
    }

    async fn release(self) -> Result<(), LockError> {
        match self {
            Self::Guard(guard) => guard.release().await,
            Self::Permit(permit) => permit.release().await,
            Self::Local(mutex) => {
                drop(mutex);
                Ok(())
            }
        }
    }
}

pub(crate) struct Recorder {
    start: Instant,
    promise: Promise,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    /// The present holds, each by the number of its call.
    held: Vec<(usize, Grant)>,
    left: Vec<String>,
}

impl State {
    /// A guard was sure at a time if it was not lost when checked after that time.
    fn look(&mut self, now: impl Fn() -> Time) {
        for (call, held) in &self.held {
            let look = Look { at: now(), lost: held.is_lost() };
            let looks = &mut self.calls[*call].looks;
            match looks.last_mut() {
                Some(last) if last.lost == look.lost => {
                    if !look.lost {
                        *last = look;
                    }
                }
                _ => looks.push(look),
            }
        }
    }
}

pub(crate) fn answer(error: &LockError) -> Answer {
    match error {
        LockError::Taken { .. } | LockError::Timeout { .. } => Answer::No,
        LockError::Lost { .. } => Answer::Lost,
        LockError::Unavailable { .. } => Answer::Unavailable,
        LockError::Refused { .. } => Answer::Refused,
        _ => Answer::Invalid,
    }
}

impl Recorder {
    pub(crate) fn new(promise: Promise) -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), promise, state: Mutex::default() })
    }

    fn now(&self) -> Time {
        self.start.elapsed()
    }

    /// A call begins; returns its number.
    pub(crate) fn asks(&self, by: usize, asks: Asks, wait: Duration) -> usize {
        let calls = &mut self.state.lock().calls;
        calls.push(Call { by, asks, asked: self.now(), wait, lease: Duration::MAX, answer: None, looks: Vec::new() });
        calls.len() - 1
    }

    /// Limits what a call may take.
    pub(crate) fn leased(&self, call: usize, lease: Duration) {
        self.state.lock().calls[call].lease = lease;
    }

    pub(crate) fn answered(&self, call: usize, answer: Answer) {
        self.state.lock().calls[call].answer = Some((self.now(), answer));
    }

    /// Ends an acquire and checks all other guards at the same moment: those that are sure are held beside this one.
    pub(crate) fn entered(&self, call: usize, came_to: Result<Vec<Grant>, LockError>) {
        let mut state = self.state.lock();
        let now = self.now();
        match came_to {
            Err(error) => state.calls[call].answer = Some((now, answer(&error))),
            Ok(all) => {
                let asked = state.calls[call].clone();
                for (n, held) in all.into_iter().enumerate() {
                    // Each guard is a hold of its own.
                    let call = if n == 0 { call } else { state.calls.len() };
                    if n > 0 {
                        state.calls.push(asked.clone());
                    }
                    state.calls[call].answer = Some((now, Answer::Yes(held.fence())));
                    state.held.push((call, held));
                }
                state.look(|| self.now());
            }
        }
    }

    pub(crate) fn look(&self) {
        self.state.lock().look(|| self.now());
    }

    pub(crate) async fn goes_away(&self, call: usize, task: JoinHandle<()>) {
        task.abort();
        if task.await.is_err_and(|stopped| stopped.is_cancelled()) {
            self.answered(call, Answer::Gone);
        }
    }

    /// Removes a hold, by its index modulo their count.
    pub(crate) fn take(&self, n: usize) -> Option<(usize, Grant)> {
        let mut state = self.state.lock();
        state.look(|| self.now());
        let n = n.checked_rem(state.held.len())?;
        Some(state.held.swap_remove(n))
    }

    pub(crate) fn release(self: &Arc<Self>, (of, held): (usize, Grant)) -> JoinHandle<()> {
        let by = self.state.lock().calls[of].by;
        let (recorder, call) = (self.clone(), self.asks(by, Asks::Release { of }, Duration::ZERO));
        tokio::spawn(async move {
            let released = held.release().await;
            let came_to = released.map_or_else(|error| answer(&error), |()| Answer::Yes(None));
            recorder.answered(call, came_to);
        })
    }

    /// Whether every call has ended, or is overdue.
    pub(crate) fn is_over(&self) -> bool {
        let (state, now) = (self.state.lock(), self.now());
        let is_over = |call: &Call| call.answer.is_some() || now > call.asked + call.wait + self.promise.answer;
        state.calls.iter().all(is_over)
    }

    pub(crate) fn has_lost_all(&self) -> bool {
        self.state.lock().held.iter().all(|(_, held)| held.is_lost())
    }

    pub(crate) fn left(&self, left: String) {
        self.state.lock().left.push(left);
    }

    pub(crate) fn history(&self) -> History {
        let state = self.state.lock();
        History { promise: self.promise, calls: state.calls.clone(), end: self.now(), left: state.left.clone() }
    }
}
