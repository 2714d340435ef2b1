//! A Redis Cluster, of three primaries with a replica each for the library. Clients reach each node through a proxy, whose address the
//! nodes announce, so a node's connections can be cut or muted for all clients.

use crate::mute::Mute;
use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use oversell_lab::{clients::redis_at::redis_at, lab::Port, programs::path as program};
use oversell_lock::redis::{RedisClient, RedisOptions};
use redis::{FromRedisValue, aio::MultiplexedConnection};
use std::{
    path::PathBuf,
    process::{self, Stdio},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    sync::{Mutex, OnceCell},
};

/// The servers end with the value.
pub(crate) struct OwnCluster {
    pub(crate) nodes: Vec<ClusterNode>,
    primaries: usize,
    folder: PathBuf,
}

pub(crate) struct ClusterNode {
    pub(crate) url: String,
    pub(crate) id: String,
    pub(crate) way: Mute,
    /// Its own port, and that of the cluster's bus.
    ports: [Port; 2],
    server: Mutex<Child>,
    outsider: OnceCell<MultiplexedConnection>,
}

impl OwnCluster {
    pub(crate) async fn start() -> Result<Self> {
        Self::of(3, 3).await
    }

    /// The slots are shared evenly, and the `n`-th replica follows the `n`-th primary.
    pub(crate) async fn of(primaries: usize, replicas: usize) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = format!("{}-{}", process::id(), NEXT.fetch_add(1, SeqCst));
        let folder = std::env::temp_dir().join(format!("oversell-own-cluster-{number}"));
        let mut cluster = Self { nodes: Vec::new(), primaries, folder };
        for n in 0..primaries + replicas {
            let ports = [Port::free()?, Port::free()?];
            let address = format!("127.0.0.1:{}", ports[0].number());
            let way = Mute::to(address.clone())?;
            let server = cluster.server(&ports, &way.address())?;
            let url = format!("redis://{address}");
            let answers = async || redis_at(&url).await.is_ok();
            until("it answers", answers).await?;
            let mut connection = redis_at(&url).await?;
            let mut own = redis::cmd("CLUSTER");
            let id = own.arg("MYID").query_async(&mut connection).await?;
            // Numbers of their own, or two of them would have to agree on new ones.
            let epoch = (n + 1).to_string();
            cluster.nodes.push(ClusterNode { url, id, way, ports, server: Mutex::new(server), outsider: OnceCell::new() });
            cluster.nodes[n].ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await?;
            let [port, bus] = cluster.nodes[n].numbers();
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
            cluster.nodes[0].ask::<()>(&meet).await?;
        }
        for (n, node) in cluster.nodes.iter().take(primaries).enumerate() {
            let (from, to) = (n * 16384 / primaries, (n + 1) * 16384 / primaries - 1);
            let slots = [from.to_string(), to.to_string()];
            let add = ["CLUSTER", "ADDSLOTSRANGE", &slots[0], &slots[1]];
            node.ask::<()>(&add).await?;
        }
        for (n, node) in cluster.nodes.iter().skip(primaries).enumerate() {
            let follow = ["CLUSTER", "REPLICATE", &cluster.nodes[n].id];
            let follows = async || node.ask::<()>(&follow).await.is_ok();
            until("it knows its primary", follows).await?;
        }
        cluster.until_whole().await?;
        Ok(cluster)
    }

    /// Starts a node, or one that was killed.
    fn server(&self, ports: &[Port; 2], front: &str) -> Result<Child> {
        let [port, bus] = [0, 1].map(|n: usize| ports[n].number().to_string());
        let (_, announced) = front.rsplit_once(':').context("a port")?;
        let folder = self.folder.join(&port);
        std::fs::create_dir_all(&folder)?;
        let mut server = Command::new(program("redis-server"));
        server.args(["--bind", "127.0.0.1", "--save", "", "--port", &port]);
        server.args(["--cluster-enabled", "yes", "--cluster-port", &bus]);
        server.args(["--cluster-announce-ip", "127.0.0.1"]);
        server.args(["--cluster-announce-port", announced]);
        server.args(["--cluster-announce-bus-port", &bus]);
        server.args(["--cluster-node-timeout", "2000"]);
        server.args(["--cluster-replica-validity-factor", "0"]);
        server.args(["--repl-diskless-sync-delay", "0"]);
        server.current_dir(folder).stdout(Stdio::null());
        Ok(server.kill_on_drop(true).spawn()?)
    }

    /// Waits until every node sees all slots served, and each primary has a replica with its data, if there are any.
    pub(crate) async fn until_whole(&self) -> Result<()> {
        let is_whole = async || {
            let each = self.nodes.iter().map(async |node| {
                let info: String = node.ask(&["CLUSTER", "INFO"]).await?;
                let known: String = node.ask(&["CLUSTER", "NODES"]).await?;
                let role: String = node.ask(&["INFO", "replication"]).await?;
                let has_data = if role.contains("role:master") {
                    self.nodes.len() == self.primaries || role.contains("state=online")
                } else {
                    role.contains("master_link_status:up")
                };
                let all = known.lines().filter(|line| !line.contains("fail")).count();
                anyhow::Ok(info.contains("cluster_state:ok") && all == self.nodes.len() && has_data)
            });
            let each = join_all(each).await;
            each.iter().all(|whole| matches!(whole, Ok(true)))
        };
        until("the cluster is whole", is_whole).await
    }

    /// What a client needs to know.
    pub(crate) fn options(&self) -> RedisOptions {
        let first = format!("redis://{}", self.nodes[0].way.address());
        let further = self.nodes[1..].iter();
        let further = further.map(|node| format!("redis://{}", node.way.address()));
        RedisOptions::new(first).cluster(further.collect::<Vec<_>>())
    }

    pub(crate) fn client(&self, lease: Duration, timeout: Duration) -> Result<RedisClient> {
        Ok(RedisClient::new(self.options().lease(lease).timeout(timeout))?)
    }

    /// The primary that has the key.
    pub(crate) async fn owner(&self, key: &str) -> Result<usize> {
        let exists = ["EXISTS", key];
        let asks = self.nodes.iter().map(|node| node.ask::<i64>(&exists));
        let answers = join_all(asks).await;
        let owner = answers.iter().position(|answer| match answer {
            Ok(_) => true,
            Err(error) => code(error) == "ASK",
        });
        owner.with_context(|| format!("nobody has {key}: {answers:?}"))
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, key: &str, words: &[&str]) -> Result<T> {
        self.nodes[self.owner(key).await?].ask(words).await
    }

    pub(crate) async fn slot(&self, key: &str) -> Result<String> {
        let slot: u16 = self.nodes[0].ask(&["CLUSTER", "KEYSLOT", key]).await?;
        Ok(slot.to_string())
    }

    /// The keys with this name on all primaries.
    pub(crate) async fn keys(&self, name: &str) -> Vec<String> {
        let pattern = format!("*{name}*");
        let each = self.nodes.iter().map(async |node| {
            let role: String = node.ask(&["INFO", "replication"]).await?;
            if role.contains("role:master") { node.ask::<Vec<String>>(&["KEYS", &pattern]).await } else { Ok(Vec::new()) }
        });
        let keys = join_all(each).await.into_iter().flatten().flatten();
        keys.collect()
    }

    /// Begins to move the slot of this key: new keys go to the target, the others still are where they were.
    pub(crate) async fn begin_move(&self, key: &str, to: usize) -> Result<usize> {
        let (slot, from) = (self.slot(key).await?, self.owner(key).await?);
        let (target, source) = (&self.nodes[to], &self.nodes[from]);
        let set = |state, id| ["CLUSTER", "SETSLOT", &*slot, state, id].map(str::to_owned);
        for (node, words) in [(target, set("IMPORTING", &source.id)), (source, set("MIGRATING", &target.id))] {
            node.ask::<()>(&words.each_ref().map(String::as_str)).await?;
        }
        Ok(from)
    }

    pub(crate) async fn move_keys(&self, key: &str, from: usize, to: usize) -> Result<()> {
        let slot = self.slot(key).await?;
        let port = self.nodes[to].ports[0].number().to_string();
        loop {
            let get = ["CLUSTER", "GETKEYSINSLOT", &*slot, "10"];
            let keys: Vec<String> = self.nodes[from].ask(&get).await?;
            if keys.is_empty() {
                return Ok(());
            }
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "REPLACE", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            self.nodes[from].ask::<String>(&words).await?;
        }
    }

    pub(crate) async fn end_move(&self, key: &str, from: usize, to: usize) -> Result<()> {
        let (slot, id) = (self.slot(key).await?, &self.nodes[to].id);
        for node in [to, from].into_iter().chain(0..self.nodes.len()) {
            let set = ["CLUSTER", "SETSLOT", &slot, "NODE", id];
            // Replicas refuse it, and learn it from their primary.
            let set = self.nodes[node].ask::<()>(&set).await;
            ensure!(set.is_ok() || (node != to && node != from), "{set:?}");
        }
        Ok(())
    }

    /// Moves the first slot of a primary to another one, key by key, with `redis-cli`.
    pub(crate) async fn reshard_first_slot(&self, from: usize, to: usize) -> Result<()> {
        let address = self.nodes[from].way.address();
        let mut reshard = Command::new(program("redis-cli"));
        reshard.args(["--cluster", "reshard", &address, "--cluster-slots", "1", "--cluster-yes"]);
        reshard.args(["--cluster-from", &self.nodes[from].id, "--cluster-to", &self.nodes[to].id]);
        let done = reshard.kill_on_drop(true).output().await?;
        let said = String::from_utf8_lossy(&done.stdout);
        ensure!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Promotes a replica of this primary, whose clients wait meanwhile. Returns the new primary.
    pub(crate) async fn fail_over(&self, primary: usize) -> Result<usize> {
        let replica = self.replica_of(primary).await?;
        self.nodes[replica].ask::<()>(&["CLUSTER", "FAILOVER"]).await?;
        self.until_primary(replica).await?;
        Ok(replica)
    }

    pub(crate) async fn replica_of(&self, primary: usize) -> Result<usize> {
        let known: Vec<String> = self.nodes[primary].ask(&["CLUSTER", "REPLICAS", &self.nodes[primary].id]).await?;
        let is = |node: &ClusterNode| known.iter().any(|line| line.starts_with(&node.id));
        self.nodes.iter().position(is).context("no replica")
    }

    pub(crate) async fn until_primary(&self, node: usize) -> Result<()> {
        let leads = async || {
            let role = self.nodes[node].ask::<String>(&["INFO", "replication"]).await;
            role.is_ok_and(|role| role.contains("role:master"))
        };
        until("the replica leads", leads).await
    }

    pub(crate) async fn kill(&self, node: usize) -> Result<()> {
        Ok(self.nodes[node].server.lock().await.kill().await?)
    }
}

impl ClusterNode {
    fn numbers(&self) -> [String; 2] {
        [0, 1].map(|n: usize| self.ports[n].number().to_string())
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let connect = || redis_at(&self.url);
        let mut outsider = self.outsider.get_or_try_init(connect).await?.clone();
        let mut command = redis::cmd(words[0]);
        Ok(command.arg(&words[1..]).query_async(&mut outsider).await?)
    }
}

async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) -> Result<()> {
    let holds = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), holds).await.with_context(|| format!("never came: {what}"))
}

/// The first word of a server's refusal.
fn code(error: &anyhow::Error) -> String {
    let refusal = error.downcast_ref::<redis::RedisError>();
    refusal.and_then(|refusal| refusal.code()).unwrap_or("").to_owned()
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        for node in &self.nodes {
            if let Ok(mut server) = node.server.try_lock() {
                server.start_kill().ok();
            }
        }
        std::fs::remove_dir_all(&self.folder).ok();
    }
}
