//! ZooKeeper: the JVM is run directly, with the class path of Debian's start script, of ZOOKEEPER_HOME, or of
//! OVERSELL_ZOOKEEPER_CLASSPATH. One server is standalone. Several are an ensemble; each is healthy once it follows or
//! leads.

use super::{
    server::{CheckContext, HealthCheck, Server, numbered_name},
    user::User,
};
use crate::{
    clients::four_letters::four_letter_command,
    programs::{self, Requirement},
    terminal::failure::{Failure, unusable_localized},
};
use futures::FutureExt;
use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::time::timeout;

pub(super) const NAME: &str = "zookeeper";
const CONFIG_FILE: &str = "zoo.cfg";
const DATA: &str = "data";

/// The start script's settings on Debian and Ubuntu; they set CLASSPATH.
const DEBIAN_ENVIRONMENT: &str = "/usr/share/zookeeper/bin/zkEnv.sh";
/// The logger that is added to Debian's class path; ZooKeeper logs only with it.
const LOGGER_JAR: &str = "/usr/share/java/slf4j-simple.jar";
/// The variable with the folder of an unpacked ZooKeeper.
const HOME_VARIABLE: &str = "ZOOKEEPER_HOME";
/// The variable with the whole class path, which goes before [`HOME_VARIABLE`].
const CLASS_PATH_VARIABLE: &str = "OVERSELL_ZOOKEEPER_CLASSPATH";

/// The answer of a server that has no leader.
const NO_LEADER: &str = "not currently serving requests";
/// Time limit of the status query: a paused server does not answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The name of the server at `index`: `zookeeper`, `zookeeper-2` …
pub(super) fn name(index: usize) -> String {
    numbered_name(NAME, index)
}

/// Ports of a member for the other members.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerPorts {
    pub(super) quorum: u16,
    pub(super) election: u16,
}

/// A server of ZooKeeper that the lab starts: a single one, or a member of an ensemble.
#[derive(Debug)]
pub(super) struct ZooKeeper {
    /// None: Debian's class path.
    pub(super) class_path: Option<String>,
    pub(super) index: usize,
    pub(super) port: u16,
    /// All members, this one included; empty for a standalone server.
    pub(super) peers: Vec<PeerPorts>,
}

const REQUIREMENTS: [Requirement; 2] = [("java", "default-jre-headless"), (DEBIAN_ENVIRONMENT, NAME)];

/// The requirements, without Debian's package if the environment names another class path, even a wrong one.
pub(super) fn requirements_here() -> &'static [Requirement] {
    match own_class_path(None) {
        Ok(None) => &REQUIREMENTS,
        _ => &REQUIREMENTS[..1],
    }
}

impl Server for ZooKeeper {
    fn requirements(&self) -> &'static [Requirement] {
        match self.class_path {
            Some(_) => &REQUIREMENTS[..1],
            None => &REQUIREMENTS,
        }
    }

    fn config_files(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let settings = zoo_cfg(&folder.join(DATA), self.port, &self.peers);
        vec![("data/myid", (self.index + 1).to_string()), (CONFIG_FILE, settings)]
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = Command::new(programs::path("java"));
        command
            // The serial collector starts faster and is enough for this heap; performance data would be written to
            // /tmp.
            .args(["-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms32m", "-Xmx256m"])
            .args(["-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"])
            .arg(format!("-Djava.io.tmpdir={}", folder.display()))
            .arg("-cp")
            .arg(self.class_path.clone().unwrap_or_else(debian_class_path))
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(folder.join(CONFIG_FILE));
        command
    }

    /// A server is healthy once its answer names its data folder, which it does only while there is a leader. Without a majority
    /// it is healthy once it says that there is no leader.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            let answer = four_letter_command((Ipv4Addr::LOCALHOST, self.port), "conf").await.map_err(|e| e.to_string())?;
            let ours = format!("dataDir={}/", context.folder.join(DATA).display());
            let well =
                answer.lines().any(|line| line.starts_with(&ours)) || (!context.dependencies_up && answer.contains(NO_LEADER));
            if well { Ok(()) } else { Err(answer) }
        }
        .boxed()
    }
}

/// The text of `zoo.cfg`: sessions of 1 s (two ticks) to 60 s, and no admin server, which would need one more port.
fn zoo_cfg(data: &Path, port: u16, peers: &[PeerPorts]) -> String {
    let mut text = format!(
        "dataDir={}\n\
         clientPort={port}\n\
         clientPortAddress=127.0.0.1\n\
         tickTime=500\n\
         minSessionTimeout=1000\n\
         maxSessionTimeout=60000\n\
         maxClientCnxns=0\n\
         autopurge.snapRetainCount=3\n\
         autopurge.purgeInterval=1\n\
         admin.enableServer=false\n\
         4lw.commands.whitelist=ruok,srvr,mntr,cons,dump,wchs,conf\n",
        data.display()
    );
    if !peers.is_empty() {
        // In ticks: 10 s to join, 5 s behind the leader. A busy machine must not remove a member.
        text.push_str("initLimit=20\nsyncLimit=10\n");
    }
    for (id, PeerPorts { quorum, election }) in (1..).zip(peers) {
        text.push_str(&format!("server.{id}=127.0.0.1:{quorum}:{election}\n"));
    }
    text
}

/// Whether the server at `address` is the leader of an ensemble, or standalone; false if it does not answer.
pub(super) async fn is_leader(address: &str) -> bool {
    let answer = timeout(STATUS_TIMEOUT, four_letter_command(address, "srvr")).await;
    matches!(answer, Ok(Ok(text)) if ["Mode: leader", "Mode: standalone"].iter().any(|mode| text.contains(mode)))
}

/// The version of the first server; `None` if it does not answer.
pub(super) async fn version(connect: &str) -> Option<String> {
    let first = connect.split(',').next()?;
    let answer = timeout(STATUS_TIMEOUT, four_letter_command(first, "srvr")).await.ok()?.ok()?;
    let (_, version) = answer.split_once("version: ")?;
    Some(programs::version_number(version))
}

/// The class path of the ZooKeeper in `home`, else the one that the environment names; `None` for Debian's.
/// Errors: the named folder has no `lib`.
pub(super) fn own_class_path(home: Option<&Path>) -> Result<Option<String>, Failure> {
    class_path_of(home, variable)
}

/// As [`own_class_path`], with `variable` as the environment.
fn class_path_of(home: Option<&Path>, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, Failure> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let (by, home) = match (home, set(CLASS_PATH_VARIABLE), set(HOME_VARIABLE)) {
        (Some(home), ..) => ("--zookeeper-home", home.to_owned()),
        (None, Some(class_path), _) => return Ok(Some(class_path)),
        (None, None, Some(home)) => (HOME_VARIABLE, PathBuf::from(home)),
        (None, None, None) => return Ok(None),
    };
    if !home.join("lib").is_dir() {
        return Err(unusable_localized!(
            "{by}：{} 下没有 lib，不是 ZooKeeper 解开的目录",
            "{by}: {} has no lib, so ZooKeeper was not unpacked there",
            home.display()
        ));
    }
    let home = home.display();
    Ok(Some(format!("{home}/conf:{home}/*:{home}/lib/*")))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The class path that Debian's start script sets, with a logger.
fn debian_class_path() -> String {
    let output = Command::new("sh").args(["-c", r#". "$0" && printf %s "$CLASSPATH""#, DEBIAN_ENVIRONMENT]).output();
    let debian = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    format!("{debian}:{LOGGER_JAR}")
}

/// The path of ZooKeeper's command line, `zkCli.sh`, by ZOOKEEPER_HOME, else Debian's; it need not exist.
pub(super) fn cli_path() -> String {
    let home = variable(HOME_VARIABLE).unwrap_or_else(|| "/usr/share/zookeeper".to_owned());
    format!("{home}/bin/zkCli.sh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_class_path_replaces_debians() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let with = |name: &'static str, value: &str| class_path_of(None, |asked| (asked == name).then(|| value.to_owned()));
        let refused = with("ZOOKEEPER_HOME", home).unwrap_err().to_string();
        assert!(refused.starts_with("ZOOKEEPER_HOME: "), "{refused}");
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        let jars = format!("{home}/conf:{home}/*:{home}/lib/*");
        assert_eq!(with("ZOOKEEPER_HOME", home).unwrap(), Some(jars.clone()));
        assert_eq!(with("ZOOKEEPER_HOME", "").unwrap(), None);
        let named = |_: &str| Some("/a.jar:/b.jar".to_owned());
        assert_eq!(class_path_of(None, named).unwrap(), named(""));
        let by_option = class_path_of(Some(folder.path()), named).unwrap();
        assert_eq!(by_option, Some(jars), "the option comes first");
    }
}
