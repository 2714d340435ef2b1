//! `oversell doctor`: what this machine lacks for a lab, and how to get it. It starts and changes nothing.

use super::{
    Port, mysql, nginx,
    programs::{self, Needed, SETPRIV},
    redis, zookeeper,
};
use crate::{
    bilingual::Bilingual,
    chinese::{padded, told},
    failure::{Failure, unusable_told},
    stdout::say,
};
use std::{collections::BTreeSet, fs, path::Path};

/// The ports that `oversell lab` takes, and the option for others. A lab of `--lab` takes free ones.
const PORTS: [(Bilingual, &[u16], &str); 5] = [
    (Bilingual::of("nginx", "nginx"), &[8080], "--http-port"),
    (
        Bilingual::of("各实例", "the instances"),
        &[8000, 8100, 8200],
        "--instances",
    ),
    (
        Bilingual::of("MariaDB", "MariaDB"),
        &[13306],
        "--mysql-port",
    ),
    (
        Bilingual::of("Redis", "Redis"),
        &[16379, 16380, 16381, 16382, 16383],
        "--redis-ports",
    ),
    (
        Bilingual::of("ZooKeeper", "ZooKeeper"),
        &[12181],
        "--zookeeper-port",
    ),
];

const GALERA: Bilingual = Bilingual::of("`oversell lab --galera 3`", "`oversell lab --galera 3`");

/// What parts of the project need beside the lab: a program, its Debian package, and what is left out without it.
const MORE: [(&str, &str, Bilingual); 6] = [
    (mysql::CLUSTERED[0].0, mysql::CLUSTERED[0].1, GALERA),
    (mysql::CLUSTERED[1].0, mysql::CLUSTERED[1].1, GALERA),
    (
        "javac",
        "default-jdk-headless",
        Bilingual::of(
            "课程里作对照的 Java 进程",
            "Java processes as peers in the course",
        ),
    ),
    (
        "mvn",
        "maven",
        Bilingual::of(
            "`make jmeter`，以及上面的 Java 进程",
            "`make jmeter`, and the same Java processes",
        ),
    ),
    (
        "python3",
        "python3",
        Bilingual::of("`make interop` 里的 kazoo", "`make interop` with kazoo"),
    ),
    ("cc", "gcc", Bilingual::of("编译它", "building it")),
];

/// What a lab uses at its start; a load needs some more.
const MEMORY_MB: u64 = 1_500;
const FILES: u64 = 4_096;

/// Says what this machine lacks for a lab, and how to get it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It starts and changes nothing. Exit status: 0 a lab can start, 2 something is missing."
)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
///
/// [`Failure::Unusable`] where a lab cannot start.
pub fn run(Args {}: Args) -> Result<(), Failure> {
    let packages = missing();
    more();
    ports();
    say!("{}", told!("这台机器", "this machine"));
    let too_little = [
        room(
            &told!("内存，MB", "memory, MB"),
            memory_mb(),
            MEMORY_MB,
            &told!("加压时服务器可能被杀", "servers may be killed under load"),
        ),
        room(
            &told!("打开的文件数", "open files"),
            open_files(),
            FILES,
            &told!("先执行 `ulimit -n 8192`", "`ulimit -n 8192` before it"),
        ),
    ];
    let folder = writable(Path::new("target"));
    if packages.is_empty() && folder {
        let but = too_little.contains(&false);
        say!(
            "\n{}",
            if but {
                told!(
                    "可以启动实验环境，只是资源可能紧张：`oversell lab`",
                    "a lab can start, though it may be short of something: `oversell lab`"
                )
            } else {
                told!(
                    "可以启动实验环境：`oversell lab`",
                    "a lab can start: `oversell lab`"
                )
            }
        );
        return Ok(());
    }
    if packages.is_empty() {
        return Err(unusable_told!(
            "实验环境不能在 ./target 下写入：换个地方启动，或用 --dir 指定目录",
            "a lab cannot write below ./target: start it elsewhere, or name a folder with --dir"
        ));
    }
    let packages: Vec<_> = packages.into_iter().collect();
    Err(unusable_told!(
        "启动不了实验环境；在 Debian 或 Ubuntu 上：sudo apt-get install --no-install-recommends {}；`docker compose up` 一样都不需要",
        "a lab cannot start; on Debian or Ubuntu: sudo apt-get install --no-install-recommends {}; `docker compose up` needs none of it",
        packages.join(" ")
    ))
}

/// The packages of the servers that are not there.
fn missing() -> BTreeSet<&'static str> {
    let servers: Vec<Needed> = [
        &mysql::NEEDED[..],
        &redis::NEEDED,
        zookeeper::needed(),
        &nginx::NEEDED,
    ]
    .concat()
    .into_iter()
    .chain([SETPRIV])
    .collect();
    let mut packages = BTreeSet::new();
    say!("{}", told!("实验环境要的程序", "programs of a lab"));
    for (program, package) in servers {
        match programs::find(program) {
            Some(path) => say!("  ok       {program:<20} {}", path.display()),
            None => {
                packages.insert(package);
                say!(
                    "{}",
                    told!(
                        "  缺少     {program:<20} Debian 软件包 {package}",
                        "  MISSING  {program:<20} Debian package {package}"
                    )
                );
            }
        }
    }
    packages
}

/// What parts of the project need beside the lab.
fn more() {
    say!("{}", told!("实验环境之外要的", "for more than a lab"));
    for (program, package, use_of_it) in MORE {
        match programs::find(program) {
            Some(path) => say!("  ok       {program:<20} {}", path.display()),
            None => say!(
                "{}",
                told!(
                    "  没有     {program:<20} {}：Debian 软件包 {package}",
                    "  without  {program:<20} {}: Debian package {package}",
                    use_of_it.here()
                )
            ),
        }
    }
}

fn ports() {
    say!(
        "{}",
        told!("`oversell lab` 要的端口", "ports of `oversell lab`")
    );
    for (server, ports, option) in PORTS {
        let server = server.here();
        let taken = |port: &&u16| Port::claim(**port, server, option).is_err();
        let taken: Vec<_> = ports.iter().filter(taken).map(u16::to_string).collect();
        match taken.is_empty() {
            true => say!("  ok       {server}"),
            false => say!(
                "{}",
                told!(
                    "  被占用   {} {}：停掉占用者，或用 {option} 另选",
                    "  taken    {} {}: stop what listens there, or choose others with {option}",
                    padded(server, 20),
                    taken.join(", ")
                )
            ),
        }
    }
}

/// Whether there is so much of it, as far as the system says.
fn room(what: &str, has: Option<u64>, wants: u64, without: &str) -> bool {
    let Some(has) = has else { return true };
    match has >= wants {
        true => say!("  ok       {} {has}", padded(what, 20)),
        false => say!(
            "{}",
            told!(
                "  偏少     {} {has}，最好有 {wants}：{without}",
                "  little   {} {has}, and {wants} are better: {without}",
                padded(what, 20)
            )
        ),
    }
    has >= wants
}

fn memory_mb() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(number_after(&text, "MemAvailable:")? / 1024)
}

fn open_files() -> Option<u64> {
    number_after(
        &fs::read_to_string("/proc/self/limits").ok()?,
        "Max open files",
    )
}

/// The first number of the line that begins so.
fn number_after(text: &str, begin: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(begin))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Whether a lab can make its folder here.
fn writable(folder: &Path) -> bool {
    let at = if folder.is_dir() {
        folder
    } else {
        Path::new(".")
    };
    let tried = tempfile::NamedTempFile::new_in(at);
    match &tried {
        Ok(_) => say!(
            "{}",
            told!(
                "  ok       {:<20} 可以写入",
                "  ok       {:<20} can be written",
                folder.display()
            )
        ),
        Err(error) => say!(
            "{}",
            told!(
                "  缺少     {:<20} 不能写入：{error}",
                "  MISSING  {:<20} cannot be written: {error}",
                folder.display()
            )
        ),
    }
    tried.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_has_is_read_from_its_own_words() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(number_after(limits, "Max open files"), Some(1024));
        assert_eq!(number_after(limits, "Max open sockets"), None);
        assert!(memory_mb().is_some() && open_files().is_some());
    }
}
