//! What `MultiLock` promises beyond the contract, and the twin that keeps the parts that it has.

use super::{register::layered, support::*};
use oversell_lock::{
    MultiLock,
    redis::{RedisClient, RedisLock},
};

/// The names of its three parts.
pub(crate) fn parts(name: &str) -> [String; 3] {
    [1, 2, 3].map(|n| format!("{name}-{n}"))
}

fn locks(client: &RedisClient, name: &str) -> Vec<RedisLock> {
    parts(name).map(|part| client.lock(&part)).into()
}

/// Each of two processes takes the same two, the second one in the other order.
#[apply(layered!)]
async fn two_of_opposite_orders_both_go_on<S: Server>(family: Family<S>) -> Result {
    let name = name();
    let names = [format!("{name}-1"), format!("{name}-2")];
    let rounds = [false, true].map(async |turned| {
        let process = family.process().await;
        let mut parts: Vec<_> = names.iter().map(|name| process.lock(name)).collect();
        if turned {
            parts.reverse();
        }
        let multi = MultiLock::new(parts);
        for _ in 0..5 {
            let guard = multi.acquire(SOON * 3).await?;
            tokio::task::yield_now().await;
            guard.release().await?;
        }
        anyhow::Ok(())
    });
    try_join_all(rounds).await?;
    Ok(())
}

/// Another has the last part only.
async fn none_is_kept(redis: &Redis, name: &str, lock: impl Lock) -> Result {
    let ([first, second, last], other) = (parts(name), redis.client().await);
    let held = take(&other.lock(&last)).await?;
    for wait in [Duration::ZERO, SHORT] {
        taken("without its last part", lock.acquire(wait).await)?;
        for part in [&first, &second] {
            let free = other.lock(part).try_acquire().await;
            free.context("a part was kept")?.release().await?;
        }
    }
    Ok(held.release().await?)
}

#[apply(test!)]
async fn without_one_part_it_keeps_none(redis: &Redis) -> Result {
    let (name, client) = (name(), redis.client().await);
    none_is_kept(redis, &name, MultiLock::new(locks(&client, &name))).await
}

/// The twin: where it misses a part it keeps the others.
#[apply(test!)]
async fn one_that_keeps_parts_is_caught(redis: &Redis) -> Result {
    let (name, client) = (name(), redis.client().await);
    let parts = locks(&client, &name);
    let greedy = made("greedy", parts, |parts, name, wait| async move {
        let mut held = Vec::new();
        for part in parts {
            match part.acquire(wait).await {
                Ok(guard) => held.push(guard),
                Err(error) => {
                    // Here the honest lock gives back.
                    std::mem::forget(held);
                    return Err(error);
                }
            }
        }
        Ok(Guard::new(name, None).0)
    });
    caught(none_is_kept(redis, &name, greedy).await, "a part was kept")
}

/// The second part is never free for long: five of its own process hand it on.
#[apply(test!)]
async fn a_part_with_a_long_line_is_had_in_the_end(redis: &Redis) -> Result {
    let (name, client) = (name(), redis.client().await);
    // So long that a busy machine renews them in time.
    let lease = Lease::Watchdog(SOON * 3);
    let [first, second, _] = parts(&name).map(|part| client.lock(&part).lease(lease));
    let users = try_join_all((0..5).map(async |_| {
        loop {
            let guard = second.acquire(SOON * 3).await?;
            tokio::time::sleep(Duration::from_millis(40)).await;
            guard.release().await?;
        }
        #[allow(unreachable_code, reason = "it says what the others come to")]
        anyhow::Ok(())
    }));
    let both = MultiLock::new(vec![first, second.clone()]);
    tokio::select! {
        ended = users => ended.map(drop),
        guard = both.acquire(SOON) => Ok(guard.context("it starves")?.release().await?),
    }
}
