//! §2.9, [001] and [003]: the independent nodes of Redis: a lock on several of them, and what a file costs that is flushed each time.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    observation::explain_ratio,
    tools::{own_key, send_command},
};
use futures::future::try_join_all;
use oversell::claims::{RatioClaim, Words, words};
use oversell_lab::{clients::redis_at::redis_at, fault::Action, spread::Spread};
use redis::{Value, aio::MultiplexedConnection};
use std::{
    slice,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// The lease of each lock: longer than any attempt.
const LEASE_MS: &str = "30000";

/// Connects to each independent node of Redis.
async fn connect_to_nodes(on: &Cluster) -> Result<Vec<MultiplexedConnection>, NoVerdict> {
    Ok(try_join_all(on.servers()?.redis.iter().map(|node| redis_at(&node.url))).await?)
}

/// Claim: locking on one node with a replica is faster than on two masters; and if the second master dies between the two writes,
/// only the first has the lock.
pub(super) async fn compare_one_and_two_masters(on: &Cluster, masters: usize) -> Result<Observation, NoVerdict> {
    let (mut nodes, key) = (connect_to_nodes(on).await?, own_key("lock"));
    let (first, others) = nodes.split_at_mut(1);
    let (ratio, [one, two]) = compare_in_rounds(
        async || measure_locks_per_second(first, &key).await,
        async || measure_locks_per_second(&mut others[..masters], &key).await,
    )
    .await?;
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
    let shown = |n: usize| left[n].as_deref().unwrap_or("nil");
    let (in_one, in_other, Words { zh, en }) = (shown(0), shown(1), explain_ratio(RatioClaim::Faster, ratio, 0));
    let words = words!(
        "一个主节点（有从节点）每秒加解锁 {one:.0} 次，两个 master 都写 {two:.0} 次：{zh}第二次写失败：{refused}；留下的：一个是 {in_one}，另一个是 {in_other}。",
        "One main node with a replica locks and unlocks {one:.0} times a second, two masters that are both written {two:.0} times: {en} The second write failed: {refused}; what is left: {in_one} in one, {in_other} in the other."
    );
    let apart = refused && left[0].is_some() && left[1].is_none();
    Ok(Observation::holds(apart, words).require_ratio(RatioClaim::Faster, ratio))
}

/// Claim: a file that is flushed every second, the default, takes more writes than one that is flushed each time (`when`), and
/// `kill -9` loses nothing of it. The main node has a file; the second one gets one for this.
pub(super) async fn compare_flush_policies(on: &Cluster, when: &str) -> Result<Observation, NoVerdict> {
    let (mut nodes, key) = (connect_to_nodes(on).await?, own_key("lock"));
    let [by_default, each, ..] = &mut nodes[..] else {
        return Err(NoVerdict::unavailable("要有两个独立的 Redis", "it takes two independent Redis nodes"));
    };
    let default: Vec<String> = send_command(by_default, &["CONFIG", "GET", "appendfsync"]).await?;
    configure(each, &[["appendfsync", when], ["appendonly", "yes"]]).await?;
    // Until the new file is written, nothing is flushed.
    while send_command::<String>(each, &["INFO", "persistence"]).await?.contains("rewrite_in_progress:1") {
        sleep(Duration::from_millis(20)).await;
    }
    let compared = compare_in_rounds(
        async || measure_locks_per_second(slice::from_mut(by_default), &key).await,
        async || measure_locks_per_second(slice::from_mut(each), &key).await,
    );
    let compared = compared.await;
    configure(each, &[["appendonly", "no"], ["appendfsync", "everysec"]]).await?;
    let (ratio, locks) = compared?;
    // A lock and an unlock are two writes.
    let [per_second, each_time] = locks.map(|locks| 2.0 * locks);
    send_command::<()>(by_default, &["SET", &key, "A"]).await?;
    on.inject_fault(Action::Kill, "redis").await?;
    on.inject_fault(Action::Start, "redis").await?;
    let mut again = on.redis().await?;
    // The server refuses commands while it loads its file.
    while send_command::<String>(&mut again, &["PING"]).await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
    let left: Option<String> = send_command(&mut again, &["GET", &key]).await?;
    send_command::<()>(&mut again, &["DEL", &key]).await?;
    let default = default.last().map_or("", String::as_str);
    let (shown, Words { zh, en }) = (left.as_deref().unwrap_or("nil"), explain_ratio(RatioClaim::Faster, ratio, 0));
    let words = words!(
        "默认 {default}：每秒 {per_second:.0} 次写；每次都刷盘 {each_time:.0} 次：{zh}写完马上 kill -9，再启动：{shown}：进程死了，内核照样写盘；要丢那一秒，得断电。",
        "The default is {default}: {per_second:.0} writes/s; flushed each time {each_time:.0}/s: {en} After a kill -9 right behind a write: {shown}: the kernel writes what a dead process has given it; to lose that second takes a power cut."
    );
    let holds = default == "everysec" && left.is_some();
    Ok(Observation::holds(holds, words).require_ratio(RatioClaim::Faster, ratio))
}

/// Sets these settings of a node.
async fn configure(node: &mut MultiplexedConnection, settings: &[[&str; 2]]) -> Result<(), NoVerdict> {
    for [name, value] in settings {
        send_command::<()>(node, &["CONFIG", "SET", name, value]).await?;
    }
    Ok(())
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
pub(super) enum Delay {
    /// As long as all others.
    Equal,
    Random,
}

/// Claim: clients that start at once, each at another node, need fewer rounds until one wins if each waits at random, as those
/// of the second group do.
pub(super) async fn compare_equal_and_random_delays(on: &Cluster, of_second_group: Delay) -> Result<Observation, NoVerdict> {
    let (ratio, [equal, random]) = compare_in_rounds(
        async || count_rounds_per_win(on, Delay::Equal).await,
        async || count_rounds_per_win(on, of_second_group).await,
    )
    .await?;
    let Words { zh, en } = explain_ratio(RatioClaim::Faster, ratio, 0);
    let words = words!(
        "三个客户端同时抢五个节点：延迟相同再试，{equal:.1} 轮才有一个拿到多数；随机延迟，{random:.1} 轮：{zh}",
        "Three clients after five nodes at once: where all wait equally long, one has most of them after {equal:.1} rounds; where each waits at random, after {random:.1}: {en}"
    );
    Ok(Observation::holds(true, words).require_ratio(RatioClaim::Faster, ratio))
}

/// Measures both in turn, five times; returns the ratio of the first to the second, and the median of each.
async fn compare_in_rounds(
    mut first: impl AsyncFnMut() -> Result<f64, NoVerdict>,
    mut second: impl AsyncFnMut() -> Result<f64, NoVerdict>,
) -> Result<(Spread, [f64; 2]), NoVerdict> {
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        firsts.push(first().await?);
        seconds.push(second().await?);
    }
    let ratio = Spread::from_ratios(&firsts, &seconds);
    Ok((ratio, [firsts, seconds].map(|values| Spread::from_values(values).median)))
}

/// Counts the rounds until a client has a majority of nodes: the mean of ten wins, because a single count is between 1 and 20 by
/// chance.
async fn count_rounds_per_win(on: &Cluster, delay: Delay) -> Result<f64, NoVerdict> {
    const WINS: usize = 10;
    let mut rounds = 0;
    for _ in 0..WINS {
        rounds += count_rounds_until_majority(on, delay).await?;
    }
    Ok(rounds as f64 / WINS as f64)
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
