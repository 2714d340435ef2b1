//! What the objects in Redis do where the way to it is slow, half dead, or answers with an error; and with waits and
//! leases at the ends of their ranges.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    port::Port,
    proxy::Proxy,
    redis::{Redis, patient},
    redlock::LONG,
};
use oversell_lock::{
    Guard, Lock, LockError, MultiLock,
    redis::{Lease, RedisClient, Redlock},
};
use redis::{AsyncTypedCommands, aio::ConnectionManagerConfig};
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::{Instant, timeout},
};

const ONE: NonZeroU32 = NonZeroU32::MIN;

fn text(error: ::redis::RedisError) -> String {
    error.to_string()
}

async fn ping(client: &RedisClient) -> bool {
    ::redis::cmd("PING")
        .exec_async(&mut client.connection())
        .await
        .is_ok()
}

/// A server that is back is asked at once: the error of the last attempt to reach it is told to nobody. The twin is the
/// connection manager of the redis crate alone: it tells it, and does not send the command.
pub(crate) async fn the_first_command_to_a_server_that_is_back_is_sent(
    redis: Arc<Redis>,
) -> Verdict {
    /// By then the attempt to connect again has been given up.
    const GIVEN_UP: Duration = Duration::from_secs(5);
    let proxy = Proxy::to(redis.host());
    let process = patient(&proxy.address());
    let client = ::redis::Client::open(format!("redis://{}/?protocol=resp3", proxy.address()))
        .map_err(text)?;
    let config = ConnectionManagerConfig::new().set_number_of_retries(1);
    let mut twin = client
        .get_connection_manager_with_config(config)
        .await
        .map_err(text)?;
    ensure(ping(&process).await, || "no way".into())?;
    proxy.cut().await;
    ensure(!ping(&process).await, || {
        "there is a way though it is cut".into()
    })?;
    let cut = ::redis::cmd("PING").exec_async(&mut twin).await;
    ensure(cut.is_err(), || {
        "the twin has a way though it is cut".into()
    })?;
    tokio::time::sleep(GIVEN_UP).await;
    proxy.mend();
    ensure(ping(&process).await, || {
        "the first command was not sent".into()
    })?;
    let twin = ::redis::cmd("PING").exec_async(&mut twin).await;
    ensure(twin.is_err(), || "the twin has sent it as well".into())
}

/// An answer that comes when the lease is over brings no lock: the wait goes on, and ends.
pub(crate) async fn an_answer_after_the_lease_brings_no_lock(redis: Arc<Redis>) -> Verdict {
    let mute = Mute::to(redis.host()).await;
    let process = patient(&mute.address());
    let (brief, wait) = (
        Lease::Fixed(Duration::from_millis(200)),
        Duration::from_millis(900),
    );
    ensure(ping(&process).await, || "no way".into())?;
    mute.delay(Duration::from_millis(300));
    let name = name();
    let had: [(&str, Result<Guard, LockError>); 3] = [
        (
            "a lock",
            process
                .lock(&format!("{name}-lock"))
                .lease(brief)
                .acquire(wait)
                .await,
        ),
        (
            "a fair lock",
            process
                .fair_lock(&format!("{name}-fair"))
                .lease(brief)
                .acquire(wait)
                .await,
        ),
        (
            "a writer",
            process
                .rw_lock(&format!("{name}-rw"))
                .write()
                .lease(brief)
                .acquire(wait)
                .await,
        ),
    ];
    for (what, had) in had {
        ensure(matches!(had, Err(LockError::Taken { .. })), || {
            format!("{what}, whose lease is over: {had:?}")
        })?;
    }
    Ok(())
}

/// A test that cuts a way and mends it, as most of these do, does not end at a port that somebody else got meanwhile.
pub(crate) async fn a_port_that_nobody_listens_on_stays_ours(_: Arc<Redis>) -> Verdict {
    let port = Port::free();
    for _ in 0..2 {
        drop(port.listen());
        let other = TcpSocket::new_v4().and_then(|socket| socket.bind(port.address()));
        ensure(other.is_err(), || "another socket has got it".into())?;
        let connected = TcpStream::connect(port.address()).await;
        ensure(connected.is_err(), || {
            "nobody listens, and it takes a connection".into()
        })?;
    }
    Ok(())
}

/// A way to the server that takes one connection and refuses all others.
async fn first_connection_only(server: String) -> String {
    let port = Port::free();
    let (listener, address) = (port.listen(), port.address().to_string());
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await?;
        drop(listener);
        let _refuses = port;
        let mut server = TcpStream::connect(server).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await
    });
    address
}

/// Where no wake-up can come, who waits looks all the same, and the wait ends when it ends.
pub(crate) async fn waiters_look_again_though_no_wake_up_can_come(redis: Arc<Redis>) -> Verdict {
    let (name, other) = (name(), redis.process().await);
    let process = patient(&first_connection_only(redis.host()).await);
    ensure(ping(&process).await, || "no way".into())?;
    says("set", other.semaphore(&name).try_set_permits(1).await)?;
    let held = says(
        "held",
        other.lock(&format!("{name}-lock")).acquire(SOON).await,
    )?;
    let fair = says(
        "held",
        other.fair_lock(&format!("{name}-fair")).acquire(SOON).await,
    )?;
    let reads = says(
        "held",
        other
            .rw_lock(&format!("{name}-rw"))
            .read()
            .acquire(SOON)
            .await,
    )?;
    let permit = says("held", other.semaphore(&name).acquire(1, SOON).await)?;
    let waits = {
        let name = name.clone();
        tokio::spawn(async move {
            let (lock, fair) = (
                process.lock(&format!("{name}-lock")),
                process.fair_lock(&format!("{name}-fair")),
            );
            let (write, semaphore) = (
                process.rw_lock(&format!("{name}-rw")).write(),
                process.semaphore(&name),
            );
            let all = futures::join!(
                lock.acquire(SOON * 3),
                fair.acquire(SOON * 3),
                write.acquire(SOON * 3),
                semaphore.acquire(1, SOON * 3)
            );
            for (what, result) in [("lock", all.0), ("fair", all.1), ("write", all.2)] {
                says(what, says(what, result)?.release().await)?;
            }
            says("semaphore", says("semaphore", all.3)?.release().await)
        })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    says("release", held.release().await)?;
    says("release", fair.release().await)?;
    says("release", reads.release().await)?;
    says("release", permit.release().await)?;
    let waited = timeout(SOON / 2, waits)
        .await
        .map_err(|_| "nobody looked again")?;
    waited.map_err(|e| e.to_string())?
}

/// The connections are there and nothing comes back on them; new ones are answered.
pub(crate) async fn a_connection_that_is_dead_and_not_closed_is_replaced(
    redis: Arc<Redis>,
) -> Verdict {
    let name = name();
    let mute = Mute::to(redis.host()).await;
    let process = redis.process_at(&mute.address()).await;
    says(
        "warm",
        says("warm", process.lock(&name).acquire(SOON).await)?
            .release()
            .await,
    )?;
    mute.mute();
    mute.answer_new_connections();
    until("the lock is had on a new connection", || async {
        match process.lock(&name).acquire(Duration::ZERO).await {
            Ok(guard) => guard.release().await.is_ok(),
            Err(_) => false,
        }
    })
    .await
}

/// The key is no lock. That is what is said, each time, and nothing goes on asking.
pub(crate) async fn an_error_that_redis_answers_is_told_as_one_and_not_repeated(
    redis: Arc<Redis>,
) -> Verdict {
    let name = name();
    let mute = Mute::to(redis.host()).await;
    let process = patient(&mute.address());
    redis
        .outsider()
        .await
        .set(&name, "no lock")
        .await
        .map_err(|e| e.to_string())?;
    for _ in 0..10 {
        let clashes = [
            ("lock", process.lock(&name).acquire(SOON).await),
            ("fair lock", process.fair_lock(&name).acquire(SOON).await),
            (
                "write lock",
                process.rw_lock(&name).write().acquire(SOON).await,
            ),
            (
                "read lock",
                process.rw_lock(&name).read().acquire(SOON).await,
            ),
        ];
        for (what, clash) in clashes {
            let Err(error) = clash else {
                return Err(format!("a {what} on a text: {clash:?}"));
            };
            let said = error.to_string();
            ensure(
                said.contains("WRONGTYPE") && !said.contains("not available"),
                || format!("{what}: {said}"),
            )?;
        }
    }
    let before = mute.requests();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let more = mute.requests() - before;
    ensure(more == 0, || {
        format!("{more} requests though nobody asks for anything")
    })
}

pub(crate) async fn every_wait_may_be_for_ever(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let at = |kind: &str| format!("{name}-{kind}");
    says(
        "set",
        process.semaphore(&at("semaphore")).try_set_permits(1).await,
    )?;
    let limiter = process.rate_limiter(&at("rate"));
    says(
        "set",
        limiter.try_set_rate(ONE, Duration::from_secs(1)).await,
    )?;
    let multi = MultiLock::new(vec![process.lock(&at("one")), process.lock(&at("two"))]);
    let redlock = Redlock::new(std::slice::from_ref(&process), &at("redlock")).lease(LONG);
    let had = [
        (
            "lock",
            process.lock(&at("lock")).acquire(Duration::MAX).await,
        ),
        (
            "fenced",
            process
                .fenced_lock(&at("fenced"))
                .acquire(Duration::MAX)
                .await,
        ),
        (
            "owned",
            process
                .lock(&at("owned"))
                .owner(process.owner())
                .acquire(Duration::MAX)
                .await,
        ),
        (
            "fair",
            process.fair_lock(&at("fair")).acquire(Duration::MAX).await,
        ),
        (
            "read",
            process
                .rw_lock(&at("rw"))
                .read()
                .acquire(Duration::MAX)
                .await,
        ),
        (
            "write",
            process
                .rw_lock(&at("w"))
                .write()
                .acquire(Duration::MAX)
                .await,
        ),
        ("redlock", redlock.acquire(Duration::MAX).await),
        ("multi", multi.acquire(Duration::MAX).await),
    ];
    for (what, guard) in had {
        says(what, says(what, guard)?.release().await)?;
    }
    drop(says(
        "semaphore",
        process
            .semaphore(&at("semaphore"))
            .acquire(1, Duration::MAX)
            .await,
    )?);
    says(
        "latch",
        process.latch(&at("latch")).wait(Duration::MAX).await,
    )?;
    says("rate", limiter.acquire(ONE, Duration::MAX).await)
}

/// Leases that Redis cannot keep are refused before anything is written.
pub(crate) async fn a_lease_without_end_or_length_is_refused(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    for length in [Duration::MAX, Duration::ZERO, Duration::from_micros(10)] {
        for lease in [Lease::Fixed(length), Lease::Watchdog(length)] {
            let refused = [
                ("lock", process.lock(&name).lease(lease).acquire(SOON).await),
                (
                    "fair",
                    process.fair_lock(&name).lease(lease).acquire(SOON).await,
                ),
                (
                    "read",
                    process
                        .rw_lock(&name)
                        .read()
                        .lease(lease)
                        .acquire(SOON)
                        .await,
                ),
                (
                    "write",
                    process
                        .rw_lock(&name)
                        .write()
                        .lease(lease)
                        .acquire(SOON)
                        .await,
                ),
                (
                    "redlock",
                    Redlock::new(std::slice::from_ref(&process), &name)
                        .lease(lease)
                        .acquire(SOON)
                        .await,
                ),
            ];
            for (what, refused) in refused {
                let invalid = matches!(&refused, Err(LockError::Invalid { rule, .. }) if rule.contains("lease"));
                ensure(invalid, || format!("a {what} for {length:?}: {refused:?}"))?;
            }
        }
    }
    let limiter = process.rate_limiter(&name);
    let endless = limiter.try_set_rate(ONE, Duration::MAX).await;
    ensure(matches!(endless, Err(LockError::Invalid { .. })), || {
        format!("an interval without end: {endless:?}")
    })?;
    let left = redis.left(&name).await;
    ensure(left.is_empty(), || format!("left: {left:?}"))
}

/// Who goes away while SUBSCRIBE is on its way leaves no subscription.
pub(crate) async fn a_subscription_that_nobody_waits_for_any_more_ends(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, other) = (name(), redis.process().await);
    let mute = Mute::to(redis.host()).await;
    let process = patient(&mute.address());
    let held = says("held", other.lock(&name).acquire(SOON).await)?;
    // Both connections are there.
    let warm = process.lock(&format!("{name}-warm"));
    let first = says("warm", warm.acquire(SOON).await)?;
    let second = warm.acquire(Duration::from_millis(50)).await;
    ensure(matches!(second, Err(LockError::Taken { .. })), || {
        format!("taken twice: {second:?}")
    })?;
    says("warm", first.release().await)?;
    mute.delay(Duration::from_millis(300));
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let told = || async {
        let mut outsider = redis.outsider().await;
        ::redis::cmd("PUBLISH")
            .arg(&channel)
            .arg("0")
            .query_async::<i64>(&mut outsider)
            .await
            .unwrap_or(-1)
    };
    let lock = process.lock(&name);
    let waits = tokio::spawn(async move { lock.acquire(SOON).await });
    until("SUBSCRIBE has come to Redis", || async {
        told().await == 1
    })
    .await?;
    waits.abort();
    mute.delay(Duration::ZERO);
    until("the subscription has ended", || async { told().await == 0 }).await?;
    says("release", held.release().await)
}

/// A process that dies with many waiters is out of the queue as soon as it has been silent for a while, not for the
/// waits of all of them one after the other.
pub(crate) async fn a_dead_process_with_many_waiters_frees_the_queue_at_once(
    redis: Arc<Redis>,
) -> Verdict {
    let (name, host) = (name(), redis.host());
    let holder = redis.process().await;
    let held = says("held", holder.fair_lock(&name).acquire(SOON).await)?;
    let waiting = || async {
        redis
            .outsider()
            .await
            .llen(format!("redisson_lock_queue:{{{name}}}"))
            .await
            .unwrap_or(0)
    };
    let doomed = {
        let (name, host) = (name.clone(), host.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(async {
                let process = Redis::at(format!("redis://{host}")).process().await;
                for _ in 0..8 {
                    let lock = process.fair_lock(&name);
                    tokio::spawn(async move { lock.acquire(SOON).await.map(std::mem::forget) });
                }
            });
            runtime
        })
        .join()
        .map_err(|_| "no runtime")?
    };
    until("all wait", || async { waiting().await == 8 }).await?;
    // As a kill would: no task gets to say anything more.
    doomed.shutdown_background();
    says("release", held.release().await)?;
    let next = timeout(
        SOON,
        redis.process().await.fair_lock(&name).acquire(SOON * 4),
    )
    .await;
    let next = next.map_err(|_| "the dead still stand in line, and the lock is free")?;
    says("release", says("a turn", next)?.release().await)
}

/// A thousand wait, and it opens shortly before the end of their limit: nobody is told that it stayed closed. (Whose limit
/// had ended by then, where the machine stood still, may be.)
pub(crate) async fn nobody_who_waits_for_a_latch_misses_its_opening(redis: Arc<Redis>) -> Verdict {
    const LIMIT: Duration = Duration::from_secs(5);
    let name = name();
    let mute = Mute::to(redis.host()).await;
    let process = patient(&mute.address());
    let latch = process.latch(&name);
    says("set", latch.try_set_count(ONE).await)?;
    // Each answer takes a while: whoever looks one after the other does not come to an end.
    mute.delay(Duration::from_millis(5));
    let waiters: Vec<_> = (0..1000)
        .map(|_| {
            let latch = latch.clone();
            tokio::spawn(async move { (Instant::now() + LIMIT, latch.wait(LIMIT).await) })
        })
        .collect();
    tokio::time::sleep(LIMIT / 2).await;
    says(
        "open",
        redis.process().await.latch(&name).count_down().await,
    )?;
    let (open, mut in_time) = (Instant::now(), 0);
    for waiter in waiters {
        let (end, waited) = waiter.await.map_err(|e| e.to_string())?;
        if end <= open && matches!(waited, Err(LockError::Taken { .. })) {
            continue;
        }
        says("open before the end of the limit", waited)?;
        in_time += usize::from(end > open);
    }
    ensure(in_time > 0, || {
        "nobody waited any more when it opened: the test shows nothing".into()
    })
}

/// Whoever waits until the end of its wait does not wait longer, though the wake-ups hang.
pub(crate) async fn a_wait_is_not_longer_than_it_says(redis: Arc<Redis>) -> Verdict {
    let (name, other) = (name(), redis.process().await);
    let proxy = Proxy::to(redis.host());
    let process = patient(&first_connection_only(proxy.address()).await);
    ensure(ping(&process).await, || "no way".into())?;
    let held = says("held", other.lock(&name).acquire(SOON).await)?;
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
    ensure(answered, || "no way".into())?;
    ensure(matches!(refused, Err(LockError::Taken { .. })), || {
        format!("had: {refused:?}")
    })?;
    // A re-check more would be half a second.
    ensure(waited < least + Duration::from_millis(400), || {
        format!("{waited:?} instead of {least:?}")
    })?;
    says("release", held.release().await)
}
