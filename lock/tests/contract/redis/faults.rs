//! What the objects in Redis do if the connection is slow, half dead, or answers with an error.

use crate::{
    redis::fair::queue_key,
    redis::{patient, with_lease},
    support::*,
};
use oversell_lab::lab::Port;
use oversell_lock::redis::RedisClient;
use redis::{
    AsyncTypedCommands,
    aio::{ConnectionLike, ConnectionManagerConfig},
};
use std::num::NonZeroU32;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::Instant,
};

const ONE: NonZeroU32 = NonZeroU32::MIN;

async fn ping(mut connection: impl ConnectionLike) -> bool {
    let ping = redis::cmd("PING");
    ping.exec_async(&mut connection).await.is_ok()
}

/// A connected process.
async fn pinged(address: &str) -> Result<RedisClient> {
    let process = patient(address);
    ensure!(ping(process.connection()).await, "no way");
    Ok(process)
}

/// After the server is back, the next command reaches it at once and does not get the last attempt's error. The twin is
/// the `redis` crate's connection manager, which returns that error without sending the command.
#[apply(test!)]
async fn the_first_command_to_a_server_that_is_back_is_sent(redis: &Redis) -> Result {
    /// By then the attempt to reconnect has failed.
    const GIVEN_UP: Duration = Duration::from_secs(5);
    let proxy = Proxy::to(redis.host())?;
    let process = patient(&proxy.address());
    let client = redis::Client::open(format!("redis://{}/?protocol=resp3", proxy.address()))?;
    let config = ConnectionManagerConfig::new().set_number_of_retries(1);
    let twin = client.get_connection_manager_with_config(config).await?;
    let both = async || (ping(process.connection()).await, ping(twin.clone()).await);
    ensure_equal("the way is there", both().await, (true, true))?;
    proxy.cut();
    ensure_equal("the way is cut", both().await, (false, false))?;
    tokio::time::sleep(GIVEN_UP).await;
    proxy.mend();
    ensure_equal("the first command was sent", both().await, (true, false))
}

/// An answer that comes after the lease's end brings no lock: the wait continues, and ends.
#[apply(test!)]
async fn an_answer_after_the_lease_brings_no_lock(redis: &'static Redis) -> Result {
    let brief = Lease::Fixed(Duration::from_millis(200));
    for family in with_lease(redis) {
        let (name, mute) = (name(), Mute::to(redis.host())?);
        let process = family.of(pinged(&mute.address()).await?);
        mute.delay(Duration::from_millis(300));
        let late = process.leased(&name, brief).acquire(SHORT * 3).await;
        ensure_taken(&format!("{}, whose lease is over", family.kind.name), late)?;
    }
    Ok(())
}

/// A proxy whose first connection leads to one server, and all later ones to another; without another they are refused.
pub(crate) async fn first_connection(to: String, then: Option<String>) -> Result<String> {
    let port = Port::free()?;
    let listener = TcpListener::bind(("127.0.0.1", port.number())).await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        let (mut server, _ours) = (to, port);
        loop {
            let (mut client, _) = listener.accept().await?;
            let mut way = TcpStream::connect(&server).await?;
            let forwards = async move { copy_bidirectional(&mut client, &mut way).await };
            let Some(then) = &then else {
                drop(listener);
                return forwards.await;
            };
            tokio::spawn(forwards);
            server.clone_from(then);
        }
    });
    Ok(address)
}

/// Without wake-ups a waiter still looks, and its wait ends in time.
#[apply(test!)]
async fn waiters_look_again_though_no_wake_up_can_come(redis: &'static Redis) -> Result {
    let (name, other) = (name(), redis.client().await);
    let process = pinged(&first_connection(redis.host(), None).await?).await?;
    other.semaphore(&name).try_set_permits(1).await?;
    let permit = other.semaphore(&name).acquire(1, SOON).await?;
    let (mut held, mut waits) = (Vec::new(), Vec::new());
    for Family { kind, .. } in with_lease(redis) {
        let name = format!("{name}-{}", kind.name);
        held.push(take(&(kind.make)(&other, &name, Default::default())).await?);
        // Beside a reader, a writer waits.
        let waiter = match kind.name {
            "redis_read" => process.rw_lock(&name).write().boxed(),
            _ => (kind.make)(&process, &name, Default::default()),
        };
        waits.push(spawn_pass(waiter));
    }
    let semaphore = process.semaphore(&name);
    waits.push(tokio::spawn(async move { semaphore.acquire(1, SOON * 3).await?.release().await }));
    tokio::time::sleep(SHORT).await;
    for guard in held {
        guard.release().await?;
    }
    permit.release().await?;
    for waits in waits {
        let waited = timeout(SOON / 2, waits).await;
        waited.context("nobody looked again")???;
    }
    Ok(())
}

/// Present connections are silent; new ones are answered.
#[apply(test!)]
async fn a_connection_that_is_dead_and_not_closed_is_replaced(redis: &Redis) -> Result {
    let name = name();
    let mute = Mute::to(redis.host())?;
    let process = redis.client_at(&mute.address()).await;
    pass(&process.lock(&name)).await?;
    mute.mute();
    mute.answer_new_connections();
    let works = async || pass(&process.lock(&name)).await.is_ok();
    until("the lock is acquired on a new connection", works).await
}

/// The key is no lock: each call says so, and nothing is retried.
#[apply(test!)]
async fn an_error_that_redis_answers_is_told_as_one_and_not_repeated(redis: &'static Redis) -> Result {
    let (name, mute) = (name(), Mute::to(redis.host())?);
    let process = patient(&mute.address());
    redis.outsider().await.set(&name, "no lock").await?;
    for _ in 0..10 {
        for Family { kind, .. } in with_lease(redis) {
            let lock = (kind.make)(&process, &name, Default::default());
            let clash = lock.acquire(SOON).await;
            let said = clash.err().context("a lock on a text")?.to_string();
            let as_it_is = said.contains("WRONGTYPE") && !said.contains("not available");
            ensure!(as_it_is, "{}: {said}", kind.name);
        }
    }
    let before = mute.requests();
    tokio::time::sleep(Duration::from_millis(700)).await;
    // The subscription may come late, once.
    let asked = mute.requests() - before;
    ensure!(asked <= 2, "requests of nobody: {asked}");
    Ok(())
}

/// A waiter that is dropped during SUBSCRIBE leaves no subscription.
#[apply(test!)]
async fn a_subscription_that_nobody_waits_for_any_more_ends(redis: &Redis) -> Result {
    let (name, other) = (name(), redis.client().await);
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let held = take(&other.lock(&name)).await?;
    let warm = process.lock(&format!("{name}-warm"));
    let first = take(&warm).await?;
    let second = warm.acquire(Duration::from_millis(50)).await;
    ensure_taken("taken twice", second)?;
    first.release().await?;
    mute.delay(Duration::from_millis(300));
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let waits = spawn_acquire(process.lock(&name));
    redis.until_heard_by(&channel, 1).await?;
    waits.abort();
    mute.delay(Duration::ZERO);
    redis.until_heard_by(&channel, 0).await?;
    Ok(held.release().await?)
}

/// A process with eight waiters for a fair lock, which may have it itself, and which dies as if killed: no task of it
/// runs any more.
async fn die_waiting(redis: &Redis, name: &str, holds: bool) -> Result {
    let queue = queue_key(name);
    let wait = async || redis.outsider().await.llen(&queue).await == Ok(8);
    let mut doomed = tokio::runtime::Builder::new_multi_thread();
    let doomed = doomed.worker_threads(1).enable_all().build()?;
    let (process, name) = (redis.host(), name.to_owned());
    doomed.spawn(async move {
        let process = patient(&process);
        let held = match holds {
            true => Some(process.fair_lock(&name).acquire(SOON).await),
            false => None,
        };
        for _ in 0..8 {
            let lock = process.fair_lock(&name);
            tokio::spawn(async move { lock.acquire(SOON * 3).await.map(std::mem::forget) });
        }
        std::future::pending::<()>().await;
        drop(held);
    });
    until("all wait", wait).await?;
    doomed.shutdown_background();
    Ok(())
}

/// A dead process with many waiters leaves the queue after one silence, not after the waits of all of them.
#[apply(test!)]
async fn a_dead_process_with_many_waiters_frees_the_queue_at_once(redis: &Redis) -> Result {
    let name = name();
    let holder = redis.client().await;
    let held = take(&holder.fair_lock(&name)).await?;
    die_waiting(redis, &name, false).await?;
    held.release().await?;
    let next = redis.client().await.fair_lock(&name);
    let next = timeout(SOON, next.acquire(SOON * 4)).await;
    Ok(next.context("the dead still stand in line")??.release().await?)
}

/// A thousand waiters, and the latch opens shortly before their limit: no waiter may be told that it stayed closed,
/// unless a stalled machine exceeded its limit.
#[apply(test!)]
async fn no_waiter_for_a_latch_misses_its_opening(redis: &Redis) -> Result {
    const LIMIT: Duration = Duration::from_secs(5);
    let name = name();
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let latch = process.latch(&name);
    latch.try_set_count(ONE).await?;
    // Answers are slow: looking for each waiter in turn would not finish.
    mute.delay(Duration::from_millis(5));
    let waiters: Vec<_> = (0..1000)
        .map(|_| {
            let latch = latch.clone();
            tokio::spawn(async move { (Instant::now() + LIMIT, latch.wait(LIMIT).await) })
        })
        .collect();
    tokio::time::sleep(LIMIT / 2).await;
    redis.client().await.latch(&name).count_down().await?;
    let (open, mut in_time) = (Instant::now(), 0);
    for waiter in waiters {
        let (end, waited) = waiter.await?;
        if end <= open && matches!(waited, Err(LockError::Timeout { .. })) {
            continue;
        }
        waited.context("open before the end of the limit")?;
        in_time += usize::from(end > open);
    }
    ensure!(in_time > 0, "nobody waited any more: the test shows nothing");
    Ok(())
}

/// A waiter does not exceed its wait, though the wake-ups hang. Only one that always does has a fault: a machine can stop for a
/// moment.
#[apply(test!)]
async fn a_wait_is_not_longer_than_it_says(redis: &Redis) -> Result {
    let (name, other) = (name(), redis.client().await);
    let proxy = Proxy::to(redis.host())?;
    let process = pinged(&first_connection(proxy.address(), None).await?).await?;
    let held = take(&other.lock(&name)).await?;
    let (wait, lock) = (Duration::from_millis(800), process.lock(&name));
    let mut times = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let waiting = async { (lock.acquire(wait).await, started.elapsed()) };
        // The reference: the same wait and one command, on the same machine.
        let by_hand = async {
            tokio::time::sleep(wait).await;
            (ping(other.connection()).await, started.elapsed())
        };
        let ((refused, waited), (answered, least)) = tokio::join!(waiting, by_hand);
        ensure!(answered, "no way");
        ensure_taken("had", refused)?;
        // One more re-check would take half a second.
        if waited < least + Duration::from_millis(400) {
            return Ok(held.release().await?);
        }
        times.push((waited, least));
    }
    bail!("waited, and the least time: {times:?}")
}

/// A process dies with its waiters, and nobody tries for as long as a restart takes: the queue still knows that they
/// were ours, and dead.
#[apply(test!)]
async fn a_dead_process_leaves_the_queue_though_nobody_tried(redis: &Redis) -> Result {
    let name = name();
    die_waiting(redis, &name, true).await?;
    redis.delete(&name).await;
    // Waits by the server's clock.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let next = redis.client().await.fair_lock(&name);
    let next = next.acquire(SOON / 2).await;
    next.context("the dead stand before a free lock")?.release().await?;
    redis.no_key_left(&name).await
}
