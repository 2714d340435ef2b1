//! A second lab, for servers that the first one does not have: an ensemble of ZooKeeper, a Galera cluster, or Sentinels.

pub(super) use crate::trials::cluster::OwnLab;
use crate::trials::{Cluster, NoVerdict};
use oversell::{claims::Words, load::target};
use oversell_lab::{addresses::Addresses, clients::four_letters::four_letter_command};
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Bounds the start of a lab, and the election of a leader, on a busy machine.
const LAB_TIMEOUT: Duration = Duration::from_secs(120);
/// The command and the options that every lab has: free ports.
const LAB_COMMAND: &str = "lab --http-port 0 --mysql-port 0 --zookeeper-port 0";

/// Options of `oversell lab`, and at most one environment variable for its instances.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabKind {
    options: &'static str,
    /// An environment variable for its instances, and its value.
    setting: Option<(&'static str, &'static str)>,
}

/// Three ZooKeeper servers, and five Redis nodes, of which the main one has a replica.
pub(super) const REPLICATED: LabKind =
    LabKind { options: "--instances 0,0 --redis-ports 0,0,0,0,0 --zookeeper 3 --ways --replica", setting: None };
/// Three ZooKeeper servers.
pub(super) const ENSEMBLE: LabKind =
    LabKind { options: "--instances 0,0 --redis-ports 0 --zookeeper 3", setting: None };
/// A main Redis, two replicas and three Sentinels.
pub(super) const SENTINELS: LabKind = LabKind { options: "--instances 0 --redis-ports 0 --sentinels 3", setting: None };
/// Three Galera nodes; all instances write to the first that lives.
pub(super) const ONE_WRITER: LabKind = LabKind { options: "--instances 0,0 --redis-ports 0 --galera 3", setting: None };
/// Three Galera nodes, with an instance on each.
const GALERA: LabKind =
    LabKind { options: "--instances 0,0,0 --redis-ports 0 --galera 3 --writers each", setting: None };
/// Three Galera nodes, with an instance on each whose reads see every commit.
const GALERA_WITH_CAUSAL_READS: LabKind =
    LabKind { setting: Some(("OVERSELL__MYSQL__CAUSAL_READS", "true")), ..GALERA };

/// The Galera lab that all lessons share, with an instance on each node; the first call starts it.
pub(super) async fn shared_galera(on: &Cluster) -> Result<&Cluster, NoVerdict> {
    let start = || async { Ok::<_, NoVerdict>(Box::new(OwnLab::start(on, GALERA).await?)) };
    Ok(&on.galera.get_or_try_init(start).await?.cluster)
}

/// Starts a Galera lab of its own, with `mysql.causal_reads`.
pub(super) async fn start_galera_with_causal_reads(on: &Cluster) -> Result<OwnLab, NoVerdict> {
    OwnLab::start(on, GALERA_WITH_CAUSAL_READS).await
}

impl OwnLab {
    /// Starts a lab beside the one that is tried. Unavailable without that one, because this machine may have no servers.
    pub(super) async fn start(on: &Cluster, kind: LabKind) -> Result<Self, NoVerdict> {
        on.servers()?;
        Self::start_process(kind, on.quick, on.stop.clone()).await
    }

    /// Starts a lab with these options of `oversell lab`; needs no other lab.
    pub(super) async fn start_independent(options: &'static str, stop: CancellationToken) -> Result<Self, NoVerdict> {
        let setting = None;
        Self::start_process(LabKind { options, setting }, false, stop).await
    }

    /// Starts `oversell lab` as a child process, which dies with this one, in a new folder. Unavailable if a package is missing.
    async fn start_process(kind: LabKind, quick: bool, stop: CancellationToken) -> Result<Self, NoVerdict> {
        let folder = TempDir::with_prefix("oversell-").map_err(NoVerdict::failed)?;
        // If root starts the lab, its servers run as another user, who must enter the folder.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).map_err(NoVerdict::failed)?;
        let said = folder.path().join("said");
        // The kernel stops the lab when this process dies.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(std::env::current_exe().map_err(NoVerdict::failed)?)
            .args(LAB_COMMAND.split(' ').chain(kind.options.split(' ')))
            .arg("--dir")
            .arg(folder.path().join("lab"))
            .envs(kind.setting)
            .stdout(Stdio::null())
            .stderr(File::create(&said).map_err(NoVerdict::failed)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(NoVerdict::failed)?;
        let written = folder.path().join("lab/lab.json");
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
        let elected = async {
            loop {
                for (server, at) in &servers {
                    let said = timeout(Duration::from_secs(1), four_letter_command(*at, "srvr")).await;
                    if server != not && matches!(said, Ok(Ok(said)) if said.contains("Mode: leader")) {
                        return server.clone();
                    }
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let late = |_| NoVerdict::failed("no leader is elected");
        let leader = timeout(LAB_TIMEOUT, elected).await.map_err(late)?;
        let others = servers.into_iter().map(|(server, _)| server);
        let others: Vec<_> = others.filter(|server| *server != leader).collect();
        Ok([vec![leader], others].concat())
    }
}
