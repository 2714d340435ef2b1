//! etcd, in a lab that asks for it: one node, or several as one cluster. It keeps its data; a write is answered once a majority
//! has it on disk.

use super::{
    server::{CheckContext, HealthCheck, Server, numbered_name},
    user::User,
};
use crate::{
    clients::http_client::{Answer, Ask, client},
    programs::{self, Requirement},
};
use futures::FutureExt;
use serde_json::Value;
use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::net::TcpStream;

/// The name of the first node and of the program, and the prefix of the names of further nodes.
pub(super) const NAME: &str = "etcd";
pub(super) const REQUIREMENTS: [Requirement; 1] = [(NAME, "etcd-server")];

/// Time limit of the status query: a paused node does not answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The name of the node at `index`: `etcd`, `etcd-2` …
pub(super) fn name(index: usize) -> String {
    numbered_name(NAME, index)
}

/// The name and version of the program, such as `etcd 3.4.23`; `None` if it does not tell.
pub(super) fn version(program: &Path) -> Option<String> {
    let text = programs::output_of(program, "--version")?;
    let (_, version) = text.split_once("etcd Version:")?;
    Some(format!("{NAME} {}", programs::version_number(version)))
}

/// A node of etcd that the lab starts.
#[derive(Debug)]
pub(super) struct Etcd {
    pub(super) program: PathBuf,
    pub(super) index: usize,
    pub(super) port: u16,
    /// The ports of all nodes for each other, this one's included.
    pub(super) peers: Vec<u16>,
}

impl Server for Etcd {
    fn requirements(&self) -> &'static [Requirement] {
        programs::missing_requirements(&self.program, &REQUIREMENTS)
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let cluster = self.peers.iter().enumerate().map(|(n, port)| format!("{}={}", name(n), url(*port)));
        let mut command = Command::new(&self.program);
        for (option, value) in [
            ("--name", name(self.index)),
            ("--data-dir", folder.join("data").display().to_string()),
            ("--listen-client-urls", url(self.port)),
            ("--advertise-client-urls", url(self.port)),
            ("--listen-peer-urls", url(self.peers[self.index])),
            ("--initial-advertise-peer-urls", url(self.peers[self.index])),
            ("--initial-cluster", cluster.collect::<Vec<_>>().join(",")),
            // The nodes of another lab are refused.
            ("--initial-cluster-token", format!("oversell-{}", self.peers[0])),
        ] {
            command.arg(option).arg(value);
        }
        command
    }

    /// A node is healthy once it knows a leader. Without a majority it has not begun to answer: then it is once it listens.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            if !context.dependencies_up {
                return TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.map(drop).map_err(|e| e.to_string());
            }
            let status = status(&format!("http://127.0.0.1:{}", self.port)).await?;
            if is_known(&status["leader"]) { Ok(()) } else { Err("no leader".to_owned()) }
        }
        .boxed()
    }
}

/// Whether the node at `url` leads; false if it does not answer.
pub(super) async fn is_leader(url: &str) -> bool {
    let status = status(url).await.unwrap_or_default();
    is_known(&status["leader"]) && status["leader"] == status["header"]["member_id"]
}

/// Whether it is the number of a member: 0, which JSON leaves out, is none.
fn is_known(member: &Value) -> bool {
    member.as_str().is_some_and(|id| id != "0")
}

/// What the node at `url` says of itself.
async fn status(url: &str) -> Result<Value, String> {
    let request = client().post(format!("{url}/v3/maintenance/status")).body("{}").timeout(STATUS_TIMEOUT);
    request.answer().await.and_then(Answer::success).and_then(|answer| answer.json()).map_err(|e| e.to_string())
}
