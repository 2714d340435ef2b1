//! Which holders of a read-write lock in Redis may be inside together: both halves against each other, and the twins that
//! let the wrong ones in. How a process waits for it is in `rw_line.rs`, what is written in Redis in `rw_holds.rs`.

use super::{family::Server, redis::Redis, support::*};
use futures::future::BoxFuture;
use oversell_lock::{
    Guard, Lock, LockError, Owner, Process,
    redis::{RedisClient, RedisReadLock, RedisWriteLock},
};
use redis::{AsyncCommands, aio::MultiplexedConnection};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::{JoinSet, yield_now};

/// A wait that is meant to end without the lock.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) fn reading(process: &RedisClient, name: &str) -> RedisReadLock {
    process.rw_lock(name).read()
}

pub(crate) fn writing(process: &RedisClient, name: &str) -> RedisWriteLock {
    process.rw_lock(name).write()
}

pub(crate) fn owner() -> Owner {
    Process::new().owner()
}

pub(crate) async fn is_taken(what: &str, lock: &impl Lock) -> Result<()> {
    taken(what, lock.acquire(SHORT).await)
}

/// Waits until one process of ours waits for the lock's messages.
pub(crate) async fn listens(redis: &Redis, name: &str) -> Result<()> {
    let channel = format!("redisson_rwlock:{{{name}}}");
    until("a process listens", || async {
        matches!(redis.listeners(&channel).await, Ok(1))
    })
    .await
}

/// All four orders, and no writer before the last reader has left.
async fn excluded(one: [&dyn Halves; 2]) -> Result<()> {
    let [here, there] = one;
    let first = here.read().await.context("the first reader")?;
    let second = there.read().await.context("a reader beside a reader")?;
    taken("a writer beside two readers", here.write().await)?;
    first.release().await?;
    taken("a writer beside the second reader", here.write().await)?;
    second.release().await?;
    let writer = here.write().await.context("a writer after the readers")?;
    taken("a reader beside a writer", there.read().await)?;
    taken("a writer beside a writer", there.write().await)?;
    writer.release().await?;
    Ok(there.read().await?.release().await?)
}

/// What an acquire comes to.
pub(crate) type Answer<'a> = BoxFuture<'a, Result<Guard, LockError>>;

/// Both halves of one lock, as one process has them.
trait Halves: Send + Sync {
    fn read(&self) -> Answer<'_>;
    fn write(&self) -> Answer<'_>;
}

/// Ours.
struct Honest(RedisReadLock, RedisWriteLock);

impl Honest {
    fn of(process: &RedisClient, name: &str) -> Self {
        Self(reading(process, name), writing(process, name))
    }
}

impl Halves for Honest {
    fn read(&self) -> Answer<'_> {
        Box::pin(self.0.acquire(SHORT))
    }

    fn write(&self) -> Answer<'_> {
        Box::pin(self.1.acquire(SHORT))
    }
}

#[apply(test!)]
async fn readers_are_together_and_a_writer_is_alone(redis: &Redis) -> Result<()> {
    let name = name();
    let [here, there] = [redis.client().await, redis.client().await];
    let halves = [Honest::of(&here, &name), Honest::of(&there, &name)];
    excluded([&halves[0], &halves[1]]).await?;
    excluded([&halves[0], &halves[0]]).await?;
    redis.no_key_left(&name).await
}

/// A reader that takes the whole lock away when it leaves.
struct Sweeping(Honest, MultiplexedConnection);

impl Halves for Sweeping {
    fn read(&self) -> Answer<'_> {
        Box::pin(async {
            let honest = self.0.read().await?;
            let (guard, mut keeper) = Guard::new(honest.name(), None);
            let mut redis = self.1.clone();
            tokio::spawn(async move {
                let release = keeper.asked_to_release().await;
                // Here the honest lock looks whether others read.
                let _: i64 = redis.del(honest.name()).await.expect("an answer");
                release.done(Ok(()));
            });
            Ok(guard)
        })
    }

    fn write(&self) -> Answer<'_> {
        self.0.write()
    }
}

#[apply(test!)]
async fn a_reader_that_frees_the_lock_under_another_is_caught(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let twin = async || Sweeping(Honest::of(&process, &name), redis.outsider().await);
    let (here, there) = (twin().await, twin().await);
    caught(
        excluded([&here, &there]).await,
        "a writer beside the second reader: Ok",
    )
}

/// A writer that only looks for writers.
struct Blind(Honest, MultiplexedConnection);

impl Halves for Blind {
    fn read(&self) -> Answer<'_> {
        self.0.read()
    }

    fn write(&self) -> Answer<'_> {
        Box::pin(async {
            let name = self.0.0.name();
            let mut redis = self.1.clone();
            // Here the honest lock asks for the mode, whatever it is.
            let mode: Option<String> = redis.hget(name, "mode").await.expect("an answer");
            if mode.as_deref() == Some("write") {
                return Err(LockError::Taken {
                    name: name.into(),
                    waited: SHORT,
                });
            }
            let _: () = redis
                .hset_multiple(name, &[("mode", "write"), ("twin:write", "1")])
                .await
                .expect("an answer");
            Ok(Guard::new(name, None).0)
        })
    }
}

#[apply(test!)]
async fn a_writer_that_ignores_readers_is_caught(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let twin = Blind(Honest::of(&process, &name), redis.outsider().await);
    let verdict = excluded([&twin, &twin]).await;
    redis.delete(&name).await;
    caught(verdict, "a writer beside two readers: Ok")
}

/// Three processes of six, four times each, every third a writer: a writer meets nobody.
#[apply(test!)]
async fn under_load_no_writer_meets_anybody(redis: &Redis) -> Result<()> {
    const WRITES: i64 = 1000;
    let (name, inside, meetings) = (
        name(),
        Arc::new(AtomicI64::new(0)),
        Arc::new(AtomicI64::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let process = Arc::new(redis.client().await);
        for contender in 0..6 {
            let (process, name) = (process.clone(), name.clone());
            let (inside, meetings) = (inside.clone(), meetings.clone());
            tasks.spawn(async move {
                for round in 0..4 {
                    let writes = (contender + round) % 3 == 0;
                    let (read, write) = (reading(&process, &name), writing(&process, &name));
                    let guard = if writes {
                        write.acquire(SOON * 3).await?
                    } else {
                        read.acquire(SOON * 3).await?
                    };
                    let weight = if writes { WRITES } else { 1 };
                    let before = inside.fetch_add(weight, SeqCst);
                    if before >= WRITES || (writes && before > 0) {
                        meetings.fetch_add(1, SeqCst);
                    }
                    for _ in 0..20 {
                        yield_now().await;
                    }
                    inside.fetch_sub(weight, SeqCst);
                    guard.release().await?;
                }
                Ok::<_, LockError>(())
            });
        }
    }
    for result in tasks.join_all().await {
        result.context("every contender must have its turn")?;
    }
    let meetings = meetings.load(SeqCst);
    ensure!(meetings == 0, "{meetings} meetings");
    redis.no_key_left(&name).await
}
