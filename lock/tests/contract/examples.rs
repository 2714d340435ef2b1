//! The programs in `lock/examples`: each ends well, and soon. `cargo test` builds them, but with `--test contract` they
//! are those of the last build.

use super::{register::Engines, support::*};
use std::process::Stdio;
use tokio::process::Command;

/// Each program, and the servers whose addresses it gets.
macro_rules! examples {
    ($($test:ident: $program:literal, [$($address:ident),*];)*) => {$(
        test! {
            async fn $test(all: &Engines) -> Result {
                runs($program, &[$($address(all)),*]).await
            }
        }
    )*};
}

examples! {
    blocking_runs: "blocking", [redis];
    cron_runs: "cron", [redis];
    fenced_runs: "fenced", [redis];
    grpc_runs: "grpc", [redis];
    layer_runs: "layer", [redis];
    leader_runs: "leader", [redis];
    lock_runs: "lock", [redis];
    metrics_runs: "metrics", [redis];
    semaphore_runs: "semaphore", [redis];
    etcd_runs: "etcd", [etcd];
    several_runs: "several", [zookeeper, mysql];
    table_runs: "table", [mysql];
    zookeeper_runs: "zookeeper", [zookeeper];
}

fn redis(all: &Engines) -> String {
    format!("redis://{}", all.redis.host())
}

fn etcd(all: &Engines) -> String {
    all.etcd.url.clone()
}

fn zookeeper(all: &Engines) -> String {
    all.zookeeper.address()
}

fn mysql(all: &Engines) -> String {
    all.table.url.clone()
}

async fn runs(name: &str, arguments: &[String]) -> Result {
    let tests = std::env::current_exe()?;
    let folder = tests.ancestors().nth(2).context("no folder")?;
    let run = Command::new(folder.join("examples").join(name))
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("`cargo build -p oversell-lock --examples` builds it")?;
    let said = String::from_utf8_lossy(&run.stdout);
    ensure!(run.status.success() && !said.is_empty(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    Ok(())
}
