//! Random programs with latches, barriers, double barriers and counters. A few actors in two processes call them at
//! random times while their connections are cut, slow or refused; each call is recorded and judged as those of locks
//! are.

use super::{
    checker::{Answer, Asks, History, Promise, Verdict, judge},
    programs::{BUSY, Event, ProgramServer, Wire, seeds},
    recorder::{Recorder, answer},
    support::*,
    zookeeper::double_barrier::{TWO, members},
    zookeeper::{LONG_SESSION, Member},
};
use fastrand::Rng;
use futures::FutureExt;
use oversell_lock::{
    redis::{RedisClient, RedisLatch},
    zk::{ZkBarrier, ZkDoubleBarrier},
};
use std::num::NonZeroU32;
use tokio::time::sleep;

/// The rounds of a program; calls come at random times within each.
const ROUNDS: usize = 4;
const MAX_CALL_DELAY_MS: u64 = 60;
/// How long news may take on a busy machine; a waiter waits longer.
const NEWS_LIMIT: Duration = Duration::from_secs(8);
const WAIT: Duration = Duration::from_secs(12);

/// A process and its connections.
struct Party<C> {
    client: C,
    wires: Vec<Wire>,
}

struct Run<C> {
    name: String,
    parties: [Party<C>; 2],
    recorder: Arc<Recorder>,
    dice: Rng,
}

impl<C> Run<C> {
    async fn new<S: ProgramServer>(server: &S, seed: u64, client: impl AsyncFn(String) -> C) -> Result<Self> {
        let party = async || {
            let wires = server.servers().into_iter().map(Wire::to::<S>);
            let wires = wires.collect::<Result<Vec<_>>>()?;
            let client = client(wires[0].address()).await;
            anyhow::Ok(Party { client, wires })
        };
        let promise = Promise { permits: 0, members: TWO.get() as usize, answer: S::REPLY_TIMEOUT + BUSY, news: NEWS_LIMIT };
        Ok(Self {
            name: name(),
            parties: [party().await?, party().await?],
            recorder: Recorder::new(promise),
            dice: Rng::with_seed(seed),
        })
    }

    /// Injects a few faults into the connections, and then repairs them.
    async fn disturb<S: ProgramServer>(&mut self) {
        for _ in 0..self.dice.usize(0..4) {
            sleep(random_call_delay(&mut self.dice)).await;
            let process = self.dice.usize(0..2);
            let event = Event::random(&mut self.dice);
            if !matches!(event, Event::Expire) {
                event.to::<S>(&self.parties[process].wires);
            }
        }
        sleep(random_call_delay(&mut self.dice)).await;
        for party in &self.parties {
            Event::Heal.to::<S>(&party.wires);
        }
    }

    /// Also records what is left.
    async fn end<F: Future<Output = Vec<String>>>(self, left: impl Fn() -> F) -> History {
        let nothing = async || left().await.is_empty();
        if until("nothing is left", nothing).await.is_err() {
            let left = left().await.into_iter();
            left.for_each(|left| self.recorder.left(left));
        }
        self.recorder.history()
    }
}

fn random_call_delay(dice: &mut Rng) -> Duration {
    Duration::from_millis(dice.u64(0..MAX_CALL_DELAY_MS))
}

/// Records a call that starts after this time.
fn record_call_after<T: 'static>(
    recorder: &Arc<Recorder>,
    after: Duration,
    (asks, wait): (Asks, Duration),
    call: impl Future<Output = Result<T, LockError>> + Send + 'static,
    means: fn(T) -> Answer,
) -> JoinHandle<Answer> {
    let recorder = recorder.clone();
    tokio::spawn(async move {
        sleep(after).await;
        let number = recorder.asks(0, asks, wait);
        let came_to = call.await.map_or_else(|error| answer(&error), means);
        recorder.answered(number, came_to);
        came_to
    })
}

fn done(done: bool) -> Answer {
    if done { Answer::Yes(None) } else { Answer::No }
}

/// Repeats a call until it is answered.
async fn repeat_until_answered<F: Future<Output = Result<Answer>>>(call: impl Fn() -> F) -> Result<Answer> {
    loop {
        match call().await? {
            Answer::Unavailable => sleep(Duration::from_millis(MAX_CALL_DELAY_MS)).await,
            answered => return Ok(answered),
        }
    }
}

/// An object that is closed, and then opened for all waiters.
trait Gate: Clone + Send + Sync + 'static {
    /// The most calls that it takes to open it.
    const COUNT: u32;

    fn close(self, count: NonZeroU32) -> impl Future<Output = Result<bool, LockError>> + Send;

    /// How many more calls must open it; `None` if it was open.
    fn open(self) -> impl Future<Output = Result<Option<u64>, LockError>> + Send;

    fn pass(self) -> impl Future<Output = Result<(), LockError>> + Send;
}

impl Gate for RedisLatch {
    const COUNT: u32 = 3;

    async fn close(self, count: NonZeroU32) -> Result<bool, LockError> {
        self.try_set_count(count).await
    }

    async fn open(self) -> Result<Option<u64>, LockError> {
        self.count_down().await
    }

    async fn pass(self) -> Result<(), LockError> {
        self.wait(WAIT).await
    }
}

impl Gate for ZkBarrier {
    const COUNT: u32 = 1;

    async fn close(self, _: NonZeroU32) -> Result<bool, LockError> {
        self.set().await
    }

    async fn open(self) -> Result<Option<u64>, LockError> {
        Ok(self.remove().await?.then_some(0))
    }

    async fn pass(self) -> Result<(), LockError> {
        self.wait(WAIT).await
    }
}

/// Rounds of closing, opening and waiting.
async fn gate<S: ProgramServer, C, G: Gate>(mut run: Run<C>, make: impl Fn(&C, &str) -> G) -> Result<Run<C>> {
    let opened = |left: Option<u64>| left.map_or(Answer::No, |left| Answer::Yes(Some(left)));
    let mut waiters = Vec::new();
    for _ in 0..ROUNDS {
        let (recorder, name) = (run.recorder.clone(), run.name.clone());
        let gates = run.parties.each_ref().map(|party| make(&party.client, &name));
        let count = run.dice.u32(1..=G::COUNT);
        let count = NonZeroU32::new(count).context("at least one")?;
        let closing = (Asks::Close(count.get().into()), Duration::ZERO);
        let close =
            async || Ok(record_call_after(&recorder, Duration::ZERO, closing, gates[0].clone().close(count), done).await?);
        repeat_until_answered(close).await?;
        let opening = (Asks::Open, Duration::ZERO);
        let open = |n: usize, after| record_call_after(&recorder, after, opening, gates[n].clone().open(), opened);
        let passing = (Asks::Pass, WAIT);
        let pass = |n: usize, after| record_call_after(&recorder, after, passing, gates[n].clone().pass(), |()| done(true));
        for n in 0..4 {
            waiters.push(pass(n % 2, random_call_delay(&mut run.dice)));
        }
        let mut openers = Vec::new();
        for _ in 0..count.get() {
            openers.push(open(run.dice.usize(0..2), random_call_delay(&mut run.dice)));
        }
        run.disturb::<S>().await;
        for opener in openers {
            opener.await?;
        }
        // Repeats lost counts, or the waiters would wait for ever.
        while !matches!(open(0, Duration::ZERO).await?, Answer::Yes(Some(0)) | Answer::No) {}
    }
    // Only now: the next round may close it before they have looked.
    for waiter in waiters {
        waiter.await?;
    }
    Ok(run)
}

async fn latch(redis: &Redis, seed: u64) -> Result<History> {
    let client = async |address: String| redis.client_at(&address).await;
    let run = Run::new(redis, seed, client).await?;
    let run = gate::<Redis, _, _>(run, |client: &RedisClient, name| client.latch(name)).await?;
    let name = run.name.clone();
    // The counter of openings is kept for a day.
    let left = async || {
        let mut keys = redis.keys(&name).await;
        keys.retain(|key| !key.ends_with(":opened"));
        keys
    };
    Ok(run.end(left).await)
}

/// The session outlasts the program: a member that loses it has left.
async fn zookeeper_run(zookeeper: &ZooKeeper, seed: u64) -> Result<Run<Member>> {
    let client = async |address: String| zookeeper.process_with(&address, LONG_SESSION).await;
    Run::new(zookeeper, seed, client).await
}

async fn barrier(zookeeper: &ZooKeeper, seed: u64) -> Result<History> {
    let run = zookeeper_run(zookeeper, seed).await?;
    let make = |member: &Member, name: &str| member.client.barrier(name);
    let run = gate::<ZooKeeper, _, _>(run, make).await?;
    let name = run.name.clone();
    let left = async || {
        let node = zookeeper.outsider().await.check_stat(&name).await;
        node.ok().flatten().map(|_| name.clone()).into_iter().collect()
    };
    Ok(run.end(left).await)
}

/// How long a member waits for the others.
const MEETING_TIMEOUT: Duration = Duration::from_millis(500);
/// The entries per actor: two rarely meet at the same moment.
const MEETINGS: usize = 12;

/// One member enters and leaves, round by round.
async fn member(recorder: Arc<Recorder>, barrier: ZkDoubleBarrier, by: usize, mut dice: Rng) -> Result {
    for _ in 0..MEETINGS {
        sleep(random_call_delay(&mut dice)).await;
        // Some give up just as the others open.
        let wait = if dice.bool() { random_call_delay(&mut dice) } else { MEETING_TIMEOUT };
        let of = recorder.asks(by, Asks::Enter, wait);
        // Some are dropped before they are in.
        let patience = if dice.u8(0..4) == 0 { random_call_delay(&mut dice) } else { Duration::MAX };
        let member = match timeout(patience, barrier.enter(wait)).await {
            Ok(Ok(member)) => member,
            Ok(Err(error)) => {
                recorder.answered(of, answer(&error));
                continue;
            }
            Err(_) => {
                recorder.answered(of, Answer::Gone);
                continue;
            }
        };
        recorder.answered(of, done(true));
        sleep(random_call_delay(&mut dice)).await;
        // Without a connection to begin with, it is still inside.
        let leave = async || {
            let leaving = (Asks::Leave { of }, MEETING_TIMEOUT);
            let (barrier, member) = (barrier.clone(), member.clone());
            let left = async move { barrier.leave(&member, MEETING_TIMEOUT).await };
            Ok(record_call_after(&recorder, Duration::ZERO, leaving, left, |()| done(true)).await?)
        };
        repeat_until_answered(leave).await?;
    }
    Ok(())
}

async fn double_barrier(zookeeper: &ZooKeeper, seed: u64) -> Result<History> {
    let mut run = zookeeper_run(zookeeper, seed).await?;
    // With three members, none can start a round of its own while the others leave.
    let contenders = run.dice.usize(3..=5);
    let mut all = JoinSet::new();
    for by in 0..contenders {
        let barrier = run.parties[by % 2].client.client.double_barrier(&run.name, TWO);
        all.spawn(member(run.recorder.clone(), barrier, by, run.dice.fork()));
    }
    for _ in 0..ROUNDS {
        run.disturb::<ZooKeeper>().await;
    }
    for member in all.join_all().await {
        member?;
    }
    let name = run.name.clone();
    Ok(run.end(async || members(zookeeper, &name).await).await)
}

/// A counter that several actors increment and read.
async fn counter<F, G>(
    zookeeper: &ZooKeeper,
    seed: u64,
    add: impl Fn(&Member, &str) -> F,
    get: impl Fn(&Member, &str) -> G,
) -> Result<History>
where
    F: Future<Output = Result<Option<u64>, LockError>> + Send + 'static,
    G: Future<Output = Result<Option<u64>, LockError>> + Send + 'static,
{
    let mut run = zookeeper_run(zookeeper, seed).await?;
    for _ in 0..ROUNDS {
        let mut calls = Vec::new();
        for n in 0..12 {
            let (member, after) = (&run.parties[n % 2].client, random_call_delay(&mut run.dice));
            let means = |value: Option<u64>| value.map_or(Answer::No, |_| Answer::Yes(value));
            let (asks, call) = match n % 3 {
                0 => (Asks::Get, get(member, &run.name).boxed()),
                _ => (Asks::Add, add(member, &run.name).boxed()),
            };
            let asking = (asks, Duration::ZERO);
            calls.push(record_call_after(&run.recorder, after, asking, call, means));
        }
        run.disturb::<ZooKeeper>().await;
        for call in calls {
            call.await?;
        }
    }
    let lock = run.parties[0].client.client.atomic_long(&run.name);
    let lock = lock.lock_name().to_owned();
    Ok(run.end(async || zookeeper.left(&lock).await).await)
}

async fn atomic_long(zookeeper: &ZooKeeper, seed: u64) -> Result<History> {
    let add = |member: &Member, name: &str| {
        // Some take the mutex at once, some never.
        let tries = [0, 1, u32::MAX][fastrand::usize(0..3)];
        let number = member.client.atomic_long(name).optimistic_tries(tries);
        async move {
            let added = number.add(1).await?;
            Ok(added.succeeded.then_some(added.after.unsigned_abs()))
        }
    };
    let get = |member: &Member, name: &str| {
        let number = member.client.atomic_long(name);
        async move { Ok(Some(number.get().await?.unsigned_abs())) }
    };
    counter(zookeeper, seed, add, get).await
}

async fn shared_count(zookeeper: &ZooKeeper, seed: u64) -> Result<History> {
    let add = |member: &Member, name: &str| {
        let number = member.client.shared_count(name, 0);
        async move {
            let seen = number.get().await?;
            let added = number.try_set(seen, seen.value + 1).await?;
            Ok(added.ok().map(|set| set.value.unsigned_abs().into()))
        }
    };
    let get = |member: &Member, name: &str| {
        let number = member.client.shared_count(name, 0);
        async move { Ok(Some(number.get().await?.value.unsigned_abs().into())) }
    };
    counter(zookeeper, seed, add, get).await
}

const PROGRAMS: u64 = 5;

macro_rules! gates {
    ($($test:ident: $program:ident on $engine:ident;)*) => {$(
        test! {
            async fn $test(engine: &'static $engine) -> Result {
                let of = stringify!($program);
                let seeds = seeds(of, PROGRAMS);
                let histories = try_join_all(seeds.iter().map(|seed| $program(engine, *seed))).await?;
                for (seed, history) in seeds.iter().zip(&histories) {
                    let verdict = judge(history);
                    ensure!(verdict == Verdict::Kept, "{of}, seed {seed}: {verdict:?} in {history:#?}");
                }
                Ok(())
            }
        }
    )*};
}

gates! {
    random_programs_with_a_latch_keep_the_rules: latch on Redis;
    random_programs_with_a_barrier_keep_the_rules: barrier on ZooKeeper;
    random_programs_with_a_double_barrier_keep_the_rules: double_barrier on ZooKeeper;
    random_programs_with_an_atomic_long_keep_the_rules: atomic_long on ZooKeeper;
    random_programs_with_a_shared_count_keep_the_rules: shared_count on ZooKeeper;
}
