//! Without a wake-up connection, waiters that come and go leave nothing in the process.

use crate::{
    redis::{client, faults::first_connection, patient},
    support::*,
};

/// Waiters for fair locks, each with a channel of its own, and for plain locks of many names.
#[apply(test!)]
async fn dropped_waiters_leave_no_task_without_wake_ups(redis: &Redis) -> Result {
    const WAITERS: usize = 200;
    // Its lease outlasts the test, however slow the machine is.
    let holder = client(&Process::new(), &redis.host(), SOON * 10, SOON);
    let name = name();
    let fair = format!("{name}-fair");
    let plain = move |n: usize| format!("{name}-{n}");
    let mut held = vec![take(&holder.fair_lock(&fair)).await?];
    for n in 0..WAITERS {
        held.push(take(&holder.lock(&plain(n))).await?);
    }
    let way = first_connection(redis.host(), None).await?;
    let counted = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let process = patient(&way);
            redis::cmd("PING").exec_async(&mut process.connection()).await?;
            let mut waited = 0;
            for _ in 0..3 {
                let fair = (0..WAITERS).map(|_| process.fair_lock(&fair).boxed());
                let plain = (0..WAITERS).map(|n| process.lock(&plain(n)).boxed());
                let waits: Vec<_> = fair.chain(plain).collect();
                let ended = join_all(waits.iter().map(|lock| lock.acquire(SHORT))).await;
                waited += ended.iter().filter(|ended| matches!(ended, Err(LockError::Taken { .. }))).count();
            }
            let metrics = tokio::runtime::Handle::current().metrics();
            let few = async || metrics.num_alive_tasks() < WAITERS / 4;
            until("the tasks end", few).await.ok();
            anyhow::Ok((metrics.num_alive_tasks(), waited))
        })
    });
    let counted = tokio::task::spawn_blocking(|| counted.join()).await?;
    let (alive, waited) = counted.map_err(|_| anyhow::anyhow!("it panicked"))??;
    ensure_equal("who waited in vain", waited, 3 * 2 * WAITERS)?;
    ensure!(alive < WAITERS / 4, "{alive} tasks are alive");
    for guard in held {
        guard.release().await?;
    }
    Ok(())
}
