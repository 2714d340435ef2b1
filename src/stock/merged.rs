//! The requests of one instance that want a piece of one product, and go together: what the merged strategies share.
//!
//! 1. Enter the queue of the product. A request that finds none under way becomes the leader: it takes all waiting requests
//!    out of the queue, as one group.
//! 2. The leader takes as many pieces as it has requests, at once ([`TakeMany::take_many`]), and answers each. If there were
//!    fewer pieces, the remaining requests try again, until no piece is left.
//! 3. If another instance was faster, try again. The first request of the group reports the retries, so that each is counted
//!    once.
//! 4. Requests that arrive meanwhile go with the next group.
//!
//! What it survives: a client that disconnects (the leader works in a task of its own, and takes nothing for a request that
//! has gone); a request that may wait less than others: in the queue it leaves at its time, and a group waits no longer than
//! its least patient request, which then drops out. **What breaks it**: a lost answer is lost for the whole group.
//!
//! Next: `redis_watch_merged.rs` and `single_update_merged.rs`, which say how several pieces are taken.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job},
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
    time::{Instant, sleep_until},
};

/// How several pieces are taken at once; each merged strategy implements it on a type of its own.
pub(super) trait TakeMany: Send + Sync + 'static {
    /// The name of the awaited thing, for errors.
    const AWAITED: &'static str;

    /// Tries once to take `wanted` pieces, or as many as there are. [`Error::Timeout`] if it would have to wait longer than
    /// `wait`: the requests whose wait is over then fail, and the others try again. Any other error is the answer to all.
    fn take_many(
        ctx: &Ctx,
        stock_id: i64,
        wanted: i64,
        wait: Duration,
    ) -> impl Future<Output = Result<TakeOutcome, Error>> + Send;
}

/// The result of one attempt to take several pieces.
pub(super) enum TakeOutcome {
    /// This many, at least one; and how many are left, if that was seen.
    Pieces(i64, Option<i64>),
    SoldOut,
    /// Another instance wrote first; nothing was changed.
    Conflict,
}

/// The queues of one strategy in this process, by product.
struct Queues<M>(Mutex<HashMap<i64, Weak<Queue>>>, PhantomData<fn() -> M>);

/// The waiting requests for one product, and the turn to serve them.
#[derive(Default)]
struct Queue {
    waiting: Mutex<WaitingBuyers>,
    turn: Arc<AsyncMutex<()>>,
}

/// The waiting requests, and the number of the next one.
#[derive(Default)]
struct WaitingBuyers {
    next: u64,
    buyers: Vec<WaitingBuyer>,
}

/// A buyer in the queue, and the channel on which its task waits for the answer.
struct WaitingBuyer {
    number: u64,
    wait: Duration,
    until: Instant,
    answer: oneshot::Sender<Result<Deduction, Error>>,
}

/// Takes a piece together with the other waiting requests of this instance. The job's stay comes before the queue.
pub(super) async fn deduct<M: TakeMany>(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    // Requests cannot share a stay: each has its own, before the group.
    let wait = job.wait_left();
    job.enter_and_stay().await;
    let since = Instant::now();
    let queue = ctx.local.of::<Queues<M>>().queue_of(job.request.stock_id);
    let until = since + wait;
    let (answer, mut answered) = oneshot::channel();
    let number = queue.add(job.request.wait, until, answer);
    let outcome = tokio::select! {
        biased;
        answered = &mut answered => answered,
        turn = Arc::clone(&queue.turn).lock_owned() => {
            let buyers = mem::take(&mut queue.waiting.lock().buyers);
            ctx.tasks.spawn(serve_buyers::<M>(ctx.clone(), job.request.stock_id, buyers, turn));
            answered.await
        }
        () = sleep_until(until) => {
            if queue.remove(number) {
                return Err(Error::Timeout { what: M::AWAITED.into(), waited: job.request.wait });
            }
            // Its group is under way, and waits no longer than this request may.
            answered.await
        }
    };
    let deducted = outcome.unwrap_or_else(|_| Err(Error::Panicked("a merged group was cut short".into())))?;
    Ok(job.record_attempt(since.into(), deducted))
}

/// Takes pieces for `buyers` until each is answered: sold, sold out, expired or failed. Holds the queue's turn meanwhile.
async fn serve_buyers<M: TakeMany>(ctx: Ctx, stock_id: i64, mut buyers: Vec<WaitingBuyer>, _turn: OwnedMutexGuard<()>) {
    let mut retries = 0;
    loop {
        buyers.retain(|buyer| !buyer.answer.is_closed());
        let Some(until) = buyers.iter().map(|buyer| buyer.until).min() else {
            return;
        };
        let (wanted, wait) = (buyers.len(), until.saturating_duration_since(Instant::now()));
        match M::take_many(&ctx, stock_id, wanted as i64, wait).await {
            Ok(TakeOutcome::Pieces(pieces, left)) => {
                let rest = buyers.split_off(wanted.min(pieces as usize));
                for (buyer, after) in mem::replace(&mut buyers, rest).into_iter().zip((0..pieces).rev()) {
                    let remaining = left.map(|left| left + after);
                    let retries = mem::take(&mut retries);
                    buyer.answer.send(Ok(Deduction { remaining, retries, ..Deduction::default() })).ok();
                }
            }
            Ok(TakeOutcome::SoldOut) => return answer_all_with_error(buyers, &Error::SoldOut),
            Ok(TakeOutcome::Conflict) => {
                retries += 1;
                answer_expired::<M>(&mut buyers);
            }
            Err(Error::Timeout { .. }) => answer_expired::<M>(&mut buyers),
            Err(error) => return answer_all_with_error(buyers, &error),
        }
    }
}

/// Removes the requests whose wait is over, and answers them with [`Error::Timeout`].
fn answer_expired<M: TakeMany>(buyers: &mut Vec<WaitingBuyer>) {
    let now = Instant::now();
    for late in buyers.extract_if(.., |buyer| buyer.until <= now) {
        late.answer.send(Err(Error::Timeout { what: M::AWAITED.into(), waited: late.wait })).ok();
    }
}

fn answer_all_with_error(buyers: Vec<WaitingBuyer>, error: &Error) {
    for buyer in buyers {
        buyer.answer.send(Err(error.clone())).ok();
    }
}

impl<M> Default for Queues<M> {
    fn default() -> Self {
        Self(Mutex::default(), PhantomData)
    }
}

impl<M> Queues<M> {
    /// The queue of this product, new if no request uses one.
    fn queue_of(&self, stock_id: i64) -> Arc<Queue> {
        let mut queues = self.0.lock();
        if let Some(queue) = queues.get(&stock_id).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::default();
        queues.insert(stock_id, Arc::downgrade(&queue));
        queue
    }
}

impl Queue {
    /// Adds a request to the queue. Returns its number.
    fn add(&self, wait: Duration, until: Instant, answer: oneshot::Sender<Result<Deduction, Error>>) -> u64 {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.buyers.push(WaitingBuyer { number, wait, until, answer });
        number
    }

    /// Removes a request. Returns whether it was still in the queue.
    fn remove(&self, number: u64) -> bool {
        let buyers = &mut self.waiting.lock().buyers;
        let at = buyers.iter().position(|buyer| buyer.number == number);
        at.map(|at| buyers.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests;
