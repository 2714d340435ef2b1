//! What a read-write lock writes in Redis, hold by hold: as a Java process expects it, each with its own end, and none
//! taken for another of the same owner.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    mute::Mute,
    read_write::{ReadWrite, had, is_taken, listens, nothing_left, owner},
};
use futures::StreamExt;
use oversell_lock::{Guard, Lock, LockError, redis::Lease};
use redis::{AsyncCommands, RedisResult};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::task::yield_now;

const LONG: Lease = Lease::Fixed(SOON);
const LONGER: Lease = Lease::Fixed(Duration::from_secs(60));
const BRIEF: Lease = Lease::Fixed(Duration::from_millis(300));

fn told<T>(result: RedisResult<T>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}

/// The hash, sorted, as `field=value`.
async fn fields(family: &ReadWrite, name: &str) -> Result<Vec<String>, String> {
    let all: BTreeMap<String, String> = told(family.0.outsider().await.hgetall(name).await)?;
    Ok(all
        .into_iter()
        .map(|(field, value)| format!("{field}={value}"))
        .collect())
}

async fn keys(family: &ReadWrite, name: &str) -> Vec<String> {
    let mut keys = family.left(name).await;
    keys.sort();
    keys
}

async fn pttl(family: &ReadWrite, key: &str) -> Result<i64, String> {
    told(family.0.outsider().await.pttl(key).await)
}

fn hold(name: &str, field: &str, at: u32) -> String {
    format!("{{{name}}}:{field}:rwlock_timeout:{at}")
}

fn is(what: &str, found: &[String], expected: &[&str]) -> Verdict {
    ensure(found == expected, || {
        format!("{what}: {found:?} instead of {expected:?}")
    })
}

async fn lost(guard: Guard) -> Verdict {
    match guard.release().await {
        Err(LockError::Lost { .. }) => Ok(()),
        other => Err(format!("a hold that had ended was released: {other:?}")),
    }
}

/// Everything that is said on the lock's channel from now on.
async fn hear(
    family: &ReadWrite,
    name: &str,
) -> Result<impl futures::Stream<Item = String> + Unpin, String> {
    let client = told(redis::Client::open(format!("redis://{}", family.server())))?;
    let mut ear = told(client.get_async_pubsub().await)?;
    told(ear.subscribe(format!("redisson_rwlock:{{{name}}}")).await)?;
    Ok(ear
        .into_on_message()
        .map(|message| message.get_payload().unwrap_or_default())
        .boxed())
}

/// The identities that are in the hash, without `:write`.
async fn ids(family: &ReadWrite, name: &str) -> Result<Vec<String>, String> {
    let fields = fields(family, name).await?;
    let ids = fields
        .iter()
        .filter(|f| !f.starts_with("mode="))
        .map(|f| f.trim_end_matches("=1").replace(":write", ""));
    Ok(ids.collect())
}

pub(crate) async fn holds_are_written_as_a_java_process_expects(family: Arc<ReadWrite>) -> Verdict {
    let (name, process, owner, other) = (name(), family.process().await, owner(), owner());
    let heard = hear(&family, &name).await?;
    let (read, write) = (
        process.read(&name).owner(owner),
        process.lock(&name).owner(owner),
    );
    let beside = process.read(&name).owner(other);

    let (first, again, third) = (
        had("read", &read).await?,
        had("again", &read).await?,
        had("", &beside).await?,
    );
    let ids_now = ids(&family, &name).await?;
    ensure(ids_now.len() == 2, || {
        format!("two owners' holds are {ids_now:?}")
    })?;
    let mut expected = [
        format!("{}=1", ids_now[0]),
        format!("{}=1", ids_now[1]),
        "mode=read".to_owned(),
    ];
    expected.sort();
    is(
        "two read holds",
        &fields(&family, &name).await?,
        &expected.each_ref().map(String::as_str),
    )?;
    let mut expected = [
        name.clone(),
        hold(&name, &ids_now[0], 1),
        hold(&name, &ids_now[1], 1),
    ];
    expected.sort();
    is(
        "their keys",
        &keys(&family, &name).await,
        &expected.each_ref().map(String::as_str),
    )?;
    let value: String = told(
        family
            .0
            .outsider()
            .await
            .get(hold(&name, &ids_now[0], 1))
            .await,
    )?;
    ensure(value == "1", || format!("a read hold's string is {value}"))?;
    for guard in [first, third, again] {
        says("release", guard.release().await)?;
    }
    is("after the last reader", &keys(&family, &name).await, &[])?;

    let (first, again) = (had("write", &write).await?, had("again", &write).await?);
    let writer = ids(&family, &name).await?.concat();
    is(
        "a write hold's only key",
        &keys(&family, &name).await,
        &[&name],
    )?;
    let expected = [format!("{writer}:write=1"), "mode=write".to_owned()];
    is(
        "one write hold",
        &fields(&family, &name).await?,
        &expected.each_ref().map(String::as_str),
    )?;
    let below = had("a read under it", &read).await?;
    let found = fields(&family, &name).await?;
    ensure(found.len() == 3 && found[2] == "mode=write", || {
        format!("a write and a read hold: {found:?}")
    })?;
    for guard in [below, again, first] {
        says("release", guard.release().await)?;
    }
    is("after the writer", &keys(&family, &name).await, &[])?;
    let heard: Vec<_> = heard.take(2).collect().await;
    ensure(heard == ["0", "1"], || {
        format!("the channel said {heard:?}")
    })
}

/// A Java owner.
pub(crate) const JAVA: &str = "0b5c3b9e-3b0f-4a35-9c5c-2f7a3f0d1e11:61";

/// What a Java process leaves when it reads.
async fn java_reads(family: &ReadWrite, name: &str) -> Verdict {
    let mut redis = family.0.outsider().await;
    let mut pipe = redis::pipe();
    pipe.hset_multiple(name, &[("mode", "read"), (JAVA, "1")])
        .ignore();
    pipe.pset_ex(hold(name, JAVA, 1), "1", 60_000)
        .ignore()
        .pexpire(name, 60_000)
        .ignore();
    told(pipe.query_async(&mut redis).await)
}

pub(crate) async fn a_java_reader_lets_readers_in_and_keeps_writers_out(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, process) = (name(), family.process().await);
    java_reads(&family, &name).await?;
    is_taken("a writer beside a Java reader", &process.lock(&name)).await?;
    let reader = had("a reader beside a Java reader", &process.read(&name)).await?;
    says("release", reader.release().await)?;
    let left = [hold(&name, JAVA, 1), name.clone()];
    let (mut found, mut left) = (keys(&family, &name).await, left);
    found.sort();
    left.sort();
    is(
        "after our reader",
        &found,
        &left.each_ref().map(String::as_str),
    )?;
    is(
        "the Java reader",
        &fields(&family, &name).await?,
        &[&format!("{JAVA}=1"), "mode=read"],
    )?;
    let lasts = pttl(&family, &name).await?;
    ensure(lasts > 20_000, || {
        format!("the Java reader's lease was cut to {lasts} ms")
    })?;
    let _: i64 = told(family.0.outsider().await.del(&left).await)?;
    says(
        "release",
        had("a writer after it", &process.lock(&name))
            .await?
            .release()
            .await,
    )
}

pub(crate) async fn a_java_writer_keeps_everybody_out_and_its_message_wakes(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, process, mut redis) = (
        name(),
        Arc::new(family.process().await),
        family.0.outsider().await,
    );
    let java = format!("{JAVA}:write");
    let _: () = told(
        redis
            .hset_multiple(&name, &[("mode", "write"), (java.as_str(), "1")])
            .await,
    )?;
    let _: () = told(redis.pexpire(&name, 60_000).await)?;
    is_taken("a writer beside a Java writer", &process.lock(&name)).await?;
    let lock = process.read(&name);
    let waits = tokio::spawn(async move { lock.acquire(SOON).await?.release().await });
    listens(&family, &name).await?;
    ensure(!waits.is_finished(), || {
        "a reader beside a Java writer: got in".into()
    })?;
    let _: i64 = told(redis.del(&name).await)?;
    let _: i64 = told(
        redis
            .publish(format!("redisson_rwlock:{{{name}}}"), "1")
            .await,
    )?;
    says("the reader", waits.await.map_err(|e| e.to_string())?)?;
    nothing_left(&family, &name).await
}

pub(crate) async fn a_writer_that_steps_down_lets_readers_in(family: Arc<ReadWrite>) -> Verdict {
    let (name, owner, other) = (name(), owner(), family.process().await);
    let process = family.process().await;
    let mut heard = hear(&family, &name).await?;
    let (read, write) = (
        process.read(&name).owner(owner),
        process.lock(&name).owner(owner),
    );
    let (writes, reads) = (
        had("write", &write).await?,
        had("read under the write", &read).await?,
    );
    is_taken("another's reader", &other.read(&name)).await?;
    let lock = other.read(&name);
    let waits = tokio::spawn(async move { lock.acquire(SOON).await });
    says("release of the write", writes.release().await)?;
    let said = heard.next().await;
    ensure(said.as_deref() == Some("1"), || {
        format!("the channel said {said:?}")
    })?;
    let beside = says("another's reader", waits.await.map_err(|e| e.to_string())?)?;
    is_taken("another's writer", &other.lock(&name)).await?;
    match write.try_acquire().await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("back from read to write: {other:?}")),
    }
    says("release of the read", reads.release().await)?;
    is_taken("another's writer", &other.lock(&name)).await?;
    says("release", beside.release().await)?;
    nothing_left(&family, &name).await
}

pub(crate) async fn each_read_hold_expires_by_itself(family: Arc<ReadWrite>) -> Verdict {
    let (name, process, owner) = (name(), family.process().await, owner());
    let read = process.read(&name).owner(owner);
    let longer = had("a longer read", &process.read(&name).lease(LONGER)).await?;
    let long = had("a long read", &process.read(&name).lease(LONG)).await?;
    // Much shorter than theirs, and long enough to be found before it ends.
    let short = Lease::Fixed(Duration::from_secs(3));
    let brief = had("a short read", &read.clone().lease(short)).await?;
    let mut own = None;
    for key in keys(&family, &name).await {
        if (1..=3_000).contains(&pttl(&family, &key).await?) {
            own = Some(key);
        }
    }
    let own = own.ok_or("no hold lasts 3 s")?;
    let lasts = pttl(&family, &name).await?;
    ensure(lasts > 20_000, || {
        format!("the longest of three lasts {lasts} ms")
    })?;
    brief.lost().await;
    until("the short hold has gone", || async {
        !family.left(&name).await.contains(&own)
    })
    .await?;
    is_taken("a writer beside the others", &process.lock(&name)).await?;
    says("release", longer.release().await)?;
    let lasts = pttl(&family, &name).await?;
    ensure(0 < lasts && lasts <= 20_000, || {
        format!("what remains lasts {lasts} ms")
    })?;
    lost(brief).await?;
    is_taken("a writer beside the last", &process.lock(&name)).await?;
    says("release", long.release().await)?;
    is("after the last", &keys(&family, &name).await, &[])
}

pub(crate) async fn guards_of_one_hold_end_in_any_order(family: Arc<ReadWrite>) -> Verdict {
    let (name, process, owner) = (name(), family.process().await, owner());
    let read = process.read(&name).owner(owner);
    let mut guards = Vec::new();
    for lease in [LONG, LONGER, BRIEF] {
        guards.push(had("read", &read.clone().lease(lease)).await?);
    }
    let lasts = pttl(&family, &name).await?;
    ensure(lasts > 20_000, || {
        format!("the longest of three lasts {lasts} ms")
    })?;
    says("release of the first", guards.remove(0).release().await)?;
    let brief = guards.pop().ok_or("three")?;
    brief.lost().await;
    lost(brief).await?;
    ensure(
        ids(&family, &name).await?.len() == 1 && !guards[0].is_lost(),
        || "the hold has gone".into(),
    )?;
    is_taken("a writer beside it", &process.lock(&name)).await?;
    says("release", guards.remove(0).release().await)?;
    is("after the last", &keys(&family, &name).await, &[])
}

pub(crate) async fn a_write_entered_again_is_never_shorter(family: Arc<ReadWrite>) -> Verdict {
    let (name, process, owner) = (name(), family.process().await, owner());
    let write = process.lock(&name).owner(owner);
    let first = had("write", &write.clone().lease(LONGER)).await?;
    let again = had("again", &write.clone().lease(BRIEF)).await?;
    let lasts = pttl(&family, &name).await?;
    ensure(20_000 < lasts && lasts <= 60_000, || {
        format!("both together last {lasts} ms")
    })?;
    again.lost().await;
    lost(again).await?;
    is_taken("another", &process.lock(&name)).await?;
    says("release", first.release().await)?;
    is("after the last", &keys(&family, &name).await, &[])
}

pub(crate) async fn a_watchdog_renews_its_own_hold_and_no_fixed_one(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, process) = (name(), family.process().await);
    let lease = Duration::from_secs(6);
    for writes in [false, true] {
        let enter = async |lease| {
            let (read, write) = (process.read(&name), process.lock(&name));
            if writes {
                had("write", &write.lease(lease)).await
            } else {
                had("read", &read.lease(lease)).await
            }
        };
        let watched = enter(Lease::Watchdog(lease)).await?;
        let id = ids(&family, &name).await?.concat();
        let key = if writes {
            name.clone()
        } else {
            hold(&name, &id, 1)
        };
        let (mut renewals, mut last) = (0, pttl(&family, &key).await?);
        while renewals < 3 {
            is_taken("a writer", &process.lock(&name)).await?;
            let lasts = pttl(&family, &key).await?;
            renewals += u32::from(lasts > last);
            last = lasts;
        }
        ensure(!watched.is_lost(), || "lost under its watchdog".into())?;
        says("release", watched.release().await)?;
        let fixed = enter(BRIEF).await?;
        fixed.lost().await;
        until("the fixed hold has ended", || async {
            family.left(&name).await.is_empty()
        })
        .await?;
        lost(fixed).await?;
    }
    Ok(())
}

/// A writer's lease ends, and another writes.
async fn late(family: &ReadWrite, name: &str) -> Result<(Guard, Guard), String> {
    let [first, second] = [family.process().await, family.process().await];
    let old = had("the first writer", &first.lock(name).lease(BRIEF)).await?;
    let new = had("the second writer", &second.lock(name).lease(LONG)).await?;
    ensure(old.is_lost(), || {
        "another writes, and the first was not told".into()
    })?;
    Ok((old, new))
}

async fn still_held(family: &ReadWrite, name: &str) -> Verdict {
    is_taken(
        "a reader beside the second writer",
        &family.process().await.read(name),
    )
    .await
}

pub(crate) async fn a_write_that_expired_frees_nothing_of_another(
    family: Arc<ReadWrite>,
) -> Verdict {
    let name = name();
    let (old, new) = late(&family, &name).await?;
    lost(old).await?;
    still_held(&family, &name).await?;
    says("release", new.release().await)?;
    nothing_left(&family, &name).await
}

/// The twin deletes what is written.
pub(crate) async fn a_release_that_deletes_what_is_there_is_caught(
    family: Arc<ReadWrite>,
) -> Verdict {
    let name = name();
    let (_old, _new) = late(&family, &name).await?;
    let _: i64 = told(family.0.outsider().await.del(&name).await)?;
    match still_held(&family, &name).await {
        Err(broken) if broken.contains("got in") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// Callers that go away at any point: of a read that is free, of one under the owner's write, of one that waits.
pub(crate) async fn a_dropped_read_leaves_nothing_of_its_own(family: Arc<ReadWrite>) -> Verdict {
    let (name, process, owner) = (name(), family.process().await, owner());
    let outer = had("write", &process.lock(&name).owner(owner).lease(LONG)).await?;
    for polls in 0..30 {
        for named in [Some(owner), None] {
            let read = process.read(&name);
            let read = if let Some(owner) = named {
                read.owner(owner)
            } else {
                read
            };
            let mut acquire = Box::pin(read.acquire(SOON));
            for _ in 0..polls {
                if futures::poll!(&mut acquire).is_ready() {
                    break;
                }
                yield_now().await;
            }
        }
    }
    until("the write hold alone is left", || async {
        fields(&family, &name)
            .await
            .is_ok_and(|f| f.len() == 2 && f[1] == "mode=write")
    })
    .await?;
    is_taken("another's reader", &process.read(&name)).await?;
    says("release", outer.release().await)?;
    nothing_left(&family, &name).await
}

/// Its owner writes; it reads below that, and the answer is lost: nothing of the read stays, and the write does.
pub(crate) async fn an_unanswered_entry_takes_nothing_from_the_first(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, owner) = (name(), owner());
    let mute = Mute::to(family.server()).await;
    let process = family.process_at(&mute.address()).await;
    let outer = had("write", &process.lock(&name).owner(owner).lease(LONGER)).await?;
    let read = process.read(&name).owner(owner).lease(LONGER);
    // The scripts are known to the server: the next one is a single command.
    says("warm", had("warm", &read).await?.release().await)?;
    mute.mute();
    match read.acquire(SOON).await {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("without an answer: {other:?}")),
    }
    mute.heal().await;
    until("the write hold alone is left", || async {
        ids(&family, &name).await.is_ok_and(|ids| ids.len() == 1)
    })
    .await?;
    is_taken("another", &family.process().await.lock(&name)).await?;
    says("the outer hold's release", outer.release().await)?;
    nothing_left(&family, &name).await
}
