//! The locks that the model is run on, and what it needs to know of each engine.

use super::{
    family::Server,
    model::Modelled,
    redis::{self, Redis},
    redlock::{Five, clients_with},
    support::SOON,
    zookeeper::{Member, SESSION, ZooKeeper},
};
use ::redis::AsyncTypedCommands;
use futures::future::join_all;
use oversell_lock::{Guard, Owner, Process, redis::RedisClient};
use std::time::Duration;

/// Shorter than some answers are late.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Longer than the short leases of programs.
const EXPIRY: Duration = Duration::from_millis(350);

/// Which hold one Redis has: a field of the lock's hash.
async fn field(redis: &Redis, name: &str) -> Option<String> {
    let fields = redis.outsider().await.hkeys(name).await.expect("a list");
    fields.into_iter().find(|field| field != "mode")
}

/// Whether it is of this owner's process: a hold is written `<process>:<number>`.
fn is_of(owner: Owner, shown: &str) -> bool {
    owner.to_string().split(':').next() == shown.split(':').next()
}

impl Modelled for Redis {
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;

    fn servers(&self) -> Vec<String> {
        vec![self.host()]
    }

    async fn client_over(&self, addresses: &[String]) -> RedisClient {
        redis::client(&Process::new(), &addresses[0], SOON, TIMEOUT)
    }

    async fn shown(&self, name: &str) -> Option<String> {
        field(self, name).await
    }

    fn is_of(client: &RedisClient, _: &Guard, shown: &str) -> bool {
        is_of(client.owner(), shown)
    }
}

impl Modelled for Five {
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;

    fn servers(&self) -> Vec<String> {
        self.hosts()
    }

    async fn client_over(&self, addresses: &[String]) -> Vec<RedisClient> {
        clients_with(addresses, TIMEOUT)
    }

    /// What most of them have.
    async fn shown(&self, name: &str) -> Option<String> {
        let fields = join_all(self.0.iter().map(|node| field(node, name))).await;
        let most = |field: &&String| {
            let same = |other: &&Option<String>| other.as_ref() == Some(field);
            fields.iter().filter(same).count() > 2
        };
        fields.iter().flatten().find(most).cloned()
    }

    fn is_of(clients: &Vec<RedisClient>, _: &Guard, shown: &str) -> bool {
        is_of(clients[0].owner(), shown)
    }
}

impl Modelled for ZooKeeper {
    /// The server looks at sessions every two seconds.
    const EXPIRY: Duration = SESSION.saturating_add(Duration::from_secs(2));
    const STEPS: usize = 16;

    fn servers(&self) -> Vec<String> {
        vec![self.address()]
    }

    async fn client_over(&self, addresses: &[String]) -> Member {
        self.client_at(&addresses[0]).await
    }

    /// By what made it, as the guard's token does.
    async fn shown(&self, name: &str) -> Option<String> {
        let mut nodes = self.left(name).await;
        nodes.sort_unstable_by_key(|node| node.rsplit('-').next().map(str::to_owned));
        let first = format!("{name}/{}", nodes.first()?);
        let stat = self.outsider().await.check_stat(&first).await;
        Some(stat.expect("an answer")?.czxid.to_string())
    }

    fn is_of(_: &Member, guard: &Guard, shown: &str) -> bool {
        guard
            .fence()
            .is_some_and(|fence| fence.0.to_string() == shown)
    }
}
