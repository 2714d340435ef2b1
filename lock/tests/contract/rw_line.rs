//! The one line in which a process's readers and writers wait: readers go in together, writers are not starved, a
//! thousand are one contender, and a holder goes past it.

use super::{
    family::Server,
    read_write::{Answer, SHORT, is_taken, listens, owner, reading, writing},
    redis::Redis,
    rw_holds::JAVA,
    support::*,
};
use futures::StreamExt;
use oversell_lock::{
    Lease, Lock,
    redis::{RECHECK, RedisClient},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinSet;

/// A hundred readers of one process, none of which leaves before all are in; they waited for a writer, in one line.
#[apply(test!)]
async fn readers_of_one_process_enter_together(redis: &Redis) -> Result<()> {
    const READERS: usize = 100;
    let (name, process) = (name(), Arc::new(redis.client().await));
    let writer = take(&writing(&redis.client().await, &name)).await?;
    let all_in = Arc::new(tokio::sync::Barrier::new(READERS));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (process, name, all_in) = (process.clone(), name.clone(), all_in.clone());
        readers.spawn(async move {
            let guard = reading(&process, &name).acquire(SOON).await?;
            all_in.wait().await;
            guard.release().await
        });
    }
    is_taken("a reader beside a writer", &reading(&process, &name)).await?;
    writer.release().await?;
    for reader in readers.join_all().await {
        reader.context("a reader")?;
    }
    redis.no_key_left(&name).await
}

/// Two readers that relieve each other: one leaves when the other is in, or when it has not come for so long.
async fn relay(
    process: &RedisClient,
    name: &str,
    patience: Duration,
    writer: impl Future<Output = Result<()>>,
) -> Result<()> {
    let reader = async {
        let mut guard = take(&reading(process, name)).await?;
        loop {
            let next = reading(process, name);
            let next = next.acquire(SOON);
            tokio::pin!(next);
            let early = tokio::time::timeout(patience, &mut next).await;
            guard.release().await?;
            guard = if let Ok(early) = early {
                early
            } else {
                next.await
            }?;
        }
    };
    tokio::select! {
        verdict = reader => verdict,
        verdict = writer => verdict,
    }
}

#[apply(test!)]
async fn a_writer_is_not_starved_by_readers_of_its_process(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let lock = writing(&process, &name);
    let writer = async {
        until("a reader is in", || async {
            !redis.keys(&name).await.is_empty()
        })
        .await?;
        pass(&lock).await
    };
    relay(&process, &name, SHORT, writer).await?;
    redis.no_key_left(&name).await
}

/// The twin asks again and again without a place in the line.
#[apply(test!)]
async fn a_writer_that_does_not_stand_in_line_is_caught(redis: &Redis) -> Result<()> {
    const TRIES: usize = 200;
    let (name, process) = (name(), redis.client().await);
    let lock = writing(&process, &name);
    let writer = async {
        until("a reader is in", || async {
            !redis.keys(&name).await.is_empty()
        })
        .await?;
        for _ in 0..TRIES {
            if lock.try_acquire().await.is_ok() {
                bail!("it got in, and the test shows nothing");
            }
        }
        Ok(())
    };
    // A reader that is only slow does not leave it free.
    relay(&process, &name, SOON, writer).await
}

/// Readers that follow a writer in one process's line do not keep the next writer out, nor the writers them.
#[apply(test!)]
async fn the_line_is_in_order_of_arrival(redis: &Redis) -> Result<()> {
    let (name, process) = (name(), Arc::new(redis.client().await));
    let reader = take(&reading(&redis.client().await, &name)).await?;
    let (order, mut tasks) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    for (at, side) in ["write", "read", "write", "read"].into_iter().enumerate() {
        let (process, name, order) = (process.clone(), name.clone(), order.clone());
        let (started, has_started) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            let (read, write) = (reading(&process, &name), writing(&process, &name));
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
        has_started.await?;
    }
    reader.release().await?;
    for result in tasks.join_all().await {
        result?;
    }
    let order = order.lock().expect("nobody panics").clone();
    ensure!(order == [0, 1, 2, 3], "they came in order {order:?}");
    Ok(())
}

/// Of a thousand writers that wait in one process, Redis sees one.
#[apply(test!)]
async fn a_thousand_waiting_writers_are_one_contender(redis: &Redis) -> Result<()> {
    const TRIES: usize = 4;
    let (name, crowded) = (name(), Arc::new(redis.client().await));
    let holder = take(&writing(&redis.client().await, &name)).await?;
    let client = redis::Client::open(format!("redis://{}", redis.host()))?;
    let monitor = client.get_async_monitor().await?;
    let mut commands = monitor.into_on_message::<String>();
    let script = redis::Script::new(include_str!("../../src/redis/lua/rw_write.lua"))
        .get_hash()
        .to_owned();
    let mut waiters = JoinSet::new();
    for _ in 0..1000 {
        let lock = writing(&crowded, &name);
        waiters.spawn(async move { lock.acquire(SOON * 3).await?.release().await });
    }
    let mut tries = Vec::new();
    while tries.len() < TRIES {
        let next = tokio::time::timeout(RECHECK * 8, commands.next())
            .await
            .context("nobody looks again")?;
        let command = next.context("the monitor ended")?;
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
            tries.push(at.with_context(|| format!("no time in {command}"))?);
        }
    }
    // One contender asks, subscribes and asks, and then pauses each time.
    let took = tries[TRIES - 1] - tries[0];
    ensure!(took >= RECHECK.as_secs_f64(), "{TRIES} tries in {took} s");
    holder.release().await?;
    for waiter in waiters.join_all().await {
        waiter?;
    }
    redis.no_key_left(&name).await
}

/// A named owner that is inside does not wait behind the waiters.
#[apply(test!)]
async fn a_holder_enters_again_past_the_line(redis: &Redis) -> Result<()> {
    let (name, process, owner) = (name(), redis.client().await, owner());
    let read = reading(&process, &name)
        .owner(owner)
        .lease(Lease::Fixed(SOON));
    let first = take(&read).await?;
    let waits = passing(writing(&process, &name));
    until("the writer stands in line", || async {
        is_taken("", &reading(&process, &name)).await.is_ok()
    })
    .await?;
    let again = take(&read).await?;
    again.release().await?;
    // An hour: a test that waits for it hangs.
    let write = writing(&process, &name).owner(owner);
    let upgrade = write.acquire(Duration::from_secs(3600)).await;
    invalid("from read to write", upgrade)?;
    first.release().await?;
    waits.await??;
    redis.no_key_left(&name).await
}

/// A Java writer that steps down to its own read hold says nothing: a waiter looks again all the same.
#[apply(test!)]
async fn a_message_that_is_never_said_costs_no_more_than_a_second_look(
    redis: &Redis,
) -> Result<()> {
    let (name, process) = (name(), redis.client().await);
    let write = format!("{JAVA}:write");
    let hold = ["HSET", &name, "mode", "write", JAVA, "1", &write, "1"];
    redis.run(&[&hold, &["PEXPIRE", &name, "60000"]]).await?;
    let waits = acquiring(reading(&process, &name));
    listens(redis, &name).await?;
    ensure!(!waits.is_finished(), "a reader got in beside a Java writer");
    let step_down = ["HSET", &name, "mode", "read"];
    redis.run(&[&step_down, &["HDEL", &name, &write]]).await?;
    let reader = waits.await??;
    redis.run(&[&["HDEL", &name, JAVA]]).await?;
    reader.release().await?;
    redis.no_key_left(&name).await
}
