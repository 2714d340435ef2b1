//! What one instance costs: memory, and the time from its start to its first answer.

use crate::{
    addresses::Addresses,
    failure::Failure,
    load::{link::Origin, stock_api},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    net::TcpListener,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

/// An instance that is not ready by then has failed to start.
const LONGEST: Duration = Duration::from_secs(15);
/// Finer than the figure needs.
const POLL: Duration = Duration::from_millis(2);

/// The most memory that a process has had resident since it started (`VmHWM`), in MB of 10⁶ bytes. The peak is asked
/// for, since a look at `VmRSS` from time to time would miss it.
///
/// # Errors
///
/// [`Failure::Unusable`] where there is no such process.
pub(super) fn peak_memory(pid: u32) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).map_err(|e| Failure::Unusable(format!("{path}: {e}")))?;
    kilobytes(&status).map(|kb| kb * 1024.0 / 1e6).ok_or_else(|| Failure::Unusable(format!("{path} has no line VmHWM")))
}

fn kilobytes(status: &str) -> Option<f64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

/// Starts one more instance beside those of the lab, waits until it is ready, and ends it: the time until it was
/// ready, in ms.
///
/// # Errors
///
/// [`Failure::Unusable`] where it does not get ready.
pub(super) async fn start_up(at: &Addresses) -> Result<f64, Failure> {
    let failed = |why: String| Failure::Unusable(format!("an instance does not start: {why}"));
    let port = free_port().map_err(|e| failed(e.to_string()))?;
    let origin = Origin::parse(&format!("http://127.0.0.1:{port}"))?;
    let begun = Instant::now();
    let mut child = spawn(at, port).map_err(|e| failed(e.to_string()))?;
    let took = loop {
        if let Some((200, _)) = stock_api::probe(&origin, "/health/ready").await {
            break begun.elapsed();
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(failed(format!("it ended with {status}")));
        }
        if begun.elapsed() > LONGEST {
            return Err(failed(format!("it is not ready after {} s", LONGEST.as_secs())));
        }
        tokio::time::sleep(POLL).await;
    };
    end(child).await;
    Ok(took.as_secs_f64() * 1000.0)
}

fn spawn(at: &Addresses, port: u16) -> std::io::Result<Child> {
    let nodes: Vec<_> = at.redis.iter().map(|node| node.url.as_str()).collect();
    Command::new(std::env::current_exe()?)
        .args(["serve", "--port", &port.to_string()])
        .env_remove("OVERSELL_CONFIG")
        .env("OVERSELL__MYSQL__URL", &at.mysql.url)
        .env("OVERSELL__REDIS__URL", nodes.first().copied().unwrap_or_default())
        .env("OVERSELL__REDIS__NODES", nodes.join(","))
        .env("OVERSELL__ZOOKEEPER__CONNECT", &at.zookeeper.connect)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// Asks it to end, and kills it where it does not.
async fn end(mut child: Child) {
    let asked = child.id().and_then(|pid| i32::try_from(pid).ok()).map(|pid| kill(Pid::from_raw(pid), Signal::SIGTERM));
    if !matches!(asked, Some(Ok(()))) || tokio::time::timeout(LONGEST, child.wait()).await.is_err() {
        child.kill().await.ok();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_line_that_has_it() {
        assert_eq!(kilobytes("Name:\toversell\nVmHWM:\t   39064 kB\nVmRSS:\t   30000 kB\n"), Some(39064.0));
        assert_eq!(kilobytes("Name:\toversell\n"), None);
    }

    #[test]
    fn this_process_has_memory_and_a_missing_one_is_said_to_be_missing() {
        assert!(peak_memory(std::process::id()).unwrap() > 0.5);
        assert!(peak_memory(u32::MAX).is_err());
    }
}
