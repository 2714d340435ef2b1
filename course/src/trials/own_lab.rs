//! A second lab, for servers that the first one does not have: an ensemble of ZooKeeper, a Galera cluster, or Sentinels.

use crate::trials::{Cluster, NoVerdict, tools::send_command};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oversell::{claims::Words, load::target, server::Server};
use oversell_lab::{
    addresses::{Addresses, SENTINEL_GROUP},
    clients::{four_letters::four_letter_command, redis_at::redis_at},
    wait::wait_for,
};
use redis::aio::MultiplexedConnection;
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Bounds the start of a lab, and the election of a leader, on a busy machine.
const LAB_TIMEOUT: Duration = Duration::from_secs(120);
/// The options that every lab has.
const FREE_PORTS: &str = "--http-port 0 --mysql-port 0 --zookeeper-port 0 --etcd-port 0";

/// A new folder for a lab. If root starts the lab, its servers run as another user, who must enter the folder.
pub(super) fn new_folder() -> Result<TempDir, NoVerdict> {
    let mut folder = tempfile::Builder::new();
    folder.prefix("oversell-").permissions(Permissions::from_mode(0o755)).tempdir().map_err(NoVerdict::failed)
}

/// Three ZooKeeper servers, and five Redis nodes, of which the main one has a replica.
pub(super) const REPLICATED: &str = "--instances 0,0 --redis-ports 0,0,0,0,0 --zookeeper 3 --links --replica";
/// Three ZooKeeper servers.
pub(super) const ENSEMBLE: &str = "--instances 0,0 --redis-ports 0 --zookeeper 3";
/// A main Redis, two replicas and three Sentinels.
pub(super) const SENTINELS: &str = "--instances 0 --redis-ports 0 --sentinels 3";
/// Three Galera nodes; all instances write to the first that lives.
pub(super) const ONE_WRITER: &str = "--instances 0,0 --redis-ports 0 --galera 3";
/// Three Galera nodes, with an instance on each.
pub(super) const GALERA: &str = "--instances 0,0,0 --redis-ports 0 --galera 3 --writers each";
/// An environment variable for its instances, and its value: their reads see every commit.
const CAUSAL_READS: (&str, &str) = ("OVERSELL__MYSQL__CAUSAL_READS", "true");

/// Starts a Galera lab of its own, with `mysql.causal_reads`.
pub(super) async fn start_galera_with_causal_reads(on: &Cluster) -> Result<OwnLab, NoVerdict> {
    on.servers()?;
    OwnLab::start_in_new_folder(GALERA, Some(CAUSAL_READS), on.quick, on.stop.clone()).await
}

/// Connects to the first Sentinel of a lab.
pub(super) async fn connect_to_sentinel(on: &Cluster) -> Result<MultiplexedConnection, NoVerdict> {
    let sentinel = on.servers()?.sentinels.first();
    let sentinel = sentinel.ok_or_else(|| NoVerdict::failed("no Sentinel"))?;
    Ok(redis_at(&sentinel.url).await?)
}

/// Asks a Sentinel for the primary Redis; returns its name and address.
pub(super) async fn leading_redis(on: &Cluster) -> Result<(&'static str, String), NoVerdict> {
    let mut sentinel = connect_to_sentinel(on).await?;
    let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SENTINEL_GROUP];
    let (_, port): (String, String) = send_command(&mut sentinel, &asked).await?;
    let at = on.servers()?;
    let mut members = at.redis.iter().chain(&at.replicas).zip(["redis", "replica", "replica-2"]);
    let leads = members.find(|(member, _)| member.url.rsplit(':').next() == Some(&port));
    let (member, name) = leads.ok_or_else(|| NoVerdict::failed("the Sentinels know nobody who leads"))?;
    Ok((name, member.url.clone()))
}

/// A lab that an experiment has started for itself, beside the one that is tried. Dropping it kills it.
#[derive(Debug)]
pub(super) struct OwnLab {
    pub(super) cluster: Cluster,
    child: Child,
    _folder: TempDir,
}

impl OwnLab {
    /// Sends the lab SIGTERM and waits, without a limit, for its end.
    pub(super) async fn stop(self) -> Result<(), NoVerdict> {
        if let Some(pid) = self.child.id() {
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).map_err(NoVerdict::failed)?;
        }
        self.wait_for_end().await
    }

    /// Waits, without a limit, for the end of a lab that was told to stop.
    pub(super) async fn wait_for_end(mut self) -> Result<(), NoVerdict> {
        self.child.wait().await.map_err(NoVerdict::failed)?;
        Ok(())
    }

    /// The lab's name of the server of this kind that is alone, is written, or leads now. Of a cluster of the database it is the node
    /// of the first instance.
    pub(super) async fn leader(&self, of: Server) -> Result<String, NoVerdict> {
        let at = self.cluster.servers()?;
        Ok(match of {
            Server::Redis if !at.sentinels.is_empty() => leading_redis(&self.cluster).await?.0.to_owned(),
            Server::ZooKeeper if at.zookeeper.connect.contains(',') => self.wait_for_leader_and_followers("").await?.remove(0),
            alone => alone.name().to_owned(),
        })
    }

    /// Starts a lab with these options of `oversell lab` beside the one that is tried. Unavailable without that one, because this
    /// machine may have no servers.
    pub(super) async fn start(on: &Cluster, options: &str) -> Result<Self, NoVerdict> {
        on.servers()?;
        Self::start_in_new_folder(options, None, on.quick, on.stop.clone()).await
    }

    /// Starts a lab with these options of `oversell lab`, and this setting of its instances; needs no other lab.
    pub(super) async fn start_in_new_folder(
        options: &str,
        setting: Option<(&str, &str)>,
        quick: bool,
        stop: CancellationToken,
    ) -> Result<Self, NoVerdict> {
        let folder = new_folder()?;
        let dir = folder.path().join("lab");
        let options = format!("{FREE_PORTS} {options} --dir {}", dir.display());
        Self::start_process(&options, setting, &dir, folder, quick, stop).await
    }

    /// Starts the lab that a typed line starts, `(oversell lab OPTIONS --dir DIR > … & echo $! > DIR.pid)`, in this folder, in which
    /// `DIR` is; writes its process id to that file. A later line ends it.
    pub(super) async fn start_typed(on: &Cluster, line: &str, folder: TempDir) -> Result<Self, NoVerdict> {
        on.servers()?;
        let options = line.split_once("oversell lab ").and_then(|(_, rest)| rest.split_once(" > "));
        let dir = options.and_then(|(options, _)| options.split_once("--dir "));
        let (Some((options, _)), Some((_, dir))) = (options, dir) else {
            return Err(NoVerdict::failed(format!("it starts no lab in a folder: {line}")));
        };
        let own = Self::start_process(options, None, Path::new(dir), folder, on.quick, on.stop.clone()).await?;
        let id = own.child.id().unwrap_or_default();
        fs::write(format!("{dir}.pid"), id.to_string()).map_err(NoVerdict::failed)?;
        Ok(own)
    }

    /// Starts `oversell lab` as a child process, which dies with this one. Unavailable if a package is missing.
    async fn start_process(
        options: &str,
        setting: Option<(&str, &str)>,
        dir: &Path,
        folder: TempDir,
        quick: bool,
        stop: CancellationToken,
    ) -> Result<Self, NoVerdict> {
        let said = folder.path().join("said");
        // The kernel stops the lab when this process dies.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(std::env::current_exe().map_err(NoVerdict::failed)?)
            .arg("lab")
            .args(options.split(' '))
            .envs(setting)
            .stdout(Stdio::null())
            .stderr(File::create(&said).map_err(NoVerdict::failed)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(NoVerdict::failed)?;
        let written = dir.join("lab.json");
        let up = async {
            while child.try_wait().map_err(NoVerdict::failed)?.is_none() {
                if let Ok(at) = Addresses::read_running_lab(&written) {
                    return Ok(at);
                }
                sleep(Duration::from_millis(50)).await;
            }
            let why = fs::read_to_string(&said).unwrap_or_default();
            let why = why.trim().trim_start_matches("oversell: ");
            // The lab's own message names the package that is missing.
            Err(match why.contains("Debian") {
                true => NoVerdict::Unavailable(Words::untranslated(why)),
                false => NoVerdict::failed(format!("a second lab does not start: {why}")),
            })
        };
        let late = |_| NoVerdict::failed("a second lab is not up in time");
        let at = timeout(LAB_TIMEOUT, up).await.map_err(late)??;
        let found = target::Cluster {
            http: Some(at.http.clone()),
            instance: at.instances.first().map(|instance| instance.url.clone()),
            lab: Some(at),
        };
        Ok(Self { cluster: Cluster::new(found, quick, stop)?, child, _folder: folder })
    }

    /// Waits, [`LAB_TIMEOUT`] at most, for a leader other than `not` (may be empty); returns all ZooKeeper servers, the leader
    /// first.
    pub(super) async fn wait_for_leader_and_followers(&self, not: &str) -> Result<Vec<String>, NoVerdict> {
        let servers = self.cluster.servers()?.zookeeper.connect.split(',');
        let name = |n| match n {
            1 => "zookeeper".to_owned(),
            n => format!("zookeeper-{n}"),
        };
        let servers: Vec<_> = (1..).map(name).zip(servers).collect();
        let leader = || async {
            for (server, at) in &servers {
                let said = timeout(Duration::from_secs(1), four_letter_command(*at, "srvr")).await;
                if server != not && matches!(said, Ok(Ok(said)) if said.contains("Mode: leader")) {
                    return Ok::<_, NoVerdict>(Some(server.clone()));
                }
            }
            Ok(None)
        };
        let leader = wait_for(LAB_TIMEOUT, "no leader is elected", leader).await?;
        let others = servers.into_iter().map(|(server, _)| server);
        let others: Vec<_> = others.filter(|server| *server != leader).collect();
        Ok([vec![leader], others].concat())
    }
}
