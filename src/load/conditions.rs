//! The conditions of the figures, without which they mean little.

use oversell_lab::{addresses::Addresses, clients::redis_at::redis_at, terminal::chinese::localized};
use oversell_lock::mysql::{MySqlOptions, TablePool};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// Asks MySQL for its version, its durability and its isolation level, which are printed beside the figures.
const SHOW_CONDITIONS: &str = "SHOW VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', \
     'log_bin', 'tx_isolation', 'transaction_isolation')";
/// Time limit of each server (of MySQL, for the connection alone); one that answers later is left out.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// The folder whose disk is measured; a lab keeps its data in it.
const DATA_FOLDER: &str = "target";
/// The number of `fdatasync` calls that are timed: odd, so that one of them is the median.
const FDATASYNC_SAMPLES: usize = 101;

/// Where and how figures were measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Conditions {
    /// The command line, wherever the program is.
    pub(crate) command: String,
    /// The day of the run, as in `2026-11-26`.
    pub date: String,
    pub(crate) version: &'static str,
    /// The commit that it was built from; `unknown` outside a repository and in a debug build.
    pub(crate) commit: &'static str,
    /// Cores that generator, nginx, instances and servers share; those of the generator alone if the cluster is elsewhere.
    pub(crate) cores: usize,
    /// The processor's name.
    pub(crate) cpu: String,
    /// The kernel's version, without what its builder calls it.
    pub(crate) kernel: String,
    /// The file system of the data of the lab; empty if the cluster is elsewhere.
    pub(crate) file_system: String,
    /// The median time of `fdatasync` of 4 KB on that file system, in µs; `None` if the cluster is elsewhere, or it fails.
    pub(crate) fdatasync_us: Option<u64>,
    /// Version and durability of each server of a lab that told them.
    pub(crate) servers: BTreeMap<&'static str, String>,
}

/// The commit that this program was built from; `unknown` in a debug build, and outside a repository.
pub const COMMIT: &str = env!("OVERSELL_COMMIT");

impl Conditions {
    /// Reads the conditions of this machine, and of a lab if one is measured, whose folder `target` it makes and writes to.
    pub async fn read(lab: Option<&Addresses>) -> Self {
        let machine = Self {
            command: ["oversell".to_owned()].into_iter().chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" "),
            version: env!("CARGO_PKG_VERSION"),
            commit: COMMIT,
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            date: chrono::Utc::now().format("%F").to_string(),
            cpu: cpu(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            kernel: kernel(&fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default()),
            ..Self::default()
        };
        let Some(lab) = lab else { return machine };
        let folder = fs::create_dir_all(DATA_FOLDER).and_then(|()| fs::canonicalize(DATA_FOLDER));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (mysql, redis) = tokio::join!(mysql(&lab.mysql.url), redis(lab.first_redis()));
        // The lab has read these, as `etcd 3.4.23`, when it started.
        let at_start = ["zookeeper", "etcd", "nginx"].map(|server| {
            let version = lab.versions.get(server).and_then(|said| said.split(' ').nth(1));
            (server, version.map(|version| format!("version={version}")))
        });
        let servers = [("mysql", mysql), ("redis", redis)].into_iter().chain(at_start);
        Self {
            file_system: folder.as_ref().ok().and_then(|folder| file_system(&mounts, folder)).unwrap_or_default(),
            fdatasync_us: folder.ok().and_then(|folder| fdatasync(&folder).ok()),
            servers: servers.filter_map(|(server, said)| Some((server, said?))).collect(),
            ..machine
        }
    }
}

/// The processor's name, in `/proc/cpuinfo`; its architecture if there is none.
fn cpu(info: &str) -> String {
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.trim().into())
}

/// `6.1.0` of `6.1.0-18-amd64`.
fn kernel(release: &str) -> String {
    let version = release.trim().split('-').next();
    version.unwrap_or_default().to_owned()
}

/// The type of the file system that a folder is on, in `/proc/self/mountinfo`: that of the longest mount point.
fn file_system(mounts: &str, folder: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        Some((left.split(' ').nth(4)?, right.split(' ').next()?))
    });
    let over = mounts.filter(|(point, _)| folder.starts_with(point));
    over.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

/// Measures how long it takes to write 4 KB and have them stored, as a log does; the median in µs.
fn fdatasync(folder: &Path) -> io::Result<u64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut took = Vec::with_capacity(FDATASYNC_SAMPLES);
    for _ in 0..FDATASYNC_SAMPLES {
        let begun = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        took.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    took.sort_unstable();
    Ok(took[FDATASYNC_SAMPLES / 2])
}

/// MySQL's version, durability and isolation level in one text; `None` if it does not answer.
async fn mysql(url: &str) -> Option<String> {
    let ask = async {
        let pool = TablePool::new(MySqlOptions::new(url).connections(1)).ok()?;
        let mut conn = pool.conn(SERVER_TIMEOUT).await.ok()?;
        let rows: Vec<(String, String)> = sqlx::query_as(SHOW_CONDITIONS).fetch_all(&mut *conn).await.ok()?;
        conn.done();
        let settings: Vec<_> = rows.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(settings.join(", "))
    };
    timeout(SERVER_TIMEOUT, ask).await.ok()?
}

/// Redis's version and durability in one text; `None` if it does not answer in time.
async fn redis(url: &str) -> Option<String> {
    let ask = async {
        let mut redis = redis_at(url).await.ok()?;
        let info: redis::InfoDict = redis::cmd("INFO").arg("server").query_async(&mut redis).await.ok()?;
        let version: String = info.get("redis_version")?;
        let mut said = format!("version={version}");
        for name in ["appendonly", "appendfsync", "save"] {
            let (_, value): (String, String) = redis::cmd("CONFIG").arg("GET").arg(name).query_async(&mut redis).await.ok()?;
            said += &format!(", {name}={}", if value.is_empty() { "no" } else { &value });
        }
        Some(said)
    };
    timeout(SERVER_TIMEOUT, ask).await.ok()?
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, commit, cores, cpu, kernel, .. } = self;
        f.write_str(&localized!(
            "oversell {version} ({commit})；{cpu}，{cores} 核；Linux {kernel}",
            "oversell {version} ({commit}); {cpu}, {cores} cores; Linux {kernel}"
        ))?;
        if let Some(us) = self.fdatasync_us {
            let system = &self.file_system;
            f.write_str(&localized!("；{system}，4 KB 的 fdatasync {us} µs", "; {system}, fdatasync of 4 KB {us} µs"))?;
        }
        self.servers.iter().try_for_each(|(server, said)| write!(f, "\n  {server}: {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_point_gives_the_file_system() {
        let mounts = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n23 22 0:5 / /srv rw - xfs /dev/sdb rw\n\
                      24 22 0:6 / /srv/other rw - tmpfs tmpfs rw\n";
        assert_eq!(file_system(mounts, Path::new("/srv/tree/target")).as_deref(), Some("xfs"));
        assert_eq!(file_system(mounts, Path::new("/srvshop")).as_deref(), Some("ext4"));
    }

    #[test]
    fn a_processor_without_a_name_is_known_by_its_kind() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"), "Some CPU @ 2 GHz");
        assert_eq!(cpu("processor\t: 0\n"), std::env::consts::ARCH);
    }

    #[test]
    fn a_sync_takes_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        fdatasync(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
