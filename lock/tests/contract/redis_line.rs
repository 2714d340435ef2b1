//! Those who wait in one process's line and can be inside together go in together: a grant costs them no round trip each.

use super::{
    read_write::{listens, reading, writing},
    redis::patient,
    support::*,
};

/// So many, each answer of the server so late, one after the other: longer than they wait.
const MANY: u32 = 300;
const LATE: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_secs(4);

#[apply(test!)]
async fn readers_that_waited_for_a_writer_go_in_together(redis: &Redis) -> Result {
    let (name, other) = (name(), redis.client().await);
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let writer = take(&writing(&other, &name)).await?;
    let readers: Vec<_> = (0..MANY)
        .map(|_| {
            let lock = reading(&process, &name);
            tokio::spawn(async move { lock.acquire(WAIT).await })
        })
        .collect();
    listens(redis, &name).await?;
    mute.delay(LATE);
    writer.release().await?;
    let mut inside = Vec::new();
    for reader in readers {
        inside.push(reader.await?.context("a readable lock")?);
    }
    mute.delay(Duration::ZERO);
    try_join_all(inside.into_iter().map(Guard::release)).await?;
    redis.no_key_left(&name).await
}

/// No more than there are permits for.
#[apply(test!)]
async fn those_for_whom_there_are_permits_take_them_together(redis: &Redis) -> Result {
    let (name, other) = (name(), redis.client().await);
    let mute = Mute::to(redis.host())?;
    let process = patient(&mute.address());
    let semaphore = other.semaphore(&name);
    semaphore.try_set_permits(MANY).await?;
    let all = semaphore.acquire(MANY, SOON).await?;
    let waiters: Vec<_> = (0..=MANY)
        .map(|_| {
            let semaphore = process.semaphore(&name);
            tokio::spawn(async move { semaphore.acquire(1, WAIT).await })
        })
        .collect();
    let channel = format!("redisson_sc:{{{name}}}");
    let waits = async || matches!(redis.listeners(&channel).await, Ok(1));
    until("they wait", waits).await?;
    mute.delay(LATE);
    all.release().await?;
    let (mut inside, mut outside) = (Vec::new(), 0);
    for waiter in waiters {
        match waiter.await? {
            Ok(permit) => inside.push(permit),
            Err(LockError::Taken { .. }) => outside += 1,
            Err(other) => return Err(other.into()),
        }
    }
    is("one more than there are permits", outside, 1)?;
    mute.delay(Duration::ZERO);
    drop(inside);
    let back =
        async || matches!(semaphore.available_permits().await, Ok(n) if n == i64::from(MANY));
    until("all permits are back", back).await
}
