//! Redis: independent nodes, five of them for Redlock. The main node and its replicas keep their data, because they
//! hold the stock: what they answered survives a restart, and all but the last second survives a crash of the machine.
//! The other nodes keep nothing: what a forgetful node does to Redlock is a lesson.

use super::{
    clock,
    server::{CheckContext, HealthCheck, Server, numbered_name},
    user::User,
};
use crate::{
    clients::redis_at::redis_at,
    programs::{self, Requirement},
};
use futures::FutureExt;
use redis::InfoDict;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Options by which a full node refuses writes and deletes nothing, so that the service can say so.
const NO_EVICTION_OPTIONS: [&str; 2] = ["--maxmemory-policy", "noeviction"];
/// The most memory of a Redis node's data.
const MAX_MEMORY: &str = "256mb";
/// The most memory of the Redis for visitors' scripts, which may fill it.
const MINE_MAX_MEMORY: &str = "32mb";

/// Options by which every write goes to the append-only file, which is flushed every second.
pub(super) const APPEND_ONLY_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];
/// The option that names a replica's host: it announces only its port by itself.
const ANNOUNCED_HOST_OPTIONS: [&str; 2] = ["--replica-announce-ip", "127.0.0.1"];
/// Options of a node that keeps nothing: no append-only file; no node writes snapshots.
const NO_PERSISTENCE_OPTIONS: [&str; 2] = ["--appendonly", "no"];

/// Options that make [`PEER_USER`], as whom members and Sentinels of a group log in to each other. Sentinels before Redis 6.2
/// cannot.
const PEER_USER_OPTIONS: [&str; 11] =
    ["--user", PEER_USER, "on", ">peer", "~*", "&*", "+@all", "--masteruser", PEER_USER, "--masterauth", PEER_USER];
/// The user of the group, and its password.
pub(super) const PEER_USER: &str = "peer";

/// Options by which a full synchronisation starts at once, without waiting for further replicas.
const REPLICATION_OPTIONS: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

pub(super) const REQUIREMENTS: [Requirement; 1] = [(PROGRAM, PROGRAM)];
pub(super) const PROGRAM: &str = "redis-server";

/// The name and version of the program, such as `Redis 7.0.15`; `None` if it does not tell.
pub(super) fn version(program: &Path) -> Option<String> {
    let text = programs::output_of(program, "--version")?;
    let title = text.split_whitespace().next()?;
    let (_, version) = text.split_once("v=")?;
    Some(format!("{title} {}", programs::version_number(version)))
}

/// The name of the first replica, and the prefix of the names of further ones.
pub(super) const REPLICA: &str = "replica";

/// The name of the Redis in which students' scripts run.
pub(super) const MINE: &str = "redis-mine";

/// The name of the replica at `index`: `replica`, `replica-2` …
pub(super) fn replica_name(index: usize) -> String {
    numbered_name(REPLICA, index)
}

/// The name of the node at `index`: `redis`, `redis-2` …
pub(super) fn name(index: usize) -> String {
    numbered_name("redis", index)
}

/// A Redis node that the lab starts.
#[derive(Debug)]
pub(super) struct Redis {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    pub(super) role: Role,
    pub(super) has_clock: bool,
    /// Whether it belongs to a group whose Sentinels the instances ask.
    pub(super) in_sentinel_group: bool,
}

/// The role of a Redis among the others of its lab.
#[derive(Debug)]
pub(super) enum Role {
    /// The main node. A Sentinel reaches it at `announced_port`: the port of its link, if that can be cut. The Sentinel
    /// must never learn another address, not even from a server that this one follows.
    Main { announced_port: u16 },
    /// Neither main node nor replica.
    Independent,
    /// Where students' scripts run.
    Mine,
    /// A replica of the node at this port.
    Replica { of: u16 },
}

impl Server for Redis {
    fn requirements(&self) -> &'static [Requirement] {
        programs::missing_requirements(&self.program, &REQUIREMENTS)
    }

    fn config_files(&self, _folder: &Path) -> Vec<(&'static str, String)> {
        let clock = self.has_clock.then(|| (clock::OFFSET_FILE, clock::NO_OFFSET.to_owned()));
        clock.into_iter().collect()
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = match self.has_clock {
            true => clock::command_with_movable_clock(folder, &self.program),
            false => Command::new(&self.program),
        };
        let memory = match self.role {
            Role::Mine => MINE_MAX_MEMORY,
            _ => MAX_MEMORY,
        };
        add_common_options(&mut command, self.port, folder);
        command.args(NO_EVICTION_OPTIONS).args(["--maxmemory", memory]);
        if self.in_sentinel_group {
            command.args(PEER_USER_OPTIONS);
        }
        match self.role {
            Role::Main { announced_port } => command
                .args(APPEND_ONLY_OPTIONS)
                .args(ANNOUNCED_HOST_OPTIONS)
                .args(["--replica-announce-port", &announced_port.to_string()]),
            Role::Independent | Role::Mine => command.args(NO_PERSISTENCE_OPTIONS),
            Role::Replica { of } => {
                command.args(APPEND_ONLY_OPTIONS).args(ANNOUNCED_HOST_OPTIONS).args(["--replicaof", "127.0.0.1", &of.to_string()])
            }
        };
        command
    }

    /// A replica is healthy once it has caught up with the main node, or is that itself; without `dependencies_up`, and in any
    /// other role, a node is healthy once it answers.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            let info = info_of_process(self.port, context.pid).await?;
            let leads = info.get("role") == Some("master".to_owned());
            let caught_up = leads || has_caught_up(&info) || !context.dependencies_up;
            match self.role {
                Role::Replica { of } if !caught_up => {
                    let link: String = info.get("master_link_status").unwrap_or_default();
                    Err(format!("it has not caught up with 127.0.0.1:{of} yet: its link is {link}"))
                }
                _ => Ok(()),
            }
        }
        .boxed()
    }
}

/// Whether a replica has all data of the main node.
pub(super) fn has_caught_up(info: &InfoDict) -> bool {
    info.get("master_link_status") == Some("up".to_owned())
}

/// Adds the options of every node: loopback, its port, its folder, no snapshots.
fn add_common_options(command: &mut Command, port: u16, folder: &Path) {
    command
        .args(["--bind", "127.0.0.1", "--daemonize", "no", "--save", ""])
        .args(REPLICATION_OPTIONS)
        .args(["--port", &port.to_string()])
        .arg("--dir")
        .arg(folder);
}

/// The INFO of the server at this port; an error if it does not answer, or is another process than `pid`.
pub(super) async fn info_of_process(port: u16, pid: u32) -> Result<InfoDict, String> {
    let ask = async {
        let mut connection = redis_at(&format!("redis://127.0.0.1:{port}")).await?;
        redis::cmd("INFO").query_async::<InfoDict>(&mut connection).await
    };
    let info = ask.await.map_err(|e: redis::RedisError| e.to_string())?;
    if info.get("process_id") == Some(pid) { Ok(info) } else { Err("another server answers".to_owned()) }
}
