//! Labs with instances: one that tests share, and one as a teacher starts it.

use super::*;
use base64::{Engine, prelude::BASE64_STANDARD};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oversell_lab::{
    addresses::Addresses,
    clients::redis_at::redis_at,
    lab::{Lab, Options},
};
use parking_lot::Mutex;
use redis::FromRedisValue;
use serde_json::{Value, json};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};
use tempfile::TempDir;
use tokio::process::Command;

/// Short for a test, long for a busy machine; also the default of the hand-written Redis locks.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// An instance reconnects after a fifth of it without an answer, so it must outlast a stall.
pub(crate) const SESSION: Duration = Duration::from_secs(10);

/// Options of a lab with the tested binary.
pub(crate) fn program() -> Options {
    Options { program: Some(PathBuf::from(env!("CARGO_BIN_EXE_oversell"))), ..Options::default() }
}

/// With etcd, and short leases and sessions.
pub(crate) fn short_leases() -> Options {
    let env = [("OVERSELL__LOCK__LEASE_MS", LEASE), ("OVERSELL__ZOOKEEPER__SESSION_MS", SESSION)];
    Options { env: env.map(|(key, value)| (key.to_owned(), value.as_millis().to_string())).to_vec(), etcd: 1, ..program() }
}

/// Undamaged labs of earlier tests.
static WHOLE: Mutex<Vec<Lab>> = Mutex::new(Vec::new());

/// A lab with all parts, and short leases and sessions: an undamaged one of an earlier test, or a new one.
pub(crate) async fn full_lab() -> Result<Lab> {
    let left = WHOLE.lock().pop();
    match left {
        Some(lab) => Ok(lab),
        None => Ok(Lab::start(short_leases()).await?),
    }
}

/// Keeps the lab for the next test: every member must run, and nobody may use it.
pub(crate) fn keep_for_next_test(lab: Lab) {
    WHOLE.lock().push(lab);
}

pub(crate) async fn stop() {
    let left = std::mem::take(&mut *WHOLE.lock());
    for lab in left {
        lab.stop().await;
    }
}

/// A temporary folder that another user's servers may enter.
pub(crate) fn folder() -> Result<TempDir> {
    let open = Permissions::from_mode(0o755);
    Ok(tempfile::Builder::new().permissions(open).tempdir()?)
}

/// Runs `test` beside `oversell lab` with these options; then a signal must end it with success.
pub(crate) async fn with_lab_command(options: &[&str], test: impl AsyncFnOnce(&Path, Addresses) -> Result<()>) -> Result<()> {
    let folder = folder()?;
    let lab_json = folder.path().join("lab/lab.json");
    let ports = ["--http-port=0", "--mysql-port=0", "--zookeeper-port=0", "--etcd-port=0"];
    let mut lab = Command::new(env!("CARGO_BIN_EXE_oversell"))
        .arg("lab")
        .args(ports)
        .args(options)
        .arg("--dir")
        .arg(folder.path().join("lab"))
        .kill_on_drop(true)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let done = async {
        let at = || addresses(&lab_json).filter(|at| at.control.is_some());
        wait_until("a lab that takes orders", || async { Ok(at().is_some()) }).await?;
        test(&lab_json, at().context("no lab")?).await
    };
    let done = done.await;
    terminate(lab.id())?;
    let ended = within_limit("the end of the lab", lab.wait()).await??;
    done?;
    ensure!(ended.success(), "the lab ended with {ended}");
    Ok(())
}

/// Children of a ZooKeeper node; empty if there is no such node.
pub(crate) async fn child_nodes(connect: &str, path: &str) -> Result<Vec<String>> {
    let zookeeper = zookeeper_client::Client::connect(connect).await?;
    match zookeeper.list_children(path).await {
        Err(zookeeper_client::Error::NoNode) => Ok(vec![]),
        children => Ok(children?),
    }
}

/// The keys below this prefix in etcd.
pub(crate) async fn etcd_keys(nodes: &[impl AsRef<str>], prefix: &str) -> Result<Vec<String>> {
    let node = nodes.first().context("no etcd")?.as_ref();
    let range = json!({"key": BASE64_STANDARD.encode(prefix), "range_end": BASE64_STANDARD.encode(format!("{prefix}~"))});
    let answer: Value = http::client().post(format!("{node}/v3/kv/range")).json(&range).send().await?.json().await?;
    let keys = answer["kvs"].as_array().into_iter().flatten();
    keys.map(|kv| Ok(String::from_utf8(BASE64_STANDARD.decode(kv["key"].as_str().unwrap_or_default())?)?)).collect()
}

/// The answer of the main Redis to a command.
pub(crate) async fn command_redis<T: FromRedisValue>(lab: &Lab, command: &[&str]) -> Result<T> {
    let mut redis = redis_at(&lab.addresses().redis[0].url).await?;
    let mut all = redis::Cmd::new();
    for word in command {
        all.arg(word);
    }
    Ok(all.query_async(&mut redis).await?)
}

/// Forgets the scripts of all visitors, and their locks.
pub(crate) async fn forget_visitors(lab: &Lab) -> Result<()> {
    let mine = lab.addresses().mine.as_ref().context("no Redis of theirs")?;
    Ok(redis::cmd("FLUSHALL").exec_async(&mut redis_at(&mine.url).await?).await?)
}

pub(crate) fn addresses(lab_json: &Path) -> Option<Addresses> {
    serde_json::from_slice(&std::fs::read(lab_json).ok()?).ok()
}

pub(crate) fn terminate(pid: Option<u32>) -> Result<()> {
    send_signal(pid, Signal::SIGTERM)
}

pub(crate) fn send_signal(pid: Option<u32>, signal: Signal) -> Result<()> {
    let pid = pid.context("it has ended already")?;
    Ok(kill(Pid::from_raw(pid.cast_signed()), signal)?)
}
