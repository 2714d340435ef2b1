//! The one line in which a process's readers and writers wait: readers go in together, writers are not starved, a
//! thousand are one contender, and who is inside goes past it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    read_write::{Answer, ReadWrite, SHORT, Writer, had, is_taken, listens, nothing_left, owner},
    rw_holds::JAVA,
};
use futures::StreamExt;
use oversell_lock::{
    Lock, LockError,
    redis::{Lease, RECHECK},
};
use redis::AsyncCommands;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinSet;

/// A hundred readers of one process, none of which leaves before all are in; they waited for a writer, in one line.
pub(crate) async fn readers_of_one_process_enter_together(family: Arc<ReadWrite>) -> Verdict {
    const READERS: usize = 100;
    let (name, process) = (name(), Arc::new(family.process().await));
    let writer = had("a writer", &family.process().await.lock(&name)).await?;
    let all_in = Arc::new(tokio::sync::Barrier::new(READERS));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (process, name, all_in) = (process.clone(), name.clone(), all_in.clone());
        readers.spawn(async move {
            let guard = process.read(&name).acquire(SOON).await?;
            all_in.wait().await;
            guard.release().await
        });
    }
    is_taken("a reader beside a writer", &process.read(&name)).await?;
    says("release", writer.release().await)?;
    for reader in readers.join_all().await {
        says("a reader", reader)?;
    }
    nothing_left(&family, &name).await
}

/// Two readers that relieve each other: one leaves when the other is in, or when it has not come for so long.
async fn relay(
    process: &Writer,
    name: &str,
    patience: Duration,
    writer: impl Future<Output = Verdict>,
) -> Verdict {
    let reader = async {
        let mut guard = had("the first reader", &process.read(name)).await?;
        loop {
            let next = process.read(name);
            let next = next.acquire(SOON);
            tokio::pin!(next);
            let early = tokio::time::timeout(patience, &mut next).await;
            says("release", guard.release().await)?;
            guard = says(
                "the next reader",
                if let Ok(early) = early {
                    early
                } else {
                    next.await
                },
            )?;
        }
    };
    tokio::select! {
        verdict = reader => verdict,
        verdict = writer => verdict,
    }
}

pub(crate) async fn a_writer_is_not_starved_by_readers_of_its_process(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, process) = (name(), family.process().await);
    let lock = process.lock(&name);
    let writer = async {
        until("a reader is in", || async {
            !family.left(&name).await.is_empty()
        })
        .await?;
        says("release", had("the writer", &lock).await?.release().await)
    };
    relay(&process, &name, SHORT, writer).await?;
    nothing_left(&family, &name).await
}

/// The twin asks again and again without a place in the line.
pub(crate) async fn a_writer_that_does_not_stand_in_line_is_caught(
    family: Arc<ReadWrite>,
) -> Verdict {
    const TRIES: usize = 200;
    let (name, process) = (name(), family.process().await);
    let lock = process.lock(&name);
    let writer = async {
        until("a reader is in", || async {
            !family.left(&name).await.is_empty()
        })
        .await?;
        for _ in 0..TRIES {
            if lock.try_acquire().await.is_ok() {
                return Err("it got in, and the test shows nothing".into());
            }
        }
        Ok(())
    };
    // A reader that is only slow does not leave it free.
    relay(&process, &name, SOON, writer).await
}

/// Readers that follow a writer in one process's line do not keep the next writer out, nor the writers them.
pub(crate) async fn the_line_is_in_order_of_arrival(family: Arc<ReadWrite>) -> Verdict {
    let (name, process) = (name(), Arc::new(family.process().await));
    let reader = had("a reader", &family.process().await.read(&name)).await?;
    let (order, mut tasks) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    for (at, side) in ["write", "read", "write", "read"].into_iter().enumerate() {
        let (process, name, order) = (process.clone(), name.clone(), order.clone());
        let (started, has_started) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            let (read, write) = (process.read(&name), process.lock(&name));
            let acquire: Answer<'_> = if side == "read" {
                Box::pin(read.acquire(SOON))
            } else {
                Box::pin(write.acquire(SOON))
            };
            tokio::pin!(acquire);
            let early = futures::poll!(&mut acquire);
            started.send(()).ok();
            let guard = if let std::task::Poll::Ready(guard) = early {
                guard?
            } else {
                acquire.await?
            };
            order.lock().expect("nobody panics").push(at);
            guard.release().await
        });
        has_started.await.map_err(|e| e.to_string())?;
    }
    says("release", reader.release().await)?;
    for result in tasks.join_all().await {
        says("a turn", result)?;
    }
    let order = order.lock().expect("nobody panics").clone();
    ensure(order == [0, 1, 2, 3], || {
        format!("they came in order {order:?}")
    })
}

/// Of a thousand writers that wait in one process, Redis sees one.
pub(crate) async fn a_thousand_waiting_writers_are_one_contender(
    family: Arc<ReadWrite>,
) -> Verdict {
    const TRIES: usize = 4;
    let (name, crowded) = (name(), Arc::new(family.process().await));
    let holder = had("the holder", &family.process().await.lock(&name)).await?;
    let client =
        redis::Client::open(format!("redis://{}", family.server())).map_err(|e| e.to_string())?;
    let monitor = client
        .get_async_monitor()
        .await
        .map_err(|e| e.to_string())?;
    let mut commands = monitor.into_on_message::<String>();
    let script = redis::Script::new(include_str!("../../src/redis/lua/rw_write.lua"))
        .get_hash()
        .to_owned();
    let mut waiters = JoinSet::new();
    for _ in 0..1000 {
        let lock = crowded.lock(&name);
        waiters.spawn(async move { lock.acquire(SOON * 3).await?.release().await });
    }
    let mut tries = Vec::new();
    while tries.len() < TRIES {
        let next = tokio::time::timeout(RECHECK * 8, commands.next())
            .await
            .map_err(|_| "nobody looks again")?;
        let command = next.ok_or("the monitor ended")?;
        let words: Vec<_> = command.split('"').skip(1).step_by(2).collect();
        // EVALSHA sha 1 lock lease field; the holder renews with the same, and so is told apart by the script.
        if words.len() > 5
            && words[0].eq_ignore_ascii_case("evalsha")
            && words[1] == script
            && words[3] == name
        {
            // By the server's clock: here it may be read late.
            let at = command
                .split(' ')
                .next()
                .and_then(|at| at.parse::<f64>().ok());
            tries.push(at.ok_or_else(|| format!("no time in {command}"))?);
        }
    }
    // One contender asks, subscribes and asks, and then pauses each time.
    let took = tries[TRIES - 1] - tries[0];
    ensure(took >= RECHECK.as_secs_f64(), || {
        format!("{TRIES} tries in {took} s")
    })?;
    says("release", holder.release().await)?;
    for waiter in waiters.join_all().await {
        says("a turn", waiter)?;
    }
    nothing_left(&family, &name).await
}

/// A named owner that is inside does not wait behind those who wait for it.
pub(crate) async fn who_is_inside_enters_again_past_the_line(family: Arc<ReadWrite>) -> Verdict {
    let (name, process, owner) = (name(), family.process().await, owner());
    let read = process.read(&name).owner(owner).lease(Lease::Fixed(SOON));
    let first = had("a reader", &read).await?;
    let lock = process.lock(&name);
    let waits = tokio::spawn(async move { lock.acquire(SOON).await?.release().await });
    until("the writer stands in line", || async {
        is_taken("", &process.read(&name)).await.is_ok()
    })
    .await?;
    let again = had("the reader again, past the writer", &read).await?;
    says("release", again.release().await)?;
    // An hour: a test that waits for it hangs.
    match process
        .lock(&name)
        .owner(owner)
        .acquire(Duration::from_secs(3600))
        .await
    {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("from read to write: {other:?}")),
    }
    says("release", first.release().await)?;
    says("the writer", waits.await.map_err(|e| e.to_string())?)?;
    nothing_left(&family, &name).await
}

/// A Java writer that steps down to its own read hold says nothing: who waits looks again all the same.
pub(crate) async fn a_message_that_is_never_said_costs_no_more_than_a_second_look(
    family: Arc<ReadWrite>,
) -> Verdict {
    let (name, process, mut redis) = (name(), family.process().await, family.0.outsider().await);
    let (write, broken) = (format!("{JAVA}:write"), |e: redis::RedisError| {
        e.to_string()
    });
    let fields = [("mode", "write"), (JAVA, "1"), (write.as_str(), "1")];
    let _: () = redis.hset_multiple(&name, &fields).await.map_err(broken)?;
    let _: () = redis.pexpire(&name, 60_000).await.map_err(broken)?;
    let lock = process.read(&name);
    let waits = tokio::spawn(async move { lock.acquire(SOON).await });
    listens(&family, &name).await?;
    ensure(!waits.is_finished(), || {
        "a reader beside a Java writer: got in".into()
    })?;
    let mut step_down = redis::pipe();
    step_down.hset(&name, "mode", "read").hdel(&name, &write);
    let _: () = step_down.query_async(&mut redis).await.map_err(broken)?;
    let reader = says("the reader", waits.await.map_err(|e| e.to_string())?)?;
    let _: i64 = redis.hdel(&name, JAVA).await.map_err(broken)?;
    says("release", reader.release().await)?;
    nothing_left(&family, &name).await
}
