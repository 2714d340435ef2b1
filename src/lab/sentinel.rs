//! A replica of the main Redis, and a Redis Sentinel that promotes it when the main one is gone (§2.9).
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
    programs::{self, Needed},
    redis::{NEEDED, follows, has_pid},
    server::{Check, Server, Started},
    user::User,
    way::Way,
};
use crate::{
    failure::{Failure, unusable},
    redis_at::redis_at,
};
use futures::{FutureExt, StreamExt, future::join_all};
use redis::{Cmd, RedisResult, aio::MultiplexedConnection};
use std::{collections::HashMap, path::Path, process::Command, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{sleep, timeout},
};

pub(super) const SENTINEL: &str = "sentinel";
const SETTINGS: &str = "sentinel.conf";

/// What the Sentinel calls the main one and its replicas.
const GROUP: &str = "main";
/// A Sentinel that does not answer is asked again after this.
const PAUSE: Duration = Duration::from_millis(200);
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

/// The Sentinel, which watches the one at the port `main`.
#[derive(Debug)]
pub(super) struct Sentinel {
    pub(super) port: u16,
    pub(super) main: u16,
}

impl Server for Sentinel {
    fn needs(&self) -> &'static [Needed] {
        &NEEDED
    }

    /// It takes no replica that has been alone for longer than ten times its patience; it notes in there who the main one is.
    fn settings(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let settings = format!(
            "bind 127.0.0.1\nport {}\ndir {}\nsentinel monitor {GROUP} 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds {GROUP} 4000\nsentinel failover-timeout {GROUP} 10000\n",
            self.port,
            folder.display(),
            self.main
        );
        vec![(SETTINGS, settings)]
    }

    fn command(&self, folder: &Path, _user: User) -> Command {
        let mut command = Command::new(programs::path("redis-server"));
        command.arg(folder.join(SETTINGS)).arg("--sentinel");
        command
    }

    /// It can promote the replica once it has heard from it that it follows the main one.
    fn check<'a>(&'a self, started: Started<'a>) -> Check<'a> {
        async move {
            has_pid(self.port, started.pid).await?;
            be_quick(self.port).await.map_err(|e| e.to_string())?;
            let knows_one = knows_a_replica(self.port)
                .await
                .map_err(|e| e.to_string())?;
            if knows_one || !started.complete {
                Ok(())
            } else {
                Err("it knows no replica yet".to_owned())
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

/// Whether the Sentinel at `port` knows a replica that follows.
async fn knows_a_replica(port: u16) -> RedisResult<bool> {
    let mut connection = at(port).await?;
    let replicas: Vec<HashMap<String, String>> =
        sentinel("REPLICAS").query_async(&mut connection).await?;
    let link = |replica: &HashMap<_, _>| replica.get("master-link-status").cloned();
    Ok(replicas
        .iter()
        .any(|one| link(one) == Some("ok".to_owned())))
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
        while !knows_a_replica(port).await? {
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
