//! `oversell doctor`: checks what this machine lacks for a lab, and says how to get it. It changes nothing.

use super::{Options, Port, etcd, folder::Folder, mysql, nginx, redis, zookeeper};
use crate::{
    programs::{self, Requirement, SETPRIV},
    terminal::{
        bilingual::Bilingual,
        chinese::{localized, pad_to_width},
        failure::{Failure, unusable_localized},
        stdout::say,
    },
};
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// What the programs of a Galera cluster are for.
const GALERA: Bilingual = Bilingual::of("`oversell lab --galera 3`", "`oversell lab --galera 3`");

/// Programs that other parts of the project need: the program, its Debian package, and its purpose.
const OPTIONAL_PROGRAMS: [(&str, &str, Bilingual); 8] = [
    (etcd::REQUIREMENTS[0].0, etcd::REQUIREMENTS[0].1, Bilingual::of("`oversell lab --etcd 1`", "`oversell lab --etcd 1`")),
    (mysql::GALERA_REQUIREMENTS[0].0, mysql::GALERA_REQUIREMENTS[0].1, GALERA),
    (mysql::GALERA_REQUIREMENTS[1].0, mysql::GALERA_REQUIREMENTS[1].1, GALERA),
    ("javac", "default-jdk-headless", Bilingual::of("课程里作对照的 Java 进程", "Java processes as peers in the course")),
    ("mvn", "maven", Bilingual::of("`make jmeter`，以及上面的 Java 进程", "`make jmeter`, and the same Java processes")),
    ("python3", "python3", Bilingual::of("`make interop` 里的 kazoo", "`make interop` with kazoo")),
    ("cc", "gcc", Bilingual::of("编译本项目", "building this project")),
    ("docker", "docker.io", Bilingual::of("容器里的同一套环境", "the same lab in containers")),
];

/// The commands that show whether Compose is there: as a plugin of Docker, or as a program of its own.
const COMPOSE_COMMANDS: [(&str, &[&str]); 2] = [("docker", &["compose", "version"]), ("docker-compose", &["version"])];

/// The least available memory for a lab: what it uses at its start. A load needs more.
const MIN_MEMORY_MB: u64 = 1_500;
/// The least limit of open files for a load of 1,000 connections: each is open at both ends, and again behind nginx.
const MIN_OPEN_FILES: u64 = 4_096;

/// Says what this machine lacks for a lab, and how to get it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It starts and changes nothing, and takes the options of the lab that is meant. Exit status: 0 a lab can start, \
                  2 something is missing or occupied."
)]
pub struct Args {
    #[command(flatten)]
    lab: Options,
}

/// Prints what a lab would find here; fails if a program is missing, a port is occupied or the folder cannot be used, not if
/// memory or open files are scarce.
pub fn run(Args { lab }: Args) -> Result<(), Failure> {
    lab.check()?;
    let packages = print_programs_and_list_missing(&lab);
    print_optional_programs();
    print_proxies();
    let occupied = print_ports_and_list_occupied(&lab);
    say!("{}", localized!("这台机器", "this machine"));
    let too_little = [
        print_whether_enough(
            &localized!("内存，MB", "memory, MB"),
            available_memory_mb(),
            MIN_MEMORY_MB,
            &localized!("加压时服务器可能被杀", "servers may be killed under load"),
        ),
        print_whether_enough(
            &localized!("打开的文件数", "open files"),
            max_open_files(),
            MIN_OPEN_FILES,
            &localized!("先执行 `ulimit -n 8192`", "run `ulimit -n 8192` first"),
        ),
    ];
    let folder = lab.dir.as_deref().map_or(Ok(()), check_folder);
    let mut reasons = Vec::new();
    if !packages.is_empty() {
        let packages: Vec<_> = packages.into_iter().collect();
        reasons.push(localized!(
            "在 Debian 或 Ubuntu 上：sudo apt-get install --no-install-recommends {}；`docker compose up` 一样都不需要",
            "on Debian or Ubuntu: sudo apt-get install --no-install-recommends {}; `docker compose up` needs none of it",
            packages.join(" ")
        ));
    }
    if !occupied.is_empty() {
        reasons.push(localized!("端口 {} 不能用", "these ports cannot be used: {}", occupied.join(", ")));
    }
    reasons.extend(folder.err().map(|error| error.to_string()));
    if !reasons.is_empty() {
        return Err(unusable_localized!("启动不了实验环境；{}", "a lab cannot start; {}", reasons.join("; ")));
    }
    say!(
        "\n{}",
        if too_little.contains(&false) {
            localized!(
                "可以启动实验环境，只是资源可能紧张：`oversell lab`",
                "a lab can start, but its resources may be scarce: `oversell lab`"
            )
        } else {
            localized!("可以启动实验环境：`oversell lab`", "a lab can start: `oversell lab`")
        }
    );
    Ok(())
}

/// Prints for each program of a lab whether it is here; returns the packages of the missing ones.
fn print_programs_and_list_missing(lab: &Options) -> BTreeSet<&'static str> {
    let clustered = match lab.galera {
        1 => &[],
        _ => &mysql::GALERA_REQUIREMENTS[..],
    };
    let etcd: &[Requirement] = if lab.etcd > 0 { &etcd::REQUIREMENTS } else { &[] };
    let needed: Vec<Requirement> = [
        &mysql::REQUIREMENTS[..],
        clustered,
        &redis::REQUIREMENTS,
        zookeeper::requirements_here(),
        etcd,
        &nginx::REQUIREMENTS,
        &[SETPRIV],
    ]
    .concat();
    let mut packages = BTreeSet::new();
    say!("{}", localized!("实验环境要的程序", "programs of a lab"));
    for (program, package) in needed {
        match programs::find(program) {
            Some(path) => say!("  ok       {program:<20} {}", path.display()),
            None => {
                packages.insert(package);
                say!(
                    "{}",
                    localized!(
                        "  缺少     {program:<20} Debian 软件包 {package}",
                        "  MISSING  {program:<20} Debian package {package}"
                    )
                );
            }
        }
    }
    packages
}

/// Prints for each program of [`OPTIONAL_PROGRAMS`] whether it is here, and which Compose is.
fn print_optional_programs() {
    say!("{}", localized!("实验环境之外要的", "for more than a lab"));
    for (program, package, purpose) in OPTIONAL_PROGRAMS {
        match programs::find(program) {
            Some(path) => say!("  ok       {program:<20} {}", path.display()),
            None => say!(
                "{}",
                localized!(
                    "  没有     {program:<20} {}：Debian 软件包 {package}",
                    "  without  {program:<20} {}: Debian package {package}",
                    purpose.localized()
                )
            ),
        }
    }
    match compose_version() {
        Some(version) => say!("  ok       {:<20} {version}", "docker compose"),
        None => say!(
            "{}",
            localized!(
                "  没有     {:<20} 容器里的同一套环境：Docker 的 Compose 插件",
                "  without  {:<20} the same lab in containers: Docker's Compose plugin",
                "docker compose"
            )
        ),
    }
}

/// Prints the variables of this shell that name a proxy, since programs that a person types use it: curl, Python, most load tools.
fn print_proxies() {
    for name in programs::PROXY_VARIABLES.into_iter().flat_map(|name| [name.to_owned(), name.to_uppercase()]) {
        let Some(proxy) = std::env::var(&name).ok().filter(|proxy| !proxy.is_empty()) else { continue };
        let proxy = proxy.rsplit_once('@').map_or(&*proxy, |(_, host)| host);
        say!(
            "{}",
            localized!(
                "  注意     {name:<20} {proxy}：本程序和课里的命令行不走它；自己在终端输入 curl 前先执行 export no_proxy=127.0.0.1,localhost",
                "  note     {name:<20} {proxy}: this program and the lessons' lines do not use it; before you type curl yourself, run \
                 export no_proxy=127.0.0.1,localhost"
            )
        );
    }
}

/// The version that Compose prints; `None` if it is not here.
fn compose_version() -> Option<String> {
    COMPOSE_COMMANDS.iter().find_map(|(program, question)| {
        let answer = Command::new(program).args(*question).output().ok()?;
        let text = String::from_utf8(answer.stdout).ok()?;
        let version = text.lines().next().map(str::to_owned);
        version.filter(|_| answer.status.success())
    })
}

/// Prints which ports are free, and returns the occupied ones.
fn print_ports_and_list_occupied(lab: &Options) -> Vec<String> {
    say!("{}", localized!("实验环境要的端口", "ports of the lab"));
    let mut occupied = Vec::new();
    for (server, port, option) in lab.requested_ports() {
        match Port::claim(port, &server, option) {
            Ok(_) => say!("  ok       {server:<20} {port}"),
            Err(error) => {
                occupied.push(port.to_string());
                say!("{}", localized!("  被占用   {error}", "  taken    {error}"));
            }
        }
    }
    occupied
}

/// Prints and returns whether there is enough. If the system does not tell, prints nothing and returns true.
fn print_whether_enough(what: &str, has: Option<u64>, wanted: u64, without: &str) -> bool {
    let Some(has) = has else { return true };
    match has >= wanted {
        true => say!("  ok       {} {has}", pad_to_width(what, 20)),
        false => say!(
            "{}",
            localized!(
                "  偏少     {} {has}，最好有 {wanted}：{without}",
                "  low      {} {has}, better {wanted}: {without}",
                pad_to_width(what, 20)
            )
        ),
    }
    has >= wanted
}

/// The memory that programs may still take, in MB of 2²⁰ bytes; `None` if the system does not tell.
fn available_memory_mb() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(number_after_prefix(&text, "MemAvailable:")? / 1024)
}

/// How many files this process may have open; `None` if there is no limit, or the system does not tell.
fn max_open_files() -> Option<u64> {
    number_after_prefix(&fs::read_to_string("/proc/self/limits").ok()?, "Max open files")
}

/// The number right after this beginning of a line; `None` if no line begins so.
fn number_after_prefix(text: &str, begin: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(begin))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Checks and prints whether a lab could use this folder.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    let checked = Folder::check_can_open(folder);
    match &checked {
        Ok(()) => {
            say!("{}", localized!("  ok       {:<20} 可以写入", "  ok       {:<20} can be written", folder.display()))
        }
        Err(error) => say!("{}", localized!("  不能用   {error}", "  unusable {error}")),
    }
    checked
}
