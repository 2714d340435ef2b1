//! The programs in `lock/examples`, as a reader runs them: each ends well. `cargo test` builds them.

use super::servers::Servers;
use libtest_mimic::Trial;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

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

pub(crate) fn all(servers: Option<&Servers>) -> Vec<Trial> {
    let given = |addresses: &[Address]| servers.map(|s| addresses.iter().map(|a| a(s)).collect());
    let trial = |(name, addresses): (&'static str, &[_])| {
        let arguments: Vec<String> = given(addresses).unwrap_or_default();
        Trial::test(format!("examples::{name}_runs"), move || Ok(runs(name, &arguments)?))
    };
    EXAMPLES.into_iter().map(trial).collect()
}

fn runs(name: &str, arguments: &[String]) -> Result<(), String> {
    let tests = std::env::current_exe().map_err(|e| e.to_string())?;
    let program: PathBuf = tests.ancestors().nth(2).ok_or("no folder")?.join("examples").join(name);
    let run = Command::new(&program).args(arguments).stdin(Stdio::null()).output();
    let run =
        run.map_err(|e| format!("{}: {e}; `cargo build -p oversell-lock --examples` builds it", program.display()))?;
    let said = String::from_utf8_lossy(&run.stdout);
    match run.status.success() && !said.is_empty() {
        true => Ok(()),
        false => Err(format!("{said}{}", String::from_utf8_lossy(&run.stderr))),
    }
}
