//! Sends a load: many connections, each of which sends one request after the other.
//!
//! All connections are open before the clock starts. One that dies is opened again; a request that may have been sent
//! is not sent again (see `link.rs`).
//!
//! **The loop is closed**, as in JMeter: a connection sends its next request after its last answer. So a target that stalls gets
//! fewer requests while it stalls, and few latencies show the stall. With a rate the loop is open: each request is due at a time, and
//! its latency begins then, whether or not a connection was free.

use super::{
    history::{AnswerDetails, History, Outcome},
    inside::{Stay, most_at_once},
    lanes::{self, Lane, Lanes},
    link::{Body, ExchangeError, Link, Meter, Origin},
    plan::Timed,
    stats::{self, Stats},
};
use futures::{StreamExt, TryStreamExt, stream};
use http::{Request, Response};
use hyper::body::Bytes;
use oversell_lab::terminal::failure::{Failure, unusable};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// A request that has no answer after this counts as unknown, unless the load ends before.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// When a load is cancelled or reaches its time limit, requests under way may take this much longer; then they count as unknown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// How many connections are opened at the same time: fewer than the listen queue of a server holds.
const MAX_CONCURRENT_OPENS: usize = 64;
/// How many connections a request may use, as long as nothing of it was written: a server may close idle ones.
const MAX_CONNECTIONS_PER_REQUEST: usize = 3;
/// The pause after a refused connection; without it all requests would fail within a moment.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
/// Time limit of a load that is counted in loops; then no further request is sent, and [`DRAIN_TIMEOUT`] begins.
const MAX_LOOPS_TIME: Duration = Duration::from_secs(15 * 60);
/// A request that was sent before the end of a timed load may take this long after it: longer than the service waits.
const MAX_TIME_AFTER_END: Duration = Duration::from_secs(40);

/// Makes the request with this number; all connections count together, from 0.
pub(super) type RequestMaker = Box<dyn Fn(u64) -> Request<Body> + Send + Sync>;
/// Reads the answer to the request with this number: its status and its body.
pub(super) type AnswerReader = Box<dyn Fn(u64, u16, &[u8]) -> (Outcome, AnswerDetails) + Send + Sync>;

/// A load: its requests, the number of connections, and its end.
pub(super) struct Load {
    pub(super) origin: Origin,
    pub(super) make_request: RequestMaker,
    pub(super) read_answer: AnswerReader,
    pub(super) threads: usize,
    pub(super) until: Until,
    /// Keeps a lane for each stay, to be drawn.
    pub(super) draws: bool,
}

/// When a load ends: after a number of requests per connection, or after a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Until {
    /// Each connection has sent this many requests.
    Loops(usize),
    /// The time is over.
    Over(Timed),
}

/// The records of all connections.
#[derive(Debug, Default)]
struct Records {
    /// The requests that count: all, or those of the measured time.
    counted: History,
    /// All requests, also those of the warm-up and those that ended after the time.
    all: History,
    /// When each request was inside, as far as the answers say.
    stays: Vec<Stay>,
    /// The lanes of these stays, if they are to be drawn.
    lanes: Vec<Lane>,
}

/// The state of a load, shared by its connections and its watchers.
pub(super) struct LoadProgress {
    recorded: Mutex<Records>,
    meter: Arc<Meter>,
    /// Requests that a connection has claimed; those that are not in the histories yet are under way or, at a rate, not due yet.
    claimed: AtomicU64,
    clock: Instant,
}

/// The measurements of a load that has ended.
pub(super) struct LoadResult {
    /// The requests that count: all, or those of the measured time.
    pub(super) counted: History,
    /// All requests: each of them may have changed the stock.
    pub(super) all: History,
    pub(super) stats: Stats,
    /// The most requests that were inside at once, in the warm-up too; `None` if no answer says when its request was.
    pub(super) most_inside: Option<u64>,
    /// The requests that are drawn; `None` if none was inside, or nothing is drawn.
    pub(super) lanes: Option<Lanes>,
    /// The duration of the part that counts.
    pub(super) elapsed: Duration,
    /// Requests that were due at a rate, and not sent: no connection was free, or the load was cancelled.
    pub(super) behind: u64,
}

impl LoadProgress {
    /// The history of all requests so far. The connections wait while the guard is held.
    pub(super) fn lock_history(&self) -> MappedMutexGuard<'_, History> {
        MutexGuard::map(self.recorded.lock(), |recorded| &mut recorded.all)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Requests that connections have claimed so far: sent ones and, at a rate, the next of each connection, which is not due yet.
    pub(super) fn claimed_requests(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }

    /// The requests that are drawn, of those that were inside so far; `None` if none was, or nothing is drawn.
    pub(super) fn lanes(&self) -> Option<Lanes> {
        lanes::choose_lanes(self.recorded.lock().lanes.clone())
    }

    /// Takes the records out as the result. Requests under way count as unknown in both histories, for the reason `why`.
    fn result(&self, until: Until, elapsed: Duration, why: &str) -> LoadResult {
        let Records { mut counted, mut all, stays, lanes } = mem::take(&mut *self.recorded.lock());
        let claimed = self.claimed_requests();
        let under_way = claimed - all.counts.samples();
        counted.abandon(under_way, why);
        all.abandon(under_way, why);
        let (elapsed, behind) = match until {
            Until::Loops(_) => (elapsed, 0),
            Until::Over(timed) => match timed.rate {
                None => (timed.measured, 0),
                // A request due in time may be answered after the end.
                Some(rate) => {
                    (timed.measured.max(elapsed.saturating_sub(timed.warm_up)), timed.due(rate).saturating_sub(claimed))
                }
            },
        };
        // The bytes of the warm-up are in the meter too.
        let share = counted.counts.samples() as f64 / all.counts.samples().max(1) as f64;
        let stats::Bytes { received, sent } = self.meter.read();
        let part = |bytes: u64| (bytes as f64 * share) as u64;
        let bytes = stats::Bytes { received: part(received), sent: part(sent) };
        LoadResult {
            stats: Stats::of(&counted, bytes, elapsed),
            counted,
            all,
            most_inside: most_at_once(&stays),
            lanes: lanes::choose_lanes(lanes),
            elapsed,
            behind,
        }
    }
}

impl Load {
    /// Sends the load to its end or time limit, or until it is cancelled: each is `Ok`. `watch` runs meanwhile, and must not end.
    /// Errors: [`Failure::Unusable`] where a connection cannot be opened.
    /// Cancel safety: dropping it closes every connection.
    pub(super) async fn send<W: Future<Output = ()>>(
        self,
        cancel: &CancellationToken,
        watch: impl FnOnce(Arc<LoadProgress>) -> W,
    ) -> Result<LoadResult, Failure> {
        let meter = Arc::new(Meter::default());
        let links = self.open_all(&meter).await?;
        let load = Arc::new(self);
        let seen =
            Arc::new(LoadProgress { recorded: Mutex::default(), meter, claimed: AtomicU64::new(0), clock: Instant::now() });
        let stop = cancel.child_token();
        let mut workers = JoinSet::new();
        for (n, link) in links.into_iter().enumerate() {
            workers.spawn(Arc::clone(&load).run_connection(n, link, Arc::clone(&seen), stop.clone()));
        }
        // A worker that panics leaves its request claimed and without an outcome, and its next ones unsent.
        let all_done = async {
            let mut panics = 0;
            while let Some(done) = workers.join_next().await {
                panics += usize::from(done.is_err());
            }
            if panics > 0 { "lost: the generator panicked" } else { "given up when the run was stopped" }
        };
        let given_up = async {
            let late = timeout(load.until.max_duration(), cancel.cancelled()).await.is_err();
            stop.cancel();
            sleep(DRAIN_TIMEOUT).await;
            if late { "given up when the run took too long" } else { "given up when the run was stopped" }
        };
        let why = tokio::select! {
            why = all_done => why,
            why = given_up => why,
            () = watch(Arc::clone(&seen)) => unreachable!("a watcher never ends by itself"),
        };
        let elapsed = seen.elapsed();
        workers.shutdown().await;
        Ok(seen.result(load.until, elapsed, why))
    }

    async fn open_all(&self, meter: &Arc<Meter>) -> Result<Vec<Link>, Failure> {
        stream::iter(0..self.threads)
            .map(|_| Link::open(&self.origin, meter))
            .buffer_unordered(MAX_CONCURRENT_OPENS)
            .try_collect()
            .await
            .map_err(|why| unusable!("{} does not answer: {why}", self.origin))
    }

    /// Sends and records the requests of one connection, one after the other.
    async fn run_connection(self: Arc<Self>, n: usize, link: Link, seen: Arc<LoadProgress>, stop: CancellationToken) {
        let mut link = Some(link);
        let mut loops = 0;
        while let Some((turn, due)) = self.next_request(&mut loops, &seen, &stop).await {
            let (outcome, said, answer) = self.send_once(turn, &mut link, &seen.meter).await;
            let done = Instant::now();
            let instance = answer.as_ref().and_then(|a| a.headers().get("x-instance")).and_then(|name| name.to_str().ok());
            let mut recorded = seen.recorded.lock();
            recorded.stays.extend(said.inside);
            if self.draws {
                let lane = Lane::of(n + 1, loops, instance, &said);
                recorded.lanes.extend(lane);
            }
            let latency = done - due;
            recorded.all.record(&outcome, latency, instance, &said);
            if self.until.is_counted(due - seen.clock, done - seen.clock) {
                recorded.counted.record(&outcome, latency, instance, &said);
            }
        }
    }

    /// Waits until the next request is due (without a rate, now); returns its number and that time, or `None` if the load is over
    /// or stopped. `loops` counts the requests of this connection, but not in a timed load.
    async fn next_request(&self, loops: &mut usize, seen: &LoadProgress, stop: &CancellationToken) -> Option<(u64, Instant)> {
        let now = Instant::now();
        if stop.is_cancelled() {
            return None;
        }
        match self.until {
            Until::Loops(most) if *loops == most => return None,
            Until::Loops(_) => *loops += 1,
            Until::Over(timed) if now - seen.clock >= timed.total() => return None,
            Until::Over(timed) => {
                if let Some(rate) = timed.rate {
                    return next_due(timed, rate, seen, stop).await;
                }
            }
        }
        Some((seen.claimed.fetch_add(1, Ordering::Relaxed), now))
    }

    /// Sends a request, on a new connection if the old one was lost before anything was written. `slot` keeps the connection for
    /// the next request only if an answer came, which is returned too.
    async fn send_once(
        &self,
        turn: u64,
        slot: &mut Option<Link>,
        meter: &Arc<Meter>,
    ) -> (Outcome, AnswerDetails, Option<Response<Bytes>>) {
        let failed = |outcome| (outcome, AnswerDetails::default(), None);
        for _ in 0..MAX_CONNECTIONS_PER_REQUEST {
            let mut link = match slot.take() {
                Some(link) => link,
                None => match Link::open(&self.origin, meter).await {
                    Ok(link) => link,
                    Err(why) => {
                        sleep(REFUSED_PAUSE).await;
                        return failed(Outcome::Refused(format!("not sent: {why}")));
                    }
                },
            };
            match timeout(ANSWER_TIMEOUT, link.exchange((self.make_request)(turn))).await {
                Ok(Ok(answer)) => {
                    *slot = Some(link);
                    let status = answer.status().as_u16();
                    let (outcome, said) = (self.read_answer)(turn, status, answer.body());
                    return (outcome, said, Some(answer));
                }
                Ok(Err(ExchangeError::NotSent)) => {}
                Ok(Err(ExchangeError::NoAnswer(why))) => {
                    return failed(Outcome::Unknown(format!("connection cut: {why}")));
                }
                Err(_) => {
                    return failed(Outcome::Unknown(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())));
                }
            }
        }
        failed(Outcome::Refused("not sent: every connection was closed before it was used".into()))
    }
}

impl Until {
    /// Whether the request counts. `due` and `done` are times after the start. At a rate it counts by `due`, because else a
    /// stall at the end would be left out.
    fn is_counted(self, due: Duration, done: Duration) -> bool {
        match self {
            Self::Loops(_) => true,
            Self::Over(Timed { warm_up, rate: Some(_), .. }) => due >= warm_up,
            Self::Over(timed) => (timed.warm_up..timed.total()).contains(&done),
        }
    }

    /// The longest time until the load is stopped.
    fn max_duration(self) -> Duration {
        match self {
            Self::Loops(_) => MAX_LOOPS_TIME,
            Self::Over(timed) => timed.total() + MAX_TIME_AFTER_END,
        }
    }
}

/// Waits until the next request of an open loop is due; `None` if that is after the end, or the load was stopped.
async fn next_due(timed: Timed, rate: f64, seen: &LoadProgress, stop: &CancellationToken) -> Option<(u64, Instant)> {
    let turn = seen.claimed.fetch_add(1, Ordering::Relaxed);
    let after = Duration::from_secs_f64(turn as f64 / rate);
    let due = seen.clock + after;
    let waited = stop.run_until_cancelled(sleep_until(due.into()));
    if after < timed.total() && waited.await.is_some() {
        return Some((turn, due));
    }
    seen.claimed.fetch_sub(1, Ordering::Relaxed);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fake::Fake;

    #[tokio::test]
    async fn requests_of_a_worker_that_panics_are_not_forgotten() {
        let fake = Fake::open(None).await;
        let origin = Origin::parse(&fake.base).unwrap();
        let request = origin.request(http::Method::POST, "/check/lock/none").unwrap();
        let load = Load {
            origin,
            make_request: Box::new(move |_| request.clone()),
            read_answer: Box::new(|_, _, _| panic!("planted")),
            threads: 3,
            until: Until::Loops(5),
            draws: false,
        };
        let ended = load.send(&CancellationToken::new(), |_| std::future::pending()).await.unwrap();
        let all = ended.all.counts;
        assert_eq!((all.samples(), all.unknown), (3, 3));
        assert_eq!(ended.counted.reasons["lost: the generator panicked"], 3);
    }

    #[test]
    fn answers_outside_the_measured_time_do_not_count() {
        let ms = Duration::from_millis;
        let timed = |rate| Until::Over(Timed { warm_up: ms(100), measured: ms(200), rate });
        let counts = |until: Until| [(50, 90), (90, 110), (250, 290), (290, 310)].map(|(d, e)| until.is_counted(ms(d), ms(e)));
        assert_eq!(counts(timed(None)), [false, true, true, false]);
        assert_eq!(counts(timed(Some(9.0))), [false, false, true, true]);
    }
}
