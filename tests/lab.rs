//! A whole lab, with instances and nginx, and an instance that is told to end.

use crate::{Outcome, buyers::until, program};
use oversell::{
    addresses::{self, Addresses},
    lab::{Lab, Options},
};
use reqwest::{Client, StatusCode, header::HeaderMap};
use std::{
    io::Write,
    net::TcpStream,
    os::unix::fs::PermissionsExt,
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
    let servers = [at.mysql.pid, at.zookeeper.pid, at.nginx.pid]
        .into_iter()
        .chain(at.redis.iter().map(|node| node.pid));
    let pids = servers.chain(at.instances.iter().map(|instance| instance.pid));
    let root: Vec<_> = pids
        .flat_map(with_children)
        .filter(|pid| is_root(*pid))
        .collect();
    let through_nginx = page(&at.http).await?;
    let embedded = page(&at.instances[0].url).await?;
    lab.stop().await;
    if !root.is_empty() {
        return Err(format!("processes that run as root: {root:?}"));
    }
    if through_nginx == embedded {
        Ok(())
    } else {
        Err(format!(
            "{through_nginx:?} through nginx, {embedded:?} without"
        ))
    }
}

/// The page, and what a browser may do with it.
async fn page(base: &str) -> Result<(String, Vec<Option<String>>), String> {
    let answer = Client::new()
        .get(base)
        .send()
        .await
        .map_err(|e| e.to_string())?;
    let of = |headers: &HeaderMap, name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let headers = [
        "content-security-policy",
        "referrer-policy",
        "x-content-type-options",
        "cache-control",
    ]
    .map(|name| of(answer.headers(), name));
    if headers.contains(&None) {
        return Err(format!("{base} leaves out one of its headers: {headers:?}"));
    }
    Ok((
        answer.text().await.map_err(|e| e.to_string())?,
        headers.to_vec(),
    ))
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
        .args([
            "serve",
            "--port",
            "0",
            "--set",
            "server.shutdown_ms=600000",
            "--json",
        ])
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
    let at: addresses::Instance = comes("its address", || {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    })?;
    let address = at.url.trim_start_matches("http://").to_owned();
    let mut under_way = TcpStream::connect(&address).map_err(|e| e.to_string())?;
    let head = "PUT /stock HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\
                expect: 100-continue\r\n\r\n";
    under_way
        .write_all(head.as_bytes())
        .map_err(|e| e.to_string())?;
    // It has asked for the body: the request is under way.
    let mut asked = [0];
    std::io::Read::read_exact(&mut under_way, &mut asked).map_err(|e| e.to_string())?;

    terminate(instance)?;
    comes("the end of its listening", || {
        TcpStream::connect(&address).is_err().then_some(())
    })?;
    if instance.try_wait().map_err(|e| e.to_string())?.is_some() {
        return Err("it did not wait for what was under way: the test shows nothing".into());
    }
    terminate(instance)?;
    comes("its end", || instance.try_wait().ok().flatten()).map(drop)
}

pub(crate) fn terminate(instance: &Child) -> Outcome {
    let killed = Command::new("kill")
        .arg(instance.id().to_string())
        .status()
        .map_err(|e| e.to_string())?;
    if killed.success() {
        Ok(())
    } else {
        Err(format!("kill: {killed}"))
    }
}

/// Looks again until it is there.
pub(crate) fn comes<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let begun = Instant::now();
    loop {
        match look() {
            Some(there) => return Ok(there),
            None if begun.elapsed() > LONG => return Err(format!("{what} did not come")),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// `oversell lab`, and `oversell lab fault` beside it, as a teacher types them.
pub(crate) async fn a_member_of_a_running_lab_is_broken_and_mended_by_hand() -> Outcome {
    let folder = std::env::temp_dir().join(format!("oversell-by-hand-{}", std::process::id()));
    let outcome = tokio::task::spawn_blocking(move || broken_by_hand(&folder)).await;
    outcome.map_err(|e| e.to_string())?
}

fn broken_by_hand(folder: &Path) -> Outcome {
    let ports = [
        "--http-port=0",
        "--instances=0",
        "--mysql-port=0",
        "--redis-ports=0,0",
        "--zookeeper-port=0",
    ];
    let mut lab = Command::new(env!("CARGO_BIN_EXE_oversell"))
        .arg("lab")
        .args(ports)
        .arg("--dir")
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let done = by_hand(&folder.join("lab.json"));
    terminate(&lab)?;
    let ended = comes("the end of the lab", || lab.try_wait().ok().flatten())?;
    std::fs::remove_dir_all(folder).map_err(|e| e.to_string())?;
    done?;
    if ended.success() {
        Ok(())
    } else {
        Err(format!("the lab ended with {ended}"))
    }
}

fn by_hand(file: &Path) -> Outcome {
    let at = || serde_json::from_slice::<Addresses>(&std::fs::read(file).ok()?).ok();
    let start = comes("a lab that takes orders", || {
        at().filter(|at| at.control.is_some())
    })?;
    let is_private = std::fs::metadata(file)
        .map_err(|e| e.to_string())?
        .permissions()
        .mode()
        .trailing_zeros()
        >= 6;
    if !is_private {
        return Err("others can read the token".into());
    }
    let fault = |action: &str, member: &str| {
        let said = Command::new(env!("CARGO_BIN_EXE_oversell"))
            .args(["lab", "fault", action, member, "--lab-json"])
            .arg(file)
            .output()
            .map_err(|e| e.to_string())?;
        let words = [said.stdout, said.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat();
        Ok::<_, String>((said.status.code(), words))
    };
    let expect = |action: &str, member: &str, code: i32, words: &str| {
        let (ended, said) = fault(action, member)?;
        let as_expected = ended == Some(code) && said.contains(words);
        if as_expected {
            Ok(())
        } else {
            Err(format!("{action} {member}: {ended:?}, {said}"))
        }
    };
    let instance = &start.instances[0];
    let is_stopped = || {
        status(instance.pid)
            .lines()
            .any(|line| line.starts_with("State:") && line.contains('T'))
    };
    expect("pause", &instance.name, 0, "is paused")?;
    comes("its stop", || is_stopped().then_some(()))?;
    expect("resume", &instance.name, 0, "goes on")?;
    comes("its going on", || (!is_stopped()).then_some(()))?;
    expect("start", &instance.name, 2, "runs already")?;
    expect("kill", "redis-2", 0, "is killed")?;
    if Path::new(&format!("/proc/{}", start.redis[1].pid)).exists()
        || at().is_none_or(|at| at.redis[1].pid != 0)
    {
        return Err("redis-2 was to be gone, and lab.json to say so".into());
    }
    expect("kill", "redis-2", 2, "redis-2 is not running")?;
    expect("start", "redis-2", 0, "runs again")?;
    if at().is_none_or(|at| status(at.redis[1].pid).is_empty()) {
        return Err("redis-2 was to run again, and lab.json to say so".into());
    }
    expect(
        "kill",
        "redis-3",
        2,
        "the lab has no redis-3; it has mysql, zookeeper, redis, redis-2, ",
    )?;
    expect("cut", "redis", 2, "`oversell lab --ways`")?;
    without_the_token_nothing_is_done(start)
}

fn without_the_token_nothing_is_done(at: Addresses) -> Outcome {
    let control = at.control.ok_or("no orders")?;
    let host = control
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/fault");
    let body = format!(
        r#"{{"action":"kill","member":"{}","by_ms":0}}"#,
        at.instances[0].name
    );
    let (length, mut answer) = (body.len(), String::new());
    let mut stream = TcpStream::connect(host).map_err(|e| e.to_string())?;
    let head = format!(
        "PUT /fault HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n",
        "0".repeat(32)
    );
    let rest = format!(
        "content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream
        .write_all((head + &rest).as_bytes())
        .map_err(|e| e.to_string())?;
    std::io::Read::read_to_string(&mut stream, &mut answer).map_err(|e| e.to_string())?;
    let is_refused = answer.starts_with("HTTP/1.1 401") && !status(at.instances[0].pid).is_empty();
    if is_refused {
        Ok(())
    } else {
        Err(format!("with another token: {answer}"))
    }
}

/// What one instance cannot reach the other one does, and a session that ends takes its lock along.
pub(crate) async fn a_way_is_cut_slowed_and_mended_and_a_session_ends() -> Outcome {
    let lab = Lab::start(Options {
        ways: true,
        instance_ports: vec![0; 2],
        redis_ports: vec![0],
        ..program()
    })
    .await;
    let lab = lab.map_err(|e| e.to_string())?;
    let [near, far] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let client = Client::new();
    let ask = async |instance: &addresses::Instance, path: &str| {
        let answer = client
            .get(format!("{}/check/lock/{path}", instance.url))
            .header("accept", "application/json");
        let answer = answer.send().await.map_err(|e| e.to_string())?;
        Ok::<_, String>((
            answer.status(),
            answer.text().await.map_err(|e| e.to_string())?,
        ))
    };
    lab.cut(&format!("{}-redis", near.name))
        .map_err(|e| e.to_string())?;
    // The order is carried out by the tasks that forward, each as soon as it runs.
    until("it is cut off", || async {
        match ask(&near, "redis-script").await? {
            (StatusCode::OK, _) => Ok(false),
            (StatusCode::SERVICE_UNAVAILABLE, _) => Ok(true),
            wrong => Err(format!("cut off from Redis: {wrong:?}")),
        }
    })
    .await?;
    let other = ask(&far, "redis-script").await?;
    if other.0 != StatusCode::OK {
        return Err(format!("the other, which is not cut off: {other:?}"));
    }
    lab.mend("redis").map_err(|e| e.to_string())?;
    until("it is mended", || async {
        Ok(ask(&near, "redis-script").await?.0 == StatusCode::OK)
    })
    .await?;

    let late = Duration::from_millis(300);
    lab.slow("mysql", late).map_err(|e| e.to_string())?;
    let begun = Instant::now();
    let slow = ask(&near, "single-update").await?;
    if slow.0 != StatusCode::OK || begun.elapsed() < late {
        return Err(format!(
            "by a slow way after {:?}: {slow:?}",
            begun.elapsed()
        ));
    }
    lab.mend("mysql").map_err(|e| e.to_string())?;

    let zookeeper = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await;
    let zookeeper = zookeeper.map_err(|e| e.to_string())?;
    let nodes = async || {
        zookeeper
            .list_children("/distributed/zk-lock")
            .await
            .map_or(0, |nodes| nodes.len())
    };
    let holder = ask(&near, "zk-lock?hold_ms=60000");
    let ends = async {
        until("it is held", || async { Ok(nodes().await == 1) }).await?;
        lab.expire(&near.name).await.map_err(|e| e.to_string())?;
        until("the server has let it go", || async {
            Ok(nodes().await == 0)
        })
        .await?;
        lab.kill(&near.name).await.map_err(|e| e.to_string())
    };
    let (_, ended) = tokio::join!(holder, ends);
    ended?;
    let next = ask(&far, "zk-lock").await?;
    let unknown = lab.cut("8888-redis").map_err(|e| e.to_string());
    lab.stop().await;
    if next.0 != StatusCode::OK || !unknown.is_err_and(|e| e.contains("no way 8888-redis")) {
        return Err(format!("the next one: {next:?}"));
    }
    Ok(())
}
