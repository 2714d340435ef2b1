//! §2.9 and [001]: one lock on several independent nodes of Redis.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    observation::explain_ratio,
    tools::{own_key, send_command},
};
use futures::future::try_join_all;
use oversell::claims::{RatioClaim, Words};
use oversell_lab::{clients::redis_at::redis_at, fault::Action, spread::Spread};
use redis::{Value, aio::MultiplexedConnection};
use std::time::{Duration, Instant};
use tokio::time::sleep;

experiments! {
    "2.9.random" => compare_equal_and_random_delays(Delay::Random), twin(Delay::Equal);
    "001.two-masters" => compare_one_and_two_masters(2), twin(1);
}

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
async fn compare_one_and_two_masters(on: &Cluster, masters: usize) -> Result<Observation, NoVerdict> {
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
    let refused = send_command::<Value>(&mut nodes[2], &["SET", &key, "A", "NX", "PX", LEASE_MS]).await.is_err();
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
    let (in_one, in_other, told) = (shown(0), shown(1), explain_ratio(RatioClaim::Faster, ratio, 0));
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
async fn measure_locks_per_second(nodes: &mut [MultiplexedConnection], key: &str) -> Result<f64, NoVerdict> {
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

/// How long a client waits before its next try.
#[derive(Debug, Clone, Copy)]
enum Delay {
    /// As long as all others.
    Equal,
    Random,
}

/// Claim: clients that start at once, each at another node, need fewer rounds until one wins if each waits at random, as those
/// of the second group do.
async fn compare_equal_and_random_delays(on: &Cluster, of_second_group: Delay) -> Result<Observation, NoVerdict> {
    /// The number of wins whose attempts are averaged: a single count is between 1 and 20 by chance.
    const WINS: usize = 10;
    let (mut equal, mut random) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        for (each, delay) in [(&mut equal, Delay::Equal), (&mut random, of_second_group)] {
            let mut attempts = 0;
            for _ in 0..WINS {
                attempts += count_rounds_until_majority(on, delay).await?;
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

/// Counts the rounds until a client has a majority of nodes; 20 if none ever has. Clients wait before each.
async fn count_rounds_until_majority(on: &Cluster, delay: Delay) -> Result<usize, NoVerdict> {
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
            let delay_ms = match delay {
                Delay::Equal => 10,
                Delay::Random => fastrand::u64(0..20),
            };
            sleep(Duration::from_millis(delay_ms)).await;
            let mut granted = 0;
            for node in nodes.iter_mut() {
                let answer: Value = send_command(node, &["SET", &key, name, "NX", "PX", LEASE_MS]).await?;
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
async fn release(nodes: &mut [MultiplexedConnection], key: &str, name: &str) -> Result<(), NoVerdict> {
    const SCRIPT: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    for node in nodes {
        send_command::<()>(node, &["EVAL", SCRIPT, "1", key, name]).await?;
    }
    Ok(())
}
