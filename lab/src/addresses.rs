//! Where a running lab's servers are: the contents of `target/lab/lab.json`.

use crate::terminal::{
    chinese::localized,
    failure::{Failure, unusable, unusable_localized},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, fs::File, io::ErrorKind, path::Path};

/// The file, relative to the working folder, into which `oversell lab` writes its addresses by default.
pub const LAB_JSON: &str = "target/lab/lab.json";

/// The environment variable with the admin token, for a service and the commands that load it: others can see a command line.
pub const ADMIN_TOKEN_VARIABLE: &str = "OVERSELL__ADMIN__TOKEN";

/// The Sentinels' name for the main Redis and its replicas.
pub const SENTINEL_GROUP: &str = "main";

/// Every address of a lab. Other programs read `lab.json`: its fields keep their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Where to send requests: nginx, or the only instance.
    pub http: String,
    pub instances: Vec<InstanceAddress>,
    /// The database; of a Galera cluster, its first node.
    pub mysql: Process,
    /// The further nodes of the database, if it is a Galera cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub galera: Vec<Process>,
    /// Independent Redis nodes; the first is the main one at the start. A fail-over changes no address.
    pub redis: Vec<Process>,
    pub zookeeper: ZooKeeper,
    /// The nodes of etcd, in a lab that has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub etcd: Vec<Process>,
    pub nginx: Process,
    /// The replica of the main Redis, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<Process>,
    /// The Sentinel that promotes `replica`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<Process>,
    /// The replicas of the main Redis, if the instances use Sentinels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<Process>,
    /// The Sentinels that the instances ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentinels: Vec<Process>,
    /// The Redis in which students' scripts run. It is not among `redis`, because lessons rely on the order there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mine: Option<Process>,
    /// Where phones reach the page, in a lab for a class (`--lan`) that is in a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phones: Option<String>,
    /// The admin token of the instances, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<Token>,
    /// Name and version of each server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// Where the lab accepts faults, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
}

/// Where a lab accepts the faults of `oversell lab fault`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub url: String,
    pub token: Token,
}

/// A token as plain text, which `Debug` does not show, but JSON does.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub String);

impl Token {
    pub fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The name of a file in every folder that a lab made; the lab locks it while it runs.
pub const LAB_FOLDER_MARKER: &str = ".oversell-lab";

impl Addresses {
    /// The nodes of the database, the first one first.
    pub fn mysql_nodes(&self) -> impl Iterator<Item = &Process> {
        [&self.mysql].into_iter().chain(&self.galera)
    }

    /// The address of the first Redis node, whichever leads now; empty if there is none.
    pub fn first_redis(&self) -> &str {
        self.redis.first().map_or("", |node| &node.url)
    }

    /// The addresses of the lab that wrote `file`, which must still run.
    /// Errors: [`Failure::Unusable`] if there is no such file, it is something else or another user's, or its lab was
    /// killed and left it behind.
    pub fn read_running_lab(file: &Path) -> Result<Self, Failure> {
        let path = file.display();
        let start = localized!(
            "用 `oversell lab` 启动一个，或用 --lab-json 指定别的文件",
            "start one with `oversell lab`, or name another one's file with --lab-json"
        );
        let text = std::fs::read_to_string(file);
        if matches!(&text, Err(e) if e.kind() == ErrorKind::NotFound) {
            return Err(unusable_localized!(
                "没有实验环境在运行（没有 {path}）：{start}",
                "no lab is running (no {path}): {start}"
            ));
        }
        // A shared lock, so that two readers do not take each other for the lab.
        let mark = file.with_file_name(LAB_FOLDER_MARKER);
        if File::open(mark).is_ok_and(|mark| mark.try_lock_shared().is_ok()) {
            return Err(unusable_localized!(
                "没有实验环境在运行（{path} 是一个被杀死的留下的）：{start}",
                "no lab is running ({path} is of one that was killed): {start}"
            ));
        }
        let text = text.map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied => unusable_localized!(
                "没有权限读取 {path}：启动那个实验环境的是另一个用户。用那个用户执行这条命令，或停掉它再自己启动一个",
                "permission denied to read {path}: another user started that lab. Run this command as that user, or stop \
                 that lab and start one yourself"
            ),
            _ => unusable!("{path}: {e}"),
        })?;
        serde_json::from_str(&text).map_err(|e| unusable!("{path} is not a lab's file: {e}"))
    }
}

/// An instance of a lab; its pid is 0 if it did not run when this was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceAddress {
    /// Its name, as header `x-instance` gives it.
    pub name: String,
    pub url: String,
    pub pid: u32,
}

/// The address and the process of a server of a lab; its pid is 0 if it did not run when this was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub url: String,
    pub pid: u32,
}

/// A ZooKeeper server or ensemble, known by a connect string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZooKeeper {
    /// `host:port[,host:port…]`.
    pub connect: String,
    /// Its process, or that of the ensemble's first member.
    pub pid: u32,
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use nix::unistd::{Uid, setfsuid};
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    #[test]
    fn a_lab_of_another_user_is_not_called_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lab.json");
        fs::write(&file, "{}").expect("a file");
        fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("its owner is this user");
        // Where root runs the test, this thread alone reads as another user.
        let user = setfsuid(Uid::from_raw(65534));
        let error = Addresses::read_running_lab(&file);
        setfsuid(user);
        let error = error.expect_err("it cannot be read").to_string();
        assert!(error.starts_with("permission denied") && error.contains("another user"), "{error}");
    }
}
