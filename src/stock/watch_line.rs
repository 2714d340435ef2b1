//! The requests of one instance that want a piece by WATCH, and go together: one transaction sells to all who wait.
//!
//! 1. Enter the line of the product. Who finds nobody under way leads: it takes all who wait out of the line.
//! 2. The lead reads the count under a watch and writes back as many less as it has requests; EXEC answers nil: another
//!    instance was faster; pause, and start anew.
//! 3. Each is told its own number. Who came meanwhile is in the next transaction.
//!
//! On their own, a hundred requests would mostly drive each other back to the start, and each would cost two round trips.
//! So the instances contend, not the requests.
//!
//! What it survives: a client that hangs up (the lead works in a task of its own), a wait that ends: who still stands in
//! the line leaves it; who is under way hears how that went. **What breaks it**: nothing; but what needs a time of its own
//! between reading and writing cannot go together with others.
//!
//! Next: `redis_watch.rs`, whose transaction it runs.

use super::{
    Deducted, Job, Server, redis_key,
    redis_watch::{exec, watched},
};
use crate::{ctx::Ctx, error::Error};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, oneshot},
    time::{Instant, sleep, sleep_until},
};

const WHAT: &str = "key stock (WATCH)";
/// So often it starts anew at once: a transaction is shorter than the shortest pause that a timer can make.
const AT_ONCE: u32 = 4;
const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);

/// The lines, by product.
#[derive(Debug, Default)]
pub(super) struct WatchLines(Mutex<HashMap<i64, Weak<Line>>>);

#[derive(Debug, Default)]
struct Line {
    waiting: Mutex<Waiting>,
    turn: Arc<AsyncMutex<()>>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    number: u64,
    wait: Duration,
    until: Instant,
    answer: oneshot::Sender<Result<Deducted, Error>>,
}

/// Takes a piece together with whoever else of this instance wants one.
pub(super) async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let line = ctx.local.of::<WatchLines>().of(job.stock_id);
    let until = Instant::now() + job.wait_left();
    let (answer, mut answered) = oneshot::channel();
    let number = line.enter(job.wait, until, answer);
    tokio::select! {
        biased;
        answered = &mut answered => return answered.unwrap_or_else(|_| Err(cut_short())),
        turn = Arc::clone(&line.turn).lock_owned() => {
            let requests = mem::take(&mut line.waiting.lock().requests);
            ctx.tasks.spawn(sell(ctx.clone(), job.stock_id, requests, turn));
        }
        () = sleep_until(until) => {
            if line.leave(number) {
                return Err(Error::NotHad { what: WHAT.into(), waited: job.wait });
            }
        }
    }
    answered.await.unwrap_or_else(|_| Err(cut_short()))
}

impl WatchLines {
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
    fn enter(&self, wait: Duration, until: Instant, answer: oneshot::Sender<Result<Deducted, Error>>) -> u64 {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.requests.push(Request { number, wait, until, answer });
        number
    }

    /// Whether it still stood in the line.
    fn leave(&self, number: u64) -> bool {
        let requests = &mut self.waiting.lock().requests;
        let at = requests.iter().position(|request| request.number == number);
        at.map(|at| requests.remove(at)).is_some()
    }
}

/// Sells to all of `requests`, while it holds the line's turn.
async fn sell(ctx: Ctx, stock_id: i64, mut requests: Vec<Request>, _turn: OwnedMutexGuard<()>) {
    let (mut bound, mut retries) = (FIRST, 0);
    loop {
        requests.retain(|request| !request.answer.is_closed());
        for late in requests.extract_if(.., |request| retries > 0 && request.until <= Instant::now()) {
            let not_had = Error::NotHad { what: WHAT.into(), waited: late.wait };
            late.answer.send(Err(not_had)).ok();
        }
        let Some(patience) = requests.iter().map(|request| request.until).max() else { return };
        match attempt(&ctx, stock_id, requests.len() as i64, patience.saturating_duration_since(Instant::now())).await {
            Ok(Attempt::Sold { before, pieces }) => {
                for (request, n) in requests.into_iter().zip(1..) {
                    let deducted = Deducted { remaining: Some(before - n), fence: None, retries, lock: None };
                    request.answer.send(if n <= pieces { Ok(deducted) } else { Err(Error::SoldOut) }).ok();
                }
                return;
            }
            Ok(Attempt::Beaten) => {}
            Err(error) => {
                for request in requests {
                    request.answer.send(Err(same(&error))).ok();
                }
                return;
            }
        }
        retries += 1;
        if retries > AT_ONCE {
            sleep(bound.mul_f64(fastrand::f64())).await;
            bound = (bound * 2).min(LONGEST);
        }
    }
}

/// What one transaction came to.
enum Attempt {
    /// So many were there before, and so many were taken.
    Sold { before: i64, pieces: i64 },
    /// Another wrote meanwhile, and nothing was changed.
    Beaten,
}

/// One transaction for `wanted` pieces, or as many as there are.
async fn attempt(ctx: &Ctx, stock_id: i64, wanted: i64, patience: Duration) -> Result<Attempt, Error> {
    let key = redis_key::of(ctx, stock_id);
    let mut conn = redis_key::watch_connection(ctx, patience).await?;
    let before = watched(&mut conn, &key, stock_id).await?;
    let pieces = wanted.min(before);
    Ok(if exec(&mut conn, &key, before - pieces).await? { Attempt::Sold { before, pieces } } else { Attempt::Beaten })
}

/// What one transaction came to, for each of those who were in it.
fn same(error: &Error) -> Error {
    match error {
        Error::SoldOut => Error::SoldOut,
        Error::NoProduct(id) => Error::NoProduct(*id),
        Error::NotHad { what, waited } => Error::NotHad { what: what.clone(), waited: *waited },
        Error::Unavailable { server, reason } => Error::Unavailable { server, reason: reason.clone() },
        Error::Unknown { server, reason } => Error::Unknown { server, reason: reason.clone() },
        other => Error::Internal(other.to_string()),
    }
}

/// The runtime is shutting down under a transaction.
fn cut_short() -> Error {
    Error::Unknown { server: Server::Redis.name(), reason: "the instance is ending".into() }
}
