//! Redis: independent nodes, for Redlock five. The main one keeps its data, since they hold the stock: what it has
//! answered survives its restart, and all but the last second survives the machine's. The others keep nothing: what a node
//! that forgets does to Redlock is a lesson.

use super::{
    programs::{self, Needed},
    server::Server,
    user::User,
};
use crate::redis_at::redis_at;
use futures::{FutureExt, future::BoxFuture};
use redis::InfoDict;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The main node: each write goes to a file, which is flushed to the disk every second.
pub(super) const KEEPS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "everysec"];
/// The others.
const KEEPS_NOTHING: [&str; 2] = ["--appendonly", "no"];

/// A new replica does not wait for others that may come.
const TO_FOLLOWERS: [&str; 2] = ["--repl-diskless-sync-delay", "0"];

/// What each Redis, replica and Sentinel needs.
pub(super) const NEEDED: [Needed; 1] = [("redis-server", "redis-server")];

/// The name of the main one's replica, where it has one.
pub(super) const REPLICA: &str = "replica";

/// The name of the node at `index`: `redis`, `redis-2` …
pub(super) fn name(index: usize) -> String {
    if index == 0 {
        "redis".to_owned()
    } else {
        format!("redis-{}", index + 1)
    }
}

#[derive(Debug)]
pub(super) struct Redis {
    index: usize,
    name: String,
    folder: PathBuf,
    port: u16,
    /// By which port a Sentinel knows it.
    known_by: u16,
}

impl Redis {
    pub(super) fn new(index: usize, folder: PathBuf, port: u16) -> Self {
        Self {
            index,
            name: name(index),
            folder,
            port,
            known_by: port,
        }
    }

    /// A Sentinel reaches it at another port: that of a way that can be cut. It is to hear of no second one, also not from
    /// those that this one follows.
    pub(super) fn known_by(self, port: u16) -> Self {
        Self {
            known_by: port,
            ..self
        }
    }
}

impl Server for Redis {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> &'static [Needed] {
        &NEEDED
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn command(&self, _user: User) -> Command {
        let mut command = program(self.port, &self.folder);
        command
            .args(if self.index == 0 {
                &KEEPS[..]
            } else {
                &KEEPS_NOTHING
            })
            .args(["--replica-announce-port", &self.known_by.to_string()]);
        command
    }

    fn check(&self, pid: u32, _complete: bool) -> BoxFuture<'_, Result<(), String>> {
        async move { has_pid(self.port, pid).await.map(drop) }.boxed()
    }
}

/// The program, as every Redis of the lab is started.
pub(super) fn program(port: u16, folder: &Path) -> Command {
    let mut command = Command::new(programs::path("redis-server"));
    command
        .args(["--bind", "127.0.0.1", "--daemonize", "no", "--save", ""])
        .args(TO_FOLLOWERS)
        .args(["--port", &port.to_string()])
        .arg("--dir")
        .arg(folder);
    command
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
