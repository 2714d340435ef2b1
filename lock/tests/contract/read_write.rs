//! What every lock keeps that many may read and one may write: readers beside readers, a writer beside nobody. How a
//! process waits for the one in Redis is in `rw_line.rs`, what is written there in `rw_holds.rs`; `zk_recipes.rs` has the
//! nodes of the one in ZooKeeper. The twins let the wrong ones in.

use super::{
    redis::{self},
    register::shared,
    support::*,
    zookeeper::{self, JAVA, Member, broken, node},
};
use ::redis::AsyncCommands;
use oversell_lock::redis::{RedisClient, RedisReadLock, RedisWriteLock};

pub(crate) fn reading(process: &RedisClient, name: &str) -> RedisReadLock {
    process.rw_lock(name).read()
}

pub(crate) fn writing(process: &RedisClient, name: &str) -> RedisWriteLock {
    process.rw_lock(name).write()
}

pub(crate) fn owner() -> Owner {
    Process::new().owner()
}

pub(crate) async fn is_taken(what: &str, lock: &impl Lock) -> Result {
    taken(what, lock.acquire(SHORT).await)
}

/// Waits until one process of ours waits for the lock's messages.
pub(crate) async fn listens(redis: &Redis, name: &str) -> Result {
    let channel = format!("redisson_rwlock:{{{name}}}");
    let one = async || matches!(redis.listeners(&channel).await, Ok(1));
    until("a process listens", one).await
}

/// All four orders, of two processes and of one, and no writer before the last reader has left.
#[apply(shared!)]
async fn readers_are_together_and_a_writer_is_alone<S: Server>(family: Family<S>) -> Result {
    let processes = [family.process().await, family.process().await];
    for there in [1, 0] {
        let name = name();
        let [here, there] = [&processes[0], &processes[there]];
        let first = take(&here.reader(&name)).await?;
        let second = there.reader(&name).acquire(SHORT).await;
        let second = second.context("a reader beside a reader")?;
        is_taken("a writer beside two readers", &here.lock(&name)).await?;
        first.release().await?;
        is_taken("a writer beside the second reader", &here.lock(&name)).await?;
        second.release().await?;
        let writer = take(&here.lock(&name)).await?;
        is_taken("a reader beside a writer", &there.reader(&name)).await?;
        is_taken("a writer beside a writer", &there.lock(&name)).await?;
        writer.release().await?;
        pass(&there.reader(&name)).await?;
        family.nothing_left(&name).await?;
    }
    Ok(())
}

/// Three processes of six, five times each, every third turn a writer's: a writer meets nobody.
#[apply(shared!)]
async fn in_a_crowd_no_writer_meets_anybody<S: Server>(family: Family<S>) -> Result {
    const WRITER: i64 = 1000;
    async fn turn<S: Server>(
        process: Arc<Contender<S>>,
        name: String,
        n: usize,
        room: Arc<Room>,
    ) -> Result {
        let (lock, weight) = match (n + n / 18) % 3 {
            0 => (process.lock(&name), WRITER),
            _ => (process.reader(&name), 1),
        };
        let guard = lock.acquire(SOON * 3).await?;
        room.visit(weight).await;
        Ok(guard.release().await?)
    }
    let (name, mut processes) = (name(), Vec::new());
    for _ in 0..3 {
        processes.push(family.process().await);
    }
    let most = crowd(processes, &name, [18, 5], turn).await?.most();
    ensure!(most <= WRITER, "beside a writer: {most} of {WRITER}");
    family.nothing_left(&name).await
}

/// The twin: a reader that takes the whole lock away when it leaves.
fn sweeping(client: &RedisClient, name: &str, _: Ask) -> AnyLock {
    made(name, client.clone(), |client, name, wait| async move {
        let honest = reading(&client, &name).acquire(wait).await?;
        Ok(guard(&name.clone(), None, async move {
            // Here the honest lock looks whether others read.
            let swept: ::redis::RedisResult<i64> = client.connection().del(name).await;
            swept.expect("an answer");
            drop(honest);
            Ok(())
        }))
    })
}

/// The twin: a writer that only looks for writers.
fn blind_writer(client: &RedisClient, name: &str, _: Ask) -> AnyLock {
    made(
        name,
        client.connection(),
        |mut redis, name, wait| async move {
            // Here the honest lock asks for the mode, whatever it is.
            let mode: Option<String> = redis.hget(&name, "mode").await.expect("an answer");
            if mode.as_deref() == Some("write") {
                return Err(in_vain(&name, wait));
            }
            let writer = [("mode", "write"), ("twin:write", "1")];
            let written: ::redis::RedisResult<()> = redis.hset_multiple(&name, &writer).await;
            written.expect("an answer");
            Ok(Guard::new(name, None).0)
        },
    )
}

/// The twin: a reader that does not look for writers before it.
fn blind_reader(member: &Member, name: &str, _: Ask) -> AnyLock {
    made(name, member.client.clone(), |client, name, _| async move {
        let client = client.session()?;
        // Here the honest lock lists the directory.
        let made = node(&client, &format!("{name}/{JAVA}__READ__")).await;
        let path = made.expect("a node");
        Ok(guard(&name, None, async move {
            client.delete(&path, None).await.map_err(broken)
        }))
    })
}

/// A twin by its two halves breaks the clause, for this reason.
macro_rules! twins {
    ($($test:ident: $engine:ty, $write:expr, $read:expr, $by:literal;)*) => {$(
        test! {
            async fn $test(server: &'static $engine) -> Result {
                static TWIN: Kind<$engine> = Kind::new("twin", &[], $write).reads($read);
                let twin = Family { server, kind: &TWIN };
                caught(readers_are_together_and_a_writer_is_alone(twin).await, $by)
            }
        }
    )*};
}

twins! {
    a_reader_that_frees_the_lock_under_another_is_caught:
        Redis, redis::write, sweeping, "a writer beside the second reader: Ok";
    a_writer_that_ignores_readers_is_caught:
        Redis, blind_writer, redis::read, "a writer beside two readers: Ok";
    a_reader_that_ignores_writers_is_caught:
        ZooKeeper, zookeeper::write, blind_reader, "a reader beside a writer: Ok";
}
