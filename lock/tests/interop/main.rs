//! Peer processes with Redisson, Curator, kazoo and etcd's client for Go, beside ours: each side sees, waits for and undoes the other's locks
//! as its own. On a real Redis, for the oldest and the newest Redisson in use, on a real ZooKeeper and on a real etcd. Clauses have a
//! broken twin, where one is possible.
//!
//! `make interop` builds the peers and runs this. In reading order: `peer.rs` is a peer process, `ours.rs` one of ours;
//! `contender.rs` gives both the same methods, and `object.rs` looks at the servers. `pair.rs` is a clause's input, and
//! `register.rs` pairs the sides for each kind of lock. `cluster.rs` has a Redis Cluster of its own. Then the clauses: `exclusion.rs`, `queue.rs`, `readers.rs`,
//! `permits.rs`, `gates.rs` and `sections.rs` for all servers; `messages.rs` and `turns.rs` for Redis, `numbers.rs` for
//! ZooKeeper.

mod cluster;
mod contender;
mod etcd;
mod exclusion;
mod gates;
#[path = "../contract/harness.rs"]
#[allow(dead_code, reason = "nothing here is a soak test")]
mod harness;
mod messages;
#[path = "../contract/mute.rs"]
#[allow(dead_code, reason = "nothing here is muted")]
mod mute;
mod numbers;
mod object;
mod ours;
mod pair;
mod peer;
mod permits;
mod queue;
mod readers;
mod redis;
mod register;
mod sections;
mod server;
mod support;
mod turns;
mod zookeeper;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use libtest_mimic::Arguments;
use oversell_lab::lab::{Lab, Options, Part};
use peer::{Library, Peer};
use server::Server;
use std::{process::ExitCode, time::Duration};
use tokio::runtime::Runtime;

/// The servers of one run, and the peers.
pub(crate) struct Stage {
    redis: Server,
    zookeeper: Server,
    etcd: Server,
    peers: Vec<Peer>,
}

impl Stage {
    async fn new(lab: &Lab) -> Result<Self> {
        let servers = lab.addresses();
        let mut stage = Self {
            redis: Server::Redis(redis::Redis::at(servers.redis[0].url.clone()).await?),
            zookeeper: Server::ZooKeeper(zookeeper::ZooKeeper::at(servers.zookeeper.connect.clone()).await?),
            etcd: Server::Etcd(etcd::Etcd { url: servers.etcd[0].url.clone() }),
            peers: Vec::new(),
        };
        let starting = Library::ALL.map(|library| stage.start(library, "peer", None));
        stage.peers = try_join_all(starting).await?;
        Ok(stage)
    }

    /// Starts a peer with this library and this watchdog (`None`: the library's own); `log` is the name of its log.
    pub(crate) async fn start(&self, library: Library, log: &str, watchdog: Option<Duration>) -> Result<Peer> {
        Peer::start(library, log, self.server(library).address(), watchdog).await
    }

    fn server(&self, library: Library) -> &Server {
        match library {
            Library::Redisson(_) => &self.redis,
            Library::Curator | Library::Kazoo => &self.zookeeper,
            Library::Go => &self.etcd,
        }
    }

    /// The peer with this library, and its server.
    pub(crate) fn peer(&self, library: Library) -> (&Peer, &Server) {
        let peer = self.peers.iter().find(|peer| peer.library == library);
        (peer.expect("all are started"), self.server(library))
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One after the other, because some compare durations.
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime");
    if arguments.list {
        return libtest_mimic::run(&arguments, register::all(runtime.handle(), None)).exit_code();
    }
    let options =
        Options { without: vec![Part::MySql, Part::Instances, Part::Nginx], redis_ports: vec![0], etcd: 1, ..Options::default() };
    let started = runtime.block_on(async {
        let lab = Lab::start(options).await.context("the lab")?;
        match Stage::new(&lab).await {
            Ok(stage) => Ok((lab, &*Box::leak(Box::new(stage)))),
            Err(error) => {
                lab.stop().await;
                Err(error)
            }
        }
    });
    let (lab, stage) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("the servers and the other processes must run, for no test is skipped: {error:?}");
            return ExitCode::FAILURE;
        }
    };
    let all = register::all(runtime.handle(), Some(stage));
    let conclusion = libtest_mimic::run(&arguments, all);
    runtime.block_on(async {
        for peer in &stage.peers {
            peer.stop().await;
        }
        lab.stop().await;
    });
    conclusion.exit_code()
}
