//! What the objects in Redis do where the way to it is slow, half dead, or answers with an error; and with waits and
//! leases at the ends of their ranges.

use super::{
    family::{Family, Server},
    mute::Mute,
    redis::{Redis, patient, with_lease},
    support::*,
};
use oversell::lab::{Port, Proxy};
use oversell_lock::{Lease, Lock, LockError, redis::RedisClient};
use redis::{AsyncTypedCommands, aio::ConnectionManagerConfig};
use std::{num::NonZeroU32, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

const ONE: NonZeroU32 = NonZeroU32::MIN;

async fn ping(client: &RedisClient) -> bool {
    let ping = redis::cmd("PING");
    ping.exec_async(&mut client.connection()).await.is_ok()
}

/// A server that is back is asked at once: the error of the last attempt to reach it is told to nobody. The twin is the
/// connection manager of the redis crate alone: it tells it, and does not send the command.
#[apply(test!)]
async fn the_first_command_to_a_server_that_is_back_is_sent(redis: &Redis) -> Result<()> {
    /// By then the attempt to connect again has been given up.
    const GIVEN_UP: Duration = Duration::from_secs(5);
    let proxy = Proxy::to(redis.host())?;
    let process = patient(&proxy.address());
    let client = redis::Client::open(format!("redis://{}/?protocol=resp3", proxy.address()))?;
    let config = ConnectionManagerConfig::new().set_number_of_retries(1);
    let mut twin = client.get_connection_manager_with_config(config).await?;
    ensure!(ping(&process).await, "no way");
    proxy.cut();
    ensure!(!ping(&process).await, "there is a way though it is cut");
    let cut = redis::cmd("PING").exec_async(&mut twin).await;
    ensure!(cut.is_err(), "the twin has a way though it is cut");
    tokio::time::sleep(GIVEN_UP).await;
    proxy.mend();
    ensure!(ping(&process).await, "the first command was not sent");
    let twin = redis::cmd("PING").exec_async(&mut twin).await;
    ensure!(twin.is_err(), "the twin has sent it as well");
    Ok(())
}

/// An answer that comes when the lease is over brings no lock: the wait goes on, and ends.
#[apply(test!)]
async fn an_answer_after_the_lease_brings_no_lock(redis: &'static Redis) -> Result<()> {
    let brief = Lease::Fixed(Duration::from_millis(200));
    for family in with_lease(redis) {
        let (name, mute) = (name(), Mute::to(redis.host())?);
        let process = family.of(patient(&mute.address()));
        ensure!(ping(&process.client).await, "no way");
        mute.delay(Duration::from_millis(300));
        let late = process.leased(&name, brief).acquire(SHORT * 3).await;
        taken(&format!("{}, whose lease is over", family.kind.name), late)?;
    }
    Ok(())
}

/// A way to the server that takes one connection and refuses all others.
async fn first_connection_only(server: String) -> Result<String> {
    let port = Port::free()?;
    let listener = TcpListener::bind(("127.0.0.1", port.number())).await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await?;
        drop(listener);
        let _refuses = port;
        let mut server = TcpStream::connect(server).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await
    });
    Ok(address)
}

/// Where no wake-up can come, a waiter looks all the same, and the wait ends when it ends.
#[apply(test!)]
async fn waiters_look_again_though_no_wake_up_can_come(redis: &'static Redis) -> Result<()> {
    let (name, other) = (name(), redis.client().await);
    let process = patient(&first_connection_only(redis.host()).await?);
    ensure!(ping(&process).await, "no way");
    other.semaphore(&name).try_set_permits(1).await?;
    let permit = other.semaphore(&name).acquire(1, SOON).await?;
    let (mut held, mut waits) = (Vec::new(), Vec::new());
    for Family { kind, .. } in with_lease(redis) {
        let name = format!("{name}-{}", kind.name);
        held.push(take(&(kind.make)(&other, &name, Default::default())).await?);
        // Beside a reader it is a writer that waits.
        let waiter = match kind.name {
            "redis_read" => process.rw_lock(&name).write().boxed(),
            _ => (kind.make)(&process, &name, Default::default()),
        };
        waits.push(passing(waiter));
    }
    let semaphore = process.semaphore(&name);
    waits.push(tokio::spawn(async move {
        semaphore.acquire(1, SOON * 3).await?.release().await
    }));
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

/// The connections are there and nothing comes back on them; new ones are answered.
#[apply(test!)]
async fn a_connection_that_is_dead_and_not_closed_is_replaced(redis: &Redis) -> Result<()> {
    let name = name();
    let mute = Mute::to(redis.host())?;
    let process = redis.client_at(&mute.address()).await;
    pass(&process.lock(&name)).await?;
    mute.mute();
    mute.answer_new_connections();
    until("the lock is acquired on a new connection", || async {
        pass(&process.lock(&name)).await.is_ok()
    })
    .await
}

/// The key is no lock. That is what is said, each time, and nothing goes on asking.
#[apply(test!)]
async fn an_error_that_redis_answers_is_told_as_one_and_not_repeated(
    redis: &'static Redis,
) -> Result<()> {
    let (name, mute) = (name(), Mute::to(redis.host())?);
    let process = patient(&mute.address());
    redis.outsider().await.set(&name, "no lock").await?;
    for _ in 0..10 {
        for Family { kind, .. } in with_lease(redis) {
            let lock = (kind.make)(&process, &name, Default::default());
            let clash = lock.acquire(SOON).await;
            let said = clash.err().context("a lock on a text")?.to_string();
            ensure!(
                said.contains("WRONGTYPE") && !said.contains("not available"),
                "{}: {said}",
                kind.name
            );
        }
    }
    let before = mute.requests();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let more = mute.requests() - before;
    ensure!(more == 0, "{more} requests though nobody asks for anything");
    Ok(())
}

/// What is no lock for one alone; the clause has the others.
#[apply(test!)]
async fn every_wait_may_be_for_ever(redis: &Redis) -> Result<()> {
    const MAX: Duration = Duration::MAX;
    let (name, process) = (name(), redis.client().await);
    let guard = process.rw_lock(&name).read().acquire(MAX).await?;
    guard.release().await?;
    let semaphore = process.semaphore(&format!("{name}-semaphore"));
    semaphore.try_set_permits(1).await?;
    drop(semaphore.acquire(1, MAX).await?);
    process.latch(&format!("{name}-latch")).wait(MAX).await?;
    let limiter = process.rate_limiter(&format!("{name}-rate"));
    limiter.try_set_rate(ONE, Duration::from_secs(1)).await?;
    Ok(limiter.acquire(ONE, MAX).await?)
}

/// A lease or an interval that Redis cannot keep is refused before anything is written; the clause has the other locks.
#[apply(test!)]
async fn a_lease_without_end_or_length_is_refused_to_a_reader(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    for length in [Duration::MAX, Duration::ZERO, Duration::from_micros(10)] {
        for lease in [Lease::Fixed(length), Lease::Watchdog(length)] {
            let read = process.rw_lock(&name).read().lease(lease);
            invalid("a lease that cannot be kept", read.acquire(SOON).await)?;
        }
    }
    let limiter = process.rate_limiter(&name);
    let endless = limiter.try_set_rate(ONE, Duration::MAX).await;
    invalid("an interval without end", endless)?;
    let left = redis.keys(&name).await;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// A waiter that goes away while SUBSCRIBE is on its way leaves no subscription.
#[apply(test!)]
async fn a_subscription_that_nobody_waits_for_any_more_ends(redis: &Redis) -> Result<()> {
    let (name, other) = (name(), redis.client().await);
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let held = take(&other.lock(&name)).await?;
    // Both connections are there.
    let warm = process.lock(&format!("{name}-warm"));
    let first = take(&warm).await?;
    let second = warm.acquire(Duration::from_millis(50)).await;
    taken("taken twice", second)?;
    first.release().await?;
    mute.delay(Duration::from_millis(300));
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let heard_by =
        async |n: i64| matches!(redis.listeners(&channel).await, Ok(heard) if heard == n);
    let waits = acquiring(process.lock(&name));
    until("SUBSCRIBE has come to Redis", || heard_by(1)).await?;
    waits.abort();
    mute.delay(Duration::ZERO);
    until("the subscription has ended", || heard_by(0)).await?;
    Ok(held.release().await?)
}

/// A process that dies with many waiters is out of the queue as soon as it has been silent for a while, not for the
/// waits of all of them one after the other.
#[apply(test!)]
async fn a_dead_process_with_many_waiters_frees_the_queue_at_once(redis: &Redis) -> Result<()> {
    let (name, host) = (name(), redis.host());
    let holder = redis.client().await;
    let held = take(&holder.fair_lock(&name)).await?;
    let queue = format!("redisson_lock_queue:{{{name}}}");
    let waiting = || async { redis.outsider().await.llen(&queue).await.unwrap_or(0) };
    let doomed = {
        let (name, host) = (name.clone(), host.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(async {
                let process = patient(&host);
                for _ in 0..8 {
                    let lock = process.fair_lock(&name);
                    tokio::spawn(async move { lock.acquire(SOON).await.map(std::mem::forget) });
                }
            });
            runtime
        })
        .join()
        .ok()
        .context("no runtime")?
    };
    until("all wait", || async { waiting().await == 8 }).await?;
    // As a kill would: no task gets to say anything more.
    doomed.shutdown_background();
    held.release().await?;
    let next = redis.client().await.fair_lock(&name);
    let next = timeout(SOON, next.acquire(SOON * 4)).await;
    let next = next.context("the dead still stand in line, and the lock is free")?;
    Ok(next?.release().await?)
}

/// A thousand wait, and it opens shortly before the end of their limit: nobody is told that it stayed closed, but
/// one whose limit had ended by then, where the machine stood still.
#[apply(test!)]
async fn no_waiter_for_a_latch_misses_its_opening(redis: &Redis) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(5);
    let name = name();
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let latch = process.latch(&name);
    latch.try_set_count(ONE).await?;
    // Each answer takes a while: one that looks for each in turn does not come to an end.
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
        if end <= open && matches!(waited, Err(LockError::Taken { .. })) {
            continue;
        }
        waited.context("open before the end of the limit")?;
        in_time += usize::from(end > open);
    }
    ensure!(
        in_time > 0,
        "nobody waited any more when it opened: the test shows nothing"
    );
    Ok(())
}

/// A waiter that waits to the end does not wait longer, though the wake-ups hang.
#[apply(test!)]
async fn a_wait_is_not_longer_than_it_says(redis: &Redis) -> Result<()> {
    let (name, other) = (name(), redis.client().await);
    let proxy = Proxy::to(redis.host())?;
    let process = patient(&first_connection_only(proxy.address()).await?);
    ensure!(ping(&process).await, "no way");
    let held = take(&other.lock(&name)).await?;
    let (wait, lock, started) = (
        Duration::from_millis(800),
        process.lock(&name),
        Instant::now(),
    );
    let waiting = async { (lock.acquire(wait).await, started.elapsed()) };
    // A wait and one command, by hand: where the machine stands still it does so for both.
    let by_hand = async {
        tokio::time::sleep(wait).await;
        (ping(&other).await, started.elapsed())
    };
    let ((refused, waited), (answered, least)) = tokio::join!(waiting, by_hand);
    ensure!(answered, "no way");
    taken("had", refused)?;
    // A re-check more would be half a second.
    ensure!(
        waited < least + Duration::from_millis(400),
        "{waited:?} instead of {least:?}"
    );
    Ok(held.release().await?)
}
