//! The promises of the lab, on real servers: it starts its own healthy servers, and no process outlives it.

mod servers;

use super::*;
use crate::clients::{four_letters::four_letter_command, redis_at::redis_at};
use ::redis::AsyncCommands;
use nix::{
    errno::Errno,
    sys::signal::{kill, killpg},
    unistd::Pid,
};
use sqlx::{Connection, MySqlConnection};
use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

async fn start(options: Options) -> Lab {
    Lab::start(options).await.unwrap()
}

async fn start_error(options: Options) -> String {
    Lab::start(options).await.unwrap_err().to_string()
}

/// Everything here takes less; reaching it is a failure.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn only_parts(parts: &[Part]) -> Options {
    let all = [Part::MySql, Part::Redis, Part::ZooKeeper, Part::Etcd, Part::Instances, Part::Nginx];
    Options { without: all.into_iter().filter(|p| !parts.contains(p)).collect(), ..Options::default() }
}

fn one_redis() -> Options {
    Options { redis_ports: vec![0], ..only_parts(&[Part::Redis]) }
}

fn servers_without_instances() -> Options {
    only_parts(&[Part::MySql, Part::Redis, Part::ZooKeeper])
}

fn pids(at: &Addresses) -> Vec<u32> {
    let mut at = at.clone();
    let pids = processes(&mut at).into_iter().map(|(_, _, pid)| *pid);
    pids.filter(|pid| *pid != 0).collect()
}

fn ports(lab: &Lab) -> Vec<u16> {
    lab._ports.iter().map(Port::number).collect()
}

fn group_is_gone(pid: u32) -> bool {
    killpg(Pid::from_raw(pid.cast_signed()), None) == Err(Errno::ESRCH)
}

/// A zombie has no arguments.
fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| !arguments.is_empty())
}

async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < TEST_TIMEOUT, "{what} did not come true");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn query_text(url: &str, query: &'static str) -> String {
    let mut connection = MySqlConnection::connect(url).await.unwrap();
    sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap()
}

async fn ping(redis: &str) -> String {
    redis_at(redis).await.unwrap().ping().await.unwrap()
}

async fn four_letter_word(zookeeper: &str, word: &str) -> String {
    four_letter_command(zookeeper, word).await.unwrap()
}

#[tokio::test]
async fn servers_answer_during_the_lab_and_nothing_is_left_after() {
    let lab = start(servers_without_instances()).await;
    let at = lab.addresses().clone();
    let (pids, ports, folder) = (pids(&at), ports(&lab), lab.folder.path_of(""));
    assert_eq!(pids.len(), 8, "one database, five Redis nodes and that of visitors' scripts, one ZooKeeper");
    assert_eq!(at.nginx.pid, 0, "left out");

    assert_eq!(query_text(&at.mysql.url, "SELECT CAST(DATABASE() AS CHAR)").await, "test");
    for node in &at.redis {
        assert_eq!(ping(&node.url).await, "PONG");
    }
    assert_eq!(four_letter_word(&at.zookeeper.connect, "ruok").await, "imok");
    let leader = lab.zookeeper_leader().await;
    assert_eq!(leader.as_deref(), Some("zookeeper"), "alone it leads");
    let published: Addresses = serde_json::from_slice(&std::fs::read(folder.join("lab.json")).unwrap()).unwrap();
    assert_eq!(published, at);

    lab.stop().await;
    assert!(pids.iter().all(|pid| group_is_gone(*pid)), "a process is left");
    for port in ports {
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok(), "somebody still listens on {port}");
    }
    assert!(!folder.exists(), "the folder is left");
}

#[tokio::test]
async fn an_occupied_port_is_refused_by_name_and_its_owner_left_alone() {
    let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = stranger.local_addr().unwrap().port();
    let error = start_error(Options { redis_ports: vec![0, port], ..one_redis() }).await;
    assert!(error.contains(&format!("port {port} for redis-2 is occupied")), "{error}");
    assert!(error.contains("--redis-ports"), "{error}");
    assert!(!error.contains('\n'), "one line: {error}");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
}

#[tokio::test]
async fn a_server_that_fails_to_start_is_named_with_its_log() {
    let options = Options { instance_ports: vec![0], program: Some("/bin/false".into()), ..only_parts(&[Part::Instances]) };
    let error = start_error(options).await;
    assert!(error.contains("ended at its start (exit status: 1)"), "{error}");
    assert!(error.contains("the end of "), "{error}");
}

#[tokio::test]
async fn a_paused_server_is_silent_and_does_not_block_the_stop() {
    let lab = start(one_redis()).await;
    let mut connection = redis_at(&lab.addresses().redis[0].url).await.unwrap();
    lab.pause("redis").unwrap();
    // Short for the expected silence only; the later answer may take [`TEST_TIMEOUT`].
    connection.set_response_timeout(Duration::from_millis(500));
    let silence: ::redis::RedisResult<String> = connection.ping().await;
    assert!(silence.unwrap_err().is_timeout());
    connection.set_response_timeout(TEST_TIMEOUT);
    lab.resume("redis").unwrap();
    let pong: String = connection.ping().await.unwrap();
    assert_eq!(pong, "PONG");
    lab.pause("redis").unwrap();
    let pid = lab.addresses().redis[0].pid;
    lab.stop().await;
    assert!(group_is_gone(pid));
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { dir: Some(dir.path().to_owned()), ..servers_without_instances() };
    let mut start = Box::pin(Lab::start(options));
    // Stop as soon as the first server writes: the others are then at all stages of their start.
    let begun = wait_until("a log", || dir.path().join("redis.log").metadata().is_ok_and(|log| log.len() > 0));
    tokio::select! {
        biased;
        _ = &mut start => panic!("it was not to get that far"),
        () = begun => {}
    }
    drop(start);
    assert_eq!(processes_in(dir.path()), Vec::<u32>::new());
}

#[tokio::test]
async fn a_folder_that_no_lab_made_is_not_emptied() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("precious"), "x").unwrap();
    let error = start_error(Options { dir: Some(dir.path().to_owned()), ..one_redis() }).await;
    assert!(error.contains("was not made by a lab"), "{error}");
    assert!(dir.path().join("precious").exists());
}

#[tokio::test]
async fn a_folder_serves_one_lab_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let named = || Options { dir: Some(dir.to_owned()), ..one_redis() };
    let first = start(named()).await;
    assert_eq!(&Addresses::read_running_lab(&dir.join("lab.json")).unwrap(), first.addresses());
    let error = start_error(named()).await;
    assert!(error.contains("a lab is already running in"), "{error}");
    first.stop().await;
    assert!(dir.join("redis.log").exists(), "what it wrote can be read afterwards");
    assert!(!dir.join("lab.json").exists(), "nobody can rely on it any more");
    start(named()).await.stop().await;
}

/// The kernel ends a child when the thread that forked it ends; a runtime's threads end with it.
#[test]
fn a_lab_outlives_the_runtime_that_started_it() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    let lab = std::thread::spawn(move || first.block_on(async { tokio::spawn(Lab::start(one_redis())).await.unwrap() }));
    let lab = lab.join().unwrap().unwrap();
    runtime().block_on(async {
        assert_eq!(ping(&lab.addresses().redis[0].url).await, "PONG");
        lab.stop().await;
    });
}

/// Set for the child process of the next test.
const HELD_LAB_FOLDER: &str = "OVERSELL_TEST_HOLD_A_LAB";

#[tokio::test]
#[ignore = "the other half of the next test, which runs it as a process of its own"]
async fn hold_a_lab() {
    let dir = std::env::var_os(HELD_LAB_FOLDER).unwrap();
    let lab = start(Options { dir: Some(dir.into()), ..servers_without_instances() }).await;
    println!("\npids {}", serde_json::to_string(&pids(lab.addresses())).unwrap());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_lab_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lab::tests::hold_a_lab", "--ignored", "--nocapture"])
        .env(HELD_LAB_FOLDER, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let line = output.lines().map(Result::unwrap).find(|l| l.starts_with("pids ")).expect("the lab did not start");
    let pids: Vec<u32> = serde_json::from_str(&line["pids ".len()..]).unwrap();
    assert!(pids.iter().all(|pid| is_running(*pid)));

    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    wait_until("the end of all its processes", || !pids.iter().any(|pid| is_running(*pid))).await;
    let error = Addresses::read_running_lab(&dir.path().join("lab.json")).unwrap_err().to_string();
    assert!(error.contains("was killed"), "{error}");
}

/// Every process that runs in the folder or names it in its arguments.
fn processes_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let runs_in = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        runs_in.starts_with(folder) || String::from_utf8_lossy(&arguments).contains(folder.to_str().unwrap())
    })
    .collect()
}
