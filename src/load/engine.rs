//! Many connections, each of which sends one request after the other, and what they see.
//!
//! All connections are open before the clock starts. One that dies is opened anew; a request that may have been sent
//! is not sent again (see `link.rs`).

use super::{
    history::{History, Outcome},
    link::{Answer, Body, Cut, Link, Meter, Origin},
    stats::Stats,
};
use crate::failure::Failure;
use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A request without an answer is given up after this.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Once a run is cancelled, what is under way may take this long; then it is given up.
const GRACE: Duration = Duration::from_secs(1);
/// Connections that are opened at the same time.
const OPENING: usize = 64;
/// How often a request is tried on a new connection as long as nothing of it was written.
const CONNECTIONS_PER_REQUEST: usize = 3;
/// A connection that was refused says that nobody listens: pause, or the loops are spent in no time.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// How a load is sent: which request, on how many connections, how often on each.
pub(super) struct Load {
    pub(super) origin: Origin,
    pub(super) request: Request<Body>,
    pub(super) threads: usize,
    pub(super) loops: usize,
    /// What an answer means.
    pub(super) meaning: fn(u16, &[u8]) -> Outcome,
}

/// What a load has seen, shared between its connections and whoever watches.
pub(super) struct Seen {
    history: Mutex<History>,
    meter: Arc<Meter>,
    /// Requests that were begun; those beyond the history's are under way.
    begun: AtomicU64,
    clock: Instant,
}

/// A load that has ended.
pub(super) struct Ended {
    pub(super) history: History,
    pub(super) stats: Stats,
    pub(super) elapsed: Duration,
}

impl Seen {
    /// The history so far.
    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the load has been going on.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

impl Load {
    /// Sends the load to its end, or until it is cancelled; `watch` is handed what is seen once it has begun, and runs
    /// beside it.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where the connections cannot be opened.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes every connection.
    pub(super) async fn send<W: Future<Output = ()>>(
        self,
        cancel: &CancellationToken,
        watch: impl FnOnce(Arc<Seen>) -> W,
    ) -> Result<Ended, Failure> {
        let meter = Arc::new(Meter::default());
        let links = self.open_all(&meter).await?;
        let load = Arc::new(self);
        let seen = Arc::new(Seen { history: Mutex::default(), meter, begun: AtomicU64::new(0), clock: Instant::now() });
        let mut workers = JoinSet::new();
        for link in links {
            workers.spawn(Arc::clone(&load).work(link, Arc::clone(&seen), cancel.clone()));
        }
        let all_done = async { while workers.join_next().await.is_some() {} };
        let given_up = async {
            cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = all_done => {}
            () = given_up => {}
            () = watch(Arc::clone(&seen)) => unreachable!("a watcher never ends by itself"),
        }
        let elapsed = seen.elapsed();
        workers.shutdown().await;
        Ok(seen.end(elapsed))
    }

    async fn open_all(&self, meter: &Arc<Meter>) -> Result<Vec<Link>, Failure> {
        stream::iter(0..self.threads)
            .map(|_| Link::open(&self.origin, meter))
            .buffer_unordered(OPENING)
            .try_collect()
            .await
            .map_err(|why| Failure::Unusable(format!("{} does not answer: {why}", self.origin)))
    }

    async fn work(self: Arc<Self>, link: Link, seen: Arc<Seen>, cancel: CancellationToken) {
        let mut link = Some(link);
        for _ in 0..self.loops {
            if cancel.is_cancelled() {
                return;
            }
            seen.begun.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            let (outcome, answer) = self.one(&mut link, &seen.meter).await;
            let latency = begun.elapsed();
            let instance = answer.as_ref().and_then(|a| a.instance.as_ref()).and_then(|name| name.to_str().ok());
            seen.history().record(outcome, latency, instance);
        }
    }

    /// Sends one request, once.
    async fn one(&self, slot: &mut Option<Link>, meter: &Arc<Meter>) -> (Outcome, Option<Answer>) {
        for _ in 0..CONNECTIONS_PER_REQUEST {
            let mut link = match slot.take() {
                Some(link) => link,
                None => match Link::open(&self.origin, meter).await {
                    Ok(link) => link,
                    Err(why) => {
                        tokio::time::sleep(AFTER_REFUSAL).await;
                        return (Outcome::Refused(format!("not sent: {why}")), None);
                    }
                },
            };
            match tokio::time::timeout(TIMEOUT, link.exchange(self.request.clone())).await {
                Ok(Ok(answer)) => {
                    *slot = Some(link);
                    return ((self.meaning)(answer.status, &answer.body), Some(answer));
                }
                Ok(Err(Cut::NotSent)) => {}
                Ok(Err(Cut::NoAnswer(why))) => return (Outcome::Unknown(format!("connection cut: {why}")), None),
                Err(_) => return (Outcome::Unknown(format!("no answer within {} s", TIMEOUT.as_secs())), None),
            }
        }
        (Outcome::Refused("not sent: every connection was closed before it was used".into()), None)
    }
}

impl Seen {
    fn end(&self, elapsed: Duration) -> Ended {
        let mut history = self.history().clone();
        let under_way = self.begun.load(Ordering::Relaxed) - history.counts().samples();
        history.abandon(under_way, "given up when the run was stopped");
        Ended { stats: Stats::of(&history, self.meter.read(), elapsed), history, elapsed }
    }
}
