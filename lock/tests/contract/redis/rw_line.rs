//! The line shared by a process's readers and writers: writers are not starved, and a holder passes it. That readers
//! enter together is shown by `crowd.rs`.

use crate::{
    redis::read_write::{ensure_still_taken, listens, owner, reading, writing},
    redis::rw_holds::{JAVA, hold},
    support::*,
};
use oversell_lock::redis::RedisClient;
use std::cell::RefCell;

/// Two readers that alternate: one leaves when the other is in, or after a time limit. The writer comes when a reader
/// is in.
async fn relay(redis: &Redis, patience: Duration, write: impl AsyncFnOnce(&RedisClient, &str) -> Result) -> Result {
    let (name, process) = (name(), redis.client().await);
    let readers = async {
        let mut guard = take(&reading(&process, &name)).await?;
        loop {
            let next = reading(&process, &name);
            let mut next = pin!(next.acquire(SOON));
            let early = timeout(patience, &mut next).await;
            guard.release().await?;
            guard = match early {
                Ok(early) => early?,
                Err(_) => next.await?,
            };
        }
    };
    let writer = async {
        let is_in = async || !redis.keys(&name).await.is_empty();
        until("a reader is in", is_in).await?;
        write(&process, &name).await
    };
    tokio::select! {
        verdict = readers => verdict,
        verdict = writer => verdict,
    }?;
    redis.no_key_left(&name).await
}

#[apply(test!)]
async fn a_writer_is_not_starved_by_readers_of_its_process(redis: &Redis) -> Result {
    let waits = async |process: &RedisClient, name: &str| pass(&writing(process, name)).await;
    relay(redis, SHORT, waits).await
}

/// The twin keeps asking without a place in the line. A slow reader alone does not leave the line free.
#[apply(test!)]
async fn a_writer_that_does_not_stand_in_line_is_caught(redis: &Redis) -> Result {
    const TRIES: usize = 200;
    let asks = async |process: &RedisClient, name: &str| {
        for _ in 0..TRIES {
            let tried = writing(process, name).try_acquire().await;
            ensure!(tried.is_err(), "it got in, and the test shows nothing");
        }
        Ok(())
    };
    relay(redis, SOON, asks).await
}

/// Readers behind a writer in one line do not keep the next writer out, nor the writers them.
#[apply(test!)]
async fn the_line_is_in_order_of_arrival(redis: &Redis) -> Result {
    let (name, process, order) = (name(), redis.client().await, RefCell::new(vec![]));
    let (read, write) = (reading(&process, &name), writing(&process, &name));
    let reader = take(&reading(&redis.client().await, &name)).await?;
    let arrive = async |at: usize| {
        let guard = match at % 2 {
            0 => take(&write).await?,
            _ => take(&read).await?,
        };
        order.borrow_mut().push(at);
        anyhow::Ok(guard.release().await?)
    };
    // Polled in this order.
    let mut all = pin!(try_join_all([0, 1, 2, 3].map(arrive)));
    ensure!(futures::poll!(&mut all).is_pending(), "nobody waits");
    reader.release().await?;
    all.await?;
    ensure_equal("the order", order.take(), vec![0, 1, 2, 3])
}

/// A named owner that is inside does not wait behind the waiters.
#[apply(test!)]
async fn a_holder_enters_again_past_the_line(redis: &Redis) -> Result {
    let (name, process, owner) = (name(), redis.client().await, owner());
    let read = reading(&process, &name).owner(owner);
    let read = read.lease(Lease::Fixed(SOON));
    let first = take(&read).await?;
    let waits = spawn_pass(writing(&process, &name));
    let stands = async || ensure_still_taken("", &reading(&process, &name)).await.is_ok();
    until("the writer stands in line", stands).await?;
    let again = take(&read).await?;
    again.release().await?;
    // A test that waited for this lease would hang.
    let write = writing(&process, &name).owner(owner);
    let upgrade = write.acquire(Duration::from_secs(3600)).await;
    ensure_invalid("from read to write", upgrade)?;
    first.release().await?;
    waits.await??;
    redis.no_key_left(&name).await
}

/// A Java writer that keeps only its read hold sends no message; a waiter still looks. Nobody is beside it while it
/// writes, nor a writer while it reads, and our reader leaves its hold alone.
#[apply(test!)]
async fn a_lost_message_costs_no_more_than_a_second_look(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let (write, own) = (format!("{JAVA}:write"), hold(&name, JAVA, 1));
    let holds = ["HSET", &name, "mode", "write", JAVA, "1", &write, "1"];
    let lasts = ["PSETEX", &own, "60000", "1"];
    redis.run(&[&holds, &lasts, &["PEXPIRE", &name, "60000"]]).await?;
    ensure_still_taken("a writer beside a Java writer", &writing(&process, &name)).await?;
    let waits = spawn_acquire(reading(&process, &name));
    listens(redis, &name).await?;
    ensure!(!waits.is_finished(), "a reader got in beside a Java writer");
    let step_down = ["HSET", &name, "mode", "read"];
    redis.run(&[&step_down, &["HDEL", &name, &write]]).await?;
    waits.await??.release().await?;
    ensure_still_taken("a writer beside a Java reader", &writing(&process, &name)).await?;
    redis.run(&[&["DEL", &name, &own]]).await?;
    pass(&writing(&process, &name)).await
}
