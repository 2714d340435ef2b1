//! `config/galera`, which starts the nodes of the profile `ha`, with real servers and without Docker: three nodes on addresses of
//! their own, each of which is started again when it ends, as Docker does.

use crate::support::*;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, User, geteuid},
};
use parking_lot::Mutex;
use sqlx::{Connection, Executor, MySqlConnection};
use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::Stdio,
    sync::Arc,
};
use tempfile::TempDir;
use tokio::{
    process::Command,
    sync::watch,
    time::{sleep, timeout},
};

const GALERA: &str = include_str!("../../config/galera");

/// In the place of the image's entrypoint: each node keeps to its own address.
const ENTRYPOINT: &str = r#"#!/usr/bin/env bash
shift
touch "$HOME/started"
[[ -d $DATA/mysql ]] || cp -R "$SEED/." "$DATA"
for option; do
  case $option in --wsrep-provider-options=*) provider=$option ;; esac
done
exec mariadbd --bind-address="$NODE" --skip-name-resolve --wsrep-node-address="$NODE" \
  --wsrep-sst-receive-address="$NODE:4444" "$@" "$provider;gmcast.listen_addr=tcp://$NODE:4567"
"#;
const SERVER: &str = r#"#!/usr/bin/env bash
server=$(PATH=${PATH#*:} && command -v mariadbd)
exec "$server" --no-defaults --datadir="$DATA" --tmpdir="$HOME" --socket="$HOME/socket" --pid-file="$HOME/pid" "$@"
"#;
/// What gets the data for one that joins: it may be told to wait before it does.
const STATE: &str = r#"#!/usr/bin/env bash
if [[ " $* " == *" joiner "* ]]; then
  while [[ -e ../../hold ]]; do touch ../../held; sleep 0.1; done
fi
exec wsrep_sst_rsync "$@"
"#;
/// An empty database, in which root may come from everywhere.
const SEED: &str = r#"set -e
PATH=${PATH#*:}
mariadb-install-db --no-defaults --datadir="$SEED" --auth-root-authentication-method=normal --skip-name-resolve
mariadbd --no-defaults --datadir="$SEED" --bootstrap <<<"INSERT INTO mysql.global_priv
  SELECT '%', User, Priv FROM mysql.global_priv WHERE User = 'root' AND Host = 'localhost';"
"#;

struct Node {
    name: String,
    /// Whether it is to be started when it does not run.
    up: watch::Sender<bool>,
    runs: Mutex<Option<Pid>>,
}

struct Nodes {
    folder: TempDir,
    nodes: Vec<Arc<Node>>,
}

impl Nodes {
    async fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("galera-").tempdir()?;
        let path = folder.path();
        fs::create_dir(path.join("bin"))?;
        for (name, text) in [
            ("docker-entrypoint.sh", ENTRYPOINT),
            ("mariadbd", SERVER),
            ("wsrep_sst_held", STATE),
        ] {
            let file = path.join("bin").join(name);
            fs::write(&file, text)?;
            fs::set_permissions(file, PermissionsExt::from_mode(0o755))?;
        }
        let id = std::process::id();
        let name = |n| format!("127.{}.{}.{n}", 64 + (id >> 8) % 64, id % 256);
        let nodes = (1..=3).map(|n| {
            Arc::new(Node {
                name: name(n),
                up: watch::Sender::new(true),
                runs: Mutex::new(None),
            })
        });
        let nodes = Self {
            nodes: nodes.collect(),
            folder,
        };
        nodes.run_by(GALERA)?;
        let path = nodes.folder.path();
        own(path)?;
        own(&path.join("waiting"))?;
        for node in &nodes.nodes {
            let home = path.join(&node.name);
            own(&home)?;
            own(&home.join("data"))?;
        }
        let mut seed = nodes.command(&nodes.nodes[0], ["-c", SEED]);
        ensure!(seed.status().await?.success(), "no database was made");
        for node in &nodes.nodes {
            let script = path.join(&node.name).join("galera");
            let mut command = nodes.command(node, [&script]);
            let node = Arc::clone(node);
            tokio::spawn(async move {
                let mut up = node.up.subscribe();
                while up.wait_for(|up| *up).await.is_ok() {
                    let mut child = command.spawn().expect("bash starts");
                    let pid = child.id().expect("it runs") as i32;
                    *node.runs.lock() = Some(Pid::from_raw(pid));
                    child.wait().await.ok();
                    // As in a container, what it has started ends with it.
                    killpg(Pid::from_raw(pid), Signal::SIGKILL).ok();
                    *node.runs.lock() = None;
                    sleep(Duration::from_millis(100)).await;
                }
            });
        }
        Ok(nodes)
    }

    fn command<A: AsRef<OsStr>>(&self, node: &Node, args: impl IntoIterator<Item = A>) -> Command {
        let folder = self.folder.path();
        let names: Vec<_> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        let path = std::env::var("PATH").unwrap_or_default();
        let home = folder.join(&node.name);
        let mut command = Command::new("bash");
        command
            .args(args)
            .current_dir(&home)
            .env(
                "PATH",
                format!("{}:{path}:/usr/sbin", folder.join("bin").display()),
            )
            .env("HOME", &home)
            .env("DATA", home.join("data"))
            .env("SEED", folder.join("seed"))
            .env("NODE", &node.name)
            .env("GALERA_NODES", names.join(" "))
            .env("MYSQL_USER", "root")
            .env("MYSQL_PASSWORD", "")
            .env("MYSQL_ROOT_PASSWORD", "")
            .stdin(Stdio::null())
            .process_group(0);
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(home.join("log"));
        if let Ok(log) = log {
            command.stdout(log.try_clone().map_or_else(|_| Stdio::null(), Stdio::from));
            command.stderr(log);
        }
        if let Some(nobody) = nobody() {
            command.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        }
        command
    }

    /// What starts each node from now on.
    fn run_by(&self, galera: &str) -> Result<()> {
        for node in &self.nodes {
            let home = self.folder.path().join(&node.name);
            fs::create_dir_all(&home)?;
            let mut text = galera.to_owned();
            for (here, there) in [
                ("$(hostname)", node.name.clone()),
                ("/var/lib/mysql", home.join("data").display().to_string()),
                (
                    "/waiting/",
                    format!("{}/", self.folder.path().join("waiting").display()),
                ),
                (" --user=mysql", String::new()),
                ("sst-method=rsync", "sst-method=held".to_owned()),
            ] {
                ensure!(text.contains(here), "{here} is not there to be replaced");
                text = text.replace(here, &there);
            }
            // A shell goes on reading the one that it has begun.
            fs::write(home.join("next"), text)?;
            fs::rename(home.join("next"), home.join("galera"))?;
        }
        Ok(())
    }

    /// Nothing, where it is just being started again.
    fn signal(&self, n: usize, signal: Signal) {
        if let Some(pid) = *self.nodes[n].runs.lock() {
            kill(pid, signal).ok();
        }
    }

    async fn keep_down(&self, n: usize, signal: Signal) -> Result<()> {
        self.nodes[n].up.send_replace(false);
        self.signal(n, signal);
        until("it is gone", || async {
            if signal == Signal::SIGKILL {
                self.signal(n, signal);
            }
            Ok(self.nodes[n].runs.lock().is_none())
        })
        .await
    }

    fn up(&self, n: usize) {
        let home = self.folder.path().join(&self.nodes[n].name);
        fs::remove_file(home.join("started")).ok();
        self.nodes[n].up.send_replace(true);
    }

    /// It waits to be one of a cluster, or starts its server.
    fn has_decided(&self, n: usize) -> bool {
        let folder = self.folder.path();
        let name = &self.nodes[n].name;
        folder.join("waiting").join(name).exists() || folder.join(name).join("started").exists()
    }

    async fn connect(&self, n: usize) -> Result<MySqlConnection> {
        let url = format!("mysql://root@{}:3306/", self.nodes[n].name);
        Ok(timeout(Duration::from_secs(5), MySqlConnection::connect(&url)).await??)
    }

    /// What it says of its cluster; nothing where it does not answer.
    async fn says(&self, n: usize, what: &str) -> String {
        let said = async {
            let mut node = self.connect(n).await?;
            let ask = format!("SHOW GLOBAL STATUS LIKE '{what}'");
            let said: (String, String) = sqlx::query_as(&ask).fetch_one(&mut node).await?;
            anyhow::Ok(said.1)
        };
        said.await.unwrap_or_default()
    }

    /// All of them, with a majority, and with all that the cluster has.
    async fn are_one(&self, within: Duration) -> Result<()> {
        let one = async {
            for n in 0..self.nodes.len() {
                while self.says(n, "wsrep_cluster_status").await != "Primary"
                    || self.says(n, "wsrep_cluster_size").await != "3"
                    || self.says(n, "wsrep_local_state_comment").await != "Synced"
                {
                    sleep(Duration::from_millis(200)).await;
                }
            }
        };
        timeout(within, one)
            .await
            .context("they never are one cluster again")
    }

    /// Two die in one moment, and stay down: the third is without a majority.
    async fn lose_the_majority(&self) -> Result<()> {
        self.keep_down(0, Signal::SIGKILL).await?;
        self.keep_down(1, Signal::SIGKILL).await?;
        until("the third one has no majority", || async {
            Ok(self.says(2, "wsrep_cluster_status").await == "non-Primary")
        })
        .await
    }

    /// The one that runs without a majority ends by itself, since each waits for all.
    async fn the_dead_come_back(&self, within: Duration) -> Result<()> {
        self.lose_the_majority().await?;
        self.up(0);
        self.up(1);
        self.are_one(within).await
    }

    /// One of the dead comes back, and finds one that answers, but has no majority; and that one is started anew.
    async fn all_are_started_anew(&self, within: Duration) -> Result<()> {
        self.lose_the_majority().await?;
        self.up(0);
        until("the first one has decided", || async {
            Ok(self.has_decided(0))
        })
        .await?;
        self.signal(2, Signal::SIGTERM);
        self.up(1);
        self.are_one(within).await
    }

    /// The first one is still to get its data when those who have them end: nobody tells it, and it hears no signal.
    async fn all_are_started_anew_while_one_joins(&self, within: Duration) -> Result<()> {
        let folder = self.folder.path();
        self.keep_down(0, Signal::SIGTERM).await?;
        fs::write(folder.join("hold"), "")?;
        self.up(0);
        until("it joins", || async { Ok(folder.join("held").exists()) }).await?;
        for n in [1, 2] {
            self.keep_down(n, Signal::SIGTERM).await?;
        }
        fs::remove_file(folder.join("hold"))?;
        fs::remove_file(folder.join("held"))?;
        for n in [1, 2] {
            self.up(n);
        }
        self.are_one(within).await
    }

    /// As Galera leaves a node whose transfer went wrong: out of the cluster that goes on, and its server runs.
    async fn one_falls_out(&self, within: Duration) -> Result<()> {
        let mut node = self.connect(2).await?;
        node.execute("SET GLOBAL wsrep_cluster_address = ''")
            .await?;
        until("it is out", || async {
            Ok(self.says(0, "wsrep_cluster_size").await == "2")
        })
        .await?;
        self.are_one(within).await
    }

    /// The numbers by which they find out who has got furthest are those of one cluster.
    async fn all_die_and_go_on(&self, within: Duration) -> Result<()> {
        let id = self.says(0, "wsrep_cluster_state_uuid").await;
        self.all_die().await?;
        self.are_one(within).await?;
        let now = self.says(0, "wsrep_cluster_state_uuid").await;
        ensure!(id == now, "{now} is another cluster than {id}");
        Ok(())
    }

    /// Each is started by this one now, and they are one cluster.
    async fn begin_anew_by(&self, galera: &str) -> Result<()> {
        self.run_by(galera)?;
        self.all_die().await?;
        self.are_one(CLUSTER_TIMEOUT).await
    }

    async fn all_die(&self) -> Result<()> {
        for n in 0..self.nodes.len() {
            self.keep_down(n, Signal::SIGKILL).await?;
        }
        for n in 0..self.nodes.len() {
            self.up(n);
        }
        Ok(())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.up.send_replace(false);
            if let Some(pid) = *node.runs.lock() {
                killpg(pid, Signal::SIGKILL).ok();
            }
        }
    }
}

/// By whom a server of root's is run.
fn nobody() -> Option<User> {
    let is_root = geteuid().is_root();
    is_root.then(|| User::from_name("nobody").ok().flatten())?
}

fn own(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    if let Some(nobody) = nobody() {
        chown(folder, Some(nobody.uid.as_raw()), Some(nobody.gid.as_raw()))?;
    }
    Ok(())
}

/// However long a busy machine takes to start three servers, of which two get all from the first.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(240);

#[apply(soak_test!)]
async fn nodes_without_a_majority_rejoin_with_all_their_data() -> Result<()> {
    let nodes = Nodes::start().await?;
    nodes.are_one(CLUSTER_TIMEOUT).await?;
    let mut first = nodes.connect(0).await?;
    first
        .execute("CREATE TABLE test.kept (id INT PRIMARY KEY)")
        .await?;
    first.execute("INSERT INTO test.kept VALUES (1)").await?;
    nodes.the_dead_come_back(CLUSTER_TIMEOUT).await?;
    nodes.all_are_started_anew(CLUSTER_TIMEOUT).await?;
    nodes
        .all_are_started_anew_while_one_joins(CLUSTER_TIMEOUT)
        .await?;
    nodes.one_falls_out(CLUSTER_TIMEOUT).await?;
    nodes.all_die_and_go_on(CLUSTER_TIMEOUT).await?;

    let twin = |from: &str, to: &str| {
        ensure!(GALERA.contains(from), "{from} is not there to be broken");
        Ok(GALERA.replace(from, to))
    };
    let stays = twin("((lost > 10))", "((lost < 0))")?;
    nodes.begin_anew_by(&stays).await?;
    caught(
        nodes.the_dead_come_back(TEST_WAIT_LIMIT).await,
        "never are one",
    )?;
    nodes.begin_anew_by(&stays).await?;
    let joined = nodes
        .all_are_started_anew_while_one_joins(TEST_WAIT_LIMIT)
        .await;
    caught(joined, "never are one")?;
    let looks_at_others = twin("[[ -z $own ]] && ", "")?;
    nodes.begin_anew_by(&looks_at_others).await?;
    caught(nodes.one_falls_out(TEST_WAIT_LIMIT).await, "never are one")?;
    nodes.begin_anew_by(GALERA).await?;
    let counts_anew = twin("--wsrep-start-position=\"$position\" ", "")?;
    nodes.run_by(&counts_anew)?;
    caught(
        nodes.all_die_and_go_on(CLUSTER_TIMEOUT).await,
        "another cluster",
    )?;

    for n in 0..3 {
        let mut node = nodes.connect(n).await?;
        let kept: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM test.kept")
            .fetch_one(&mut node)
            .await?;
        ensure!(kept == 1, "what was committed is gone from node {n}");
    }
    Ok(())
}
