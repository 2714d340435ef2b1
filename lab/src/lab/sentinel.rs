//! Replicas of the main Redis, and Redis Sentinels that promote one when the main Redis is gone (§2.9).
//!
//! There are two set-ups:
//!
//! - The instances ask the Sentinels ([`SentinelGroup`]). All servers reach each other directly. Members and Sentinels
//!   log in as their own user ([`PEER_USER`]): a member that refuses this user is cut off from them, but not from its
//!   clients.
//! - The instances know one address ([`ProxiedReplica`]). There is one replica and one Sentinel, and the lab redirects
//!   the instances' links:
//!   1. Replica and Sentinel reach the main Redis by the link `replica-redis`. If that is cut, the replica gets no
//!      writes and the Sentinel sees the main Redis down, although instances still use it. After 4 s it promotes the
//!      replica, without the writes made meanwhile.
//!   2. [`follow_failovers`] hears of the promotion from the Sentinel and redirects the instances' links.
//!   3. The Sentinel makes the old main Redis a replica once it is back. [`restore`] promotes it again.
//!
//! Source: the Redis documentation, "High availability with Redis Sentinel".

use super::{
    link::ProxyLink,
    redis::{PEER_USER, REQUIREMENTS, has_caught_up, info_of_process},
    server::{CheckContext, HealthCheck, Server, numbered_name},
    user::User,
};
use crate::{
    addresses::SENTINEL_GROUP,
    clients::redis_at::redis_at,
    programs::{self, Requirement},
    terminal::failure::{Failure, unusable},
};
use futures::{FutureExt, StreamExt, future::join_all};
use redis::{Cmd, RedisResult, aio::MultiplexedConnection};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep, timeout},
};

pub(super) const SENTINEL: &str = "sentinel";

/// The name of the Sentinel at `index`: `sentinel`, `sentinel-2` …
pub(super) fn name(index: usize) -> String {
    numbered_name(SENTINEL, index)
}

const CONFIG_FILE: &str = "sentinel.conf";

/// The pause between two checks of a fail-over: short beside the seconds that it takes.
const FAILOVER_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The setting `failover-timeout`: a Sentinel gives a longer fail-over up.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a fail-over that the lab asks for: twice the time, because the first may be given up and begun again.
const PLANNED_FAILOVER_TIMEOUT: Duration = Duration::from_secs(20);

/// A main Redis with one replica and one Sentinel, which both reach it by a link.
#[derive(Debug, Clone)]
pub(super) struct ProxiedReplica {
    pub(super) main: Arc<ProxyLink>,
    pub(super) replica: u16,
    pub(super) sentinel: u16,
}

/// A main Redis with replicas and Sentinels, which the instances ask for the leader.
#[derive(Debug, Clone)]
pub(super) struct SentinelGroup {
    pub(super) sentinels: Vec<u16>,
    /// Names and ports of the first main Redis and of its replicas.
    pub(super) members: Vec<(String, u16)>,
}

/// A Sentinel of the Redis at the port `main`.
#[derive(Debug)]
pub(super) struct Sentinel {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    pub(super) main: u16,
    pub(super) sentinels: usize,
    pub(super) replicas: usize,
    /// Whether instances ask it: then it logs in as [`PEER_USER`].
    pub(super) in_sentinel_group: bool,
}

impl Server for Sentinel {
    fn requirements(&self) -> &'static [Requirement] {
        programs::missing_requirements(&self.program, &REQUIREMENTS)
    }

    /// The Sentinel writes what it learns into this file. It promotes no replica that was disconnected for longer than
    /// ten times `down-after-milliseconds`.
    fn config_files(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let mut settings = format!(
            "bind 127.0.0.1\nport {}\ndir {}\nsentinel monitor {SENTINEL_GROUP} 127.0.0.1 {} {}\n\
             sentinel down-after-milliseconds {SENTINEL_GROUP} 4000\nsentinel failover-timeout {SENTINEL_GROUP} 10000\n",
            self.port,
            folder.display(),
            self.main,
            self.sentinels / 2 + 1,
        );
        if self.in_sentinel_group {
            settings +=
                &format!("sentinel auth-user {SENTINEL_GROUP} {PEER_USER}\nsentinel auth-pass {SENTINEL_GROUP} {PEER_USER}\n");
        }
        vec![(CONFIG_FILE, settings)]
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(folder.join(CONFIG_FILE)).arg("--sentinel");
        command
    }

    /// A Sentinel is healthy once it knows all replicas, all of which follow, and all other Sentinels; without `dependencies_up`,
    /// once it answers. Each check also shortens its timers.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            info_of_process(self.port, context.pid).await?;
            shorten_timers(self.port).await.map_err(|e| e.to_string())?;
            let known =
                async { RedisResult::Ok((connected_replicas(self.port).await?.len(), other_sentinels(self.port).await? + 1)) };
            let (replicas, sentinels) = known.await.map_err(|e| e.to_string())?;
            if (replicas, sentinels) == (self.replicas, self.sentinels) || !context.dependencies_up {
                Ok(())
            } else {
                Err(format!(
                    "{replicas} of {} replicas follow, and it knows {sentinels} of {} Sentinels",
                    self.replicas, self.sentinels
                ))
            }
        }
        .boxed()
    }
}

/// `SENTINEL` with this subcommand for the group.
fn sentinel_command(command: &str) -> Cmd {
    redis::cmd("SENTINEL").arg(command).arg(SENTINEL_GROUP).to_owned()
}

/// Connects to the Sentinel or Redis at this port of loopback.
async fn connect(port: u16) -> RedisResult<MultiplexedConnection> {
    redis_at(&format!("redis://127.0.0.1:{port}")).await
}

/// The replicas that the Sentinel at `port` sees connected to the main Redis, each with the fields of `SENTINEL REPLICAS`.
async fn connected_replicas(port: u16) -> RedisResult<Vec<HashMap<String, String>>> {
    let mut connection = connect(port).await?;
    let mut replicas: Vec<HashMap<String, String>> = sentinel_command("REPLICAS").query_async(&mut connection).await?;
    replicas.retain(|one| one.get("master-link-status").is_some_and(|link| link == "ok"));
    Ok(replicas)
}

/// How many other Sentinels the one at `port` knows.
async fn other_sentinels(port: u16) -> RedisResult<usize> {
    let mut connection = connect(port).await?;
    let known: HashMap<String, String> = sentinel_command("MASTER").query_async(&mut connection).await?;
    let others = known.get("num-other-sentinels");
    Ok(others.and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// The port of the main Redis, by the Sentinel at `port`.
async fn leader_port(port: u16) -> RedisResult<u16> {
    let (_, leader): (String, u16) = sentinel_command("GET-MASTER-ADDR-BY-NAME").query_async(&mut connect(port).await?).await?;
    Ok(leader)
}

impl SentinelGroup {
    /// The name of the leader, by the first Sentinel that answers within 20 s; `None` if none does, or it names no member.
    pub(super) async fn leader_name(&self) -> Option<&str> {
        for port in &self.sentinels {
            if let Ok(Ok(leads)) = timeout(PLANNED_FAILOVER_TIMEOUT, leader_port(*port)).await {
                let mut members = self.members.iter();
                return members.find(|(_, port)| *port == leads).map(|(name, _)| name.as_str());
            }
        }
        None
    }

    /// The port of a main Redis or replica; fails for any other name.
    fn port_of(&self, member: &str) -> Result<u16, Failure> {
        let port = self.members.iter().find(|(name, _)| name == member);
        let none = || unusable!("{member} is neither the main Redis nor a replica of this lab");
        Ok(port.ok_or_else(none)?.1)
    }

    /// Makes this member refuse or accept the others of its group and the Sentinels, and closes their connections to it.
    pub(super) async fn set_isolated(&self, member: &str, isolated: bool) -> Result<(), Failure> {
        let rights = if isolated { "-@all" } else { "+@all" };
        let port = self.port_of(member)?;
        let updated = async {
            let mut connection = connect(port).await?;
            let lines = [["ACL", "SETUSER", PEER_USER, rights], ["CLIENT", "KILL", "USER", PEER_USER]];
            for [command, rest @ ..] in lines {
                let command = redis::cmd(command).arg(&rest).to_owned();
                command.exec_async(&mut connection).await?;
            }
            RedisResult::Ok(())
        };
        updated.await.map_err(|e| unusable!("{member} did not change the rights of its peers: {e}"))
    }

    /// Makes the Sentinels promote this replica: `SENTINEL FAILOVER`, for which nothing need be down and nobody votes. They
    /// choose the replica with the lowest `replica-priority`, which this sets on every running member and leaves so. `running`
    /// has the ports of the running members and Sentinels. Returns once all running Sentinels name it as the leader.
    /// Errors: it leads already, no Sentinel runs, or 60 s are over.
    pub(super) async fn fail_over(&self, to: &str, running: &[u16]) -> Result<(), Failure> {
        let to = self.port_of(to)?;
        let sentinels: Vec<_> = self.sentinels.iter().filter(|port| running.contains(port)).collect();
        let &&first = sentinels.first().ok_or_else(|| unusable!("no Sentinel runs; start one first"))?;
        let failed = |e: redis::RedisError| unusable!("the Sentinels did not promote it: {e}");
        if leader_port(first).await.map_err(failed)? == to {
            return Err(unusable!("it is the main one already"));
        }
        let promotion = async {
            for (_, port) in self.members.iter().filter(|(_, port)| running.contains(port)) {
                let priority = if *port == to { "1" } else { "100" };
                redis::cmd("CONFIG").arg(&["SET", "replica-priority", priority]).exec_async(&mut connect(*port).await?).await?;
            }
            poll_until(async || would_promote(first, to).await).await?;
            // An earlier fail-over may not have reached every member; and a Sentinel on a busy machine gives up a
            // fail-over that it has begun.
            let mut requested = None::<Instant>;
            while leader_port(first).await? != to {
                if requested.is_none_or(|at| at.elapsed() > FAILOVER_TIMEOUT) {
                    match sentinel_command("FAILOVER").exec_async(&mut connect(first).await?).await {
                        Ok(()) => requested = Some(Instant::now()),
                        Err(error) if matches!(error.code(), Some("INPROG" | "NOGOODSLAVE")) => {}
                        Err(error) => return Err(error),
                    }
                }
                sleep(FAILOVER_POLL_INTERVAL).await;
            }
            for port in sentinels {
                poll_until(async || Ok(leader_port(*port).await? == to)).await?;
            }
            Ok(())
        };
        // A restarted member becomes a replica only after a while.
        let limit = 3 * PLANNED_FAILOVER_TIMEOUT;
        within_limit(limit, "the Sentinels did not promote it", promotion).await
    }
}

/// Whether the Sentinel at `port` would promote the replica at `to`.
async fn would_promote(port: u16, to: u16) -> RedisResult<bool> {
    let field = |one: &HashMap<String, String>, what| one.get(what).and_then(|n| n.parse().ok());
    let followers = connected_replicas(port).await?;
    Ok(followers.iter().any(|one| field(one, "port") == Some(to))
        && followers.iter().all(|one| (field(one, "port") == Some(to)) == (field(one, "slave-priority") == Some(1_u16))))
}

/// Sets INFO-PERIOD to 1 s (default 10) and TILT-PERIOD to 3 s (default 30). A Sentinel forgets both when it restarts.
/// Before Redis 7 it refuses them, which is ignored: fail-overs are only slower.
async fn shorten_timers(port: u16) -> RedisResult<()> {
    let mut connection = connect(port).await?;
    let periods = ["DEBUG", "INFO-PERIOD", "1000", "TILT-PERIOD", "3000"];
    let reply = redis::cmd("SENTINEL").arg(&periods).exec_async(&mut connection).await;
    match reply {
        Err(error) if error.is_io_error() => Err(error),
        _ => Ok(()),
    }
}

/// Asks the Sentinel at `port` to promote the replica, and does not wait for it.
pub(super) async fn promote(port: u16) -> Result<(), Failure> {
    let failed = |e: redis::RedisError| unusable!("the Sentinel refused the fail-over: {e}");
    let mut connection = connect(port).await.map_err(failed)?;
    let reply = sentinel_command("FAILOVER").exec_async(&mut connection).await;
    reply.map_err(failed)
}

/// Waits until each link leads to another server than at the call; fails after [`PLANNED_FAILOVER_TIMEOUT`].
pub(super) async fn wait_until_promoted(links: &[Arc<ProxyLink>]) -> Result<(), Failure> {
    let all = join_all(links.iter().map(|link| link.proxy.wait_until_redirected()));
    within_limit(PLANNED_FAILOVER_TIMEOUT, "the Sentinel promoted no replica", all.map(|_| Ok(()))).await
}

/// Waits for `awaited`. Its error, and that after `limit`, say what did not happen.
async fn within_limit(limit: Duration, failure: &str, awaited: impl Future<Output = RedisResult<()>>) -> Result<(), Failure> {
    let done = timeout(limit, awaited).await.map_err(|_| unusable!("{failure} within {} s", limit.as_secs()))?;
    done.map_err(|e| unusable!("{failure}: {e}"))
}

/// Asks again and again, without a limit, until `holds`.
async fn poll_until(holds: impl AsyncFn() -> RedisResult<bool>) -> RedisResult<()> {
    while !holds().await? {
        sleep(FAILOVER_POLL_INTERVAL).await;
    }
    Ok(())
}

/// Makes the first Redis the main one again and the other its replica; returns once `links` lead to it and the replica has caught
/// up, and fails after 40 s.
pub(super) async fn restore(of: &ProxiedReplica, links: &[Arc<ProxyLink>]) -> Result<(), Failure> {
    let ProxiedReplica { main, replica, sentinel: port } = of;
    let (replica, port) = (*replica, *port);
    let restored = async {
        let is_first = async || {
            let now = leader_port(port).await?;
            // The Sentinel names it already while it promotes; the links follow afterwards.
            RedisResult::Ok(now == main.proxy.port() && links.iter().all(|link| link.proxy.target() == main.proxy.target()))
        };
        if !is_first().await? {
            let first = format!("redis://{}", main.proxy.target());
            replicate_from(redis_at(&first).await?, replica).await?;
        }
        while !is_first().await? {
            // Refused until the Sentinel knows that the old main Redis follows.
            sentinel_command("FAILOVER").exec_async(&mut connect(port).await?).await.ok();
            sleep(FAILOVER_POLL_INTERVAL).await;
        }
        replicate_from(connect(replica).await?, main.proxy.port()).await?;
        poll_until(async || Ok(!connected_replicas(port).await?.is_empty())).await
    };
    within_limit(2 * PLANNED_FAILOVER_TIMEOUT, "the first Redis was not promoted", restored).await
}

/// Makes this Redis a replica of the one at `port`, and waits, without a limit, until it has caught up.
async fn replicate_from(mut replica: MultiplexedConnection, port: u16) -> RedisResult<()> {
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).exec_async(&mut replica).await?;
    let info = redis::cmd("INFO").arg("replication").to_owned();
    while !has_caught_up(&info.query_async(&mut replica).await?) {
        sleep(FAILOVER_POLL_INTERVAL).await;
    }
    Ok(())
}

/// Redirects `links` to the main Redis after each promotion, until it is dropped; prints a line on `console`.
pub(super) async fn follow_failovers(of: ProxiedReplica, links: Vec<Arc<ProxyLink>>, console: Option<UnboundedSender<String>>) {
    loop {
        if let Err(error) = redirect_on_failover(&of, &links, console.as_ref()).await {
            tracing::debug!(%error, "the Sentinel is asked again");
        }
        sleep(FAILOVER_POLL_INTERVAL).await;
    }
}

/// Redirects `links` after each promotion, until the connection to the Sentinel ends.
async fn redirect_on_failover(
    of: &ProxiedReplica,
    links: &[Arc<ProxyLink>],
    console: Option<&UnboundedSender<String>>,
) -> RedisResult<()> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", of.sentinel))?;
    let mut events = client.get_async_pubsub().await?;
    events.subscribe("+switch-master").await?;
    let mut events = events.on_message();
    while let Some(message) = events.next().await {
        let words: String = message.get_payload()?;
        // "<group> <old address> <old port> <new address> <new port>"
        if let Some(port) = words.split_whitespace().nth(4) {
            let to = format!("127.0.0.1:{port}");
            let to = if to == of.main.proxy.address() { of.main.proxy.target() } else { to };
            links.iter().for_each(|link| link.proxy.redirect(&to));
            let line = format!("{SENTINEL} | the main Redis is at {to} now, and the instances follow");
            console.map(|console| console.send(line).ok());
        }
    }
    Ok(())
}
