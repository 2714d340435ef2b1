//! Redis: independent nodes, for Redlock five. They keep nothing on disk: a node that is restarted is empty.

use super::{
    programs::{self, Needed},
    server::Server,
};
use crate::failure::Failure;
use futures::{FutureExt, future::BoxFuture};
use redis::InfoDict;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// No snapshots, no append-only file.
const DURABILITY: [&str; 4] = ["--save", "", "--appendonly", "no"];

/// The name of the node at `index`: `redis`, `redis-2` …
pub(super) fn name(index: usize) -> String {
    if index == 0 { "redis".to_owned() } else { format!("redis-{}", index + 1) }
}

#[derive(Debug)]
pub(super) struct Redis {
    name: String,
    folder: PathBuf,
    port: u16,
}

impl Redis {
    pub(super) fn new(name: String, folder: PathBuf, port: u16) -> Self {
        Self { name, folder, port }
    }
}

impl Server for Redis {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> &'static [Needed] {
        &[("redis-server", "redis-server")]
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        async { std::fs::create_dir_all(&self.folder).map_err(|e| Failure::Unusable(format!("{}: {e}", self.name))) }
            .boxed()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(programs::path("redis-server"));
        command
            .args(["--bind", "127.0.0.1", "--daemonize", "no"])
            .args(DURABILITY)
            .arg("--port")
            .arg(self.port.to_string())
            .arg("--dir")
            .arg(&self.folder);
        command
    }

    fn check(&self, pid: u32, _complete: bool) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let url = format!("redis://127.0.0.1:{}", self.port);
            let client = redis::Client::open(url).map_err(|e| e.to_string())?;
            let mut connection = client.get_multiplexed_async_connection().await.map_err(|e| e.to_string())?;
            let info: InfoDict =
                redis::cmd("INFO").arg("server").query_async(&mut connection).await.map_err(|e| e.to_string())?;
            if info.get("process_id") == Some(pid) { Ok(()) } else { Err("another server answers".to_owned()) }
        }
        .boxed()
    }
}
