//! A lab as a teacher starts it, with `oversell lab`: one that takes orders, and tells its instances where.

use crate::buyers::{text, until};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oversell::addresses::Addresses;
use parking_lot::Mutex;
use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::process::Command;

type Outcome = Result<(), String>;

/// Runs `test` in a lab with these options and three instances, and stops it.
pub(crate) async fn in_a_lab(
    options: &[&str],
    test: impl AsyncFnOnce(&Addresses) -> Outcome,
) -> Outcome {
    in_a_lab_of(&[], options, test).await
}

/// The same, with this environment.
pub(crate) async fn in_a_lab_of(
    environment: &[(&str, &str)],
    options: &[&str],
    test: impl AsyncFnOnce(&Addresses) -> Outcome,
) -> Outcome {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("oversell-ordered-{}-{number}", std::process::id()));
    let ports = [
        "--http-port=0",
        "--instances=0,0,0",
        "--mysql-port=0",
        "--zookeeper-port=0",
    ];
    let mut lab = Command::new(env!("CARGO_BIN_EXE_oversell"));
    lab.arg("lab")
        .args(ports)
        .args(options)
        .arg("--dir")
        .arg(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut lab = lab
        .envs(environment.iter().copied())
        .spawn()
        .map_err(text)?;
    let (file, started) = (
        folder.join("lab.json"),
        Arc::<Mutex<Option<Addresses>>>::default(),
    );
    let outcome = async {
        until("a lab that takes orders", || async {
            let read = std::fs::read(&file)
                .ok()
                .and_then(|json| serde_json::from_slice::<Addresses>(&json).ok());
            *started.lock() = read.filter(|at| at.control.is_some());
            Ok(started.lock().is_some())
        })
        .await?;
        let at = started.lock().take().ok_or("no lab")?;
        test(&at).await
    };
    let outcome = outcome.await;
    if let Some(pid) = lab.id() {
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).map_err(text)?;
    }
    let ended = lab.wait().await.map_err(text)?;
    std::fs::remove_dir_all(&folder).map_err(text)?;
    outcome?;
    if ended.success() {
        Ok(())
    } else {
        Err(format!("the lab ended with {ended}"))
    }
}
