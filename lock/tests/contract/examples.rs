//! The programs in `lock/examples`, as a reader runs them: each ends well, and soon. `cargo test` builds them; with
//! `--test contract` it does not, and they are those of the last build.

use super::{HANGS, servers::Servers};
use libtest_mimic::Trial;
use std::{path::PathBuf, process::Stdio};
use tokio::{process::Command, runtime::Handle, time::timeout};

type Address = fn(&Servers) -> String;

/// What each program is given.
const EXAMPLES: [(&str, &[Address]); 7] = [
    ("fenced", &[Servers::redis]),
    ("layer", &[Servers::redis]),
    ("lock", &[Servers::redis]),
    ("semaphore", &[Servers::redis]),
    ("several", &[Servers::zookeeper, Servers::mysql]),
    ("table", &[Servers::mysql]),
    ("zookeeper", &[Servers::zookeeper]),
];

pub(crate) fn all(runtime: &Handle, servers: Option<&Servers>) -> Vec<Trial> {
    let given = |addresses: &[Address]| servers.map(|s| addresses.iter().map(|a| a(s)).collect());
    let trial = |(name, addresses): (&'static str, &[_])| {
        let arguments: Vec<String> = given(addresses).unwrap_or_default();
        let runtime = runtime.clone();
        Trial::test(format!("examples::{name}_runs"), move || {
            Ok(runtime.block_on(runs(name, &arguments))?)
        })
    };
    EXAMPLES.into_iter().map(trial).collect()
}

async fn runs(name: &str, arguments: &[String]) -> Result<(), String> {
    let tests = std::env::current_exe().map_err(|e| e.to_string())?;
    let program: PathBuf = tests
        .ancestors()
        .nth(2)
        .ok_or("no folder")?
        .join("examples")
        .join(name);
    let run = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let run = timeout(HANGS, run)
        .await
        .map_err(|_| format!("not ended after {HANGS:?}"))?;
    let run = run.map_err(|e| {
        format!(
            "{}: {e}; `cargo build -p oversell-lock --examples` builds it",
            program.display()
        )
    })?;
    let said = String::from_utf8_lossy(&run.stdout);
    match run.status.success() && !said.is_empty() {
        true => Ok(()),
        false => Err(format!("{said}{}", String::from_utf8_lossy(&run.stderr))),
    }
}
