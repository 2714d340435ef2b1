//! `Redlock` on five nodes, and what it promises beyond the contract. Tests with dead nodes are in `redlock_faults.rs`.

use crate::{
    family::{Capability::*, asked, operator},
    redis::client,
    support::*,
};
use ::redis::AsyncTypedCommands;
use oversell_lock::redis::{RedisClient, Redlock, RedlockClient};

/// A node may take a tenth of it to answer, which a busy machine can usually keep.
const LEASE: Duration = Duration::from_secs(15);

/// Gives a node the longest time to answer, and outlasts every test.
pub(crate) const LONG_LEASE: Lease = Lease::Fixed(Duration::from_secs(600));

static KINDS: &[Kind<Five>] =
    &[Kind::new("redlock", &[Contract, Losable, Leased, Reentrant, Shown], |clients: &Vec<RedisClient>, name, ask| {
        asked!(redlock(clients, name), ask).boxed()
    })
    .shows(|clients: &Vec<RedisClient>, name| operator!(redlock(clients, name)))];

pub(crate) fn redlock(nodes: &[RedisClient], name: &str) -> Redlock {
    RedlockClient::new(nodes).expect("there are nodes").lock(name)
}

pub(crate) struct Five(pub(crate) Vec<Redis>);

/// A process at these addresses, with the lock's own node timeout.
pub(crate) fn clients(addresses: &[String]) -> Vec<RedisClient> {
    clients_with(addresses, SOON)
}

/// A process with this time limit of a command.
pub(crate) fn clients_with(addresses: &[String], timeout: Duration) -> Vec<RedisClient> {
    let process = Process::new();
    let at = |address: &String| client(&process, address, LEASE, timeout);
    addresses.iter().map(at).collect()
}

impl Five {
    pub(crate) fn on(urls: Vec<String>) -> Self {
        Self(urls.into_iter().map(Redis::at).collect())
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        self.0.iter().map(Redis::host).collect()
    }
}

impl Server for Five {
    type Client = Vec<RedisClient>;
    // A node may take a tenth of it to answer.
    const BRIEF: Duration = Duration::from_secs(10);
    const RENEWED: Duration = SOON;
    const COPIES: usize = 5;

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }

    fn address(&self) -> String {
        self.0[0].host()
    }

    /// The clients, with the first node at `address`.
    async fn client_at(&self, address: &str) -> Vec<RedisClient> {
        let mut addresses = self.hosts();
        addresses[0] = address.to_owned();
        clients(&addresses)
    }

    fn owner(clients: &Vec<RedisClient>) -> Owner {
        clients[0].owner()
    }

    async fn left(&self, name: &str) -> Vec<String> {
        join_all(self.0.iter().map(|node| node.keys(name))).await.concat()
    }

    async fn holders(&self, name: &str) -> Vec<String> {
        join_all(self.0.iter().map(|node| node.holders(name))).await.concat()
    }

    async fn take_away(&self, _: &Vec<RedisClient>, name: &str) {
        for node in &self.0 {
            node.delete(name).await;
        }
    }
}

/// Another owner's lock on these nodes.
pub(crate) async fn occupy(nodes: &[Redis], name: &str) {
    for node in nodes {
        let mut outsider = node.outsider().await;
        outsider.hset(name, "another:1", 1).await.expect("set");
    }
}

pub(crate) async fn until_on(five: &Five, name: &str, nodes: usize) -> Result {
    let are = async || five.left(name).await.len() == nodes;
    until(&format!("it is on {nodes} nodes"), are).await
}

#[apply(test!)]
async fn no_nodes_are_refused(_: &Five) -> Result {
    ensure_invalid("without nodes", RedlockClient::new(&[]))
}
