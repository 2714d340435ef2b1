//! A whole lab, with instances and nginx, and an instance that is told to end.

use crate::{Outcome, program};
use oversell::{addresses, lab::Lab};
use reqwest::{Client, header::HeaderMap};
use std::{
    io::Write,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Longer than anything here takes; reaching it is a failure.
const LONG: Duration = Duration::from_secs(60);

/// Where root starts it: elsewhere no process could be root's.
pub(crate) async fn no_process_of_a_whole_lab_is_root_and_both_ways_to_the_page_agree() -> Outcome {
    let lab = Lab::start(program()).await.map_err(|e| e.to_string())?;
    let at = lab.addresses().clone();
    let servers =
        [at.mysql.pid, at.zookeeper.pid, at.nginx.pid].into_iter().chain(at.redis.iter().map(|node| node.pid));
    let pids = servers.chain(at.instances.iter().map(|instance| instance.pid));
    let root: Vec<_> = pids.flat_map(with_children).filter(|pid| is_root(*pid)).collect();
    let through_nginx = page(&at.http).await?;
    let embedded = page(&at.instances[0].url).await?;
    lab.stop().await;
    if !root.is_empty() {
        return Err(format!("processes that run as root: {root:?}"));
    }
    if through_nginx == embedded {
        Ok(())
    } else {
        Err(format!("{through_nginx:?} through nginx, {embedded:?} without"))
    }
}

/// The page, and what a browser may do with it.
async fn page(base: &str) -> Result<(String, Vec<Option<String>>), String> {
    let answer = Client::new().get(base).send().await.map_err(|e| e.to_string())?;
    let of = |headers: &HeaderMap, name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let headers = ["content-security-policy", "referrer-policy", "x-content-type-options", "cache-control"]
        .map(|name| of(answer.headers(), name));
    if headers.contains(&None) {
        return Err(format!("{base} leaves out one of its headers: {headers:?}"));
    }
    Ok((answer.text().await.map_err(|e| e.to_string())?, headers.to_vec()))
}

fn status(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

fn is_root(pid: u32) -> bool {
    status(pid)
        .lines()
        .filter_map(|line| line.strip_prefix("Uid:"))
        .any(|users| users.split_whitespace().any(|u| u == "0"))
}

/// nginx has workers.
fn with_children(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = format!("PPid:\t{pid}");
    let children = others.filter(|other| status(*other).lines().any(|line| line == parent));
    children.chain([pid]).collect()
}

/// The first signal lets it finish what is under way, and a request whose body never comes is under way for minutes.
pub(crate) async fn a_second_signal_ends_an_instance_at_once() -> Outcome {
    let file = std::env::temp_dir().join(format!("oversell-signals-{}.json", std::process::id()));
    let outcome = tokio::task::spawn_blocking(|| signalled_twice(file)).await;
    outcome.map_err(|e| e.to_string())?
}

fn signalled_twice(file: PathBuf) -> Outcome {
    let mut instance = Command::new(env!("CARGO_BIN_EXE_oversell"))
        .args(["serve", "--port", "0", "--set", "server.shutdown_ms=600000", "--json"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let ended = during(&mut instance, &file);
    instance.kill().ok();
    instance.wait().ok();
    std::fs::remove_file(&file).ok();
    ended
}

fn during(instance: &mut Child, file: &Path) -> Outcome {
    let at: addresses::Instance = comes("its address", || serde_json::from_slice(&std::fs::read(file).ok()?).ok())?;
    let address = at.url.trim_start_matches("http://").to_owned();
    let mut under_way = TcpStream::connect(&address).map_err(|e| e.to_string())?;
    let head = "PUT /stock HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\
                expect: 100-continue\r\n\r\n";
    under_way.write_all(head.as_bytes()).map_err(|e| e.to_string())?;
    // It has asked for the body: the request is under way.
    let mut asked = [0];
    std::io::Read::read_exact(&mut under_way, &mut asked).map_err(|e| e.to_string())?;

    terminate(instance)?;
    comes("the end of its listening", || TcpStream::connect(&address).is_err().then_some(()))?;
    if instance.try_wait().map_err(|e| e.to_string())?.is_some() {
        return Err("it did not wait for what was under way: the test shows nothing".into());
    }
    terminate(instance)?;
    comes("its end", || instance.try_wait().ok().flatten()).map(drop)
}

fn terminate(instance: &Child) -> Outcome {
    let killed = Command::new("kill").arg(instance.id().to_string()).status().map_err(|e| e.to_string())?;
    if killed.success() { Ok(()) } else { Err(format!("kill: {killed}")) }
}

/// Looks again until it is there.
fn comes<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let begun = Instant::now();
    loop {
        match look() {
            Some(there) => return Ok(there),
            None if begun.elapsed() > LONG => return Err(format!("{what} did not come")),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
