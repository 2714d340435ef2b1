//! MariaDB: `mariadbd` run directly, without its supervising script.

use super::{
    process::{Process, Start},
    programs::{self, Needed},
    server::Server,
    user::User,
};
use crate::failure::Failure;
use futures::{FutureExt, future::BoxFuture};
use sqlx::{Connection, MySqlConnection};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

pub(super) const NAME: &str = "mysql";

/// What a committed piece survives, and what a transaction sees: pinned, because figures and lessons depend on it.
pub(super) const DURABILITY: [&str; 4] = [
    "--innodb-flush-log-at-trx-commit=1",
    "--skip-log-bin",
    "--transaction-isolation=REPEATABLE-READ",
    // On by default from 11.6.2: a read-then-write transaction then fails with error 1020 instead of overselling.
    "--loose-innodb-snapshot-isolation=OFF",
];

#[derive(Debug)]
pub(super) struct MySql {
    folder: PathBuf,
    port: u16,
}

impl MySql {
    pub(super) fn new(folder: PathBuf, port: u16) -> Self {
        Self { folder, port }
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join("mariadbd.pid")
    }

    /// The only folder that SQL may read files from and write them to: an empty one.
    fn no_files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// The program, with options for the making of the database and for the server alike. The data folder is relative
    /// to ours, since mariadb-install-db takes none with a space; `./` is what makes it so, not relative to /usr.
    fn program(&self, name: &str, user: User) -> Command {
        let mut command = Command::new(programs::path(name));
        command
            .current_dir(&self.folder)
            .env("TMPDIR", &self.folder)
            .arg("--no-defaults");
        // Without it, it refuses to run as root.
        if user.is_root() {
            command.arg("--user=root");
        }
        command.arg("--datadir=./data");
        command
    }
}

impl Server for MySql {
    fn name(&self) -> &str {
        NAME
    }

    fn needs(&self) -> &'static [Needed] {
        &[
            ("mariadbd", "mariadb-server"),
            ("mariadb-install-db", "mariadb-server"),
        ]
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the system tables, an empty database `test`, and a root without password.
    fn prepare(&self, user: User) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            user.make(&self.folder)
                .and_then(|()| user.make(&self.no_files()))
                .map_err(|e| Failure::Unusable(format!("{NAME}: {e}")))?;
            let mut command = self.program("mariadb-install-db", user);
            command.args([
                "--auth-root-authentication-method=normal",
                "--skip-name-resolve",
            ]);
            let log = self.folder.with_file_name("mysql-install.log");
            let install = Process::spawn(Start {
                name: "mariadb-install-db",
                command: &command,
                orphaned: "KILL",
                user,
                log: &log,
                console: None,
            })?;
            if install.gone().await.well() {
                return Ok(());
            }
            Err(Failure::Unusable(format!(
                "mariadb-install-db failed; {}",
                install.tail()
            )))
        }
        .boxed()
    }

    fn command(&self, user: User) -> Command {
        let mut command = self.program("mariadbd", user);
        command
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--max-connections=2000",
            ])
            .args([
                "--character-set-server=utf8mb4",
                "--collation-server=utf8mb4_general_ci",
            ])
            .args(DURABILITY)
            .arg(format!("--port={}", self.port))
            // In the data folder: a full path may have 107 characters only.
            .arg("--socket=mariadbd.sock")
            .arg(format!("--secure-file-priv={}", self.no_files().display()))
            .arg(format!("--pid-file={}", self.pid_file().display()));
        command
    }

    fn check(&self, _pid: u32, _complete: bool) -> BoxFuture<'_, Result<(), String>> {
        async {
            let url = format!("mysql://root@127.0.0.1:{}/test", self.port);
            let mut connection = MySqlConnection::connect(&url)
                .await
                .map_err(|e| e.to_string())?;
            let pid_file: String = sqlx::query_scalar("SELECT @@pid_file")
                .fetch_one(&mut connection)
                .await
                .map_err(|e| e.to_string())?;
            connection.close().await.map_err(|e| e.to_string())?;
            if Path::new(&pid_file) == self.pid_file() {
                Ok(())
            } else {
                Err("another server answers".to_owned())
            }
        }
        .boxed()
    }
}
