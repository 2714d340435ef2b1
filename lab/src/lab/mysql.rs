//! MariaDB or MySQL: `mariadbd` or `mysqld` run directly, without its supervising script.
//!
//! Creating an empty database takes seconds, so neighbouring labs create it once, and each starts with a copy:
//!
//! 1. A lab creates the database in a folder of its own and renames it to its place, so it is complete or absent. If
//!    several labs create one at once, the first rename wins and all use that one.
//! 2. The name of the seed tells program, version and user.
//!
//! Several nodes are one Galera cluster, which only MariaDB has. The first node bootstraps it; the others receive the
//! database when they join (SST, by rsync). A node that joins again receives what it has missed (IST).

use super::{
    folder::Folder,
    process::{Process, ProcessSpec},
    server::{CheckContext, HealthCheck, Server, numbered_name},
    user::User,
};
use crate::{
    programs::{self, Requirement},
    terminal::failure::{Failure, unusable},
    wait::wait_until,
};
use futures::{FutureExt, future::BoxFuture};
use sqlx::{Connection, MySqlConnection};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// The name of the first database server of a lab.
pub(super) const NAME: &str = "mysql";

/// Options that pin durability and isolation, because figures and lessons depend on them.
pub(super) const DURABILITY: [&str; 4] = [
    "--innodb-flush-log-at-trx-commit=1",
    "--skip-log-bin",
    "--transaction-isolation=REPEATABLE-READ",
    // The default is ON from 11.6.2: a read-then-write transaction then fails with error 1020 instead of overselling.
    "--loose-innodb-snapshot-isolation=OFF",
];

/// Options that turn off TLS, which some releases offer by default: without it the figures of all releases measure the same
/// work.
const NO_TLS_OPTIONS: [(Vendor, &str); 2] = [(Vendor::MariaDb, "--skip-ssl"), (Vendor::MySql, "--tls-version=")];

/// Whose MySQL it is: the two differ in options and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vendor {
    MariaDb,
    MySql,
}

/// The MySQL or MariaDB that is installed here.
#[derive(Debug, Clone)]
pub(super) struct MySqlProgram {
    pub(super) path: PathBuf,
    pub(super) kind: Vendor,
    /// For example `10.11.11`.
    pub(super) version: String,
}

impl MySqlProgram {
    /// Asks the program for its version. A missing program counts as MariaDB, which is then to be installed.
    pub(super) fn with_version(path: PathBuf) -> Self {
        let text = programs::output_of(&path, "--version").unwrap_or_default();
        let version = text.split_once("Ver ").map_or("", |(_, rest)| rest);
        let is_mysql = !version.is_empty() && !version.contains("MariaDB");
        Self { kind: if is_mysql { Vendor::MySql } else { Vendor::MariaDb }, version: programs::version_number(version), path }
    }

    /// The program that the option or the environment names; else MariaDB; else MySQL, if only that is installed.
    pub(super) fn choose(option: Option<&Path>) -> Result<Self, Failure> {
        let named = programs::server_program(("--mysql-server", option), MARIADB)?;
        let is_found = named.is_absolute();
        let instead = || programs::find("mysqld");
        Ok(Self::with_version(Some(named.clone()).filter(|_| is_found).or_else(instead).unwrap_or(named)))
    }

    /// `MariaDB` or `MySQL`.
    pub(super) fn title(&self) -> &'static str {
        match self.kind {
            Vendor::MariaDb => "MariaDB",
            Vendor::MySql => "MySQL",
        }
    }

    /// MariaDB's installer belongs to the server, so it is looked for beside it first.
    fn installer(&self) -> PathBuf {
        let beside = self.path.with_file_name(INSTALLER);
        if programs::is_program(&beside) { beside } else { programs::path(INSTALLER) }
    }
}

/// MariaDB's program that creates an empty database.
const INSTALLER: &str = "mariadb-install-db";
/// The first users and databases of MySQL, whose server has no such options as MariaDB's installer.
const INITIAL_SQL: &str = "CREATE USER 'root'@'127.0.0.1'; \
     GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION; CREATE DATABASE test;\n";

/// A server of MySQL that the lab starts: a single one, or a node of a Galera cluster.
#[derive(Debug)]
pub(super) struct MySql {
    pub(super) program: MySqlProgram,
    /// The folder in which labs share the empty database; `None`: this server creates its own.
    pub(super) shared: Option<PathBuf>,
    pub(super) port: u16,
    /// Its place in a Galera cluster; `None` for a single server.
    pub(super) galera: Option<Galera>,
}

#[derive(Debug)]
pub(super) struct Galera {
    pub(super) index: usize,
    /// The port of the node that bootstraps the cluster.
    pub(super) first: u16,
    /// All nodes, this one included.
    pub(super) peers: Vec<PeerPorts>,
}

/// Ports of a node for the other nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerPorts {
    /// Replication.
    pub(super) group_port: u16,
    /// Incremental state transfer.
    pub(super) ist_port: u16,
    /// State snapshot transfer.
    pub(super) sst_port: u16,
}

/// `wsrep_local_state_comment` of a node that has all data of its cluster.
const SYNCED_STATE: &str = "Synced";

/// Time limit of the bootstrap of a cluster by its first node.
const BOOTSTRAP_TIMEOUT: Duration = Duration::from_secs(60);

const GALERA_LIBRARY: &str = "/usr/lib/galera/libgalera_smm.so";

/// The name of the server at `index`: `mysql`, `mysql-2` …
pub(super) fn name(index: usize) -> String {
    numbered_name(NAME, index)
}

impl Galera {
    /// Whether this node starts the cluster: it is the first one, and has no data yet. A first node that has data joins.
    fn is_first_start_of_cluster(&self, folder: &Path) -> bool {
        self.index == 0 && !folder.join("data/grastate.dat").exists()
    }

    /// Waits until the first node is synced, because nodes that find each other before that prevent the bootstrap; fails after
    /// [`BOOTSTRAP_TIMEOUT`].
    async fn wait_until_bootstrapped(&self) -> Result<(), Failure> {
        let is_synced = || async { matches!(node_state(self.first).await, Ok((_, Some(state))) if state == SYNCED_STATE) };
        let late = format!("the first Galera node, whose log is {NAME}.log, did not bootstrap");
        wait_until(BOOTSTRAP_TIMEOUT, late, is_synced).await
    }

    /// The server's options for its place in the cluster.
    fn options(&self, folder: &Path, port: u16) -> Vec<String> {
        let all = self.peers.iter();
        let all: Vec<_> = all.map(|peer| format!("127.0.0.1:{}", peer.group_port)).collect();
        let PeerPorts { group_port, ist_port, sst_port } = self.peers[self.index];
        let mut options = vec![
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={GALERA_LIBRARY}"),
            format!("--wsrep-cluster-address=gcomm://{}", all.join(",")),
            "--wsrep-node-address=127.0.0.1".to_owned(),
            // The clients' address: nodes list each other by it.
            format!("--wsrep-node-incoming-address=127.0.0.1:{port}"),
            format!("--wsrep-node-name={}", name(self.index)),
            "--wsrep-sst-method=rsync".to_owned(),
            format!("--wsrep-sst-receive-address=127.0.0.1:{sst_port}"),
            format!(
                "--wsrep-provider-options=base_port={group_port};gmcast.listen_addr=tcp://127.0.0.1:{group_port};\
                 ist.recv_addr=127.0.0.1:{ist_port};gcache.size=32M"
            ),
            // Galera requires these two.
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
            // Several nodes share one machine.
            "--innodb-buffer-pool-size=32M".to_owned(),
            "--innodb-log-file-size=32M".to_owned(),
        ];
        if self.is_first_start_of_cluster(folder) {
            options.push("--wsrep-new-cluster".to_owned());
        }
        options
    }
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("mariadbd.pid")
}

/// The only folder that SQL may read from or write to. It is empty.
fn sql_file_folder(folder: &Path) -> PathBuf {
    folder.join("files")
}

/// Copies the empty database that labs share into `folder`; creates it first if it is missing.
async fn copy_seed(program: &MySqlProgram, shared: &Path, folder: &Path, user: User) -> Result<(), Failure> {
    let failed = |e: io::Error| unusable!("{NAME}: {e}");
    let changed = fs::metadata(&program.path).map_err(failed)?.mtime();
    let (title, version) = (program.title().to_lowercase(), &program.version);
    let seed = shared.join(format!("{title}-{version}-{changed}-{}", user.id()));
    let log = install_log(folder);
    if !seed.exists() {
        let making = Folder::create_unnamed(shared)?;
        let making = making.path_of(NAME);
        user.create_folder(&making).map_err(failed)?;
        install(program, &making, &log, user).await?;
        match fs::rename(making.join("data"), &seed) {
            Err(e) if e.kind() != io::ErrorKind::DirectoryNotEmpty => return Err(failed(e)),
            _ => {}
        }
    }
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(&seed).arg(folder.join("data"));
    run_to_success("cp", &copy, &log, user).await
}

/// Creates the system tables, an empty database `test`, and a root without password.
async fn install(program: &MySqlProgram, folder: &Path, log: &Path, user: User) -> Result<(), Failure> {
    if program.kind == Vendor::MariaDb {
        let mut command = base_command(&program.installer(), folder, user);
        command.args(["--auth-root-authentication-method=normal", "--skip-name-resolve"]);
        return run_to_success(INSTALLER, &command, log, user).await;
    }
    let sql = folder.join("first.sql");
    let written = fs::write(&sql, INITIAL_SQL).and_then(|()| user.take_ownership(&sql));
    written.map_err(|e| unusable!("{NAME}: {e}"))?;
    let mut command = base_command(&program.path, folder, user);
    command.arg("--initialize-insecure");
    command.arg(format!("--init-file={}", sql.display()));
    run_to_success("mysqld --initialize-insecure", &command, log, user).await
}

/// The log of the making of the empty database, beside the server's folder.
fn install_log(folder: &Path) -> PathBuf {
    folder.with_file_name("mysql-install.log")
}

/// Runs a program to its end, without a time limit; fails if its exit status is not 0. The error has the end of its log.
async fn run_to_success(name: &str, command: &Command, log: &Path, user: User) -> Result<(), Failure> {
    let process = Process::spawn(ProcessSpec { name, command, death_signal: "KILL", user, log, console: None })?;
    if process.wait_until_gone().await.is_success() {
        return Ok(());
    }
    let why = process.log_tail();
    Err(unusable!("{name} failed; {why}"))
}

/// Options for the installer and for the server alike. The data folder is relative because mariadb-install-db accepts
/// no space in it; `./` keeps it from being relative to /usr.
fn base_command(program: &Path, folder: &Path, user: User) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("TMPDIR", folder).arg("--no-defaults");
    // The server refuses to run as root without it.
    if user.is_root() {
        command.arg("--user=root");
    }
    command.arg("--datadir=./data");
    command
}

/// MariaDB's programs, each with its Debian package.
pub(super) const REQUIREMENTS: [Requirement; 2] = [(MARIADB, "mariadb-server"), (INSTALLER, "mariadb-server")];
pub(super) const MARIADB: &str = "mariadbd";

/// What a Galera cluster needs besides, each with its Debian package.
pub(super) const GALERA_REQUIREMENTS: [Requirement; 2] = [(GALERA_LIBRARY, "galera-4"), ("rsync", "rsync")];

/// The pid file of the server at this port, by which it is known, and its Galera state; `None` if it cannot be a node.
async fn node_state(port: u16) -> sqlx::Result<(String, Option<String>)> {
    const STATE: &str = "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'";
    let url = format!("mysql://root@127.0.0.1:{port}/test");
    let mut connection = MySqlConnection::connect(&url).await?;
    let pid_file = sqlx::query_scalar("SELECT @@pid_file").fetch_one(&mut connection).await?;
    let state: Option<(String, String)> = sqlx::query_as(STATE).fetch_optional(&mut connection).await?;
    connection.close().await?;
    Ok((pid_file, state.map(|(_, state)| state)))
}

impl Server for MySql {
    fn requirements(&self) -> &'static [Requirement] {
        const ALL: [Requirement; 4] = [REQUIREMENTS[0], REQUIREMENTS[1], GALERA_REQUIREMENTS[0], GALERA_REQUIREMENTS[1]];
        let is_installed = self.program.kind == Vendor::MySql || self.program.installer().is_absolute();
        match (&self.galera, is_installed && self.program.path.is_absolute()) {
            (Some(_), true) => &GALERA_REQUIREMENTS,
            (Some(_), false) => &ALL,
            (None, true) => &[],
            (None, false) => &REQUIREMENTS,
        }
    }

    /// Creates the empty database. A Galera node but the first instead waits until the first is synced, and receives the database
    /// when it starts. Fails for a Galera cluster as root.
    fn prepare<'a>(&'a self, folder: &'a Path, user: User) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            user.create_folder(folder)
                .and_then(|()| user.create_folder(&sql_file_folder(folder)))
                .map_err(|e| unusable!("{NAME}: {e}"))?;
            if let Some(galera) = &self.galera {
                if user.is_root() {
                    return Err(unusable!(
                        "a Galera cluster cannot run as root, since rsync sends no database then; \
                         start the lab as an ordinary user, or from a folder that everybody may enter"
                    ));
                }
                if galera.index > 0 {
                    user.create_folder(&folder.join("data")).map_err(|e| unusable!("{NAME}: {e}"))?;
                    return galera.wait_until_bootstrapped().await;
                }
            }
            match &self.shared {
                Some(shared) => copy_seed(&self.program, shared, folder, user).await,
                None => install(&self.program, folder, &install_log(folder), user).await,
            }
        }
        .boxed()
    }

    fn command(&self, folder: &Path, user: User) -> Command {
        let mut command = base_command(&self.program.path, folder, user);
        let without_tls = NO_TLS_OPTIONS.iter().filter(|(kind, _)| *kind == self.program.kind);
        command.args(without_tls.map(|(_, option)| option));
        command
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=2000"])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"])
            .args(DURABILITY)
            .arg(format!("--port={}", self.port))
            // A relative path: a socket's full path is limited to 107 bytes.
            .arg("--socket=mariadbd.sock")
            // The X protocol would take a port of its own.
            .arg("--loose-mysqlx=OFF")
            .arg(format!("--secure-file-priv={}", sql_file_folder(folder).display()))
            .arg(format!("--pid-file={}", pid_file(folder).display()));
        let galera = self.galera.iter();
        command.args(galera.flat_map(|galera| galera.options(folder, self.port)));
        command
    }

    /// Healthy once the server that was started answers; a Galera node only once it is synced.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            let (pid_path, state) = node_state(self.port).await.map_err(|e| e.to_string())?;
            if Path::new(&pid_path) != pid_file(context.folder) {
                return Err("another server answers".to_owned());
            }
            match (&self.galera, state.as_deref()) {
                (None, _) | (Some(_), Some(SYNCED_STATE)) => Ok(()),
                (Some(_), state) => Err(format!("its state is {}", state.unwrap_or("unknown"))),
            }
        }
        .boxed()
    }
}
