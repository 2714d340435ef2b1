//! The clocks of the Redis nodes. In a lab with ways libfaketime stands between each node and its clock, and reads from a file
//! by how much the node's is ahead, so that one can jump while the others go right.
//!
//! Its own C library's `malloc` is loaded with it: jemalloc asks for the time before libfaketime is ready, and a node would
//! never start. It costs a node 2 to 3 % of its processor time.
//!
//! **What it cannot do**: move the clock by which a node's own timers go; only what it calls the time of day jumps.
//!
//! Source: libfaketime's README, `FAKETIME_TIMESTAMP_FILE`.

use super::programs;
use crate::{
    failure::{Failure, unusable},
    redis_at::redis_at,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::time::{sleep, timeout};

/// The file in a node's folder that says by how much its clock is ahead.
pub(super) const FILE: &str = "clock";
/// What stands there first.
pub(super) const RIGHT: &str = "+0";
/// The library looks into the file once a second.
const CACHE_S: &str = "1";
/// Until it has, at the latest.
const LIMIT: Duration = Duration::from_secs(6);
const STEP: Duration = Duration::from_millis(20);
/// A program that does not start within this does not start with the library.
const TRIAL: Duration = Duration::from_secs(2);
/// Where it lies; on Debian in a folder of the architecture below the first.
const FOLDERS: [&str; 4] = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"];
const LIBRARY: &str = "faketime/libfaketime.so.1";

/// The clock of a node.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) node: String,
    pub(super) port: u16,
    pub(super) file: PathBuf,
}

/// libfaketime, where it is installed and Redis starts with it.
pub(super) fn library() -> Option<PathBuf> {
    let below = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = FOLDERS.iter().map(PathBuf::from);
    let of_architectures = FOLDERS.iter().copied().flat_map(below).map(|at| at.path());
    let mut all = folders.chain(of_architectures).map(|at| at.join(LIBRARY));
    all.find(|library| library.is_file() && starts_with(library))
}

/// Whether Redis starts with this library.
fn starts_with(library: &Path) -> bool {
    let program = programs::path("redis-server");
    let started = with(library, Path::new("/dev/null"), &program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut redis) = started else {
        return false;
    };
    let begun = Instant::now();
    while begun.elapsed() < TRIAL {
        match redis.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Ok(Some(end)) => return end.success(),
            Err(_) => break,
        }
    }
    if let Err(error) = redis.kill().and_then(|()| redis.wait()) {
        tracing::warn!(%error, "a trial of libfaketime is left");
    }
    unname(redis.id());
    false
}

/// A program whose clock is the one that this file says. What starts it is not loaded with the library: it may be another user.
pub(super) fn with(library: &Path, file: &Path, program: &Path) -> Command {
    let mut command = Command::new(programs::path("env"));
    command
        .arg(format!("LD_PRELOAD={}:libc.so.6", library.display()))
        .arg(format!("FAKETIME_TIMESTAMP_FILE={}", file.display()))
        .arg(format!("FAKETIME_CACHE_DURATION={CACHE_S}"))
        .arg("FAKETIME_DONT_FAKE_MONOTONIC=1")
        .arg(program);
    command
}

/// Takes away the names of the shared memory that the library has made for this process, which it leaves where it is killed.
pub(super) fn unname(pid: u32) {
    for name in [
        format!("faketime_shm_{pid}"),
        format!("sem.faketime_sem_{pid}"),
    ] {
        if let Err(error) = fs::remove_file(Path::new("/dev/shm").join(&name)) {
            tracing::debug!(%error, name, "was not there");
        }
    }
}

impl Clock {
    /// Its node's clock will be ahead by so much, and stay so.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`]: the file cannot be written.
    pub(super) fn set(&self, ahead: Duration) -> Result<(), Failure> {
        let text = match ahead {
            Duration::ZERO => RIGHT.to_owned(),
            ahead => format!("+{}s", ahead.as_secs_f64()),
        };
        // In one step: the library reads all of it or none.
        let new = self.file.with_extension("new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file));
        written.map_err(|error: io::Error| unusable!("{}: {error}", self.file.display()))
    }

    /// Waits until the node says so.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`]: it does not in time.
    pub(super) async fn shows(&self, ahead: Duration) -> Result<(), Failure> {
        let shown = async {
            while self
                .ahead()
                .await
                .is_none_or(|by| (by - ahead.as_secs_f64()).abs() > 0.5)
            {
                sleep(STEP).await;
            }
        };
        let late = |_| unusable!("the clock of {} does not jump", self.node);
        timeout(LIMIT, shown).await.map_err(late)
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
        fs::read_to_string(&self.file).is_ok_and(|text| text != RIGHT)
    }
}
