//! Clocks of the Redis nodes that can jump. In a lab with links a small library (`preloaded_clock.rs`) stands between
//! each node and the system clock. It adds an offset, which it reads from a memory-mapped file.
//!
//! Why not libfaketime: Redis 8 does not start with it. It deadlocks with jemalloc, which asks for the time before
//! libfaketime is ready; and the C library's `malloc`, which comes with it, frees what jemalloc's `mallocx` has given.
//!
//! **What it cannot do**: move the monotonic clock of a node's timers. Only the time of day jumps.

use super::Port;
use crate::{
    clients::redis_at::redis_at,
    terminal::{
        chinese::localized,
        failure::{Failure, unusable},
    },
    wait::wait_until,
};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The file in a node's folder that holds the offset in microseconds.
pub(super) const OFFSET_FILE: &str = "clock";
/// What the offset file of a clock that is not moved contains.
pub(super) const NO_OFFSET: &str = "\0\0\0\0\0\0\0\0";
/// Time limit of a jump: how long a node may take to show the new time.
const JUMP_TIMEOUT: Duration = Duration::from_secs(6);

/// File name of the library in the lab's folder.
const LIBRARY_FILE: &str = "clock.so";
/// The compiled library; empty if it was not built for this platform.
const LIBRARY_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clock.so"));

/// Time limit of the trial: a Redis that does not answer by then does not work with the library.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the Redis of the trial is asked for its time: short beside its start.
const TRIAL_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The offset of the trial: more than any clock is wrong by itself, so that only the library can show it.
const TRIAL_OFFSET: Duration = Duration::from_secs(1_000);

/// The clock of one Redis node, which a fault may move: the offset is in `file`.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) node: String,
    pub(super) port: u16,
    pub(super) file: PathBuf,
}

/// Writes the library into the lab's folder, and tries whether this Redis starts with it and shows a moved clock; blocks
/// meanwhile. The error says why not.
pub(super) fn install_library(lab: &Path, program: &Path) -> Result<(), String> {
    if LIBRARY_BYTES.is_empty() {
        return Err(localized!(
            "编译时没有为这个平台做出拨时钟的库",
            "the library that moves a clock was not built for this platform"
        ));
    }
    let file = lab.join("clock-trial");
    let written = fs::write(lab.join(LIBRARY_FILE), LIBRARY_BYTES)
        .and_then(|()| fs::write(&file, NO_OFFSET))
        .and_then(|()| write_offset(&file, TRIAL_OFFSET));
    written.map_err(|error| error.to_string())?;
    let port = Port::free().map_err(|error| error.to_string())?;
    let trial = command_with_library(&format!("./{LIBRARY_FILE}"), &file, program)
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
        if let Some(seconds) = server_time_s(port.number()) {
            let right = UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs());
            let shown = seconds.abs_diff(right + TRIAL_OFFSET.as_secs()) < 60;
            outcome = shown.then_some(()).ok_or_else(|| "its clock did not move".to_owned());
            break;
        }
        std::thread::sleep(TRIAL_POLL_INTERVAL);
    }
    if let Err(error) = redis.kill().and_then(|()| redis.wait()) {
        tracing::warn!(%error, "the process of the clock trial could not be ended");
    }
    outcome.map_err(|why| {
        localized!(
            "{} 带着拨时钟的库启动不了（{why}）",
            "{} does not start with the library that moves its clock ({why})",
            program.display()
        )
    })
}

/// The time that the Redis at this port shows, in seconds; `None` if nobody listens, or no answer comes in [`TRIAL_TIMEOUT`].
fn server_time_s(port: u16) -> Option<u64> {
    let mut redis = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    redis.set_read_timeout(Some(TRIAL_TIMEOUT)).ok()?;
    redis.write_all(b"TIME\r\n").ok()?;
    // The answer is `*2`, `$10`, and the number.
    let third = BufReader::new(redis).lines().nth(2)?;
    third.ok()?.parse().ok()
}

/// The command of a Redis node in `folder` whose clock can be moved.
pub(super) fn command_with_movable_clock(folder: &Path, program: &Path) -> Command {
    // A relative path: LD_PRELOAD splits at spaces, which a full path may have.
    let mut command = command_with_library(&format!("../{LIBRARY_FILE}"), &folder.join(OFFSET_FILE), program);
    command.current_dir(folder);
    command
}

/// The command with the library, through `env`: only the server loads it, not the program that starts it as another user.
fn command_with_library(library: &str, file: &Path, program: &Path) -> Command {
    let mut command = Command::new("env");
    command.arg(format!("LD_PRELOAD={library}")).arg(format!("OVERSELL_CLOCK={}", file.display())).arg(program);
    command
}

/// Overwrites the offset in place: the library has the file mapped, so the file must be neither truncated nor replaced.
fn write_offset(file: &Path, ahead: Duration) -> std::io::Result<()> {
    let micros = i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX);
    let mut file = File::options().write(true).open(file)?;
    file.write_all(&micros.to_ne_bytes())
}

impl Clock {
    /// Writes how far the node's clock is to be ahead; zero sets it right. Does not wait until the node shows it.
    pub(super) fn set_offset(&self, ahead: Duration) -> Result<(), Failure> {
        write_offset(&self.file, ahead).map_err(|error| unusable!("{}: {error}", self.file.display()))
    }

    /// Waits until the server's own time is this much ahead of ours, to half a second; fails after [`JUMP_TIMEOUT`].
    pub(super) async fn wait_until_offset_is_shown(&self, ahead: Duration) -> Result<(), Failure> {
        let is_shown = || async { self.offset_s().await.is_some_and(|by| (by - ahead.as_secs_f64()).abs() <= 0.5) };
        wait_until(JUMP_TIMEOUT, format!("{} did not show the new time", self.node), is_shown).await
    }

    /// The offset of the clock in seconds; `None` if the node does not answer.
    async fn offset_s(&self) -> Option<f64> {
        let at = format!("redis://127.0.0.1:{}", self.port);
        let mut node = redis_at(&at).await.ok()?;
        let time = redis::cmd("TIME").query_async::<(u64, u64)>(&mut node).await;
        let (seconds, micros) = time.ok()?;
        let node = Duration::from_secs(seconds) + Duration::from_micros(micros);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(node.as_secs_f64() - now.as_secs_f64())
    }

    /// Whether the clock is moved now, by its file.
    pub(super) fn has_jumped(&self) -> bool {
        fs::read(&self.file).is_ok_and(|ahead| ahead != NO_OFFSET.as_bytes())
    }
}
