//! ZooKeeper: the JVM run directly, with the class path that the system's own start script uses.

use super::{
    programs::{self, Needed},
    server::Server,
};
use crate::failure::Failure;
use futures::{FutureExt, future::BoxFuture};
use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(super) const NAME: &str = "zookeeper";

/// Debian's and Ubuntu's settings for the start script; it sets CLASSPATH.
const SETTINGS: &str = "/usr/share/zookeeper/bin/zkEnv.sh";
/// Without it ZooKeeper writes no log.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";

#[derive(Debug)]
pub(super) struct ZooKeeper {
    folder: PathBuf,
    port: u16,
}

impl ZooKeeper {
    pub(super) fn new(folder: PathBuf, port: u16) -> Self {
        Self { folder, port }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn settings(&self) -> PathBuf {
        self.folder.join("zoo.cfg")
    }
}

impl Server for ZooKeeper {
    fn name(&self) -> &str {
        NAME
    }

    fn needs(&self) -> &'static [Needed] {
        &[("java", "default-jre-headless"), (SETTINGS, NAME)]
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        async {
            std::fs::create_dir_all(self.data())
                .and_then(|()| std::fs::write(self.settings(), settings(&self.data(), self.port)))
                .map_err(|e| Failure::Unusable(format!("{NAME}: {e}")))
        }
        .boxed()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(programs::path("java"));
        command
            // The first is faster to start and enough for one heap of this size; the second would write to /tmp.
            .args(["-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xms32m", "-Xmx256m"])
            .args(["-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"])
            .arg(format!("-Djava.io.tmpdir={}", self.folder.display()))
            .arg("-cp")
            .arg(format!("{}:{LOGGER}", class_path()))
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(self.settings());
        command
    }

    fn check(&self, _pid: u32, _complete: bool) -> BoxFuture<'_, Result<(), String>> {
        async {
            let answer = four_letters(self.port, "conf").await.map_err(|e| e.to_string())?;
            let ours = format!("dataDir={}/", self.data().display());
            if answer.lines().any(|line| line.starts_with(&ours)) { Ok(()) } else { Err(answer) }
        }
        .boxed()
    }
}

/// Sessions from 1 s (twice the tick) to 60 s; no admin server, whose port would be one more to collide.
fn settings(data: &Path, port: u16) -> String {
    format!(
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
    )
}

fn class_path() -> String {
    let output = Command::new("sh").args(["-c", r#". "$0" && printf %s "$CLASSPATH""#, SETTINGS]).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
}

async fn four_letters(port: u16, word: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_one_second_to_a_minute_are_granted_on_loopback_only() {
        let text = settings(Path::new("/somewhere/data"), 12181);
        let value = |key: &str| {
            let line = text.lines().find(|l| l.split_once('=').is_some_and(|(k, _)| k == key)).unwrap();
            line.split_once('=').unwrap().1.to_owned()
        };
        assert_eq!(value("dataDir"), "/somewhere/data");
        assert_eq!(value("clientPort"), "12181");
        assert_eq!(value("clientPortAddress"), "127.0.0.1");
        assert_eq!(value("minSessionTimeout"), "1000");
        assert_eq!(value("maxSessionTimeout"), "60000");
        let tick: u32 = value("tickTime").parse().unwrap();
        assert!(tick * 2 <= 1000, "ZooKeeper cannot grant less than two ticks");
    }
}
