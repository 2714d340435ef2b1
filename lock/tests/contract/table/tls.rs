//! MySQL over TLS: a server that requires it.

use crate::{certificates, support::*};
use oversell_lab::{lab::Port, programs::path as program};
use oversell_lock::mysql::TablePool;
use std::{os::unix::fs::MetadataExt, path::Path, process::Stdio};
use tokio::{
    process::{Child, Command},
    time::sleep,
};

const INSTALLER: &str = "mariadb-install-db";

/// For MySQL, which makes no database `test` by itself.
const FIRST_SQL: &str = "CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1'; CREATE DATABASE test;\n";

/// A server with a database `test`, until it is dropped: the one that the lab has.
async fn server(folder: &Path, port: u16) -> Result<Child> {
    let server = program("mariadbd");
    let version = Command::new(&server).arg("--version").output().await?;
    let is_mariadb = String::from_utf8_lossy(&version.stdout).contains("MariaDB");
    let is_root = std::fs::metadata(folder)?.uid() == 0;
    let program = |name: &Path| {
        let mut program = Command::new(name);
        program.current_dir(folder).env("TMPDIR", folder);
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program.args(["--no-defaults", "--datadir=./data"]);
        // Only root may name a user, and must.
        if is_root {
            program.arg("--user=root");
        }
        program
    };
    let mut install;
    if is_mariadb {
        let beside = server.with_file_name(INSTALLER);
        let installer = if beside.exists() { beside } else { INSTALLER.into() };
        install = program(&installer);
        install.arg("--auth-root-authentication-method=normal");
    } else {
        let first = folder.join("first.sql");
        tokio::fs::write(&first, FIRST_SQL).await?;
        install = program(&server);
        install.arg("--initialize-insecure");
        install.arg(format!("--init-file={}", first.display()));
    }
    let installed = install.status().await?;
    ensure!(installed.success(), "its database is not made");
    let mut server = program(&server);
    server.args([
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--socket=s.sock",
        "--require-secure-transport=ON",
        "--loose-mysqlx=OFF",
    ]);
    for (option, file) in [("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")] {
        server.arg(format!("--ssl-{option}={}", folder.join(file).display()));
    }
    server.arg(format!("--secure-file-priv={}", folder.display()));
    server.arg(format!("--port={port}")).kill_on_drop(true);
    Ok(server.spawn()?)
}

#[apply(test!)]
async fn a_server_is_reached_by_tls_and_only_one_that_is_vouched_for(_: &Table) -> Result {
    let (folder, port) = (certificates::folder("mysql-tls").await?, Port::free()?);
    let mut server = server(&folder, port.number()).await?;
    let address = |mode: &str| format!("mysql://root@127.0.0.1:{}/test?{mode}", port.number());
    let authority = folder.join("ca.pem");
    let vouched = format!("ssl-mode=VERIFY_CA&ssl-ca={}", authority.display());
    let vouched = address(&vouched);
    // A server with an empty folder first creates its files, which a busy machine needs longer for.
    let answers = async {
        while TablePool::connect(&vouched).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let answers = timeout(SOON * 3, answers).await;
    answers.context("it never answers")?;

    let pool = TablePool::connect(&vouched).await?;
    pool.create_table().await.context("the table")?;
    pass(&pool.table_lease_lock(&name())).await?;

    let stranger = TablePool::connect(&address("ssl-mode=VERIFY_CA")).await;
    ensure_unavailable("by nobody's word", stranger)?;
    let plain = TablePool::connect(&address("ssl-mode=DISABLED")).await;
    ensure!(plain.is_err(), "without TLS");
    server.kill().await?;
    Ok(std::fs::remove_dir_all(folder)?)
}
