//! The read-write lock in Redis.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, name, until},
    mute::Mute,
    redis::Redis,
};
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{Lease, RedisClient},
};
use redis::AsyncTypedCommands;
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::JoinSet;

const BRIEF: Duration = Duration::from_millis(300);
const NOW: Duration = Duration::ZERO;

/// Readers add one, a writer adds this much: whoever is inside sees who else is.
const WRITER: i64 = 1_000_000;

/// Tells of more than one writer, or of a writer beside readers; and how many readers were inside at most.
#[derive(Default)]
struct Room {
    inside: AtomicI64,
    most: AtomicI64,
    wrong: AtomicI64,
}

impl Room {
    async fn read(&self) {
        let inside = self.inside.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(inside % WRITER, SeqCst);
        self.wrong.fetch_add(i64::from(inside >= WRITER), SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.inside.fetch_sub(1, SeqCst);
    }

    async fn write(&self) {
        let inside = self.inside.fetch_add(WRITER, SeqCst);
        self.wrong.fetch_add(i64::from(inside != 0), SeqCst);
        tokio::task::yield_now().await;
        self.inside.fetch_sub(WRITER, SeqCst);
    }
}

fn taken(what: &str, result: Result<Guard, LockError>) -> Verdict {
    ensure(matches!(result, Err(LockError::Taken { .. })), || format!("{what}: {result:?}"))
}

/// Two processes, readers and writers in each, as `read` and `write` make them.
async fn mix<R, W>(redis: &Redis, read: impl Fn(&RedisClient) -> R, write: impl Fn(&RedisClient) -> W) -> Verdict
where
    R: Lock + 'static,
    W: Lock + 'static,
{
    let (room, mut tasks) = (Arc::new(Room::default()), JoinSet::new());
    for process in [redis.process().await, redis.process().await] {
        for n in 0..8 {
            let (room, reader, writer) = (Arc::clone(&room), read(&process), write(&process));
            tasks.spawn(async move {
                for _ in 0..8 {
                    if n % 4 == 0 {
                        let guard = writer.acquire(SOON * 3).await?;
                        room.write().await;
                        guard.release().await?;
                    } else {
                        let guard = reader.acquire(SOON * 3).await?;
                        room.read().await;
                        guard.release().await?;
                    }
                }
                Ok::<_, LockError>(())
            });
        }
    }
    for result in tasks.join_all().await {
        says("every contender must have its turn", result)?;
    }
    let (wrong, most) = (room.wrong.load(SeqCst), room.most.load(SeqCst));
    ensure(wrong == 0, || format!("{wrong} were inside beside a writer"))?;
    ensure(most > 1, || "readers never were inside together".into())
}

pub(crate) async fn readers_go_together_and_writers_alone(redis: Arc<Redis>) -> Verdict {
    let name = name();
    mix(&redis, |p| p.rw_lock(&name).read(), |p| p.rw_lock(&name).write()).await?;
    until("nothing is left", || async { redis.left(&name).await.is_empty() }).await
}

/// The twin: its readers do not ask whether somebody writes.
struct IgnoresWriters(String);

impl Lock for IgnoresWriters {
    fn name(&self) -> &str {
        &self.0
    }

    async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move { keeper.asked_to_release().await.done(Ok(())) });
        Ok(guard)
    }
}

pub(crate) async fn readers_that_ignore_a_writer_are_caught(redis: Arc<Redis>) -> Verdict {
    let name = name();
    match mix(&redis, |_| IgnoresWriters(name.clone()), |p| p.rw_lock(&name).write()).await {
        Err(broken) if broken.contains("beside a writer") => Ok(()),
        other => Err(format!("not caught: {other:?}")),
    }
}

/// §2.10.5: read and read go together; the other three wait.
pub(crate) async fn the_four_orders(redis: Arc<Redis>) -> Verdict {
    let (name, one, other) = (name(), redis.process().await, redis.process().await);
    let first = says("read", one.rw_lock(&name).read().acquire(SOON).await)?;
    let second = says("read beside read", other.rw_lock(&name).read().acquire(NOW).await)?;
    taken("write beside read", other.rw_lock(&name).write().acquire(NOW).await)?;
    says("release", first.release().await)?;
    taken("write beside the second read", one.rw_lock(&name).write().acquire(NOW).await)?;
    says("release", second.release().await)?;
    let writer = says("write", one.rw_lock(&name).write().acquire(NOW).await)?;
    taken("read beside write", other.rw_lock(&name).read().acquire(NOW).await)?;
    taken("read beside write, same process", one.rw_lock(&name).read().acquire(NOW).await)?;
    taken("write beside write", other.rw_lock(&name).write().acquire(NOW).await)?;
    says("release", writer.release().await)?;
    let reader = says("read after write", other.rw_lock(&name).read().acquire(NOW).await)?;
    says("release", reader.release().await)
}

/// An owner reads again, writes again, and reads what it writes; it is refused at once where it reads and wants to write.
pub(crate) async fn a_writer_may_read_and_a_reader_may_not_write(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let owner = process.owner();
    let (read, write) = (process.rw_lock(&name).read().owner(owner), process.rw_lock(&name).write().owner(owner));
    let outer = says("read", read.acquire(NOW).await)?;
    let inner = says("read again", read.acquire(NOW).await)?;
    let refused = write.acquire(SOON).await;
    ensure(matches!(refused, Err(LockError::Invalid { .. })), || format!("write while reading: {refused:?}"))?;
    says("release", outer.release().await)?;
    says("release", inner.release().await)?;

    let outer = says("write", write.acquire(NOW).await)?;
    let inner = says("write again", write.acquire(NOW).await)?;
    let reads = says("read what one writes", read.acquire(NOW).await)?;
    let again = says("read it again", read.acquire(NOW).await)?;
    for guard in [outer, reads, again, inner] {
        says("release", guard.release().await)?;
    }
    until("nothing is left", || async { redis.left(&name).await.is_empty() }).await
}

/// A writer that reads too and gives up writing: readers that wait are woken, a writer is not let in.
pub(crate) async fn a_writer_that_stops_writing_lets_other_readers_in(redis: Arc<Redis>) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let owner = process.owner();
    let writes = says("write", process.rw_lock(&name).write().owner(owner).acquire(NOW).await)?;
    let reads = says("read", process.rw_lock(&name).read().owner(owner).acquire(NOW).await)?;
    let waiting = other.rw_lock(&name).read();
    let waiting = tokio::spawn(async move { waiting.acquire(SOON).await });
    let mut messages = redis.messages(&format!("redisson_rwlock:{{{name}}}")).await;
    says("stop writing", writes.release().await)?;
    let told = tokio::time::timeout(SOON, messages.recv()).await.map_err(|_| "nobody was told")?;
    ensure(told.is_some_and(|m| m == "1"), || "told something else".into())?;
    let beside = says("a reader", waiting.await.map_err(|e| e.to_string())?)?;
    taken("a writer beside both", other.rw_lock(&name).write().acquire(NOW).await)?;
    says("release", reads.release().await)?;
    taken("a writer beside one", other.rw_lock(&name).write().acquire(NOW).await)?;
    says("release", beside.release().await)?;
    until("nothing is left", || async { redis.left(&name).await.is_empty() }).await
}

/// A reader whose lease has ended is not counted any longer, though another reads on; and the lock lasts as long as the
/// longest hold.
pub(crate) async fn each_read_hold_ends_by_itself(redis: Arc<Redis>) -> Verdict {
    let (name, one, other) = (name(), redis.process().await, redis.process().await);
    let long = says("long", other.rw_lock(&name).read().acquire(NOW).await)?;
    let brief = says("brief", one.rw_lock(&name).read().lease(Lease::Fixed(BRIEF)).acquire(NOW).await)?;
    let mut outsider = redis.outsider().await;
    let left: i64 = redis::cmd("PTTL").arg(&name).query_async(&mut outsider).await.map_err(|e| e.to_string())?;
    ensure(left > BRIEF.as_millis() as i64, || format!("the lock ends in {left} ms, with the brief hold"))?;
    tokio::time::timeout(SOON, brief.lost()).await.map_err(|_| "the brief one was never told")?;
    until("the brief hold has ended", || async { redis.left(&name).await.len() == 2 }).await?;
    says("release", long.release().await)?;
    let writer = says("a writer, with nobody inside", one.rw_lock(&name).write().acquire(NOW).await)?;
    let late = brief.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || format!("the late release: {late:?}"))?;
    taken("beside the writer", other.rw_lock(&name).read().acquire(NOW).await)?;
    says("release", writer.release().await)?;
    until("nothing is left", || async { redis.left(&name).await.is_empty() }).await
}

/// Two readers; one goes by `leave`, and a writer must stay out.
async fn one_of_two_readers_leaves<F: Future<Output = ()>>(redis: &Redis, leave: impl FnOnce(String) -> F) -> Verdict {
    let (name, one, other) = (name(), redis.process().await, redis.process().await);
    let stays = says("stays", one.rw_lock(&name).read().acquire(NOW).await)?;
    leave(name.clone()).await;
    taken("a writer beside a reader", other.rw_lock(&name).write().acquire(NOW).await)?;
    says("release", stays.release().await)
}

pub(crate) async fn a_release_that_frees_beside_other_readers_is_caught(redis: Arc<Redis>) -> Verdict {
    let process = redis.process().await;
    let honest = one_of_two_readers_leaves(&redis, async |name| {
        let guard = process.rw_lock(&name).read().acquire(NOW).await.expect("beside a reader");
        guard.release().await.expect("released");
    });
    honest.await?;
    // The twin: its release does not look at who else reads.
    let twin = one_of_two_readers_leaves(&redis, async |name| {
        let _guard = process.rw_lock(&name).read().acquire(NOW).await.expect("beside a reader");
        redis.outsider().await.del(&name).await.expect("deleted");
    });
    match twin.await {
        Err(broken) if broken.contains("a writer beside a reader") => Ok(()),
        other => Err(format!("not caught: {other:?}")),
    }
}

/// Readers of one process come and go without end; its writer gets in all the same, for they line up behind it.
pub(crate) async fn a_writer_of_this_process_does_not_starve(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let mut readers = JoinSet::new();
    for _ in 0..8 {
        let lock = process.rw_lock(&name).read();
        readers.spawn(async move {
            loop {
                let guard = lock.acquire(SOON).await.expect("a turn");
                tokio::time::sleep(Duration::from_millis(3)).await;
                guard.release().await.expect("released");
            }
        });
    }
    until("readers are inside", || async { redis.outsider().await.exists(&name).await.unwrap_or(false) }).await?;
    for _ in 0..5 {
        let guard = says("the writer", process.rw_lock(&name).write().acquire(SOON).await)?;
        says("release", guard.release().await)?;
    }
    Ok(())
}

/// With a writer at the head of the line, an owner that is inside still gets in again.
pub(crate) async fn owners_go_past_who_waits(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let owner = process.owner();
    let outer = says("read", process.rw_lock(&name).read().owner(owner).acquire(NOW).await)?;
    let waiting = process.rw_lock(&name).write();
    let waiting = tokio::spawn(async move { waiting.acquire(SOON).await });
    let channel = format!("redisson_rwlock:{{{name}}}");
    until("the writer waits", || async {
        redis::cmd("PUBLISH").arg(&channel).arg("0").query_async::<i64>(&mut redis.outsider().await).await == Ok(1)
    })
    .await?;
    let inner = says("read again", process.rw_lock(&name).read().owner(owner).acquire(NOW).await)?;
    for guard in [outer, inner] {
        ensure(!waiting.is_finished(), || "the writer is beside a reader".into())?;
        says("release", guard.release().await)?;
    }
    let writer = says("the writer", waiting.await.map_err(|e| e.to_string())?)?;
    says("release", writer.release().await)
}

/// The fields and keys, one by one.
pub(crate) async fn a_java_process_finds_what_it_expects(redis: Arc<Redis>) -> Verdict {
    let (name, process) = (name(), redis.process().await);
    let (owner, mut outsider) = (process.owner(), redis.outsider().await);
    let mut look = async |what: &str, fields: &[(&str, String)], keys: &[String]| {
        let found = outsider.hgetall(&name).await.map_err(|e| e.to_string())?;
        let wanted = fields.iter().map(|(count, field)| (field.clone(), (*count).to_owned())).collect();
        ensure(found == wanted, || format!("{what}: {found:?} and not {wanted:?}"))?;
        let mut left = redis.left(&name).await;
        left.retain(|key| *key != name);
        left.sort();
        ensure(left == keys, || format!("{what}: {left:?} and not {keys:?}"))
    };
    let hold = |i: u32| format!("{{{name}}}:{owner}:rwlock_timeout:{i}");
    let (read, write) = (process.rw_lock(&name).read().owner(owner), process.rw_lock(&name).write().owner(owner));
    let mode = "mode".to_owned();
    let writes = says("write", write.acquire(NOW).await)?;
    look("write", &[("write", mode.clone()), ("1", format!("{owner}:write"))], &[]).await?;
    let first = says("read", read.acquire(NOW).await)?;
    let second = says("read", read.acquire(NOW).await)?;
    let both = [("write", mode.clone()), ("1", format!("{owner}:write")), ("2", owner.to_string())];
    look("write and read twice", &both, &[hold(1), hold(2)]).await?;
    says("release", writes.release().await)?;
    look("read twice", &[("read", mode.clone()), ("2", owner.to_string())], &[hold(1), hold(2)]).await?;
    says("release", first.release().await)?;
    look("read once", &[("read", mode), ("1", owner.to_string())], &[hold(1)]).await?;
    says("release", second.release().await)?;
    look("nobody", &[], &[]).await
}

/// What a Java process has written keeps us out, and its message lets us in.
pub(crate) async fn what_a_java_process_wrote_is_obeyed(redis: Arc<Redis>) -> Verdict {
    const JAVA: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
    let (name, process, mut java) = (name(), redis.process().await, redis.outsider().await);
    let wrote = |error: redis::RedisError| error.to_string();
    java.hset_multiple(&name, &[("mode", "write"), (&format!("{JAVA}:write"), "1")]).await.map_err(wrote)?;
    java.pexpire(&name, 30_000).await.map_err(wrote)?;
    taken("read beside a Java writer", process.rw_lock(&name).read().acquire(NOW).await)?;
    java.del(&name).await.map_err(wrote)?;
    java.hset_multiple(&name, &[("mode", "read"), (JAVA, "1")]).await.map_err(wrote)?;
    java.pexpire(&name, 30_000).await.map_err(wrote)?;
    java.set(format!("{{{name}}}:{JAVA}:rwlock_timeout:1"), 1).await.map_err(wrote)?;
    let reader = says("read beside a Java reader", process.rw_lock(&name).read().acquire(NOW).await)?;
    taken("write beside a Java reader", process.rw_lock(&name).write().acquire(NOW).await)?;
    java.pexpire(format!("{{{name}}}:{JAVA}:rwlock_timeout:1"), 30_000).await.map_err(wrote)?;
    says("release", reader.release().await)?;
    taken("write: our release has left the Java reader alone", process.rw_lock(&name).write().acquire(NOW).await)
}

/// The hold is taken in Redis, and its answer is lost.
pub(crate) async fn an_unanswered_read_leaves_no_hold(redis: Arc<Redis>) -> Verdict {
    let (name, other) = (name(), redis.process().await);
    let mute = Mute::to(redis.host()).await;
    let process = redis.process_at(&mute.address()).await;
    let warm = says("warm", process.rw_lock(&name).read().acquire(SOON).await)?;
    says("warm", warm.release().await)?;
    mute.mute();
    // Only what gives it back ends it within the test.
    let asked = process.rw_lock(&name).read().lease(Lease::Fixed(SOON * 10));
    let asked = tokio::spawn(async move { asked.acquire(SOON).await });
    until("it was taken", || async { !redis.left(&name).await.is_empty() }).await?;
    let lost = asked.await.map_err(|e| e.to_string())?;
    ensure(matches!(lost, Err(LockError::Unavailable { .. })), || format!("without an answer: {lost:?}"))?;
    mute.heal().await;
    let writer = says("once it was given back", other.rw_lock(&name).write().acquire(SOON).await)?;
    says("release", writer.release().await)
}

pub(crate) async fn a_late_release_of_a_write_hold_frees_nothing(redis: Arc<Redis>) -> Verdict {
    let (name, process, other) = (name(), redis.process().await, redis.process().await);
    let brief = process.rw_lock(&name).write().lease(Lease::Fixed(BRIEF));
    let ended = says("brief", brief.acquire(NOW).await)?;
    let second = says("once it has ended", other.rw_lock(&name).write().acquire(SOON).await)?;
    ensure(ended.is_lost(), || "another has the lock, and its holder was not told".into())?;
    let late = ended.release().await;
    ensure(matches!(late, Err(LockError::Lost { .. })), || format!("the late release: {late:?}"))?;
    taken("beside the second", process.rw_lock(&name).read().acquire(NOW).await)?;
    says("release", second.release().await)
}
