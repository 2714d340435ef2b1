//! §2.7 and §2.10.1: the length of a lease, its renewals, and the waits of Redisson's lock, which is `redis-lock` here.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    tools::{send_command, wait_for_key},
};
use futures::StreamExt;
use oversell::claims::words;
use redis::Client;
use std::time::{Duration, Instant};

experiments! {
    "2.7.third" => lease_is_renewed_every_third("redis-watchdog"), twin("redis-setnx-ttl");
    "2.10.1.watchdog" => default_lease_is_30_s("redis-lock", "lock"), twin("redis-setnx-ttl", "lock:redis-setnx-ttl");
    "2.10.1.lease" => lock_ends_with_its_lease(1500), twin(4000);
    "2.10.1.try" => try_lock_waits_for_its_timeout("redis-lock"), twin("redis-watchdog");
    "002.watchdog" => waiter_sleeps_until_lease_ends("redis-lock", "lock"), twin("redis-watchdog", "lock:redis-watchdog");
}

/// Claim: a lease is 30 s long and is renewed after 10 s. `lock` is the prefix of the key of the lock.
async fn default_lease_is_30_s(
    on: &Cluster,
    strategy: &str,
    lock: &str,
) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("{lock}:{}", product.id));
    let left = watch_lease(
        product.buy(on.one_instance(), strategy, "&hold_ms=11500"),
        &mut redis,
        &key,
    )
    .await?;
    product.remove().await?;
    let (renewed, most) = (
        count_renewals(&left),
        left.iter().max().copied().unwrap_or_default(),
    );
    let words = words!(
        "持有 11.5 s：租约最多 {most} ms，续了 {renewed} 次。",
        "Held for 11.5 s: the lease was {most} ms at most, and was renewed {renewed} times."
    );
    let holds = (29_000..=30_000).contains(&most) && renewed == 1;
    Ok(Observation::holds(holds, words)
        .value("renewed", renewed)
        .value("most_ms", most))
}

/// Claim: a write lock with a lease of 1.5 s that nobody releases ends by itself.
async fn lock_ends_with_its_lease(on: &Cluster, lease_ms: u64) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("rwLock:{}", product.id));
    let begun = Instant::now();
    on.get(&format!(
        "{}/test/write?stock_id={}&hold_ms={lease_ms}",
        on.one_instance(),
        product.id
    ))
    .await?
    .success()?;
    let answered = begun.elapsed().as_millis();
    let left: i64 = send_command(&mut redis, &["PTTL", &key]).await?;
    let gone = tokio::time::timeout(Duration::from_secs(10), async {
        while send_command::<bool>(&mut redis, &["EXISTS", &key]).await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, NoVerdict>(begun.elapsed().as_millis())
    });
    let gone = gone
        .await
        .map_err(|_| NoVerdict::failed("the lock stays"))??;
    product.remove().await?;
    let words = words!(
        "写锁给了 1500 ms：{answered} ms 就有了回答，那时租约还剩 {left} ms；{gone} ms 时锁自己没了。",
        "A write lock for 1500 ms: answered after {answered} ms with {left} ms left; gone by itself after {gone} ms."
    );
    Ok(Observation::holds(
        (0..=1500).contains(&left) && (1400..3000).contains(&gone),
        words,
    ))
}

/// Claim: while another holds the lock, a buyer that waits 500 ms at most is refused after that time, and a more patient one gets it.
async fn try_lock_waits_for_its_timeout(
    on: &Cluster,
    lock: &str,
) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:{}", product.id));
    let other = on
        .instances()
        .last()
        .map_or(on.one_instance(), String::as_str);
    let tries = async {
        wait_for_key(&mut redis, &key).await?;
        let begun = Instant::now();
        let (short, _) = product.buy(other, lock, "&wait_ms=500").await?;
        let waited = begun.elapsed().as_millis();
        let (long, _) = product.buy(other, lock, "&wait_ms=20000").await?;
        Ok::<_, NoVerdict>((short, waited, long))
    };
    let (held, tries) = tokio::join!(
        product.buy(on.one_instance(), "redis-lock", "&hold_ms=2500"),
        tries
    );
    held?;
    let (short, waited, long) = tries?;
    product.remove().await?;
    let words = words!(
        "锁被占着：最多等 500 ms 的，{waited} ms 后得到 {short}；愿意等久些的得到 {long}。",
        "While another has it: who waits 500 ms at most got {short} after {waited} ms; who waits longer got {long}."
    );
    Ok(Observation::holds(
        short == 503 && (490..2000).contains(&waited) && long == 200,
        words,
    ))
}

/// Claim: a lock is renewed whenever a third of its lease is over.
async fn lease_is_renewed_every_third(
    on: &Cluster,
    strategy: &str,
) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:{strategy}:{}", product.id));
    // 9.5 s of work under a lease of 3 s.
    let left = watch_lease(
        product.buy(on.one_instance(), strategy, "&lease_ms=3000&hold_ms=9500"),
        &mut redis,
        &key,
    )
    .await?;
    product.remove().await?;
    let renewed = count_renewals(&left);
    let lowest = left.iter().min().copied().unwrap_or_default();
    let words = words!(
        "租约 3 s、业务 9.5 s：续了 {renewed} 次，剩得最少时 {lowest} ms。",
        "A lease of 3 s and 9.5 s of work: renewed {renewed} times, and never less than {lowest} ms left."
    );
    let holds = (8..=9).contains(&renewed) && lowest > 1500;
    Ok(Observation::holds(holds, words)
        .value("renewed", renewed)
        .value("lowest_ms", lowest))
}

/// Claim: a waiter learns how long the lease of the holder is, sleeps, and tries again when it has ended; and a holder that works
/// longer than its lease is renewed. Nobody releases the key here. A lock that polls would try every 50 ms; ours tries every 500 ms
/// besides, in case the key is deleted without a message.
async fn waiter_sleeps_until_lease_ends(
    on: &Cluster,
    strategy: &str,
    lock: &str,
) -> Result<Observation, NoVerdict> {
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
    let mut told = monitor
        .get_async_monitor()
        .await?
        .into_on_message::<String>();
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
    let left = watch_lease(
        product.buy(on.one_instance(), strategy, "&lease_ms=1500&hold_ms=4000"),
        &mut redis,
        &key,
    )
    .await?;
    product.remove().await?;
    let renewed = count_renewals(&left);
    let words = words!(
        "别人的锁还剩 {LEFT_MS} ms，没有人通知：等的时候问了 {asked} 次（另外每 500 ms 复查一次），{waited} ms 后拿到。租约 1.5 s、业务 4 s：续了 {renewed} 次。",
        "Another's lock has {LEFT_MS} ms left and nobody tells: asked {asked} times while it waited (every 500 ms besides), and had it after {waited} ms. A lease of 1.5 s and 4 s of work: renewed {renewed} times."
    );
    let in_time = (LEFT_MS - 250..LEFT_MS + 200).contains(&waited);
    Ok(Observation::holds(
        (1..=MAX_TRIES).contains(&asked) && in_time && renewed >= 4,
        words,
    )
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

/// Counts how often the remaining lease became longer, by more than 100 ms.
fn count_renewals(left: &[i64]) -> usize {
    left.windows(2)
        .filter(|pair| pair[1] > pair[0] + 100)
        .count()
}
