//! Replicas of the main Redis, and Redis Sentinels that promote one when the main one is gone (§2.9).
//!
//! Where the instances ask the Sentinels themselves ([`Group`]), all reach each other directly: the main one, two replicas, and
//! as many Sentinels as are asked for. Replicas and Sentinels have a user of their own ([`USER`]): a member that refuses it, and
//! closes its connections, is cut off from them, and from nobody else. Where they know one address each ([`Replicated`]), there is one replica and one
//! Sentinel, and the lab leads their ways:
//!
//! 1. Both reach the main one by one way, `replica-redis`. While that is cut, the replica hears of no write, and for the
//!    Sentinel the main one is down, though the instances still have it: after 4 s it promotes the replica, without what was
//!    written meanwhile.
//! 2. [`follow`] hears from the Sentinel who is the main one now, and leads the instances' ways there.
//! 3. The old one, once it is back, becomes a replica of the new one: that is the Sentinel's work. [`restore`] does not wait
//!    for it, and has the old one promoted again.
//!
//! Source: the Redis documentation, "High availability with Redis Sentinel".

use super::{
    redis::{NEEDED, USER, follows, has_pid, numbered},
    server::{Check, Server, Started},
    user::User,
    way::Way,
};
use crate::programs::{self, Needed};
use crate::{
    clients::redis_at::redis_at,
    terminal::failure::{Failure, unusable},
};
use futures::{FutureExt, StreamExt, future::join_all};
use redis::{Cmd, RedisResult, aio::MultiplexedConnection};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{Instant, sleep, timeout},
};

pub(super) const SENTINEL: &str = "sentinel";

/// The name of the one at `index`: `sentinel`, `sentinel-2` …
pub(super) fn name(index: usize) -> String {
    numbered(SENTINEL, index)
}

const SETTINGS: &str = "sentinel.conf";

/// What the Sentinels call the main one and its replicas.
pub(super) const GROUP: &str = "main";
/// A Sentinel that does not answer is asked again after this.
const PAUSE: Duration = Duration::from_millis(200);
/// After this a fail-over has led somewhere, or was given up: `failover-timeout`.
const GIVES_UP: Duration = Duration::from_secs(10);
/// How long a promotion may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A main Redis that has a replica and a Sentinel.
#[derive(Debug, Clone)]
pub(super) struct Replicated {
    /// The way by which both reach the main one.
    pub(super) main: Arc<Way>,
    /// The replica's port.
    pub(super) replica: u16,
    /// The Sentinel's port.
    pub(super) sentinel: u16,
}

/// A main Redis whose instances ask the Sentinels who leads.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The ports of the Sentinels.
    pub(super) sentinels: Vec<u16>,
    /// The names and ports of the first main one and of its replicas.
    pub(super) members: Vec<(String, u16)>,
}

/// A Sentinel, which watches the one at the port `main`.
#[derive(Debug)]
pub(super) struct Sentinel {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    pub(super) main: u16,
    /// How many Sentinels there are, and how many replicas.
    pub(super) of: usize,
    pub(super) replicas: usize,
    /// Whether the instances ask it.
    pub(super) grouped: bool,
}

impl Server for Sentinel {
    fn needs(&self) -> &'static [Needed] {
        programs::missing(&self.program, &NEEDED)
    }

    /// It takes no replica that has been alone for longer than ten times its patience; it notes in there who the main one is.
    fn settings(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let mut settings = format!(
            "bind 127.0.0.1\nport {}\ndir {}\nsentinel monitor {GROUP} 127.0.0.1 {} {}\n\
             sentinel down-after-milliseconds {GROUP} 4000\nsentinel failover-timeout {GROUP} 10000\n",
            self.port,
            folder.display(),
            self.main,
            self.of / 2 + 1,
        );
        if self.grouped {
            settings +=
                &format!("sentinel auth-user {GROUP} {USER}\nsentinel auth-pass {GROUP} {USER}\n");
        }
        vec![(SETTINGS, settings)]
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(folder.join(SETTINGS)).arg("--sentinel");
        command
    }

    /// It can promote a replica once it has heard from all that they follow the main one, and knows whom to ask for a vote.
    fn check<'a>(&'a self, started: Started<'a>) -> Check<'a> {
        async move {
            has_pid(self.port, started.pid).await?;
            be_quick(self.port).await.map_err(|e| e.to_string())?;
            let knows_all = async {
                let followers = followers(self.port).await?.len();
                RedisResult::Ok(
                    followers == self.replicas && others(self.port).await? + 1 == self.of,
                )
            };
            if knows_all.await.map_err(|e| e.to_string())? || !started.complete {
                Ok(())
            } else {
                Err("it does not know all replicas and Sentinels yet".to_owned())
            }
        }
        .boxed()
    }
}

/// A command to the Sentinel, of its group.
fn sentinel(command: &str) -> Cmd {
    redis::cmd("SENTINEL").arg(command).arg(GROUP).to_owned()
}

async fn at(port: u16) -> RedisResult<MultiplexedConnection> {
    redis_at(&format!("redis://127.0.0.1:{port}")).await
}

/// The replicas of which the Sentinel at `port` knows that they follow.
async fn followers(port: u16) -> RedisResult<Vec<HashMap<String, String>>> {
    let mut connection = at(port).await?;
    let mut replicas: Vec<HashMap<String, String>> =
        sentinel("REPLICAS").query_async(&mut connection).await?;
    replicas.retain(|one| {
        one.get("master-link-status")
            .is_some_and(|link| link == "ok")
    });
    Ok(replicas)
}

/// How many other Sentinels the one at `port` knows.
async fn others(port: u16) -> RedisResult<usize> {
    let mut connection = at(port).await?;
    let known: HashMap<String, String> = sentinel("MASTER").query_async(&mut connection).await?;
    let others = known.get("num-other-sentinels");
    Ok(others.and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// The port of the main one, as the Sentinel at `port` has it.
async fn leader(port: u16) -> RedisResult<u16> {
    let (_, leader): (String, u16) = sentinel("GET-MASTER-ADDR-BY-NAME")
        .query_async(&mut at(port).await?)
        .await?;
    Ok(leader)
}

impl Group {
    /// Who leads, as the first Sentinel says that answers.
    pub(super) async fn leader(&self) -> Option<&str> {
        for port in &self.sentinels {
            if let Ok(Ok(leads)) = timeout(PATIENCE, leader(*port)).await {
                let mut members = self.members.iter();
                return members
                    .find(|(_, port)| *port == leads)
                    .map(|(name, _)| name.as_str());
            }
        }
        None
    }

    fn port(&self, member: &str) -> Result<u16, Failure> {
        let port = self.members.iter().find(|(name, _)| name == member);
        let none = || unusable!("{member} is none of those that can lead");
        Ok(port.ok_or_else(none)?.1)
    }

    /// Has this one refuse the others of its group and their Sentinels, and close their connections; or take them again.
    pub(super) async fn isolate(&self, member: &str, isolated: bool) -> Result<(), Failure> {
        let rights = if isolated { "-@all" } else { "+@all" };
        let port = self.port(member)?;
        let told = async {
            let mut connection = at(port).await?;
            let lines = [
                ["ACL", "SETUSER", USER, rights],
                ["CLIENT", "KILL", "USER", USER],
            ];
            for [command, rest @ ..] in lines {
                let told = redis::cmd(command).arg(&rest).to_owned();
                told.exec_async(&mut connection).await?;
            }
            RedisResult::Ok(())
        };
        told.await
            .map_err(|e| unusable!("{member} does not take the order: {e}"))
    }

    /// Has the Sentinels promote this one, which follows (`SENTINEL FAILOVER`: nothing is down, and nobody votes); returns once
    /// all that run say that it leads. They choose by priority: so its own is the lowest number.
    pub(super) async fn fail_over(&self, to: &str, running: &[u16]) -> Result<(), Failure> {
        let to = self.port(to)?;
        let asked: Vec<_> = self
            .sentinels
            .iter()
            .filter(|port| running.contains(port))
            .collect();
        let &&first = asked.first().ok_or_else(|| unusable!("no Sentinel runs"))?;
        let failed = |e: redis::RedisError| unusable!("the Sentinels do not promote it: {e}");
        if leader(first).await.map_err(failed)? == to {
            return Err(unusable!("it is the main one already"));
        }
        let done = async {
            for (_, port) in self
                .members
                .iter()
                .filter(|(_, port)| running.contains(port))
            {
                let priority = if *port == to { "1" } else { "100" };
                redis::cmd("CONFIG")
                    .arg(&["SET", "replica-priority", priority])
                    .exec_async(&mut at(*port).await?)
                    .await?;
            }
            while !prefers(first, to).await? {
                sleep(PAUSE).await;
            }
            // Another fail-over may not have told all yet; and on a busy machine the Sentinel gives one up that it has begun.
            let mut ordered = None::<Instant>;
            while leader(first).await? != to {
                if ordered.is_none_or(|at| at.elapsed() > GIVES_UP) {
                    match sentinel("FAILOVER").exec_async(&mut at(first).await?).await {
                        Ok(()) => ordered = Some(Instant::now()),
                        Err(error) if matches!(error.code(), Some("INPROG" | "NOGOODSLAVE")) => {}
                        Err(error) => return Err(error),
                    }
                }
                sleep(PAUSE).await;
            }
            for port in asked {
                while leader(*port).await? != to {
                    sleep(PAUSE).await;
                }
            }
            Ok(())
        };
        let late = |_| unusable!("the Sentinels do not promote it in time");
        // One that was started again is made a replica only after a while.
        timeout(3 * PATIENCE, done)
            .await
            .map_err(late)?
            .map_err(failed)
    }
}

/// Whether the Sentinel at `port` would promote the one at `to` before the others.
async fn prefers(port: u16, to: u16) -> RedisResult<bool> {
    let said = |one: &HashMap<String, String>, what| one.get(what).and_then(|n| n.parse().ok());
    let followers = followers(port).await?;
    Ok(followers.iter().any(|one| said(one, "port") == Some(to))
        && followers.iter().all(|one| {
            (said(one, "port") == Some(to)) == (said(one, "slave-priority") == Some(1_u16))
        }))
}

/// Has the Sentinel at `port` ask each second who follows, and not each ten; and have it do nothing for 3 s, and not for 30,
/// after the machine has held it up. It does not keep that; one older than Redis 7 refuses it, and is as slow as it is.
async fn be_quick(port: u16) -> RedisResult<()> {
    let mut connection = at(port).await?;
    let periods = ["DEBUG", "INFO-PERIOD", "1000", "TILT-PERIOD", "3000"];
    let told = redis::cmd("SENTINEL")
        .arg(&periods)
        .exec_async(&mut connection)
        .await;
    match told {
        Err(error) if error.is_io_error() => Err(error),
        _ => Ok(()),
    }
}

/// Has the Sentinel at `port` promote the replica.
pub(super) async fn promote(port: u16) -> Result<(), Failure> {
    let failed = |e: redis::RedisError| unusable!("the Sentinel does not promote: {e}");
    let mut connection = at(port).await.map_err(failed)?;
    let told = sentinel("FAILOVER").exec_async(&mut connection).await;
    told.map_err(failed)
}

/// Waits until all of `ways` lead to another server than when it was first polled.
pub(super) async fn promoted(ways: &[Arc<Way>]) -> Result<(), Failure> {
    let all = join_all(ways.iter().map(|way| way.proxy.leads_elsewhere()));
    let late = |_| unusable!("the Sentinel promotes nobody");
    timeout(PATIENCE, all).await.map_err(late).map(drop)
}

/// Makes the first one the main one again, and the other its replica; returns once `ways` lead to it.
pub(super) async fn restore(of: &Replicated, ways: &[Arc<Way>]) -> Result<(), Failure> {
    let Replicated {
        main,
        replica,
        sentinel: port,
    } = of;
    let (replica, port) = (*replica, *port);
    let failed = |e: redis::RedisError| unusable!("the first one is not promoted: {e}");
    let restored = async {
        let mut asked = at(port).await?;
        let leads = sentinel("GET-MASTER-ADDR-BY-NAME");
        let is_first = async |asked: &mut _| {
            let (_, now): (String, u16) = leads.query_async(asked).await?;
            // It says so already while it promotes; the ways follow when that is over.
            RedisResult::Ok(
                now == main.proxy.port()
                    && ways
                        .iter()
                        .all(|way| way.proxy.leads_to() == main.proxy.leads_to()),
            )
        };
        if !is_first(&mut asked).await? {
            let first = format!("redis://{}", main.proxy.leads_to());
            follow_it(redis_at(&first).await?, replica).await?;
        }
        while !is_first(&mut asked).await? {
            // Refused until the Sentinel knows that the old one follows.
            sentinel("FAILOVER").exec_async(&mut asked).await.ok();
            sleep(PAUSE).await;
        }
        follow_it(at(replica).await?, main.proxy.port()).await?;
        while followers(port).await?.is_empty() {
            sleep(PAUSE).await;
        }
        Ok(())
    };
    let late = |_| unusable!("the first one is not promoted in time");
    timeout(2 * PATIENCE, restored)
        .await
        .map_err(late)?
        .map_err(failed)
}

/// Makes this one a replica of the one at `port`, and waits until it has all that that one has.
async fn follow_it(mut replica: MultiplexedConnection, port: u16) -> RedisResult<()> {
    redis::cmd("REPLICAOF")
        .arg("127.0.0.1")
        .arg(port)
        .exec_async(&mut replica)
        .await?;
    let asked = redis::cmd("INFO").arg("replication").to_owned();
    while !follows(&asked.query_async(&mut replica).await?) {
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Leads `ways` to the one that the Sentinel says is the main one, for as long as it is polled; says so on `console`.
pub(super) async fn follow(
    of: Replicated,
    ways: Vec<Arc<Way>>,
    console: Option<UnboundedSender<String>>,
) {
    loop {
        if let Err(error) = hear(&of, &ways, console.as_ref()).await {
            tracing::debug!(%error, "the Sentinel is asked again");
        }
        sleep(PAUSE).await;
    }
}

async fn hear(
    of: &Replicated,
    ways: &[Arc<Way>],
    console: Option<&UnboundedSender<String>>,
) -> RedisResult<()> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", of.sentinel))?;
    let mut news = client.get_async_pubsub().await?;
    news.subscribe("+switch-master").await?;
    let mut news = news.on_message();
    while let Some(message) = news.next().await {
        let words: String = message.get_payload()?;
        // "<group> <old address> <old port> <new address> <new port>"
        if let Some(port) = words.split_whitespace().nth(4) {
            let to = format!("127.0.0.1:{port}");
            let to = if to == of.main.proxy.address() {
                of.main.proxy.leads_to()
            } else {
                to
            };
            ways.iter().for_each(|way| way.proxy.lead(&to));
            let line =
                format!("{SENTINEL} | the main Redis is at {to} now, and the instances follow");
            // A dropped receiver needs no line.
            console.map(|console| console.send(line).ok());
        }
    }
    Ok(())
}
