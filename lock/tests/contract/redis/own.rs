//! A Redis for one test, which may change its settings.

use crate::support::*;
use oversell_lab::{lab::Port, programs::path as program};
use std::{
    ops::Deref,
    path::Path,
    process::{self, Stdio},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};
use tokio::process::{Child, Command};

/// The server ends with the value.
pub(crate) struct OwnRedis {
    redis: Redis,
    _server: Child,
    _port: Port,
}

/// A server in this folder; its port follows the last option.
pub(crate) fn server(folder: &Path, options: &str) -> Result<(Child, Port)> {
    let port = Port::free()?;
    let mut server = Command::new(program("redis-server"));
    server.args(["--bind", "127.0.0.1", "--save", ""]);
    server.args(options.split(' ')).arg(port.number().to_string());
    server.current_dir(folder).stdout(Stdio::null());
    Ok((server.kill_on_drop(true).spawn()?, port))
}

impl OwnRedis {
    /// Starts it, and waits until it answers.
    pub(crate) async fn start() -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = format!("{}-{}", process::id(), NEXT.fetch_add(1, SeqCst));
        let folder = std::env::temp_dir().join(format!("oversell-own-redis-{number}"));
        tokio::fs::create_dir(&folder).await?;
        let (server, port) = server(&folder, "--port")?;
        let url = format!("redis://127.0.0.1:{}", port.number());
        let client = redis::Client::open(url.as_str())?;
        let answers = async || client.get_multiplexed_async_connection().await.is_ok();
        until("it answers", answers).await?;
        // It writes no files.
        tokio::fs::remove_dir_all(folder).await?;
        Ok(Self { redis: Redis::at(url), _server: server, _port: port })
    }

    pub(crate) async fn set(&self, switch: &str, value: &str) -> Result {
        self.ask(&["CONFIG", "SET", switch, value]).await
    }

    /// Closes every connection but the test's own.
    pub(crate) async fn close_all(&self) -> Result {
        let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
        self.ask::<i64>(&kill).await?;
        let kill = ["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"];
        self.ask::<i64>(&kill).await.map(drop)
    }

    pub(crate) async fn connections(&self) -> Result<u64> {
        let stats: String = self.ask(&["INFO", "stats"]).await?;
        let count = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        Ok(count.context("no count")?.trim().parse()?)
    }
}

impl Deref for OwnRedis {
    type Target = Redis;

    fn deref(&self) -> &Redis {
        &self.redis
    }
}
