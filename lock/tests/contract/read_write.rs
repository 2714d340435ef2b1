//! Who may be inside a read-write lock together: its write half under the contract, both halves against each other, and
//! the twins that let the wrong ones in. How a process waits for it is in `rw_line.rs`, what is written in Redis in
//! `rw_holds.rs`.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    redis::Redis,
};
use futures::future::BoxFuture;
use oversell_lock::{
    Guard, Lock, LockError, Owner,
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

/// The write half as a family, and the way to both halves.
pub(crate) struct ReadWrite(pub(crate) Redis);

/// A process of it.
pub(crate) struct Writer(pub(crate) RedisClient);

impl Family for ReadWrite {
    const NAME: &'static str = "redis_read_write";
    const QUEUES: bool = false;
    type Process = Writer;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> Writer {
        Writer(self.0.process_at(address).await)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, holder: &Writer, name: &str) {
        self.0.take_away(&holder.0, name).await;
    }
}

impl Process for Writer {
    type Lock = RedisWriteLock;

    fn lock(&self, name: &str) -> RedisWriteLock {
        self.0.rw_lock(name).write()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

impl Writer {
    pub(crate) fn read(&self, name: &str) -> RedisReadLock {
        self.0.rw_lock(name).read()
    }
}

pub(crate) async fn is_taken(what: &str, lock: &impl Lock) -> Verdict {
    refused(what, lock.acquire(SHORT).await)
}

pub(crate) async fn had(what: &str, lock: &impl Lock) -> Result<Guard, String> {
    says(what, lock.acquire(SOON).await)
}

pub(crate) async fn nothing_left(family: &ReadWrite, name: &str) -> Verdict {
    until("nothing is left on the server", || async {
        family.left(name).await.is_empty()
    })
    .await
}

/// Waits until one process of ours waits for the lock's messages.
pub(crate) async fn listens(family: &ReadWrite, name: &str) -> Verdict {
    let channel = format!("redisson_rwlock:{{{name}}}");
    until("a process listens", || async {
        let mut command = redis::cmd("PUBSUB");
        let answer = command
            .arg("NUMSUB")
            .arg(&channel)
            .query_async(&mut family.0.outsider().await)
            .await;
        answer == Ok((channel.clone(), 1))
    })
    .await
}

/// All four orders, and no writer before the last reader has left.
async fn excluded(one: [&dyn Halves; 2]) -> Verdict {
    let [here, there] = one;
    let first = says("the first reader", here.read().await)?;
    let second = says("a reader beside a reader", there.read().await)?;
    refused("a writer beside two readers", here.write().await)?;
    says("release", first.release().await)?;
    refused("a writer beside the second reader", here.write().await)?;
    says("release", second.release().await)?;
    let writer = says("a writer after the readers", here.write().await)?;
    refused("a reader beside a writer", there.read().await)?;
    refused("a writer beside a writer", there.write().await)?;
    says("release", writer.release().await)?;
    says(
        "release",
        says("a reader after the writer", there.read().await)?
            .release()
            .await,
    )
}

fn refused(what: &str, result: Result<Guard, LockError>) -> Verdict {
    match result {
        Err(LockError::Taken { .. }) => Ok(()),
        Ok(_) => Err(format!("{what}: got in")),
        Err(error) => Err(format!("{what}: {error}")),
    }
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
    fn of(process: &Writer, name: &str) -> Self {
        Self(process.read(name), process.lock(name))
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

pub(crate) async fn readers_are_together_and_a_writer_is_alone(family: Arc<ReadWrite>) -> Verdict {
    let name = name();
    let [here, there] = [family.process().await, family.process().await];
    let halves = [Honest::of(&here, &name), Honest::of(&there, &name)];
    excluded([&halves[0], &halves[1]]).await?;
    excluded([&halves[0], &halves[0]]).await?;
    nothing_left(&family, &name).await
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

pub(crate) async fn a_reader_that_frees_the_lock_under_another_is_caught(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, process) = (name(), family.process().await);
    let twins =
        [1, 2].map(|_| async { Sweeping(Honest::of(&process, &name), family.0.outsider().await) });
    let [here, there] = futures::future::join_all(twins)
        .await
        .try_into()
        .map_err(|_| "two")?;
    match excluded([&here, &there]).await {
        Err(broken) if broken == "a writer beside the second reader: got in" => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
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

pub(crate) async fn a_writer_that_ignores_readers_is_caught(family: Arc<ReadWrite>) -> Verdict {
    let (name, process) = (name(), family.process().await);
    let twin = Blind(Honest::of(&process, &name), family.0.outsider().await);
    match excluded([&twin, &twin]).await {
        Err(broken) if broken == "a writer beside two readers: got in" => family
            .0
            .outsider()
            .await
            .del(&name)
            .await
            .map_err(|e| e.to_string()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// Three processes of six, four times each, every third a writer: a writer meets nobody.
pub(crate) async fn under_load_no_writer_meets_anybody(family: Arc<ReadWrite>) -> Verdict {
    const WRITES: i64 = 1000;
    let (name, inside, meetings) = (
        name(),
        Arc::new(AtomicI64::new(0)),
        Arc::new(AtomicI64::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let process = Arc::new(family.process().await);
        for contender in 0..6 {
            let (process, name) = (process.clone(), name.clone());
            let (inside, meetings) = (inside.clone(), meetings.clone());
            tasks.spawn(async move {
                for round in 0..4 {
                    let writes = (contender + round) % 3 == 0;
                    let (read, write) = (process.read(&name), process.lock(&name));
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
        says("every contender must have its turn", result)?;
    }
    let meetings = meetings.load(SeqCst);
    ensure(meetings == 0, || format!("{meetings} meetings"))?;
    nothing_left(&family, &name).await
}

pub(crate) fn owner() -> Owner {
    oversell_lock::Process::new().owner()
}
