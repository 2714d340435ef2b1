//! Redis: independent nodes, for Redlock five. The main one and its replicas keep their data, since they hold the stock: what
//! they have answered survives a restart, and all but the last second survives the machine's. The others keep nothing: what a
//! node that forgets does to Redlock is a lesson.

use super::{
    clock,
    server::{Check, Server, Started},
    user::User,
};
use crate::clients::redis_at::redis_at;
use crate::programs::{self, Needed};
use futures::FutureExt;
use redis::InfoDict;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The main node and its replicas: each write goes to a file, which is flushed to the disk every second.
pub(super) const KEEPS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];
/// The host by which it knows itself: what else it says of itself has its port only.
const ANNOUNCES: [&str; 2] = ["--replica-announce-ip", "127.0.0.1"];
/// The others.
const KEEPS_NOTHING: [&str; 2] = ["--appendonly", "no"];

/// With this user the members and Sentinels of a group come to each other. Sentinels before Redis 6.2 know none.
const PEER: [&str; 11] = [
    "--user",
    USER,
    "on",
    ">peer",
    "~*",
    "&*",
    "+@all",
    "--masteruser",
    USER,
    "--masterauth",
    USER,
];
/// Its name, and its password.
pub(super) const USER: &str = "peer";

/// A new replica does not wait for others that may come.
const TO_FOLLOWERS: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

/// What each Redis, replica and Sentinel needs.
pub(super) const NEEDED: [Needed; 1] = [(PROGRAM, PROGRAM)];
pub(super) const PROGRAM: &str = "redis-server";

/// What this program says that it is: `Redis 7.0.15`, `Valkey 8.1.1`.
pub(super) fn version(program: &Path) -> Option<String> {
    let text = programs::says(program, "--version")?;
    let title = text.split_whitespace().next()?;
    let (_, version) = text.split_once("v=")?;
    Some(format!("{title} {}", programs::number(version)))
}

/// The name of the main one's replica, or of the first one.
pub(super) const REPLICA: &str = "replica";

/// The name of the replica at `index`: `replica`, `replica-2` …
pub(super) fn replica(index: usize) -> String {
    numbered(REPLICA, index)
}

/// The name of the node at `index`: `redis`, `redis-2` …
pub(super) fn name(index: usize) -> String {
    numbered("redis", index)
}

/// The first has no number.
pub(super) fn numbered(name: &str, index: usize) -> String {
    match index {
        0 => name.to_owned(),
        _ => format!("{name}-{}", index + 1),
    }
}

#[derive(Debug)]
pub(super) struct Redis {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    pub(super) role: Role,
    /// Whether its clock can jump.
    pub(super) has_clock: bool,
    /// Whether it is one of a group whose Sentinels the instances ask.
    pub(super) grouped: bool,
}

#[derive(Debug)]
pub(super) enum Role {
    /// The main node. `known_by` is the port at which a Sentinel reaches it: where its way can be cut, that of the way. The
    /// Sentinel must hear of no second one, not even from a server that this one follows.
    Main { known_by: u16 },
    /// One that the others know nothing of.
    Independent,
    /// The replica of the one at this port.
    Replica { of: u16 },
}

impl Server for Redis {
    fn needs(&self) -> &'static [Needed] {
        programs::missing(&self.program, &NEEDED)
    }

    fn settings(&self, _folder: &Path) -> Vec<(&'static str, String)> {
        let clock = self
            .has_clock
            .then(|| (clock::FILE, clock::RIGHT.to_owned()));
        clock.into_iter().collect()
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = match self.has_clock {
            true => clock::command(folder, &self.program),
            false => Command::new(&self.program),
        };
        options(&mut command, self.port, folder);
        if self.grouped {
            command.args(PEER);
        }
        match self.role {
            Role::Main { known_by } => command
                .args(KEEPS)
                .args(ANNOUNCES)
                .args(["--replica-announce-port", &known_by.to_string()]),
            Role::Independent => command.args(KEEPS_NOTHING),
            Role::Replica { of } => command.args(KEEPS).args(ANNOUNCES).args([
                "--replicaof",
                "127.0.0.1",
                &of.to_string(),
            ]),
        };
        command
    }

    /// A replica is well once it has all that the main one has.
    fn check<'a>(&'a self, started: Started<'a>) -> Check<'a> {
        async move {
            let info = has_pid(self.port, started.pid).await?;
            let leads = info.get("role") == Some("master".to_owned());
            let caught_up = leads || follows(&info) || !started.complete;
            match self.role {
                Role::Replica { .. } if !caught_up => Err("it has not caught up yet".to_owned()),
                _ => Ok(()),
            }
        }
        .boxed()
    }
}

/// Whether this one has all that the main one has, and hears what is new.
pub(super) fn follows(info: &InfoDict) -> bool {
    info.get("master_link_status") == Some("up".to_owned())
}

/// What every Redis of the lab is told.
fn options(command: &mut Command, port: u16, folder: &Path) {
    command
        .args(["--bind", "127.0.0.1", "--daemonize", "no", "--save", ""])
        .args(TO_FOLLOWERS)
        .args(["--port", &port.to_string()])
        .arg("--dir")
        .arg(folder);
}

/// What the server at this port says of itself, where it is this process.
pub(super) async fn has_pid(port: u16, pid: u32) -> Result<InfoDict, String> {
    let ask = async {
        let mut connection = redis_at(&format!("redis://127.0.0.1:{port}")).await?;
        redis::cmd("INFO")
            .query_async::<InfoDict>(&mut connection)
            .await
    };
    let info = ask.await.map_err(|e: redis::RedisError| e.to_string())?;
    if info.get("process_id") == Some(pid) {
        Ok(info)
    } else {
        Err("another server answers".to_owned())
    }
}
