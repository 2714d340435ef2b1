//! A lab beside the one that is tried, for what that one has not: an ensemble of ZooKeeper.

use crate::{
    addresses::Addresses,
    course::{Cluster, NoVerdict},
    four_letters::four_letters,
    load::target,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{process::Stdio, time::Duration};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

/// How long it may take to start, or to elect a leader.
const PATIENCE: Duration = Duration::from_secs(90);
/// Two instances, three ZooKeeper servers, a main Redis and its replica, all on free ports.
const OPTIONS: &str = "lab --http-port 0 --instances 0,0 --mysql-port 0 --redis-ports 0,0,0,0,0 --zookeeper 3 --zookeeper-port 0 --ways --replica";

/// A lab that is stopped when it is dropped.
pub(super) struct OwnLab {
    /// What can be done with it.
    pub(super) cluster: Cluster,
    child: Child,
    _folder: TempDir,
}

impl OwnLab {
    /// Starts one.
    pub(super) async fn start(on: &Cluster) -> Result<Self, NoVerdict> {
        // Without a lab of its own this machine may have no servers to start.
        on.servers()?;
        let folder = TempDir::with_prefix("oversell-").map_err(NoVerdict::failed)?;
        // The kernel stops it where this process dies.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(std::env::current_exe().map_err(NoVerdict::failed)?)
            .args(OPTIONS.split(' '))
            .arg("--dir")
            .arg(folder.path().join("lab"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(NoVerdict::failed)?;
        let written = folder.path().join("lab/lab.json");
        let up = async {
            while child.try_wait().map_err(NoVerdict::failed)?.is_none() {
                if let Ok(at) = Addresses::of_running_lab(&written) {
                    return Ok(at);
                }
                sleep(Duration::from_millis(50)).await;
            }
            Err(NoVerdict::failed("a second lab does not start"))
        };
        let late = |_| NoVerdict::failed("a second lab is not up in time");
        let at = timeout(PATIENCE, up).await.map_err(late)??;
        let found = target::Cluster {
            http: Some(at.http.clone()),
            instance: at.instances.first().map(|instance| instance.url.clone()),
            lab: Some(at),
        };
        Ok(Self {
            cluster: Cluster::new(found, on.quick, on.stop.clone())?,
            child,
            _folder: folder,
        })
    }

    /// The names of the ZooKeeper servers, the leader first, as soon as there is one beside `not`.
    pub(super) async fn ensemble(&self, not: &str) -> Result<Vec<String>, NoVerdict> {
        let servers = self.cluster.servers()?.zookeeper.connect.split(',');
        let name = |n| match n {
            1 => "zookeeper".to_owned(),
            n => format!("zookeeper-{n}"),
        };
        let servers: Vec<_> = (1..).map(name).zip(servers).collect();
        let elected = async {
            loop {
                for (server, at) in &servers {
                    let said = timeout(Duration::from_secs(1), four_letters(*at, "srvr")).await;
                    if server != not
                        && matches!(said, Ok(Ok(said)) if said.contains("Mode: leader"))
                    {
                        return server.clone();
                    }
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let late = |_| NoVerdict::failed("no leader is elected");
        let leader = timeout(PATIENCE, elected).await.map_err(late)?;
        let others = servers.into_iter().map(|(server, _)| server);
        let others: Vec<_> = others.filter(|server| *server != leader).collect();
        Ok([vec![leader], others].concat())
    }

    /// Stops it, in order.
    pub(super) async fn stop(mut self) -> Result<(), NoVerdict> {
        if let Some(pid) = self.child.id() {
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).map_err(NoVerdict::failed)?;
        }
        self.child.wait().await.map_err(NoVerdict::failed)?;
        Ok(())
    }
}
