//! ZooKeeper: the JVM run directly, with the class path that Debian's own start script uses, or that of ZOOKEEPER_HOME
//! or OVERSELL_ZOOKEEPER_CLASSPATH. One server is standalone; several are an ensemble, and each of them is well once it follows or leads.

use super::{
    server::{Check, Server, Started},
    user::User,
};
use crate::programs::{self, Needed};
use crate::{
    clients::four_letters::four_letters,
    terminal::failure::{Failure, unusable_told},
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
const CONFIG: &str = "zoo.cfg";
const DATA: &str = "data";

/// Debian's and Ubuntu's settings for the start script; it sets CLASSPATH.
const SETTINGS: &str = "/usr/share/zookeeper/bin/zkEnv.sh";
/// Without it Debian's ZooKeeper writes no log.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";
/// Where ZooKeeper was unpacked, elsewhere than on Debian.
const HOME: &str = "ZOOKEEPER_HOME";
/// The class path itself, where neither leads to it.
const CLASS_PATH: &str = "OVERSELL_ZOOKEEPER_CLASSPATH";

/// What a server says of itself while it has no leader.
const NO_LEADER: &str = "not currently serving requests";
/// A server that is paused says nothing.
const ANSWER: Duration = Duration::from_secs(1);

/// The name of the server at `index`: `zookeeper`, `zookeeper-2` …
pub(super) fn name(index: usize) -> String {
    if index == 0 {
        NAME.to_owned()
    } else {
        format!("{NAME}-{}", index + 1)
    }
}

/// Whether a member of this name is a ZooKeeper server.
pub(super) fn is_name(name: &str) -> bool {
    name.strip_prefix(NAME)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The ports that the members of an ensemble use among themselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) quorum: u16,
    pub(super) election: u16,
}

#[derive(Debug)]
pub(super) struct ZooKeeper {
    /// Its class path, where it is not Debian's.
    pub(super) class_path: Option<String>,
    pub(super) index: usize,
    pub(super) port: u16,
    /// Every member of the ensemble, itself too; none where it is standalone.
    pub(super) peers: Vec<Peer>,
}

const NEEDED: [Needed; 2] = [("java", "default-jre-headless"), (SETTINGS, NAME)];

/// What it cannot do without; where the user has a class path of one's own, that is not Debian's package.
pub(super) fn needed() -> &'static [Needed] {
    match own_class_path(None) {
        Ok(None) => &NEEDED,
        _ => &NEEDED[..1],
    }
}

impl Server for ZooKeeper {
    fn needs(&self) -> &'static [Needed] {
        match self.class_path {
            Some(_) => &NEEDED[..1],
            None => &NEEDED,
        }
    }

    fn settings(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let settings = settings(&folder.join(DATA), self.port, &self.peers);
        vec![
            ("data/myid", (self.index + 1).to_string()),
            (CONFIG, settings),
        ]
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = Command::new(programs::path("java"));
        command
            // The first is faster to start and enough for one heap of this size; the second would write to /tmp.
            .args([
                "-XX:+UseSerialGC",
                "-XX:-UsePerfData",
                "-Xms32m",
                "-Xmx256m",
            ])
            .args([
                "-Dzookeeper.jmx.log4j.disable=true",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            ])
            .arg(format!("-Djava.io.tmpdir={}", folder.display()))
            .arg("-cp")
            .arg(self.class_path.clone().unwrap_or_else(debians_class_path))
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(folder.join(CONFIG));
        command
    }

    /// Without a leader it does not say where its data are; where no majority runs (not `complete`), there is none.
    fn check<'a>(&'a self, started: Started<'a>) -> Check<'a> {
        async move {
            let answer = four_letters((Ipv4Addr::LOCALHOST, self.port), "conf")
                .await
                .map_err(|e| e.to_string())?;
            let ours = format!("dataDir={}/", started.folder.join(DATA).display());
            let well = answer.lines().any(|line| line.starts_with(&ours))
                || (!started.complete && answer.contains(NO_LEADER));
            if well { Ok(()) } else { Err(answer) }
        }
        .boxed()
    }
}

/// Sessions from 1 s (twice the tick) to 60 s; no admin server, whose port would be one more to collide.
fn settings(data: &Path, port: u16, peers: &[Peer]) -> String {
    let mut text = format!(
        "dataDir={}\n\
         clientPort={port}\n\
         clientPortAddress=127.0.0.1\n\
         tickTime=500\n\
         minSessionTimeout=1000\n\
         maxSessionTimeout=60000\n\
         maxClientCnxns=0\n\
         admin.enableServer=false\n\
         4lw.commands.whitelist=ruok,srvr,mntr,cons,dump,wchs,conf\n",
        data.display()
    );
    if !peers.is_empty() {
        // In ticks: 10 s to join, 5 s behind the leader. A busy machine must not cost a member its place.
        text.push_str("initLimit=20\nsyncLimit=10\n");
    }
    for (id, Peer { quorum, election }) in (1..).zip(peers) {
        text.push_str(&format!("server.{id}=127.0.0.1:{quorum}:{election}\n"));
    }
    text
}

/// Whether the server at `address` decides what is written: an ensemble's leader, or one on its own.
pub(super) async fn leads(address: &str) -> bool {
    let answer = timeout(ANSWER, four_letters(address, "srvr")).await;
    matches!(answer, Ok(Ok(text)) if ["Mode: leader", "Mode: standalone"].iter().any(|mode| text.contains(mode)))
}

/// The version of the first server that answers.
pub(super) async fn version(connect: &str) -> Option<String> {
    let first = connect.split(',').next()?;
    let answer = timeout(ANSWER, four_letters(first, "srvr"))
        .await
        .ok()?
        .ok()?;
    let (_, version) = answer.split_once("version: ")?;
    Some(programs::number(version))
}

/// The class path that the user names, or that of the user's ZooKeeper, which was unpacked in `home`; None where it is Debian's.
pub(super) fn own_class_path(home: Option<&Path>) -> Result<Option<String>, Failure> {
    class_path_of(home, variable)
}

fn class_path_of(
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let (by, home) = match (home, set(CLASS_PATH), set(HOME)) {
        (Some(home), ..) => ("--zookeeper-home", home.to_owned()),
        (None, Some(class_path), _) => return Ok(Some(class_path)),
        (None, None, Some(home)) => (HOME, PathBuf::from(home)),
        (None, None, None) => return Ok(None),
    };
    if !home.join("lib").is_dir() {
        return Err(unusable_told!(
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

fn debians_class_path() -> String {
    let output = Command::new("sh")
        .args(["-c", r#". "$0" && printf %s "$CLASSPATH""#, SETTINGS])
        .output();
    let debian = output
        .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        .unwrap_or_default();
    format!("{debian}:{LOGGER}")
}

/// ZooKeeper's own client, for the user to start.
pub(super) fn client() -> String {
    let home = variable(HOME).unwrap_or_else(|| "/usr/share/zookeeper".to_owned());
    format!("{home}/bin/zkCli.sh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_second_to_a_minute_are_granted_on_loopback_only() {
        let text = settings(Path::new("/somewhere/data"), 12181, &[]);
        let value = |key: &str| {
            let line = text
                .lines()
                .find(|l| l.split_once('=').is_some_and(|(k, _)| k == key))
                .unwrap();
            line.split_once('=').unwrap().1.to_owned()
        };
        assert_eq!(value("dataDir"), "/somewhere/data");
        assert_eq!(value("clientPort"), "12181");
        assert_eq!(value("clientPortAddress"), "127.0.0.1");
        assert_eq!(value("minSessionTimeout"), "1000");
        assert_eq!(value("maxSessionTimeout"), "60000");
        let tick: u32 = value("tickTime").parse().unwrap();
        assert!(
            tick * 2 <= 1000,
            "ZooKeeper cannot grant less than two ticks"
        );
        assert!(!text.contains("server."), "one server is standalone");
    }

    #[test]
    fn a_class_path_of_ones_own_takes_the_place_of_debians() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let with = |name: &'static str, value: &str| {
            class_path_of(None, |asked| (asked == name).then(|| value.to_owned()))
        };
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

    #[test]
    fn the_members_of_an_ensemble_know_each_other_on_loopback_only() {
        let peers = [(1, 2), (3, 4), (5, 6)].map(|(quorum, election)| Peer { quorum, election });
        let text = settings(Path::new("/somewhere/data"), 12181, &peers);
        let servers: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("server."))
            .collect();
        assert_eq!(
            servers,
            [
                "server.1=127.0.0.1:1:2",
                "server.2=127.0.0.1:3:4",
                "server.3=127.0.0.1:5:6"
            ]
        );
    }
}
