//! §2.9 and [001]: one lock on several independent nodes of Redis.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    observation::explain_ratio,
    tools::{own_key, send_command},
};
use futures::future::try_join_all;
use oversell::claims::{RatioClaim, Words, words};
use oversell_lab::{clients::redis_at::redis_at, fault::Action, spread::Spread};
use redis::{Value, aio::MultiplexedConnection};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

experiments! {
    "2.9.release" => release_reaches_paused_node(true), twin(false);
    "2.9.random" => compare_equal_and_random_delays(true), twin(false);
    "001.two-masters" => compare_one_and_two_masters(2), twin(1);
}

/// Time limit of the answer of one node: far below the lease, so that a dead node does not use it up.
const NODE_TIMEOUT: Duration = Duration::from_millis(50);
/// The lease of each lock: longer than any attempt.
const LEASE_MS: &str = "30000";

/// Connects to each independent node of Redis.
async fn connect_to_nodes(on: &Cluster) -> Result<Vec<MultiplexedConnection>, NoVerdict> {
    let mut nodes = Vec::new();
    for node in &on.servers()?.redis {
        nodes.push(redis_at(&node.url).await?);
    }
    Ok(nodes)
}

/// Claim: locking on one node with a replica is faster than on two masters; and if the second master dies between the two writes,
/// only the first has the lock.
async fn compare_one_and_two_masters(
    on: &Cluster,
    masters: usize,
) -> Result<Observation, NoVerdict> {
    let (mut nodes, key) = (connect_to_nodes(on).await?, own_key("lock"));
    let (mut one_rate, mut two_rate) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        one_rate.push(measure_locks_per_second(&mut nodes[..1], &key).await?);
        two_rate.push(measure_locks_per_second(&mut nodes[1..=masters], &key).await?);
    }
    send_command::<()>(&mut nodes[1], &["SET", &key, "A", "NX", "PX", LEASE_MS]).await?;
    if masters == 2 {
        on.inject_fault(Action::Kill, "redis-3").await?;
    }
    let refused = send_command::<Value>(&mut nodes[2], &["SET", &key, "A", "NX", "PX", LEASE_MS])
        .await
        .is_err();
    if masters == 2 {
        on.inject_fault(Action::Start, "redis-3").await?;
    }
    let mut left = Vec::new();
    for node in &on.servers()?.redis[1..3] {
        let mut node = redis_at(&node.url).await?;
        left.push(send_command::<Option<String>>(&mut node, &["GET", &key]).await?);
        send_command::<()>(&mut node, &["DEL", &key]).await?;
    }
    let ratio = Spread::from_ratios(&one_rate, &two_rate);
    let [one, two] = [one_rate, two_rate].map(|rates| Spread::from_values(rates).median);
    let shown = |n: usize| left[n].as_deref().unwrap_or("nil");
    let (in_one, in_other, told) = (
        shown(0),
        shown(1),
        explain_ratio(RatioClaim::Faster, ratio, 0),
    );
    let words = Words::new(
        format!(
            "一个主节点（有从节点）每秒加解锁 {one:.0} 次，两个 master 都写 {two:.0} 次：{}第二次写失败：{refused}；留下的：一个是 {in_one}，另一个是 {in_other}。",
            told.zh
        ),
        format!(
            "One main node with a replica locks and unlocks {one:.0} times a second, two masters that are both written {two:.0} times: {} The second write failed: {refused}; what is left: {in_one} in one, {in_other} in the other.",
            told.en
        ),
    );
    let apart = refused && left[0].is_some() && left[1].is_none();
    Ok(Observation::holds(apart, words).require_ratio(RatioClaim::Faster, ratio))
}

/// For half a second: locks on one node after the other, then unlocks on each. Returns rounds per second.
async fn measure_locks_per_second(
    nodes: &mut [MultiplexedConnection],
    key: &str,
) -> Result<f64, NoVerdict> {
    let (begun, mut locked) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_millis(500) {
        for node in nodes.iter_mut() {
            send_command::<()>(node, &["SET", key, "A", "NX", "PX", LEASE_MS]).await?;
        }
        for node in nodes.iter_mut() {
            send_command::<()>(node, &["DEL", key]).await?;
        }
        locked += 1;
    }
    Ok(f64::from(locked) / begun.elapsed().as_secs_f64())
}

/// Claim: the release reaches a paused node too, which executes the lock command later.
async fn release_reaches_paused_node(
    on: &Cluster,
    releases_everywhere: bool,
) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let (nodes, key) = (
        connect_to_nodes(on).await?,
        format!("redLock:{}", product.id),
    );
    on.inject_fault(Action::Pause, "redis-5").await?;
    let begun = Instant::now();
    let status = match releases_everywhere {
        true => product.buy(on.one_instance(), "redis-redlock", "").await?.0,
        false => lock_and_release_granted_nodes(nodes, &key).await?,
    };
    let took = begun.elapsed().as_millis();
    on.inject_fault(Action::Resume, "redis-5").await?;
    let mut hung = redis_at(&on.servers()?.redis[4].url).await?;
    // The node now executes what has arrived meanwhile.
    sleep(Duration::from_millis(500)).await;
    let left: i64 = send_command(&mut hung, &["EXISTS", &key]).await?;
    send_command::<()>(&mut hung, &["DEL", &key]).await?;
    product.remove().await?;
    let words = words!(
        "五个节点里一个没有应答：加锁、买、释放共 {took} ms，得到 {status}；它恢复以后，上面留下的锁：{left} 个。",
        "One of five nodes does not answer: lock, purchase and release took {took} ms and came to {status}; once it goes on, locks that are left on it: {left}."
    );
    Ok(Observation::holds(status == 200 && left == 0, words)
        .value("took_ms", u64::try_from(took).unwrap_or(u64::MAX)))
}

/// Redlock without its last rule: locks on all nodes, releases only those that have granted. Returns 200 for a majority or 503.
async fn lock_and_release_granted_nodes(
    mut nodes: Vec<MultiplexedConnection>,
    key: &str,
) -> Result<u16, NoVerdict> {
    let mut granted = Vec::new();
    for node in &mut nodes {
        let line = ["SET", key, "A", "NX", "PX", LEASE_MS];
        let answer = timeout(NODE_TIMEOUT, send_command::<Value>(node, &line)).await;
        granted.push(matches!(answer, Ok(Ok(Value::Okay))));
    }
    let most = granted.iter().filter(|granted| **granted).count() > nodes.len() / 2;
    for (node, granted) in nodes.iter_mut().zip(granted) {
        if granted {
            send_command::<()>(node, &["DEL", key]).await?;
        }
    }
    Ok(if most { 200 } else { 503 })
}

/// Claim: clients that start at once, each at another node, need fewer rounds until one wins if each waits at random.
/// Without `is_random`, the twin, the second group waits as equally as the first.
async fn compare_equal_and_random_delays(
    on: &Cluster,
    is_random: bool,
) -> Result<Observation, NoVerdict> {
    /// The number of wins whose attempts are averaged: a single count is between 1 and 20 by chance.
    const WINS: usize = 10;
    let (mut equal, mut random) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        for (each, by_chance) in [(&mut equal, false), (&mut random, is_random)] {
            let mut attempts = 0;
            for _ in 0..WINS {
                attempts += count_rounds_until_majority(on, by_chance).await?;
            }
            each.push(attempts as f64 / WINS as f64);
        }
    }
    let ratio = Spread::from_ratios(&equal, &random);
    let [equal, random] = [equal, random].map(|attempts| Spread::from_values(attempts).median);
    let told = explain_ratio(RatioClaim::Faster, ratio, 0);
    let words = Words::new(
        format!(
            "三个客户端同时抢五个节点：延迟相同再试，{equal:.1} 轮才有一个拿到多数；随机延迟，{random:.1} 轮：{}",
            told.zh
        ),
        format!(
            "Three clients after five nodes at once: where all wait equally long, one has most of them after {equal:.1} rounds; where each waits at random, after {random:.1}: {}",
            told.en
        ),
    );
    Ok(Observation::holds(true, words).require_ratio(RatioClaim::Faster, ratio))
}

/// Counts the rounds until a client has a majority of nodes; 20 if none ever has. In each, clients first wait at `random` or
/// equally.
async fn count_rounds_until_majority(on: &Cluster, random: bool) -> Result<usize, NoVerdict> {
    const CLIENTS: usize = 3;
    let key = own_key("lock");
    let mut clients = Vec::new();
    for first in 0..CLIENTS {
        let mut nodes = connect_to_nodes(on).await?;
        nodes.rotate_left(first * 2);
        clients.push((format!("client-{first}"), nodes));
    }
    for round in 1..=20 {
        let tries = clients.iter_mut().map(|(name, nodes)| async {
            let delay = if random { fastrand::u64(0..20) } else { 10 };
            sleep(Duration::from_millis(delay)).await;
            let mut granted = 0;
            for node in nodes.iter_mut() {
                let answer: Value =
                    send_command(node, &["SET", &key, name, "NX", "PX", LEASE_MS]).await?;
                granted += usize::from(answer == Value::Okay);
            }
            let wins = granted > nodes.len() / 2;
            if !wins {
                release(nodes, &key, name).await?;
            }
            Ok::<_, NoVerdict>(wins)
        });
        let won = try_join_all(tries).await?;
        if won.contains(&true) {
            for (name, nodes) in &mut clients {
                release(nodes, &key, name).await?;
            }
            return Ok(round);
        }
    }
    Ok(20)
}

/// Deletes the key on each node that still has this owner.
async fn release(
    nodes: &mut [MultiplexedConnection],
    key: &str,
    name: &str,
) -> Result<(), NoVerdict> {
    const SCRIPT: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    for node in nodes {
        send_command::<()>(node, &["EVAL", SCRIPT, "1", key, name]).await?;
    }
    Ok(())
}
