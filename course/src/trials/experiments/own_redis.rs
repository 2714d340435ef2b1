//! A Redis that the experiment starts, because the lab's has other settings: a node of a Cluster, and two ways to flush files.

use crate::trials::{Cluster, NoVerdict, Observation, observation::explain_ratio, tools::send_command};
use oversell::claims::{RatioClaim, Words, words};
use oversell_lab::{clients::redis_at::redis_at, programs::path as program, spread::Spread};
use redis::{Value, aio::MultiplexedConnection};
use std::{
    net::TcpListener,
    process::Stdio,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

experiments! {
    "2.4.4.cluster" => cluster_refuses_undeclared_key(Slots::Halved), twin(Slots::AllOnOne);
    "003.aof" => compare_flush_policies("always"), twin("everysec");
}

/// A Redis server of an experiment; dropping it kills it.
struct OwnRedis {
    redis: MultiplexedConnection,
    child: Child,
    port: u16,
    folder: TempDir,
    options: Vec<&'static str>,
}

impl OwnRedis {
    /// Starts a Redis with these options on a free port, in a temporary folder.
    async fn start(options: &[&'static str]) -> Result<Self, NoVerdict> {
        let folder = TempDir::with_prefix("oversell-").map_err(NoVerdict::failed)?;
        let port = (0..50).find_map(|_| free_port());
        let port = port.ok_or_else(|| NoVerdict::failed("no port is free"))?;
        let (child, redis) = start_server(port, &folder, options).await?;
        let options = options.to_vec();
        Ok(Self { redis, child, port, folder, options })
    }

    /// Kills the server by `kill -9` and starts it again with the same files.
    async fn restart(&mut self) -> Result<(), NoVerdict> {
        self.child.kill().await.map_err(NoVerdict::failed)?;
        (self.child, self.redis) = start_server(self.port, &self.folder, &self.options).await?;
        Ok(())
    }
}

/// A random port, if it and the one 10000 above, for a Cluster node, are free; both are below the kernel's ephemeral ports.
fn free_port() -> Option<u16> {
    let port = fastrand::u16(10_000..22_000);
    let both = [port, port + 10_000].map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    both.iter().all(Option::is_some).then_some(port)
}

/// Starts a server and waits until it answers or ends. Unavailable without the program.
async fn start_server(
    port: u16,
    folder: &TempDir,
    options: &[&str],
) -> Result<(Child, MultiplexedConnection), NoVerdict> {
    let absent = |_| NoVerdict::unavailable("没有 redis-server", "there is no redis-server");
    let mut child = Command::new(program("redis-server"))
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
        .args(options)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(absent)?;
    while child.try_wait().map_err(NoVerdict::failed)?.is_none() {
        if let Ok(mut redis) = redis_at(&format!("redis://127.0.0.1:{port}")).await
            // The server refuses commands while it loads its file.
            && send_command::<String>(&mut redis, &["PING"]).await.is_ok()
        {
            return Ok((child, redis));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(NoVerdict::failed("redis-server does not start"))
}

/// How the slots of a Cluster are spread over its two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slots {
    Halved,
    AllOnOne,
}

/// Claim: of two nodes with half of the slots each, a node redirects a script that names a key of the other one in KEYS, and refuses
/// one that does not name it.
async fn cluster_refuses_undeclared_key(on: &Cluster, slots: Slots) -> Result<Observation, NoVerdict> {
    // Without a lab this machine may have no servers.
    on.servers()?;
    let [mut node, mut other] =
        [OwnRedis::start(&["--cluster-enabled", "yes"]).await?, OwnRedis::start(&["--cluster-enabled", "yes"]).await?];
    let redis = &mut node.redis;
    if slots == Slots::AllOnOne {
        send_command::<()>(redis, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await?;
    } else {
        let port = other.port.to_string();
        send_command::<()>(redis, &["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]).await?;
        send_command::<()>(&mut other.redis, &["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]).await?;
        send_command::<()>(redis, &["CLUSTER", "MEET", "127.0.0.1", &port]).await?;
    }
    let ready = async {
        while !send_command::<String>(redis, &["CLUSTER", "INFO"]).await?.contains("cluster_state:ok") {
            sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, NoVerdict>(())
    };
    let late = |_| NoVerdict::failed("the nodes do not make a Cluster");
    timeout(Duration::from_secs(30), ready).await.map_err(late)??;
    // bar is in slot 5061, foo in slot 12182.
    let mut said = Vec::new();
    for line in [
        ["EVAL", "return redis.call('set', KEYS[1], '1')", "1", "bar"],
        ["EVAL", "return redis.call('set', KEYS[1], '1')", "1", "foo"],
        ["EVAL", "return redis.call('set', 'foo', '1')", "1", "bar"],
    ] {
        said.push(match send_command::<Value>(redis, &line).await {
            Ok(_) => "OK".to_owned(),
            // The script's hash follows.
            Err(NoVerdict::Failed(error)) => error.to_string().split(" script:").next().unwrap_or_default().to_owned(),
            Err(other) => return Err(other),
        });
    }
    let words = words!(
        "集群里有一半槽的节点：自己的键写在 KEYS 里：{}；别的节点的键写在 KEYS 里：{}，客户端知道该去哪里；不写在 KEYS 里：{}。",
        "A node of a Cluster with half of the slots: its own key in KEYS: {}; another node's key in KEYS: {}, so the client knows where to go; not in KEYS: {}.",
        said[0],
        said[1],
        said[2]
    );
    let holds = said[0] == "OK" && said[1].starts_with("Moved") && said[2].contains("non local key");
    Ok(Observation::holds(holds, words).value("said", said))
}

/// Claim: a file that is flushed every second, the default, takes more writes than one that is flushed each time (`when`), and
/// `kill -9` loses nothing of it.
async fn compare_flush_policies(on: &Cluster, when: &'static str) -> Result<Observation, NoVerdict> {
    let mut by_default = on.redis().await?;
    let default: Vec<String> = send_command(&mut by_default, &["CONFIG", "GET", "appendfsync"]).await?;
    let mut second = OwnRedis::start(&["--appendonly", "yes"]).await?;
    let mut each = OwnRedis::start(&["--appendonly", "yes", "--appendfsync", when]).await?;
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        fast.push(measure_writes_per_second(&mut second.redis).await?);
        slow.push(measure_writes_per_second(&mut each.redis).await?);
    }
    send_command::<()>(&mut second.redis, &["SET", "lock", "A"]).await?;
    second.restart().await?;
    let left: Option<String> = send_command(&mut second.redis, &["GET", "lock"]).await?;
    let ratio = Spread::from_ratios(&fast, &slow);
    let [per_second, each_time] = [fast, slow].map(|rates| Spread::from_values(rates).median);
    let default = default.last().map_or("", String::as_str);
    let (shown, told) = (left.as_deref().unwrap_or("nil"), explain_ratio(RatioClaim::Faster, ratio, 0));
    let words = Words::new(
        format!(
            "默认 {default}：每秒 {per_second:.0} 次写；每次都刷盘 {each_time:.0} 次：{}写完马上 kill -9，再启动：{shown}：进程死了，内核照样写盘；要丢那一秒，得断电。",
            told.zh
        ),
        format!(
            "The default is {default}: {per_second:.0} writes/s; flushed each time {each_time:.0}/s: {} After a kill -9 right behind a write: {shown}: the kernel writes what a dead process has given it; to lose that second takes a power cut.",
            told.en
        ),
    );
    let everysec = default == "everysec";
    let holds = everysec && left.is_some();
    Ok(Observation::holds(holds, words).require_ratio(RatioClaim::Faster, ratio))
}

/// Writes for half a second, one command after the other; returns the rate.
async fn measure_writes_per_second(redis: &mut MultiplexedConnection) -> Result<f64, NoVerdict> {
    let (begun, mut written) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_millis(500) {
        send_command::<()>(redis, &["SET", "key", "value"]).await?;
        written += 1;
    }
    Ok(f64::from(written) / begun.elapsed().as_secs_f64())
}
