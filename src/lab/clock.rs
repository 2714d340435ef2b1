//! The clocks of the Redis nodes. In a lab with ways a small library (`preloaded_clock.rs`) stands between each node and its clock,
//! and reads from a file in memory by how much the node's is ahead, so that one can jump while the others go right.
//!
//! libfaketime does the same for any program, but not for Redis 8: it deadlocks with jemalloc, which asks for the time before libfaketime
//! is ready, and the C library's `malloc`, loaded with it, frees what `mallocx` of jemalloc has given.
//!
//! **What it cannot do**: move the clock by which a node's own timers go; only what it calls the time of day jumps.

use super::Port;
use crate::{
    chinese::told,
    failure::{Failure, unusable},
    redis_at::redis_at,
};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::time::{sleep, timeout};

/// The file in a node's folder that says by how many microseconds its clock is ahead.
pub(super) const OFFSET_FILE: &str = "clock";
/// What stands there first.
pub(super) const NO_OFFSET: &str = "\0\0\0\0\0\0\0\0";
/// Until the node shows it, at the latest.
const JUMP_TIMEOUT: Duration = Duration::from_secs(6);
const JUMP_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The library, in the folder of the lab.
const LIBRARY: &str = "clock.so";
const LIBRARY_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clock.so"));

/// A Redis that does not answer within this does not start with the library.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);
const TRIAL_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// By how much its clock jumps in the trial.
const TRIAL_OFFSET: Duration = Duration::from_secs(1_000);

/// The clock of a node.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) node: String,
    pub(super) port: u16,
    pub(super) file: PathBuf,
}

/// Puts the library into the folder of the lab, and tries whether this Redis answers with it, its clock outcome.
///
/// # Errors
///
/// Why not.
pub(super) fn install_library(lab: &Path, program: &Path) -> Result<(), String> {
    if LIBRARY_BYTES.is_empty() {
        return Err(told!(
            "编译时没有为这个平台做出拨时钟的库",
            "the library that moves a clock was not built for this platform"
        ));
    }
    let file = lab.join("clock-trial");
    let written = fs::write(lab.join(LIBRARY), LIBRARY_BYTES)
        .and_then(|()| fs::write(&file, NO_OFFSET))
        .and_then(|()| write_offset(&file, TRIAL_OFFSET));
    written.map_err(|error| error.to_string())?;
    let port = Port::free().map_err(|error| error.to_string())?;
    let trial = with_library(&format!("./{LIBRARY}"), &file, program)
        .current_dir(lab)
        .args(["--bind", "127.0.0.1", "--save", "", "--port"])
        .arg(port.number().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut redis = trial.map_err(|error| error.to_string())?;
    let (begun, mut outcome) = (Instant::now(), Err("no answer".to_owned()));
    while begun.elapsed() < TRIAL_TIMEOUT {
        if let Ok(Some(end)) = redis.try_wait() {
            outcome = Err(end.to_string());
            break;
        }
        if let Some(seconds) = ask_time(port.number()) {
            let right = UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs());
            let shown = seconds.abs_diff(right + TRIAL_OFFSET.as_secs()) < 60;
            outcome = shown
                .then_some(())
                .ok_or_else(|| "its clock stays".to_owned());
            break;
        }
        std::thread::sleep(TRIAL_POLL_INTERVAL);
    }
    if let Err(error) = redis.kill().and_then(|()| redis.wait()) {
        tracing::warn!(%error, "the trial of a clock is left");
    }
    outcome.map_err(|why| {
        told!(
            "{} 带着拨时钟的库启动不了（{why}）",
            "{} does not start with the library that moves its clock ({why})",
            program.display()
        )
    })
}

/// The time of day that the Redis at this port tells.
fn ask_time(port: u16) -> Option<u64> {
    let mut redis = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    redis.set_read_timeout(Some(TRIAL_TIMEOUT)).ok()?;
    redis.write_all(b"TIME\r\n").ok()?;
    // `*2`, `$10`, and the number.
    let third = BufReader::new(redis).lines().nth(2)?;
    third.ok()?.parse().ok()
}

/// The command of a node, in whose `folder` the file of its clock is.
pub(super) fn command(folder: &Path, program: &Path) -> Command {
    // Not by its full path, which may have a space: that would end its name.
    let mut command = with_library(&format!("../{LIBRARY}"), &folder.join(OFFSET_FILE), program);
    command.current_dir(folder);
    command
}

/// What starts the program is not loaded with the library: it may be another user.
fn with_library(library: &str, file: &Path, program: &Path) -> Command {
    let mut command = Command::new("env");
    command
        .arg(format!("LD_PRELOAD={library}"))
        .arg(format!("OVERSELL_CLOCK={}", file.display()))
        .arg(program);
    command
}

/// In the file that the library has in memory: it is neither cut nor replaced.
fn write_offset(file: &Path, ahead: Duration) -> std::io::Result<()> {
    let micros = i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX);
    let mut file = File::options().write(true).open(file)?;
    file.write_all(&micros.to_ne_bytes())
}

impl Clock {
    /// Its node's clock will be ahead by so much, and stay so.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`]: the file cannot be written.
    pub(super) fn set(&self, ahead: Duration) -> Result<(), Failure> {
        write_offset(&self.file, ahead)
            .map_err(|error| unusable!("{}: {error}", self.file.display()))
    }

    /// Waits until the node says so.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`]: it does not in time.
    pub(super) async fn wait_until_shown(&self, ahead: Duration) -> Result<(), Failure> {
        let shown = async {
            while self
                .ahead()
                .await
                .is_none_or(|by| (by - ahead.as_secs_f64()).abs() > 0.5)
            {
                sleep(JUMP_POLL_INTERVAL).await;
            }
        };
        let late = |_| unusable!("the clock of {} does not jump", self.node);
        timeout(JUMP_TIMEOUT, shown).await.map_err(late)
    }

    /// By how many seconds it is ahead; none where the node does not answer.
    async fn ahead(&self) -> Option<f64> {
        let at = format!("redis://127.0.0.1:{}", self.port);
        let mut node = redis_at(&at).await.ok()?;
        let asked = redis::cmd("TIME")
            .query_async::<(u64, u64)>(&mut node)
            .await;
        let (seconds, micros) = asked.ok()?;
        let node = Duration::from_secs(seconds) + Duration::from_micros(micros);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(node.as_secs_f64() - now.as_secs_f64())
    }

    /// Whether it was told to be ahead.
    pub(super) fn has_jumped(&self) -> bool {
        fs::read(&self.file).is_ok_and(|ahead| ahead != NO_OFFSET.as_bytes())
    }
}
