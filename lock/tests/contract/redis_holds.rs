//! Holds in Redis that are taken again, handed off without an answer, or undone early or late. That what is not answered is
//! undone, `programs.rs` finds out.

use super::{
    family::Capability::Reentrant,
    holds::is_held,
    redis::{LIMIT, client},
    support::*,
};
use futures::StreamExt;
use oversell_lock::redis::{RECHECK, RedisClient, Redlock};
use parking_lot::Mutex;
use redis::AsyncTypedCommands;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// So long that only an undo can help.
const LONG: Lease = Lease::Fixed(Duration::from_secs(200));

/// However often an owner has taken it, the server sees one hold, of every kind that has owners.
#[apply(test!)]
async fn a_lock_that_is_taken_again_is_one_hold_on_the_server(redis: &'static Redis) -> Result {
    let reentrant = |family: &Family<Redis>| family.kind.can.contains(&Reentrant);
    for family in redis.families().filter(reentrant) {
        let (name, process) = (name(), family.process().await);
        let lock = process.owned(&name, process.owner());
        let (outer, inner) = (take(&lock).await?, take(&lock).await?);
        for guard in [outer, inner] {
            let mut counts = redis.outsider().await.hvals(&name).await?;
            // The mode of a read-write lock.
            counts.retain(|count| count.parse::<u64>().is_ok());
            is("holds", counts, ["1"]).context(family.kind.name)?;
            guard.release().await?;
        }
        family.nothing_left(&name).await.context(family.kind.name)?;
    }
    Ok(())
}

/// It ran, and its answer is lost: neither the one who handed it off keeps the lock, nor the one who would have it.
#[apply(test!)]
async fn an_unanswered_hand_off_leaves_nothing(redis: &Redis) -> Result {
    let (name, mute) = (name(), Mute::to(redis.host())?);
    let process = redis.client_at(&mute.address()).await;
    let lock = process.lock(&name).lease(LONG);
    let hand_off = async || {
        let holder = take(&lock).await?;
        let mut next = pin!(lock.acquire(SOON));
        ensure!(futures::poll!(&mut next).is_pending(), "it did not wait");
        anyhow::Ok(tokio::join!(holder.release(), next))
    };
    let (released, next) = hand_off().await?;
    released?;
    next?.release().await?;
    let script = redis::Script::new(include_str!("../../src/redis/lua/hand_off.lua"));
    mute.mute_at(script.get_hash().to_owned().leak());
    let (released, next) = loop {
        let answers = hand_off().await?;
        if mute.is_mute() {
            break answers;
        }
        // The machine was so slow that the lock was freed instead: `BATCH_TIME` was over.
        answers.0?;
        answers.1?.release().await?;
    };
    unavailable("the release", released)?;
    unavailable("the next one", next)?;
    mute.heal();
    redis.no_key_left(&name).await
}

/// A way to Redis that keeps the first request with these words, and goes on with others.
struct Detour {
    way: Proxy,
    kept: Arc<Mutex<Vec<u8>>>,
    /// A request with the second words was answered.
    undone: Arc<AtomicBool>,
}

impl Detour {
    fn around(redis: &Redis, keeps: &str, undoes: &str) -> Result<Self> {
        let [keeps, undoes] =
            [keeps, undoes].map(|script| redis::Script::new(script).get_hash().to_owned());
        let (kept, undone) = (
            Arc::<Mutex<Vec<u8>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (keep, answered, asked) = (kept.clone(), undone.clone(), AtomicU64::new(u64::MAX));
        let way = Proxy::filtered(redis.host(), move |piece| {
            let has = |words: &str| {
                piece
                    .bytes
                    .windows(words.len())
                    .any(|part| part == words.as_bytes())
            };
            if piece.from_server {
                answered.fetch_or(asked.load(SeqCst) == piece.connection, SeqCst);
                return true;
            }
            let mut kept = keep.lock();
            if kept.is_empty() && has(&keeps) {
                kept.extend(piece.bytes);
                return false;
            }
            if !kept.is_empty() && has(&undoes) {
                asked.store(piece.connection, SeqCst);
            }
            true
        })?;
        Ok(Self { way, kept, undone })
    }
}

/// An acquire was under way for longer than its client waited, and comes after the command that undoes it.
async fn comes_after_its_undo(
    redis: &Redis,
    acquire: &str,
    release: &str,
    lock: impl Fn(&RedisClient, &str) -> AnyLock,
) -> Result {
    let (name, detour) = (name(), Detour::around(redis, acquire, release)?);
    // The server knows the scripts from now on: each is a single command.
    pass(&lock(&redis.client().await, &name)).await?;
    let process = client(&Process::new(), &detour.way.address(), SOON, LIMIT / 2);
    let late = lock(&process, &name);
    unavailable("without an answer", late.acquire(Duration::ZERO).await)?;
    let undone = async || detour.undone.load(SeqCst);
    until("it is undone", undone).await?;
    let mut wire = TcpStream::connect(redis.host()).await?;
    let request = detour.kept.lock().clone();
    wire.write_all(&request).await?;
    // It was carried out: its answer is there.
    wire.read_u8().await?;
    redis.no_key_left(&name).await
}

/// What it takes is given back all the same.
#[apply(test!)]
async fn an_acquire_that_comes_after_its_undo_leaves_nothing(redis: &Redis) -> Result {
    const ACQUIRE: &str = include_str!("../../src/redis/lua/acquire.lua");
    const RELEASE: &str = include_str!("../../src/redis/lua/release.lua");
    const WRITE: &str = include_str!("../../src/redis/lua/rw_write.lua");
    const RW_RELEASE: &str = include_str!("../../src/redis/lua/rw_release.lua");
    let plain = |client: &RedisClient, name: &str| client.lock(name).lease(LONG).boxed();
    let write = |client: &RedisClient, name: &str| client.rw_lock(name).write().lease(LONG).boxed();
    let node = |client: &RedisClient, name: &str| {
        Redlock::new(std::slice::from_ref(client), name)
            .lease(LONG)
            .boxed()
    };
    comes_after_its_undo(redis, ACQUIRE, RELEASE, plain).await?;
    comes_after_its_undo(redis, WRITE, RW_RELEASE, write).await?;
    comes_after_its_undo(redis, ACQUIRE, RELEASE, node).await
}

/// The answer to the release is late and not waited for; the owner takes the lock again meanwhile. What is then sent again
/// frees nothing of it.
#[apply(test!)]
async fn an_undo_that_is_late_leaves_its_owners_newer_hold(redis: &Redis) -> Result {
    let other = redis.client().await;
    for _ in 0..5 {
        let (name, mute) = (name(), Mute::to(redis.host())?);
        let process = redis.client_at(&mute.address()).await;
        let lock = process.lock(&name).owner(process.owner());
        let lock = lock.lease(Lease::Watchdog(SOON * 3));
        // The scripts are known to the server: each is a single command.
        pass(&lock).await?;
        let first = take(&lock).await?;
        // Longer than one command may take, shorter than two.
        mute.delay(LIMIT * 4 / 3);
        drop(first);
        redis.no_key_left(&name).await?;
        mute.delay(Duration::ZERO);
        let again = async {
            loop {
                // Its own answer may come behind the late one.
                match lock.acquire(SOON).await {
                    Err(LockError::Unavailable { .. }) => {}
                    acquired => return acquired,
                }
            }
        };
        let again = timeout(SOON, again).await;
        let again = again.context("never acquired again")??;
        for _ in 0..20 {
            is_held("after the undo", &again, &other.lock(&name)).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        kept("the newer hold", &again)?;
    }
    Ok(())
}

/// A thousand waiters of one process are one subscription and one contender: that asks, subscribes and asks, and then pauses
/// each time.
async fn a_thousand_are_one_contender(
    redis: &Redis,
    channel: String,
    name: &str,
    lock: impl Fn(&RedisClient) -> AnyLock,
) -> Result {
    const SCRIPTS: usize = 6;
    let (holder, crowded) = (redis.client().await, redis.client().await);
    let held = take(&lock(&holder)).await?;
    let mut commands = redis.monitor().await?.into_on_message::<String>();
    let waiters: Vec<_> = (0..1000).map(|_| passing(lock(&crowded))).collect();
    // When the server ran a script with this key. Here it may be heard of late.
    let mut ran = Vec::new();
    while ran.len() < SCRIPTS {
        let command = timeout(SOON, commands.next()).await;
        let command = command.context("nobody looks again")?;
        let command = command.context("the monitor ended")?;
        let words: Vec<_> = command.split('"').skip(1).step_by(2).collect();
        if words[0].eq_ignore_ascii_case("evalsha") && words.get(3) == Some(&name) {
            let at = command.split(' ').next().context("no time")?;
            ran.push(at.parse::<f64>()?);
        }
    }
    let took = ran[SCRIPTS - 1] - ran[0];
    ensure!(
        took >= RECHECK.as_secs_f64(),
        "{SCRIPTS} scripts in {took} s"
    );
    is("subscriptions", redis.listeners(&channel).await?, 1)?;
    held.release().await?;
    for waiter in waiters {
        waiter.await??;
    }
    drop((holder, crowded));
    let none = async || matches!(redis.listeners(&channel).await, Ok(0));
    until("the subscription has ended", none).await
}

#[apply(test!)]
async fn a_thousand_waiters_of_one_process_are_one_contender(redis: &Redis) -> Result {
    let [lock, rw, semaphore] = [name(), name(), name()];
    let channel = format!("redisson_lock__channel:{{{lock}}}");
    let of = |client: &RedisClient| client.lock(&lock).boxed();
    a_thousand_are_one_contender(redis, channel, &lock, of).await?;
    let channel = format!("redisson_rwlock:{{{rw}}}");
    let of = |client: &RedisClient| client.rw_lock(&rw).write().boxed();
    a_thousand_are_one_contender(redis, channel, &rw, of).await?;
    let channel = format!("redisson_sc:{{{semaphore}}}");
    let of = |client: &RedisClient| {
        let one = client.semaphore(&semaphore).initially(1);
        made(&semaphore, one, |one, name, wait| async move {
            let permit = one.acquire(1, wait).await?;
            Ok(guard(&name, None, permit.release()))
        })
    };
    a_thousand_are_one_contender(redis, channel, &semaphore, of).await
}
