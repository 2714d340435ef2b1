//! [002] How a waiter of Redisson's lock, which is `redis-lock` here, learns that it is free, and how the lease is renewed.

use crate::trials::{Cluster, NoVerdict, Observation, tools::send_command};
use futures::StreamExt;
use oversell::claims::words;
use redis::Client;
use std::time::{Duration, Instant};

/// Claim: a waiter learns how long the lease of the holder is, sleeps, and tries again when it has ended; and a holder that works
/// longer than its lease is renewed. Nobody releases the key here. A lock that polls would try every 50 ms; ours tries every 500 ms
/// besides, in case the key is deleted without a message.
pub(super) async fn waiter_sleeps_until_lease_ends(on: &Cluster, strategy: &str, lock: &str) -> Result<Observation, NoVerdict> {
    /// No multiple of 500 ms, so that the periodic try does not come at the end of the lease.
    const LEFT_MS: u64 = 3250;
    /// The most tries of a waiter that sleeps: one at first, one when it listens for the release, one every 500 ms, and two to spare.
    /// One that polls every 50 ms makes sixty.
    const MAX_TRIES: usize = 10;
    let product = on.create_product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("{lock}:{}", product.id));
    send_command::<()>(&mut redis, &["HSET", &key, "somebody", "1"]).await?;
    send_command::<()>(&mut redis, &["PEXPIRE", &key, &LEFT_MS.to_string()]).await?;
    let monitor = Client::open(on.servers()?.first_redis())?;
    let mut told = monitor.get_async_monitor().await?.into_on_message::<String>();
    let (begun, mut tries, quoted) = (Instant::now(), Vec::new(), format!("\"{key}\""));
    let mut purchase = Box::pin(product.buy(on.one_instance(), strategy, ""));
    let (_, answer) = loop {
        tokio::select! {
            bought = &mut purchase => break bought?,
            Some(line) = told.next() => {
                // Each command of a script has a line, too; only the call of the script counts.
                if line.contains("\"EVAL") && line.contains(&quoted) {
                    tries.push(begun.elapsed());
                }
            }
        }
    };
    drop(purchase);
    let waiting = Duration::from_millis(LEFT_MS - 250);
    let asked = tries.iter().filter(|at| **at < waiting).count();
    let waited = answer["waited_ms"].as_u64().unwrap_or_default();
    let left = watch_lease(product.buy(on.one_instance(), strategy, "&lease_ms=1500&hold_ms=4000"), &mut redis, &key).await?;
    product.remove().await?;
    // The remaining lease became longer, by more than 100 ms.
    let renewed = left.windows(2).filter(|pair| pair[1] > pair[0] + 100).count();
    let words = words!(
        "别人的锁还剩 {LEFT_MS} ms，没有人通知：等的时候问了 {asked} 次（另外每 500 ms 复查一次），{waited} ms 后拿到。租约 1.5 s、业务 4 s：续了 {renewed} 次。",
        "Another's lock has {LEFT_MS} ms left and nobody tells: asked {asked} times while it waited (every 500 ms besides), and had it after {waited} ms. A lease of 1.5 s and 4 s of work: renewed {renewed} times."
    );
    let in_time = (LEFT_MS - 250..LEFT_MS + 200).contains(&waited);
    Ok(Observation::holds((1..=MAX_TRIES).contains(&asked) && in_time && renewed >= 4, words)
        .value("asked", asked)
        .value("renewed", renewed))
}

/// Reads the remaining lease of a key, in milliseconds, every 20 ms until the purchase ends; reads without one are left out.
async fn watch_lease<T>(
    purchase: impl Future<Output = T>,
    redis: &mut redis::aio::MultiplexedConnection,
    key: &str,
) -> Result<Vec<i64>, NoVerdict> {
    let mut left = Vec::new();
    tokio::pin!(purchase);
    loop {
        tokio::select! {
            _ = &mut purchase => return Ok(left),
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                left.extend(Some(send_command::<i64>(redis, &["PTTL", key]).await?).filter(|left| *left >= 0));
            }
        }
    }
}
