//! MySQL by TLS: a server of this test's own, which takes nobody in without it.

use super::{
    Verdict, certificates,
    clauses::{SOON, ensure, says},
    family::name,
    port::Port,
    table::{Plain, Table},
};
use oversell_lock::{Lock, LockError, mysql::MySqlPool};
use std::{path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

/// A MariaDB with a database `test`, until it is dropped.
async fn server(folder: &Path, port: u16) -> Result<Child, String> {
    let program = |name: &str| {
        let mut program = Command::new(name);
        program
            .current_dir(folder)
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        program.args(["--no-defaults", "--user=root", "--datadir=./data"]);
        program
    };
    let mut install = program("mariadb-install-db");
    let installed = install
        .arg("--auth-root-authentication-method=normal")
        .status()
        .await
        .map_err(|e| e.to_string())?;
    ensure(installed.success(), || "mariadb-install-db failed".into())?;
    let mut server = program("mariadbd");
    server.args([
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--socket=s.sock",
        "--require-secure-transport=ON",
    ]);
    server.args(
        [
            "--ssl-ca=ca.pem",
            "--ssl-cert=server.pem",
            "--ssl-key=server.key",
        ]
        .map(|option| {
            let (option, file) = option.split_once('=').expect("a file");
            format!("{option}={}", folder.join(file).display())
        }),
    );
    server
        .arg(format!("--port={port}"))
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| e.to_string())
}

pub(crate) async fn a_server_is_reached_by_tls_and_only_one_that_is_vouched_for(
    _: Arc<Table<Plain>>,
) -> Verdict {
    let (name, folder, port) = (
        name(),
        certificates::folder("mysql-tls").await?,
        Port::free(),
    );
    let mut server = server(&folder, port.address().port()).await?;
    let address = |mode: &str| format!("mysql://root@{}/test?{mode}", port.address());
    let vouched = address(&format!(
        "ssl-mode=VERIFY_CA&ssl-ca={}",
        folder.join("ca.pem").display()
    ));
    // A server with an empty folder makes its files first, which on a busy machine takes longer than what else must come.
    let answers = async {
        while MySqlPool::connect(&vouched).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON * 3, answers)
        .await
        .map_err(|_| "it never answers")?;

    let pool = says("connect", MySqlPool::connect(&vouched).await)?;
    says("the table", pool.create_table().await)?;
    says(
        "release",
        says("a lock", pool.table_lease_lock(&name).acquire(SOON).await)?
            .release()
            .await,
    )?;

    let stranger = MySqlPool::connect(&address("ssl-mode=VERIFY_CA")).await;
    ensure(
        matches!(stranger, Err(LockError::Unavailable { .. })),
        || format!("by nobody's word: {stranger:?}"),
    )?;
    let plain = MySqlPool::connect(&address("ssl-mode=DISABLED")).await;
    ensure(plain.is_err(), || "without TLS".into())?;
    server.kill().await.map_err(|e| e.to_string())?;
    std::fs::remove_dir_all(folder).map_err(|e| e.to_string())
}
