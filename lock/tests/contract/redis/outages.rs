//! Waiters through an outage of Redis, and a lease through a silent connection.

use crate::{
    redis::{LEASE, LIMIT, client, with_lease},
    support::*,
};
use oversell_lock::redis::{RedisClient, RedisOptions};
use std::{fmt::Debug, num::NonZeroU32};
use tokio::time::Instant;

/// A process that waits out an outage, and its twin, which does not.
fn processes(address: &str, timeout: Duration) -> [RedisClient; 2] {
    [true, false].map(|waits| {
        let options = RedisOptions::new(format!("redis://{address}")).lease(LEASE);
        let options = options.timeout(timeout).wait_while_unavailable(waits);
        RedisClient::new(options).expect("an address")
    })
}

/// The lock of this kind that does not get in beside its holder: beside a reader, a writer.
fn rival(kind: &Kind<Redis>, process: &RedisClient, name: &str) -> AnyLock {
    match kind.name {
        "redis_read" => process.rw_lock(name).write().boxed(),
        _ => (kind.make)(process, name, Ask::default()),
    }
}

/// A waiter for each kind of lock, for a permit and for a latch; each releases what it gets.
fn waiters(redis: &'static Redis, process: &RedisClient, name: &str) -> Vec<(&'static str, JoinHandle<Answer>)> {
    let waiter = |Family { kind, .. }: Family<Redis>| {
        let lock = rival(kind, process, &format!("{name}-{}", kind.name));
        (kind.name, spawn_pass(lock))
    };
    let mut waiters: Vec<_> = with_lease(redis).map(waiter).collect();
    let (semaphore, latch) = (process.semaphore(name), process.latch(&latch(name)));
    waiters.push(("semaphore", tokio::spawn(async move { semaphore.acquire(1, SOON * 3).await?.release().await })));
    waiters.push(("latch", tokio::spawn(async move { latch.wait(SOON * 3).await })));
    waiters
}

fn latch(name: &str) -> String {
    format!("{name}-latch")
}

/// The twin's waiters all end with the outage.
#[apply(test!)]
async fn waiters_outlive_an_outage_if_asked_to(redis: &'static Redis) -> Result {
    let (name, holder) = (name(), redis.client().await);
    let proxy = Proxy::to(redis.host())?;
    let [patient, twin] = processes(&proxy.address(), SOON);
    let mut held = Vec::new();
    for Family { kind, .. } in with_lease(redis) {
        let name = format!("{name}-{}", kind.name);
        held.push(take(&(kind.make)(&holder, &name, Ask::default())).await?);
    }
    let permit = holder.semaphore(&name).initially(1).acquire(1, SOON).await?;
    let closed = holder.latch(&latch(&name));
    closed.try_set_count(NonZeroU32::MIN).await?;
    let (waiting, impatient) = (waiters(redis, &patient, &name), waiters(redis, &twin, &name));
    for Family { kind, .. } in with_lease(redis) {
        let name = format!("{name}-{}", kind.name);
        until("it is waited for", || redis.is_waited_for(&name)).await?;
    }
    proxy.cut();
    for (what, waiter) in impatient {
        ensure_unavailable(&format!("{what} of the twin"), waiter.await?)?;
    }
    for (what, waiter) in &waiting {
        ensure!(!waiter.is_finished(), "{what} waits no more");
    }
    proxy.mend();
    for guard in held {
        guard.release().await?;
    }
    permit.release().await?;
    closed.count_down().await?;
    for (what, waiter) in waiting {
        waiter.await?.context(what)?;
    }
    Ok(())
}

/// How long each waits through the outage.
const OUTAGE: Duration = Duration::from_secs(1);

/// At the end of a wait, an outage is told as one: by the waiter that asks Redis, and by those behind it. One that waits alone
/// comes first, so that the outage is known however late the next answer is.
#[apply(test!)]
async fn a_wait_that_ends_in_an_outage_is_no_taken_lock(redis: &'static Redis) -> Result {
    let (name, proxy) = (name(), Proxy::to(redis.host())?);
    let [patient, _] = processes(&proxy.address(), SOON);
    proxy.cut();
    let each = with_lease(redis).map(|Family { kind, .. }| {
        let lock = rival(kind, &patient, &format!("{name}-{}", kind.name));
        async move {
            ensure_waited_out(kind.name, lock.acquire(OUTAGE)).await?;
            let behind = format!("{}, behind it", kind.name);
            tokio::try_join!(
                ensure_waited_out(kind.name, lock.acquire(OUTAGE)),
                ensure_waited_out(&behind, lock.acquire(OUTAGE)),
            )?;
            ensure_unavailable("without a wait", lock.try_acquire().await)
        }
    });
    let (semaphore, latch) = (patient.semaphore(&name), patient.latch(&name));
    let permits = async {
        ensure_waited_out("a permit", semaphore.acquire(1, OUTAGE)).await?;
        tokio::try_join!(
            ensure_waited_out("a permit", semaphore.acquire(1, OUTAGE)),
            ensure_waited_out("a permit behind it", semaphore.acquire(1, OUTAGE)),
        )
    };
    let latch = ensure_waited_out("a latch", latch.wait(OUTAGE));
    tokio::try_join!(try_join_all(each), permits, latch).map(drop)
}

/// Refuses a wait of [`OUTAGE`] that ends early, or otherwise than in the outage.
async fn ensure_waited_out<T: Debug>(what: &str, waiting: impl Future<Output = Result<T, LockError>>) -> Result {
    let started = Instant::now();
    let answer = waiting.await;
    let waited = started.elapsed();
    ensure!(waited >= OUTAGE, "{what} waited {waited:?}");
    ensure_unavailable(what, answer)
}

/// Redis takes the lock, and its answer is lost: what it took is undone, and the wait goes on with another identity. The
/// twin is told.
#[apply(test!)]
async fn an_unanswered_acquire_is_undone_and_waited_out(redis: &'static Redis) -> Result {
    let each = with_lease(redis).map(|family| async move {
        let (name, kind) = (name(), family.kind);
        let mute = Mute::to(redis.host())?;
        for process in processes(&mute.address(), LIMIT) {
            let waits = format!("{process:?}").contains("waits_while_unavailable: true");
            // Redis knows the scripts from now on.
            pass(&(kind.make)(&process, &format!("{name}-warm"), Ask::default())).await?;
            mute.mute_at("EVALSHA");
            let waiting = spawn_acquire((kind.make)(&process, &name, Ask::default()));
            let is_taken = async || !redis.holders(&name).await.is_empty();
            until("it is taken, without an answer", is_taken).await?;
            mute.answer_new_connections();
            let answer = waiting.await?;
            if waits {
                let guard = answer.context(kind.name)?;
                let holders = redis.holders(&name).await;
                ensure_equal(&format!("holders of {}", kind.name), holders.len(), 1)?;
                ensure_kept(kind.name, &guard)?;
                guard.release().await?;
            } else {
                ensure_unavailable(&format!("{} of the twin", kind.name), answer)?;
            }
            family.nothing_left(&name).await?;
            mute.heal();
        }
        anyhow::Ok(())
    });
    try_join_all(each).await.map(drop)
}

/// The same for permits: none is lost, and none is taken twice.
#[apply(test!)]
async fn an_unanswered_permit_is_undone_and_waited_out(redis: &Redis) -> Result {
    let (name, mute) = (name(), Mute::to(redis.host())?);
    let [process, _] = processes(&mute.address(), LIMIT);
    let semaphore = process.semaphore(&name).initially(1);
    semaphore.acquire(1, SOON).await?.release().await?;
    mute.mute_at("EVALSHA");
    let waiter = semaphore.clone();
    let waiting = tokio::spawn(async move { waiter.acquire(1, SOON).await });
    let outside = redis.client().await.semaphore(&name);
    let is_taken = async || matches!(outside.available_permits().await, Ok(0));
    until("it is taken, without an answer", is_taken).await?;
    mute.answer_new_connections();
    let permit = waiting.await?.context("undone and taken again")?;
    ensure_equal("permits", outside.available_permits().await?, 0)?;
    permit.release().await?;
    ensure_equal("permits that are back", outside.available_permits().await?, 1)
}

/// A connection turns silent, and new ones are answered: a lease of 5 s is renewed in time though a command may take 3 s.
#[apply(test!)]
async fn a_silent_connection_costs_no_short_lease(redis: &'static Redis) -> Result {
    let each = with_lease(redis).map(|family| async move {
        let mute = Mute::to(redis.host())?;
        let process = client(&Process::new(), &mute.address(), LEASE, LIMIT);
        outlives_silence(family.of(process), &mute).await
    });
    try_join_all(each).await.map(drop)
}

/// Holds a lease of 5 s through the silence of the present connections.
pub(crate) async fn outlives_silence<S: Server>(process: Contender<S>, mute: &Mute) -> Result {
    let lease = Duration::from_secs(5);
    let lock = process.leased(&name(), Lease::Watchdog(lease));
    let guard = take(&lock).await?;
    mute.mute();
    mute.answer_new_connections();
    renewed_late(&guard, lease).await?;
    Ok(guard.release().await?)
}

/// Waits until a renewal is missing, and then until it has come.
async fn renewed_late(guard: &Guard, lease: Duration) -> Result {
    let left = || guard.sure_for().unwrap_or_default();
    until("a renewal is late", async || left() < lease / 2).await?;
    let decided = async || guard.is_lost() || left() > lease / 2;
    until("it is renewed or lost", decided).await?;
    ensure_kept("a lease whose server can be reached", guard)
}

/// The twin uses a connection that nobody replaces: it loses its lease, though Redis can be reached.
#[apply(test!)]
async fn a_silent_connection_that_stays_costs_the_lease(redis: &Redis) -> Result {
    let mute = Mute::to(redis.host())?;
    let url = format!("redis://{}/?protocol=resp3", mute.address());
    let connection = ::redis::Client::open(url.as_str())?;
    // By default a connection is given up after a second, which a busy machine may need.
    let config = ::redis::AsyncConnectionConfig::new().set_connection_timeout(Some(SOON)).set_response_timeout(Some(SOON));
    let connection = (connection.get_multiplexed_async_connection_with_config(&config)).await?;
    let process = RedisClient::over(connection, RedisOptions::new(url).timeout(LIMIT))?;
    let lease = Lease::Watchdog(Duration::from_secs(5));
    let guard = take(&process.lock(&name()).lease(lease)).await?;
    mute.mute();
    mute.answer_new_connections();
    wait_until_lost(&guard).await
}
