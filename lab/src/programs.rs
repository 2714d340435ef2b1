//! Finds the system's programs, and says what to do about a missing one; runs a line in a shell.

use crate::terminal::{
    chinese::localized,
    failure::{Failure, unusable_localized},
};
use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// A program by its name, or a file by its full path; and its Debian package.
pub(crate) type Requirement = (&'static str, &'static str);

/// The program that ends a lab's servers with the lab.
pub(crate) const SETPRIV: Requirement = ("setpriv", "util-linux");

/// Servers are installed here, and an ordinary user's PATH does not include these folders.
const SBIN_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Environment variables that replace a program of the system.
const PROGRAM_VARIABLES: [(&str, &str); 4] = [
    ("redis-server", "OVERSELL_REDIS_SERVER"),
    ("mariadbd", "OVERSELL_MYSQL_SERVER"),
    ("nginx", "OVERSELL_NGINX"),
    ("etcd", "OVERSELL_ETCD_SERVER"),
];

/// The path of the program; or, if the environment names another one, only that one's. `None` if it is missing.
pub fn find(program: &str) -> Option<PathBuf> {
    match from_environment(program) {
        Some((_, other)) => on_path(&other),
        None => on_path(program),
    }
}

/// The program that the option names, else the environment, else the system's.
/// Errors: a named one cannot be run. A missing one of the system is no error: see [`path`].
pub(crate) fn server_program(option: (&str, Option<&Path>), program: &str) -> Result<PathBuf, Failure> {
    let by_option = |path: &Path| (option.0, path.display().to_string());
    let Some((by, other)) = option.1.map(by_option).or_else(|| from_environment(program)) else {
        return Ok(path(program));
    };
    let found = on_path(&other).filter(|file| is_program(file));
    found.ok_or_else(|| unusable_localized!("{by}：{other} 不是可以运行的程序", "{by}: {other} is no program that can be run"))
}

/// The variable that replaces this program, and its value; `None` if there is none, or it is unset or empty.
fn from_environment(program: &str) -> Option<(&'static str, String)> {
    let (_, variable) = PROGRAM_VARIABLES.iter().find(|(name, _)| *name == program)?;
    let value = std::env::var(variable).ok()?;
    (!value.is_empty()).then_some((variable, value))
}

/// The absolute path of a program in `PATH`, else in [`SBIN_FOLDERS`]. A name with a `/` is a file, which need not be executable.
fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let file = std::path::absolute(program).ok();
        return file.filter(|p| p.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A folder in PATH may be relative, or empty: the current one.
    std::env::split_paths(&path)
        .chain(SBIN_FOLDERS.map(PathBuf::from))
        .chain([PathBuf::from(ZKCLI_FOLDER)])
        .filter_map(|folder| std::path::absolute(folder.join(program)).ok())
        .find(|file| is_program(file))
}

/// The path of a program, or its bare name if it is missing: starting it then fails with a clear error.
pub fn path(program: &str) -> PathBuf {
    find(program).unwrap_or_else(|| PathBuf::from(program))
}

/// All of `needed` if the program was not found, which a bare name as its path shows; else none.
pub(crate) fn missing_requirements(program: &Path, needed: &'static [Requirement]) -> &'static [Requirement] {
    if program.is_absolute() { &[] } else { needed }
}

/// Fails if any of these is missing; the error names each missing one with its package.
pub(crate) fn check_installed(needed: impl IntoIterator<Item = Requirement>) -> Result<(), Failure> {
    let mut missing: Vec<Requirement> = needed.into_iter().filter(|(program, _)| find(program).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing
        .iter()
        .map(|(program, package)| localized!("{program}（Debian 软件包 {package}）", "{program} (Debian package {package})"));
    let list: Vec<String> = list.collect();
    Err(unusable_localized!(
        "没有安装：{}；`make demo` 会装上缺的，`oversell doctor` 检查还缺什么，`docker compose up` 一样都不需要",
        "not installed: {}; `make demo` installs what is missing, `oversell doctor` says what else is, and `docker compose up` needs none of it",
        list.join(", ")
    ))
}

/// The output of the program with this option, stderr included, whatever its exit status; `None` if it does not start.
pub(crate) fn output_of(program: &Path, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Time limit of a lesson's line in a shell: longer than any takes, so that only one that hangs is killed, which is no error.
pub const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the package of ZooKeeper has `zkCli.sh`, which is not on everybody's path.
const ZKCLI_FOLDER: &str = "/usr/share/zookeeper/bin";

/// The PATH for typed lines: this program's folder, then the caller's PATH, then ZooKeeper's.
pub fn shell_path() -> OsString {
    let own = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let all = own.into_iter().chain(env::split_paths(&path)).chain([PathBuf::from(ZKCLI_FOLDER)]);
    env::join_paths(all).unwrap_or(path)
}

/// Variables by which a shell sends the requests of its programs to a proxy, in small or capital letters.
pub(crate) const PROXY_VARIABLES: [&str; 3] = ["http_proxy", "https_proxy", "all_proxy"];
/// Variables that name the hosts that are reached without a proxy; `*` is all.
const NO_PROXY_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The script of a shell that runs its argument as a line, and kills its process group once its standard input is closed,
/// because whoever started it may be killed as well. A silent curl (`-s`) says there why it fails, and shows no
/// progress with `-Z` either.
const SELF_KILLING_SHELL: &str = r#"exec 3<&0 </dev/null
{ read -r <&3; kill -KILL 0; } >/dev/null 2>&1 &
curl() { command curl -S --no-progress-meter "$@"; }
export -f curl
exec bash -c "$0" 3<&-"#;

/// What a shell has printed, as text; of each stream the first `max_bytes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellOutput {
    pub stdout: String,
    pub stderr: String,
}

/// Runs a line in a shell with this PATH, in a process group of its own, which is killed when all of it has closed its
/// output, when `max_bytes` are printed to a stream, when `until` ends, when this future is dropped, and when this process
/// dies. Returns once the shell is gone, with what it has printed until then, whatever its exit status.
/// Errors: there is no `bash`, or its output cannot be read; a kill is no error.
pub async fn run_in_shell(
    line: &str,
    path: &OsStr,
    max_bytes: usize,
    until: impl Future<Output = ()>,
) -> io::Result<ShellOutput> {
    let mut shell = tokio::process::Command::new("bash")
        .args(["-c", SELF_KILLING_SHELL, line])
        .env("PATH", path)
        // A lesson's line means the lab, whatever the shell has that started this program.
        .envs(NO_PROXY_VARIABLES.map(|name| (name, "*")))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let lives = shell.stdin.take();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let reading = async {
        let out = read_up_to(max_bytes, shell.stdout.take(), &mut stdout);
        let err = read_up_to(max_bytes, shell.stderr.take(), &mut stderr);
        tokio::try_join!(out, err)
    };
    let read = tokio::select! {
        read = reading => match read {
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Full) | Ok(_) => Ok(()),
        },
        () = until => Ok(()),
    };
    drop(lives);
    shell.wait().await?;
    read?;
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok(ShellOutput { stdout, stderr })
}

/// Why a stream is read no further before its end.
enum Stop {
    /// The limit of bytes is reached.
    Full,
    Failed(io::Error),
}

/// Reads `from` to its end and appends it to `to`; at `max_bytes` it stops with [`Stop::Full`]. Without `from` it reads nothing.
async fn read_up_to(max_bytes: usize, from: Option<impl AsyncRead + Unpin>, to: &mut Vec<u8>) -> Result<(), Stop> {
    if let Some(from) = from {
        let mut from = from.take(max_bytes as u64);
        from.read_to_end(to).await.map_err(Stop::Failed)?;
        if from.limit() == 0 {
            return Err(Stop::Full);
        }
    }
    Ok(())
}

/// The first run of digits and dots in a text; empty if it has no digit.
pub(crate) fn version_number(text: &str) -> String {
    let begin = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    begin.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect()
}

/// Whether this is a file that may be executed.
pub(crate) fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package_and_the_way_out() {
        let error = check_installed([("sh", "dash"), ("no-such-server", "no-such-package")]).unwrap_err().to_string();
        assert_eq!(
            error,
            "not installed: no-such-server (Debian package no-such-package); \
             `make demo` installs what is missing, `oversell doctor` says what else is, and `docker compose up` needs none of it"
        );
    }

    #[test]
    fn a_server_that_an_option_names_is_refused_where_it_is_none() {
        let named = |path: &str| server_program(("--redis-server", Some(Path::new(path))), "redis-server");
        assert_eq!(named("/bin/sh").unwrap(), Path::new("/bin/sh"));
        assert!(named("sh").unwrap().is_absolute(), "a bare name is sought");
        for none in ["/bin", "/etc/passwd", "/no/such/redis-server"] {
            let refused = named(none).unwrap_err().to_string();
            let expected = format!("--redis-server: {none} is no program that can be run");
            assert_eq!(refused, expected);
        }
    }

    async fn run(line: &str, until: impl Future<Output = ()>) -> ShellOutput {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let ran = run_in_shell(line, &path, 1000, until).await;
        ran.expect("there is a bash")
    }

    /// Whether a process of this number is there.
    fn is_process_there(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    async fn wait_until_gone(pid: &str) {
        let gone = async {
            while is_process_there(pid) {
                tokio::task::yield_now().await;
            }
        };
        let gone = tokio::time::timeout(std::time::Duration::from_secs(10), gone).await;
        gone.expect("it was left behind");
    }

    #[tokio::test]
    async fn a_shell_prints_and_leaves_nothing_behind() {
        let forever = std::future::pending::<()>;
        let ran = run("echo out; echo err >&2", forever()).await;
        assert_eq!((&*ran.stdout, &*ran.stderr), ("out\n", "err\n"));
        let left = run("sleep 600 > /dev/null 2>&1 & echo $!", forever()).await;
        wait_until_gone(&left.stdout).await;
        // The second does not end where its pipe does.
        for endless in ["yes", "trap '' PIPE; while :; do echo y; done 2> /dev/null"] {
            let ran = run(endless, forever()).await;
            assert_eq!(ran.stdout.len(), 1000);
        }
    }

    /// A proxy that refuses connections: with it no line would get an answer of the lab.
    #[tokio::test]
    async fn a_line_uses_no_proxy_and_curl_says_why_it_fails() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = server.local_addr().unwrap();
        let answers = tokio::spawn(async move {
            let (mut client, _) = server.accept().await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere";
            tokio::io::AsyncWriteExt::write_all(&mut client, answer).await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.ok();
        });
        let line = format!("export http_proxy=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1; curl -s http://{at}/");
        let ran = run(&line, std::future::pending()).await;
        assert_eq!((&*ran.stdout, &*ran.stderr), ("here", ""));
        answers.await.unwrap();
        let ran = run("curl -s http://127.0.0.1:1/", std::future::pending()).await;
        assert!(ran.stdout.is_empty() && ran.stderr.starts_with("curl: (7)"), "{ran:?}");
        let ran = run("curl -sZ 'http://127.0.0.1:1/[1-3]'", std::future::pending()).await;
        let mut said = ran.stderr.lines();
        assert!(!ran.stderr.is_empty() && said.all(|line| line.starts_with("curl: (7)")), "no meter: {ran:?}");
    }

    #[tokio::test]
    async fn a_shell_ends_with_its_time_and_its_caller() {
        let second = || tokio::time::sleep(std::time::Duration::from_secs(1));
        let begun = std::time::Instant::now();
        let ran = run("sleep 600 & echo $!; wait", second()).await;
        assert!(begun.elapsed().as_secs() < 60, "its time has ended it");
        wait_until_gone(&ran.stdout).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let line = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 600", file.display());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let running = run_in_shell(&line, &path, 1000, std::future::pending());
        let there = async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ran = running => panic!("it has ended: {ran:?}"),
            () = there => {}
        }
        wait_until_gone(&std::fs::read_to_string(&file).unwrap()).await;
    }

    #[test]
    fn a_version_is_the_first_number_with_its_dots() {
        assert_eq!(version_number("10.11.11-MariaDB-0+deb12u1"), "10.11.11");
        assert_eq!(version_number("version: 3.9.3-x"), "3.9.3");
        assert_eq!(version_number(""), "");
    }

    #[test]
    fn a_program_outside_of_path_is_found_in_sbin() {
        assert!(find("setpriv").is_some());
        assert!(find("/usr/bin/setpriv").is_some());
        assert!(find("/usr/bin").is_none(), "a folder is no program");
    }
}
