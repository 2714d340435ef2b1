//! MariaDB or MySQL: `mariadbd` or `mysqld` run directly, without its supervising script.
//!
//! To make an empty database takes seconds, so labs beside each other make it once, and each starts with a copy:
//!
//! 1. The first one makes it in a folder of its own, and then renames it to its place: there it is whole, or it is not
//!    there. Of several that make it at once, one gets there first, and all use that one's.
//! 2. Its name says for which program and which user it was made.
//!
//! Several nodes are one Galera cluster, which only MariaDB has: the first begins it, and the others have no database until they join, when one
//! that has it sends it to them (Galera's SST, by rsync). One that joins again gets what it has missed.

use super::{
    folder::Folder,
    process::{Process, Start},
    server::{Check, Server, Started},
    user::User,
};
use crate::programs::{self, Needed};
use crate::terminal::failure::{Failure, unusable};
use futures::{FutureExt, future::BoxFuture};
use sqlx::{Connection, MySqlConnection};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::time::{sleep, timeout};

pub(super) const NAME: &str = "mysql";

/// What a committed piece survives, and what a transaction sees: pinned, because figures and lessons depend on it.
pub(super) const DURABILITY: [&str; 4] = [
    "--innodb-flush-log-at-trx-commit=1",
    "--skip-log-bin",
    "--transaction-isolation=REPEATABLE-READ",
    // On by default from 11.6.2: a read-then-write transaction then fails with error 1020 instead of overselling.
    "--loose-innodb-snapshot-isolation=OFF",
];

/// Without TLS, which some releases offer unasked: every release's figures are those of the same work.
const WITHOUT_TLS: [(Kind, &str); 2] = [
    (Kind::MariaDb, "--skip-ssl"),
    (Kind::MySql, "--tls-version="),
];

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    MariaDb,
    MySql,
}

/// The program that is the server.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// As in `10.11.11`.
    pub(super) version: String,
}

impl Program {
    /// What this program says of itself. One that is not there is MariaDB, which is what is installed then.
    pub(super) fn at(path: PathBuf) -> Self {
        let text = programs::says(&path, "--version").unwrap_or_default();
        let version = text.split_once("Ver ").map_or("", |(_, rest)| rest);
        let is_mysql = !version.is_empty() && !version.contains("MariaDB");
        Self {
            kind: if is_mysql { Kind::MySql } else { Kind::MariaDb },
            version: programs::number(version),
            path,
        }
    }

    /// The one that `option` names, or the environment; else the system's MariaDB, and where only MySQL is installed, that.
    pub(super) fn chosen(option: Option<&Path>) -> Result<Self, Failure> {
        let named = programs::server(("--mysql-server", option), MARIADB)?;
        let is_found = named.is_absolute();
        let instead = || programs::find("mysqld");
        Ok(Self::at(
            Some(named.clone())
                .filter(|_| is_found)
                .or_else(instead)
                .unwrap_or(named),
        ))
    }

    /// The name of its kind.
    pub(super) fn title(&self) -> &'static str {
        match self.kind {
            Kind::MariaDb => "MariaDB",
            Kind::MySql => "MySQL",
        }
    }

    /// What makes an empty database of MariaDB: it belongs to the server, so it is sought beside it first.
    fn installer(&self) -> PathBuf {
        let beside = self.path.with_file_name(INSTALLER);
        if programs::is_program(&beside) {
            beside
        } else {
            programs::path(INSTALLER)
        }
    }
}

const INSTALLER: &str = "mariadb-install-db";
/// What MariaDB's installer makes by its options.
const FIRST_SQL: &str = "CREATE USER 'root'@'127.0.0.1'; \
     GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION; CREATE DATABASE test;\n";

#[derive(Debug)]
pub(super) struct MySql {
    pub(super) program: Program,
    /// Where labs share the empty database, if they do.
    pub(super) shared: Option<PathBuf>,
    pub(super) port: u16,
    /// Its place in a Galera cluster; none where it is alone.
    pub(super) galera: Option<Galera>,
}

/// The place of a node in its cluster.
#[derive(Debug)]
pub(super) struct Galera {
    pub(super) index: usize,
    /// Where the node listens that begins the cluster.
    pub(super) first: u16,
    /// Every node, itself too.
    pub(super) peers: Vec<Peer>,
}

/// The ports that the nodes of a cluster use among themselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// What is written.
    pub(super) group: u16,
    /// What one that joins has missed.
    pub(super) missed: u16,
    /// The whole database, for one that joins.
    pub(super) whole: u16,
}

/// The state of a node that has all that its cluster has.
const SYNCED: &str = "Synced";

/// How long the first one may take to begin it, and how often it is asked.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// The name of the node at `index`: `mysql`, `mysql-2` …
pub(super) fn name(index: usize) -> String {
    if index == 0 {
        NAME.to_owned()
    } else {
        format!("{NAME}-{}", index + 1)
    }
}

impl Galera {
    /// A node that has data joins, even the first.
    fn begins(&self, folder: &Path) -> bool {
        self.index == 0 && !folder.join("data/grastate.dat").exists()
    }

    /// Waits until there is a cluster to join: nodes that find each other before it begins keep it from beginning.
    async fn begun(&self) -> Result<(), Failure> {
        let begun = async {
            while !matches!(state(self.first).await, Ok((_, Some(state))) if state == SYNCED) {
                sleep(PAUSE).await;
            }
        };
        let late = |_| unusable!("{NAME} does not begin its cluster");
        timeout(LIMIT, begun).await.map_err(late)
    }

    fn options(&self, folder: &Path, port: u16) -> Vec<String> {
        let all = self.peers.iter();
        let all: Vec<_> = all
            .map(|peer| format!("127.0.0.1:{}", peer.group))
            .collect();
        let Peer {
            group,
            missed,
            whole,
        } = self.peers[self.index];
        let mut options = vec![
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={PROVIDER}"),
            format!("--wsrep-cluster-address=gcomm://{}", all.join(",")),
            "--wsrep-node-address=127.0.0.1".to_owned(),
            // Where its clients come to: by it each node tells who is in the cluster.
            format!("--wsrep-node-incoming-address=127.0.0.1:{port}"),
            format!("--wsrep-node-name={}", name(self.index)),
            "--wsrep-sst-method=rsync".to_owned(),
            format!("--wsrep-sst-receive-address=127.0.0.1:{whole}"),
            format!(
                "--wsrep-provider-options=base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};\
                 ist.recv_addr=127.0.0.1:{missed};gcache.size=32M"
            ),
            // Galera takes nothing else.
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
            // Several of them share one machine.
            "--innodb-buffer-pool-size=32M".to_owned(),
            "--innodb-log-file-size=32M".to_owned(),
        ];
        if self.begins(folder) {
            options.push("--wsrep-new-cluster".to_owned());
        }
        options
    }
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("mariadbd.pid")
}

/// The only folder that SQL may read files from and write them to: an empty one.
fn no_files(folder: &Path) -> PathBuf {
    folder.join("files")
}

/// Puts a copy of the empty database that labs share in `shared` into `folder`; it is made if it is not there.
async fn copy(program: &Program, shared: &Path, folder: &Path, user: User) -> Result<(), Failure> {
    let failed = |e: io::Error| unusable!("{NAME}: {e}");
    let changed = fs::metadata(&program.path).map_err(failed)?.mtime();
    let (title, version) = (program.title().to_lowercase(), &program.version);
    let seed = shared.join(format!("{title}-{version}-{changed}-{}", user.id()));
    let log = install_log(folder);
    if !seed.exists() {
        let making = Folder::unnamed(shared)?;
        let making = making.of(NAME);
        user.make(&making).map_err(failed)?;
        install(program, &making, &log, user).await?;
        match fs::rename(making.join("data"), &seed) {
            Err(e) if e.kind() != io::ErrorKind::DirectoryNotEmpty => return Err(failed(e)),
            _ => {}
        }
    }
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(&seed).arg(folder.join("data"));
    run("cp", &copy, &log, user).await
}

/// Makes the system tables, an empty database `test`, and a root without password, in `folder`.
async fn install(program: &Program, folder: &Path, log: &Path, user: User) -> Result<(), Failure> {
    if program.kind == Kind::MariaDb {
        let mut command = common(&program.installer(), folder, user);
        command.args([
            "--auth-root-authentication-method=normal",
            "--skip-name-resolve",
        ]);
        return run(INSTALLER, &command, log, user).await;
    }
    let sql = folder.join("first.sql");
    let written = fs::write(&sql, FIRST_SQL).and_then(|()| user.own(&sql));
    written.map_err(|e| unusable!("{NAME}: {e}"))?;
    let mut command = common(&program.path, folder, user);
    command.arg("--initialize-insecure");
    command.arg(format!("--init-file={}", sql.display()));
    run("mysqld --initialize-insecure", &command, log, user).await
}

fn install_log(folder: &Path) -> PathBuf {
    folder.with_file_name("mysql-install.log")
}

async fn run(name: &str, command: &Command, log: &Path, user: User) -> Result<(), Failure> {
    let process = Process::spawn(Start {
        name,
        command,
        orphaned: "KILL",
        user,
        log,
        console: None,
    })?;
    if process.gone().await.well() {
        return Ok(());
    }
    let why = process.tail();
    Err(unusable!("{name} failed; {why}"))
}

/// A program, with options for the making of the database and for the server alike. The data folder is relative to
/// `folder`, since mariadb-install-db takes none with a space; `./` is what makes it so, not relative to /usr.
fn common(program: &Path, folder: &Path, user: User) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env("TMPDIR", folder)
        .arg("--no-defaults");
    // Without it, it refuses to run as root.
    if user.is_root() {
        command.arg("--user=root");
    }
    command.arg("--datadir=./data");
    command
}

/// What it cannot do without.
pub(super) const NEEDED: [Needed; 2] = [(MARIADB, "mariadb-server"), (INSTALLER, "mariadb-server")];
pub(super) const MARIADB: &str = "mariadbd";

/// What a node of a cluster needs besides.
pub(super) const CLUSTERED: [Needed; 2] = [(PROVIDER, "galera-4"), ("rsync", "rsync")];

/// The pid file of the server at this port, and of a node of a cluster whether it has all that the cluster has.
async fn state(port: u16) -> sqlx::Result<(String, Option<String>)> {
    const STATE: &str = "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'";
    let url = format!("mysql://root@127.0.0.1:{port}/test");
    let mut connection = MySqlConnection::connect(&url).await?;
    let pid_file = sqlx::query_scalar("SELECT @@pid_file")
        .fetch_one(&mut connection)
        .await?;
    let state: Option<(String, String)> = sqlx::query_as(STATE)
        .fetch_optional(&mut connection)
        .await?;
    connection.close().await?;
    Ok((pid_file, state.map(|(_, state)| state)))
}

impl Server for MySql {
    fn needs(&self) -> &'static [Needed] {
        const ALL: [Needed; 4] = [NEEDED[0], NEEDED[1], CLUSTERED[0], CLUSTERED[1]];
        let is_installed =
            self.program.kind == Kind::MySql || self.program.installer().is_absolute();
        match (
            &self.galera,
            is_installed && self.program.path.is_absolute(),
        ) {
            (Some(_), true) => &CLUSTERED,
            (Some(_), false) => &ALL,
            (None, true) => &[],
            (None, false) => &NEEDED,
        }
    }

    fn prepare<'a>(&'a self, folder: &'a Path, user: User) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            user.make(folder)
                .and_then(|()| user.make(&no_files(folder)))
                .map_err(|e| unusable!("{NAME}: {e}"))?;
            if let Some(galera) = &self.galera {
                if user.is_root() {
                    return Err(unusable!(
                        "a Galera cluster does not start as root: rsync sends no database there; \
                         start the lab as an ordinary user, or from a folder that everybody may enter"
                    ));
                }
                if galera.index > 0 {
                    user.make(&folder.join("data"))
                        .map_err(|e| unusable!("{NAME}: {e}"))?;
                    return galera.begun().await;
                }
            }
            match &self.shared {
                Some(shared) => copy(&self.program, shared, folder, user).await,
                None => install(&self.program, folder, &install_log(folder), user).await,
            }
        }
        .boxed()
    }

    fn command(&self, folder: &Path, user: User) -> Command {
        let mut command = common(&self.program.path, folder, user);
        let without_tls = WITHOUT_TLS
            .iter()
            .filter(|(kind, _)| *kind == self.program.kind);
        command.args(without_tls.map(|(_, option)| option));
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
            // MySQL's second protocol, on a port of its own.
            .arg("--loose-mysqlx=OFF")
            .arg(format!("--secure-file-priv={}", no_files(folder).display()))
            .arg(format!("--pid-file={}", pid_file(folder).display()));
        let galera = self.galera.iter();
        command.args(galera.flat_map(|galera| galera.options(folder, self.port)));
        command
    }

    fn check<'a>(&'a self, started: Started<'a>) -> Check<'a> {
        async move {
            let (theirs, state) = state(self.port).await.map_err(|e| e.to_string())?;
            if Path::new(&theirs) != pid_file(started.folder) {
                return Err("another server answers".to_owned());
            }
            match (&self.galera, state.as_deref()) {
                (None, _) | (Some(_), Some(SYNCED)) => Ok(()),
                (Some(_), state) => Err(format!("its state is {}", state.unwrap_or("unknown"))),
            }
        }
        .boxed()
    }
}
