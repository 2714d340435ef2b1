//! The requests of one instance that want a piece of one product, and go together: what the merged strategies share.
//!
//! 1. Enter the line of the product. Who finds nobody under way leads: it takes all who wait out of the line.
//! 2. The lead takes as many pieces as it has requests, in one go ([`Merged::take`]): each is told whether it has one of
//!    them. Fewer were there: who is left goes round again, until none is there.
//! 3. Another instance was faster: start anew. The first of the group answers for the retries, so that each is counted once.
//! 4. Who came meanwhile goes with the next group.
//!
//! What it survives: a client that hangs up (the lead works in a task of its own, and takes nothing for who has gone); a
//! request that may wait less than others: who still stands in the line leaves it at its time, and a group waits no longer
//! than the least patient one in it, who then falls out. **What breaks it**: an answer that is lost is lost for the whole
//! group.
//!
//! Next: `redis_watch_merged.rs` and `single_update_merged.rs`, which say how several pieces are taken.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Deducted, Job},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    future::Future,
    marker::PhantomData,
    mem,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot},
    time::{Instant, sleep, sleep_until},
};

/// How several pieces are taken in one go.
pub(super) trait Merged: Send + Sync + 'static {
    /// What is waited for.
    const WHAT: &'static str;

    /// Takes `wanted` pieces, or as many as there are. [`Error::NotHad`] where it would have to wait longer than `wait`.
    fn take(
        ctx: &Ctx,
        stock_id: i64,
        wanted: i64,
        wait: Duration,
    ) -> impl Future<Output = Result<Taken, Error>> + Send;
}

/// What one go came to.
pub(super) enum Taken {
    /// So many, at least one; and so many are left, where that was seen.
    Pieces(i64, Option<i64>),
    /// There is none.
    SoldOut,
    /// Another wrote meanwhile, and nothing was changed.
    Beaten,
}

/// The lines of one strategy in this process, by product.
struct Lines<M>(Mutex<HashMap<i64, Weak<Line>>>, PhantomData<fn() -> M>);

#[derive(Default)]
struct Line {
    waiting: Mutex<Waiting>,
    turn: Arc<AsyncMutex<()>>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    requests: Vec<Request>,
}

struct Request {
    number: u64,
    wait: Duration,
    until: Instant,
    answer: oneshot::Sender<Result<Deducted, Error>>,
}

/// Takes a piece together with whoever else of this instance wants one.
pub(super) async fn deduct<M: Merged>(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    // A stay of its own is nothing that requests can share.
    let wait = job.wait_left();
    sleep(job.request.hold).await;
    let since = Instant::now();
    let line = ctx.local.of::<Lines<M>>().of(job.request.stock_id);
    let until = since + wait;
    let (answer, mut answered) = oneshot::channel();
    let number = line.enter(job.request.wait, until, answer);
    let outcome = tokio::select! {
        biased;
        answered = &mut answered => answered,
        turn = Arc::clone(&line.turn).lock_owned() => {
            let requests = mem::take(&mut line.waiting.lock().requests);
            ctx.tasks.spawn(serve::<M>(ctx.clone(), job.request.stock_id, requests, turn));
            answered.await
        }
        () = sleep_until(until) => {
            if line.leave(number) {
                return Err(Error::NotHad { what: M::WHAT.into(), waited: job.request.wait });
            }
            // It is under way, and no group waits longer than this one may.
            answered.await
        }
    };
    let deducted = outcome.unwrap_or_else(|_| Err(cut_short()))?;
    job.enter();
    Ok(job.tried(since.into(), deducted))
}

/// Serves all of `requests`, while it holds the line's turn.
async fn serve<M: Merged>(
    ctx: Ctx,
    stock_id: i64,
    mut requests: Vec<Request>,
    _turn: OwnedMutexGuard<()>,
) {
    let mut retries = 0;
    loop {
        requests.retain(|request| !request.answer.is_closed());
        let Some(until) = requests.iter().map(|request| request.until).min() else {
            return;
        };
        let (wanted, wait) = (
            requests.len(),
            until.saturating_duration_since(Instant::now()),
        );
        match M::take(&ctx, stock_id, wanted as i64, wait).await {
            Ok(Taken::Pieces(pieces, left)) => {
                let rest = requests.split_off(wanted.min(pieces as usize));
                for (request, after) in mem::replace(&mut requests, rest)
                    .into_iter()
                    .zip((0..pieces).rev())
                {
                    let remaining = left.map(|left| left + after);
                    let retries = mem::take(&mut retries);
                    request
                        .answer
                        .send(Ok(Deducted {
                            remaining,
                            retries,
                            ..Deducted::default()
                        }))
                        .ok();
                }
            }
            Ok(Taken::SoldOut) => return refuse(requests, &Error::SoldOut),
            Ok(Taken::Beaten) => {
                retries += 1;
                expire::<M>(&mut requests);
            }
            Err(Error::NotHad { .. }) => expire::<M>(&mut requests),
            Err(error) => return refuse(requests, &error),
        }
    }
}

/// Tells those whose time is over.
fn expire<M: Merged>(requests: &mut Vec<Request>) {
    let now = Instant::now();
    for late in requests.extract_if(.., |request| request.until <= now) {
        late.answer
            .send(Err(Error::NotHad {
                what: M::WHAT.into(),
                waited: late.wait,
            }))
            .ok();
    }
}

fn refuse(requests: Vec<Request>, error: &Error) {
    for request in requests {
        request.answer.send(Err(same(error))).ok();
    }
}

impl<M> Default for Lines<M> {
    fn default() -> Self {
        Self(Mutex::default(), PhantomData)
    }
}

impl<M> Lines<M> {
    fn of(&self, stock_id: i64) -> Arc<Line> {
        let mut lines = self.0.lock();
        if let Some(line) = lines.get(&stock_id).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(stock_id, Arc::downgrade(&line));
        line
    }
}

impl Line {
    fn enter(
        &self,
        wait: Duration,
        until: Instant,
        answer: oneshot::Sender<Result<Deducted, Error>>,
    ) -> u64 {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.requests.push(Request {
            number,
            wait,
            until,
            answer,
        });
        number
    }

    /// Whether it still stood in the line.
    fn leave(&self, number: u64) -> bool {
        let requests = &mut self.waiting.lock().requests;
        let at = requests.iter().position(|request| request.number == number);
        at.map(|at| requests.remove(at)).is_some()
    }
}

/// What one go came to, for each of those who were in it.
fn same(error: &Error) -> Error {
    match error {
        Error::SoldOut => Error::SoldOut,
        Error::NoProduct(id) => Error::NoProduct(*id),
        Error::NoStock(id) => Error::NoStock(*id),
        Error::WrongType => Error::WrongType,
        Error::Unavailable { server, reason } => Error::Unavailable {
            server,
            reason: reason.clone(),
        },
        Error::Unknown { server, reason } => Error::Unknown {
            server,
            reason: reason.clone(),
        },
        other => Error::Internal(other.to_string()),
    }
}

/// The group's task has panicked, or its runtime is shutting down: what it came to is unknown.
fn cut_short() -> Error {
    Error::Panicked("a merged group was cut short".into())
}

#[cfg(test)]
mod tests;
