//! §3.7.4 to §3.7.7.2: several locks as one, leases, a barrier, a counter that is promoted to a lock.

use crate::trials::{
    Cluster, NoVerdict, Observation, Product,
    tools::{count_children, wait_for_children},
};
use futures::future::{join_all, try_join_all};
use oversell::claims::{Words, words};
use oversell_lab::fault::Action;
use oversell_lock::{
    LockError,
    zk::{ZkClient, ZkOptions},
};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use zookeeper_client::{Acls, CreateMode};

experiments! {
    "3.7.4" => multi_lock_takes_all_or_none("zk-multi"), twin("zk-mutex");
    "3.7.5" => semaphore_admits_five("zk/"), twin("");
    "3.7.5.numbers" => clients_disagree_on_leases(5), twin(2);
    "3.7.5.unclosed" => unclosed_lease_blocks_others(false), twin(true);
    "3.7.5.crash" => leases_of_dead_holder_are_freed(true), twin(false);
    "3.7.6.barrier" => barrier_holds_waiters_back(true), twin(false);
    "3.7.7.2.promoted" => counter_is_promoted_under_contention(true), twin(false);
}

/// Reads the log of the visits: `true` for a visit that came in, `false` for one that left.
async fn read_visits(on: &Cluster, product: &Product<'_>) -> Result<Vec<bool>, NoVerdict> {
    let mut redis = on.redis().await?;
    let lines: Result<Vec<String>, _> = redis::cmd("LRANGE")
        .arg(format!("log:{}", product.id))
        .arg(0)
        .arg(-1)
        .query_async(&mut redis)
        .await;
    Ok(lines?
        .iter()
        .map(|line| line.contains("获取了资源"))
        .collect())
}

/// Claim: of seven visits five are inside at once, never more, and all leave. `of` is the path before `semaphore`.
async fn semaphore_admits_five(on: &Cluster, of: &str) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let visits = (0..7).map(|n| {
        let at = &on.instances()[n % on.instances().len()];
        let url = format!(
            "{at}/test/{of}semaphore?stock_id={}&hold_ms=500&who=v{n}",
            product.id
        );
        async move { on.get(&url).await?.success() }
    });
    try_join_all(visits).await?;
    let (mut inside, mut most) = (0_i64, 0);
    for came in read_visits(on, &product).await? {
        inside += if came { 1 } else { -1 };
        most = most.max(inside);
    }
    product.remove().await?;
    let words = words!(
        "七个人同时来：同一时刻最多 {most} 个，最后都出来了（还剩 {inside} 个）。",
        "Seven came at once: at most {most} were inside, and all came out ({inside} left)."
    );
    Ok(Observation::holds((most, inside) == (5, 0), words).value("inside", most))
}

/// Claim: the leases of a killed instance are free once its session has ended.
async fn leases_of_dead_holder_are_freed(
    on: &Cluster,
    holder_dies: bool,
) -> Result<Observation, NoVerdict> {
    let (product, zookeeper) = (on.create_product(5000).await?, on.zookeeper().await?);
    let instances = &on.servers()?.instances;
    let [alive, .., dies] = &instances[..] else {
        return Err(NoVerdict::unavailable(
            "要有两个实例",
            "it takes two instances",
        ));
    };
    let hold = if holder_dies { 60_000 } else { 3000 };
    let url = |at: &str, wait: u32| {
        format!(
            "{at}/test/zk/semaphore?stock_id={}&hold_ms={hold}&wait_ms={wait}",
            product.id
        )
    };
    let taken = format!("/locks/semaphore-{}/leases", product.id);
    let all = try_join_all((0..5).map(|n| {
        let url = format!("{}&who=v{n}", url(&dies.url, 60_000));
        async move { on.get(&url).await }
    }));
    let killed = async {
        wait_for_children(&zookeeper, &taken, 5).await?;
        let before = on.get(&url(&alive.url, 500)).await?.status.as_u16();
        if holder_dies {
            on.inject_fault(Action::Kill, &dies.name).await?;
        }
        // The leases are gone once the session has timed out.
        while holder_dies && count_children(&zookeeper, &taken).await? > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        let after = on
            .get(&format!(
                "{}/test/zk/semaphore?stock_id={}&hold_ms=0&wait_ms=500",
                alive.url, product.id
            ))
            .await?;
        Ok::<_, NoVerdict>((before, after.status.as_u16()))
    };
    // The visits inside get no answer: their instance is dead.
    let (_, answers) = tokio::join!(all, killed);
    let (before, after) = answers?;
    if holder_dies {
        on.inject_fault(Action::Start, &dies.name).await?;
    }
    product.remove().await?;
    let words = words!(
        "五个租约都在 {} 手里时：{before}；它被杀、会话结束以后：{after}。",
        "With all five leases in {}: {before}; after it was killed and its session ended: {after}.",
        dies.name
    );
    Ok(Observation::holds((before, after) == (503, 200), words))
}

/// A client of the lock library with its own session.
fn new_client(on: &Cluster) -> Result<ZkClient, NoVerdict> {
    ZkClient::new(ZkOptions::new(&on.servers()?.zookeeper.connect)).map_err(NoVerdict::failed)
}

/// Time limit of the wait for a lease that should be free.
const LEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the second client waits for one more lease. It gets it at once if it says that there are more leases; else it waits in
/// vain, so this is short.
const EXTRA_LEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// Claim: if two clients disagree on the number of leases, more are held than one of them allows. `says`: the number of the second.
async fn clients_disagree_on_leases(on: &Cluster, says: u32) -> Result<Observation, NoVerdict> {
    let (zookeeper, other) = (new_client(on)?, new_client(on)?);
    let path = format!("/course/semaphore-{:08x}", fastrand::u32(..));
    let two = zookeeper
        .semaphore(&path, 2)
        .acquire(2, LEASE_TIMEOUT)
        .await;
    let two = two.map_err(NoVerdict::failed)?;
    let third = match other
        .semaphore(&path, says)
        .acquire(1, EXTRA_LEASE_TIMEOUT)
        .await
    {
        Ok(third) => third,
        Err(LockError::Taken { .. }) => Vec::new(),
        Err(error) => return Err(NoVerdict::failed(error)),
    };
    let inside = two.len() + third.len();
    for lease in two.into_iter().chain(third) {
        lease.release().await.map_err(NoVerdict::failed)?;
    }
    zookeeper.close().await;
    other.close().await;
    let words = words!(
        "一个说有 2 个租约，都拿走了；另一个说有 {says} 个，再来拿：同时持有的 {inside} 个。",
        "One says that there are 2 leases and has them; another says {says} and comes for one: {inside} are inside at once."
    );
    Ok(Observation::holds(inside > 2, words).value("inside", inside))
}

/// Claim: a lease that is never returned blocks others while the session of its client lives, and not afterwards.
async fn unclosed_lease_blocks_others(
    on: &Cluster,
    is_released: bool,
) -> Result<Observation, NoVerdict> {
    let (forgetful, other) = (new_client(on)?, new_client(on)?);
    let path = format!("/course/semaphore-{:08x}", fastrand::u32(..));
    let lease = forgetful
        .semaphore(&path, 1)
        .acquire(1, LEASE_TIMEOUT)
        .await;
    for lease in lease.map_err(NoVerdict::failed)? {
        if is_released {
            lease.release().await.map_err(NoVerdict::failed)?;
        } else {
            std::mem::forget(lease);
        }
    }
    let mut had = Vec::new();
    for ends in [false, true] {
        if ends {
            forgetful.close().await;
        }
        match other.semaphore(&path, 1).acquire(1, LEASE_TIMEOUT).await {
            Ok(leases) => {
                had.push(true);
                for lease in leases {
                    lease.release().await.map_err(NoVerdict::failed)?;
                }
            }
            Err(LockError::Taken { .. }) => had.push(false),
            Err(error) => return Err(NoVerdict::failed(error)),
        }
    }
    other.close().await;
    let said = |had: &bool| {
        if *had {
            ("拿到", "had")
        } else {
            ("等了 5 s，没有", "not had in 5 s")
        }
    };
    let (lives, ended) = (said(&had[0]), said(&had[1]));
    let words = Words::new(
        format!(
            "唯一的租约没有归还：它的客户端还在时，别人{}；会话结束以后，别人{}。",
            lives.0, ended.0
        ),
        format!(
            "The only lease is not given back: another's is {} while its client lives, and {} once the session has ended.",
            lives.1, ended.1
        ),
    );
    Ok(Observation::holds(had == [false, true], words))
}

/// Claim: a counter takes its lock if many add at once, and not if they add one after the other; either way nothing is lost.
async fn counter_is_promoted_under_contention(
    on: &Cluster,
    at_once: bool,
) -> Result<Observation, NoVerdict> {
    /// The number of sessions that change the counter at once.
    const CLIENTS: usize = 8;
    let clients = (0..CLIENTS)
        .map(|_| new_client(on))
        .collect::<Result<Vec<_>, _>>()?;
    let path = format!("/course/counter-{:08x}", fastrand::u32(..));
    let mut promoted = [0; 2];
    let counters: Vec<_> = clients
        .iter()
        .map(|client| client.atomic_long(&path))
        .collect();
    for counter in &counters {
        let outcome = counter.add(1).await.map_err(NoVerdict::failed)?;
        promoted[0] += usize::from(outcome.promoted);
    }
    for _ in 0..10 {
        let outcomes = match at_once {
            true => join_all(counters.iter().map(|counter| counter.add(1))).await,
            false => vec![counters[0].add(1).await],
        };
        for outcome in outcomes {
            promoted[1] += usize::from(outcome.map_err(NoVerdict::failed)?.promoted);
        }
    }
    let sum = counters[0].get().await.map_err(NoVerdict::failed)?;
    for client in clients {
        client.close().await;
    }
    let [alone, at_once] = promoted;
    let words = words!(
        "一个一个地加：{alone} 次用了锁；一起加：{at_once} 次用了锁；总和 {sum}。",
        "One after the other: {alone} took the mutex; at once: {at_once} did; the sum is {sum}."
    );
    let all = CLIENTS as i64 * 11;
    Ok(Observation::holds(
        alone == 0 && at_once > 0 && sum == all,
        words,
    ))
}

/// Claim: a lock of three parts has a node in each while it is held, and in none if it is refused because another holds the second.
async fn multi_lock_takes_all_or_none(
    on: &Cluster,
    strategy: &str,
) -> Result<Observation, NoVerdict> {
    let (product, zookeeper) = (on.create_product(5000).await?, on.zookeeper().await?);
    let parts = [1, 2, 3].map(|n| format!("/curator/multi/{n}-{}", product.id));
    let count = async || -> Result<[usize; 3], NoVerdict> {
        let mut nodes = [0; 3];
        for (nodes, part) in nodes.iter_mut().zip(&parts) {
            *nodes = count_children(&zookeeper, part).await?;
        }
        Ok(nodes)
    };
    let inside = async {
        let all = async {
            while count().await? != [1; 3] {
                sleep(Duration::from_millis(10)).await;
            }
            Ok([1; 3])
        };
        match timeout(Duration::from_secs(2), all).await {
            Ok(all) => all,
            Err(_) => count().await,
        }
    };
    let buying = async {
        Ok(product
            .buy(on.one_instance(), strategy, "&hold_ms=3000")
            .await?)
    };
    let (_, inside) = tokio::try_join!(buying, inside)?;
    let after = count().await?;

    let directory = CreateMode::Container.with_acls(Acls::anyone_all());
    zookeeper.mkdir(&parts[1], &directory).await?;
    let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let prefix = format!("{}/_c_00000000-0000-0000-0000-000000000000-lock-", parts[1]);
    let (_, number) = zookeeper.create(&prefix, b"another", &node).await?;
    let (refused, _) = product
        .buy(on.one_instance(), strategy, "&wait_ms=700")
        .await?;
    let beside = count().await?;
    zookeeper.delete(&format!("{prefix}{number}"), None).await?;
    let (had, _) = product.buy(on.one_instance(), strategy, "").await?;
    product.remove().await?;
    let words = words!(
        "三把锁里的节点：拿着时 {inside:?}，放了以后 {after:?}；第二把被别人占着：{refused}，这时 {beside:?}；别人走了：{had}。",
        "Nodes in the three locks: {inside:?} while it is held, {after:?} afterwards; with the second another's: {refused}, and {beside:?} then; once that is free: {had}."
    );
    let holds =
        (inside, after, beside) == ([1; 3], [0; 3], [0, 1, 0]) && [refused, had] == [503, 200];
    Ok(Observation::holds(holds, words))
}

/// Claim: six waiters pass when the barrier is removed, and not before.
async fn barrier_holds_waiters_back(on: &Cluster, is_set: bool) -> Result<Observation, NoVerdict> {
    /// The number of requests that wait at the barrier, spread over the instances.
    const WAITERS: usize = 6;
    let (product, begun) = (on.create_product(1).await?, Instant::now());
    let stock_id = product.id;
    let go = async |at: &str, what: &str| {
        let url = format!("{at}/test/zk/barrier/{what}?stock_id={stock_id}&wait_ms=20000");
        on.get(&url).await?.success()?;
        Ok::<_, NoVerdict>(begun.elapsed().as_millis())
    };
    if is_set {
        go(on.nginx(), "set").await?;
    }
    let waits = (0..WAITERS).map(|n| go(&on.instances()[n % on.instances().len()], "wait"));
    let removed = async {
        // Gives a broken barrier time to let waiters pass.
        sleep(Duration::from_secs(1)).await;
        let from = begun.elapsed().as_millis();
        Ok::<_, NoVerdict>([from, go(on.nginx(), "remove").await?])
    };
    let (passed, [from, to]) = tokio::try_join!(try_join_all(waits), removed)?;
    product.remove().await?;
    let (first, last) = (
        passed.iter().min().copied().unwrap_or_default(),
        passed.iter().max().copied().unwrap_or_default(),
    );
    let words = words!(
        "{WAITERS} 个在三个实例上等：{from} 到 {to} ms 之间移除栅栏，最早通过的在 {first} ms，最晚的在 {last} ms。",
        "{WAITERS} waited on three instances: the barrier was removed between {from} and {to} ms; the first passed after {first} ms, the last after {last} ms."
    );
    Ok(Observation::holds(
        first >= from && last <= to + 1000,
        words,
    ))
}
