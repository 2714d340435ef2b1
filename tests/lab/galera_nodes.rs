//! `config/galera`, which starts the nodes of the profile `ha`, on real servers and without Docker: three nodes on
//! addresses of their own. Each is started again when it ends, as Docker does.

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

/// Replaces the image's entrypoint: each node binds its own address.
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
/// The transfer script of a joining node; a test may delay it.
const STATE: &str = r#"#!/usr/bin/env bash
if [[ " $* " == *" joiner "* ]]; then
  while [[ -e ../../hold ]]; do touch ../../held; sleep 0.1; done
fi
exec wsrep_sst_rsync "$@"
"#;
/// An empty database with a root user from any host.
const SEED: &str = r#"set -e
PATH=${PATH#*:}
mariadb-install-db --no-defaults --datadir="$SEED" --auth-root-authentication-method=normal --skip-name-resolve
mariadbd --no-defaults --datadir="$SEED" --bootstrap <<<"INSERT INTO mysql.global_priv
  SELECT '%', User, Priv FROM mysql.global_priv WHERE User = 'root' AND Host = 'localhost';"
"#;

struct Node {
    name: String,
    /// Restart the node when it ends.
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
        for (name, text) in [("docker-entrypoint.sh", ENTRYPOINT), ("mariadbd", SERVER), ("wsrep_sst_held", STATE)] {
            let file = path.join("bin").join(name);
            fs::write(&file, text)?;
            fs::set_permissions(file, PermissionsExt::from_mode(0o755))?;
        }
        let id = std::process::id();
        let name = |n| format!("127.{}.{}.{n}", 64 + (id >> 8) % 64, id % 256);
        let nodes = (1..=3).map(|n| Arc::new(Node { name: name(n), up: watch::Sender::new(true), runs: Mutex::new(None) }));
        let nodes = Self { nodes: nodes.collect(), folder };
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
                    // As in a container, its children end with it.
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
            .env("PATH", format!("{}:{path}:/usr/sbin", folder.join("bin").display()))
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
        let log = fs::File::options().create(true).append(true).open(home.join("log"));
        if let Ok(log) = log {
            command.stdout(log.try_clone().map_or_else(|_| Stdio::null(), Stdio::from));
            command.stderr(log);
        }
        if let Some(nobody) = nobody() {
            command.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        }
        command
    }

    /// Replaces the script that starts each node.
    fn run_by(&self, galera: &str) -> Result<()> {
        for node in &self.nodes {
            let home = self.folder.path().join(&node.name);
            fs::create_dir_all(&home)?;
            let mut text = galera.to_owned();
            for (here, there) in [
                ("$(hostname)", node.name.clone()),
                ("/var/lib/mysql", home.join("data").display().to_string()),
                ("/waiting/", format!("{}/", self.folder.path().join("waiting").display())),
                (" --user=mysql", String::new()),
                ("sst-method=rsync", "sst-method=held".to_owned()),
            ] {
                ensure!(text.contains(here), "{here} is not there to be replaced");
                text = text.replace(here, &there);
            }
            // A running shell keeps reading the old file.
            fs::write(home.join("next"), text)?;
            fs::rename(home.join("next"), home.join("galera"))?;
        }
        Ok(())
    }

    /// None while the node restarts.
    fn signal(&self, n: usize, signal: Signal) {
        if let Some(pid) = *self.nodes[n].runs.lock() {
            kill(pid, signal).ok();
        }
    }

    async fn keep_down(&self, n: usize, signal: Signal) -> Result<()> {
        self.nodes[n].up.send_replace(false);
        self.signal(n, signal);
        wait_until("it is gone", || async {
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

    /// Waiting for a cluster, or starting its server.
    fn has_decided(&self, n: usize) -> bool {
        let folder = self.folder.path();
        let name = &self.nodes[n].name;
        folder.join("waiting").join(name).exists() || folder.join(name).join("started").exists()
    }

    async fn connect(&self, n: usize) -> Result<MySqlConnection> {
        let url = format!("mysql://root@{}:3306/", self.nodes[n].name);
        Ok(timeout(Duration::from_secs(5), MySqlConnection::connect(&url)).await??)
    }

    /// The node's status; none if it does not answer.
    async fn status_value(&self, n: usize, what: &str) -> String {
        let said = async {
            let mut node = self.connect(n).await?;
            let ask = format!("SHOW GLOBAL STATUS LIKE '{what}'");
            let said: (String, String) = sqlx::query_as(&ask).fetch_one(&mut node).await?;
            anyhow::Ok(said.1)
        };
        said.await.unwrap_or_default()
    }

    /// All nodes are in one cluster with a majority and have all data.
    async fn wait_until_one_cluster(&self, within: Duration) -> Result<()> {
        let one = async {
            for n in 0..self.nodes.len() {
                while self.status_value(n, "wsrep_cluster_status").await != "Primary"
                    || self.status_value(n, "wsrep_cluster_size").await != "3"
                    || self.status_value(n, "wsrep_local_state_comment").await != "Synced"
                {
                    sleep(Duration::from_millis(200)).await;
                }
            }
        };
        timeout(within, one).await.context("they never are one cluster again")
    }

    /// Two nodes die at once and stay down, so the third has no majority.
    async fn lose_the_majority(&self) -> Result<()> {
        self.keep_down(0, Signal::SIGKILL).await?;
        self.keep_down(1, Signal::SIGKILL).await?;
        wait_until("the third one has no majority", || async {
            Ok(self.status_value(2, "wsrep_cluster_status").await == "non-Primary")
        })
        .await
    }

    /// The node without a majority ends by itself, because each node waits for all.
    async fn restart_dead_nodes(&self, within: Duration) -> Result<()> {
        self.lose_the_majority().await?;
        self.up(0);
        self.up(1);
        self.wait_until_one_cluster(within).await
    }

    /// A dead node returns and finds one that answers without a majority; that one is restarted.
    async fn all_are_started_anew(&self, within: Duration) -> Result<()> {
        self.lose_the_majority().await?;
        self.up(0);
        wait_until("the first one has decided", || async { Ok(self.has_decided(0)) }).await?;
        self.signal(2, Signal::SIGTERM);
        self.up(1);
        self.wait_until_one_cluster(within).await
    }

    /// The first node waits for its data when its donors end. Nobody tells it, and it receives no signal.
    async fn all_are_started_anew_while_one_joins(&self, within: Duration) -> Result<()> {
        let folder = self.folder.path();
        self.keep_down(0, Signal::SIGTERM).await?;
        fs::write(folder.join("hold"), "")?;
        self.up(0);
        wait_until("it joins", || async { Ok(folder.join("held").exists()) }).await?;
        for n in [1, 2] {
            self.keep_down(n, Signal::SIGTERM).await?;
        }
        fs::remove_file(folder.join("hold"))?;
        fs::remove_file(folder.join("held"))?;
        for n in [1, 2] {
            self.up(n);
        }
        self.wait_until_one_cluster(within).await
    }

    /// As after a failed transfer: the server runs outside of the cluster, which goes on.
    async fn one_falls_out(&self, within: Duration) -> Result<()> {
        let mut node = self.connect(2).await?;
        node.execute("SET GLOBAL wsrep_cluster_address = ''").await?;
        wait_until("it is out", || async { Ok(self.status_value(0, "wsrep_cluster_size").await == "2") }).await?;
        self.wait_until_one_cluster(within).await
    }

    /// The sequence numbers that decide who is furthest must be of one cluster.
    async fn all_die_and_go_on(&self, within: Duration) -> Result<()> {
        let id = self.status_value(0, "wsrep_cluster_state_uuid").await;
        self.all_die().await?;
        self.wait_until_one_cluster(within).await?;
        let now = self.status_value(0, "wsrep_cluster_state_uuid").await;
        ensure!(id == now, "{now} is another cluster than {id}");
        Ok(())
    }

    /// The new script starts every node, and they form one cluster.
    async fn begin_anew_by(&self, galera: &str) -> Result<()> {
        self.run_by(galera)?;
        self.all_die().await?;
        self.wait_until_one_cluster(CLUSTER_TIMEOUT).await
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

/// The user that runs a server which root starts.
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

/// Covers three starts on a busy machine, two of them with a full transfer.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(240);

#[apply(soak_test!)]
async fn nodes_without_a_majority_rejoin_with_all_their_data() -> Result<()> {
    let nodes = Nodes::start().await?;
    nodes.wait_until_one_cluster(CLUSTER_TIMEOUT).await?;
    let mut first = nodes.connect(0).await?;
    first.execute("CREATE TABLE test.kept (id INT PRIMARY KEY)").await?;
    first.execute("INSERT INTO test.kept VALUES (1)").await?;
    nodes.restart_dead_nodes(CLUSTER_TIMEOUT).await?;
    nodes.all_are_started_anew(CLUSTER_TIMEOUT).await?;
    nodes.all_are_started_anew_while_one_joins(CLUSTER_TIMEOUT).await?;
    nodes.one_falls_out(CLUSTER_TIMEOUT).await?;
    nodes.all_die_and_go_on(CLUSTER_TIMEOUT).await?;

    let twin = |from: &str, to: &str| {
        ensure!(GALERA.contains(from), "{from} is not there to be broken");
        Ok(GALERA.replace(from, to))
    };
    let stays = twin("((lost > 10))", "((lost < 0))")?;
    nodes.begin_anew_by(&stays).await?;
    caught(nodes.restart_dead_nodes(TEST_WAIT_LIMIT).await, "never are one")?;
    nodes.begin_anew_by(&stays).await?;
    let joined = nodes.all_are_started_anew_while_one_joins(TEST_WAIT_LIMIT).await;
    caught(joined, "never are one")?;
    let looks_at_others = twin("[[ -z $own ]] && ", "")?;
    nodes.begin_anew_by(&looks_at_others).await?;
    caught(nodes.one_falls_out(TEST_WAIT_LIMIT).await, "never are one")?;
    nodes.begin_anew_by(GALERA).await?;
    let counts_anew = twin("--wsrep-start-position=\"$position\" ", "")?;
    nodes.run_by(&counts_anew)?;
    caught(nodes.all_die_and_go_on(CLUSTER_TIMEOUT).await, "another cluster")?;

    for n in 0..3 {
        let mut node = nodes.connect(n).await?;
        let kept: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM test.kept").fetch_one(&mut node).await?;
        ensure!(kept == 1, "what was committed is gone from node {n}");
    }
    Ok(())
}
