//! The locks that the model is run on, and what it needs to know of each.

use super::{
    clauses::SOON,
    family::Family,
    handles::{Handles, Holder, Kind, Plain},
    model::Modelled,
    redis::{self, Redis},
    redlock::{Five, OnNodes, Voters},
    zookeeper::{Member, SESSION, ZooKeeper},
};
use ::redis::AsyncTypedCommands;
use futures::future::join_all;
use oversell_lock::{
    Guard, Owner,
    redis::{Lease, RedisClient, RedisFairLock, RedisLock, RedisWriteLock, Redlock},
    zk::ZkLock,
};
use std::time::Duration;

/// Shorter than some answers are late.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Longer than the short leases of programs.
const EXPIRY: Duration = Duration::from_millis(350);

/// A kind of handle on one Redis that may be given an owner and a lease.
pub(crate) trait Asked: Kind {
    fn asked(client: &RedisClient, name: &str, owner: Option<Owner>, lease: Lease) -> Self::Lock;
}

pub(crate) struct Fair;
pub(crate) struct Write;

impl Asked for Plain {
    fn asked(client: &RedisClient, name: &str, owner: Option<Owner>, lease: Lease) -> RedisLock {
        let lock = client.lock(name).lease(lease);
        match owner {
            Some(owner) => lock.owner(owner),
            None => lock,
        }
    }
}

impl Kind for Fair {
    const NAME: &'static str = "redis_fair";
    type Lock = RedisFairLock;

    fn of(client: &RedisClient, name: &str) -> RedisFairLock {
        client.fair_lock(name)
    }
}

impl Asked for Fair {
    fn asked(
        client: &RedisClient,
        name: &str,
        owner: Option<Owner>,
        lease: Lease,
    ) -> RedisFairLock {
        let lock = client.fair_lock(name).lease(lease);
        match owner {
            Some(owner) => lock.owner(owner),
            None => lock,
        }
    }
}

impl Kind for Write {
    const NAME: &'static str = "redis_write";
    type Lock = RedisWriteLock;

    fn of(client: &RedisClient, name: &str) -> RedisWriteLock {
        client.rw_lock(name).write()
    }
}

impl Asked for Write {
    fn asked(
        client: &RedisClient,
        name: &str,
        owner: Option<Owner>,
        lease: Lease,
    ) -> RedisWriteLock {
        let lock = client.rw_lock(name).write().lease(lease);
        match owner {
            Some(owner) => lock.owner(owner),
            None => lock,
        }
    }
}

/// Which hold one Redis has: a field of the lock's hash.
async fn field(redis: &Redis, name: &str) -> Option<String> {
    let fields = redis.outsider().await.hkeys(name).await.expect("a list");
    fields.into_iter().find(|field| field != "mode")
}

/// Whether it is of this owner's process: a hold is written `<process>:<number>`.
fn is_of(owner: Owner, shown: &str) -> bool {
    owner.to_string().split(':').next() == shown.split(':').next()
}

impl<K: Asked> Modelled for Handles<K> {
    type Handle = K::Lock;
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;

    fn servers(&self) -> Vec<String> {
        vec![self.server()]
    }

    async fn process_over(&self, addresses: &[String]) -> Holder<K> {
        Holder::of(redis::client(
            &oversell_lock::Process::new(),
            &addresses[0],
            SOON,
            TIMEOUT,
        ))
    }

    fn owner(process: &Holder<K>) -> Owner {
        process.client.owner()
    }

    fn handle(process: &Holder<K>, name: &str, owner: Option<Owner>, lease: Lease) -> K::Lock {
        K::asked(&process.client, name, owner, lease)
    }

    async fn shown(&self, name: &str) -> Option<String> {
        field(&self.redis, name).await
    }

    fn is_of(process: &Holder<K>, _: &Guard, shown: &str) -> bool {
        is_of(Self::owner(process), shown)
    }
}

impl Modelled for Five {
    type Handle = Redlock;
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;

    fn servers(&self) -> Vec<String> {
        self.nodes().iter().map(Redis::host).collect()
    }

    async fn process_over(&self, addresses: &[String]) -> Voters {
        Voters::with(addresses, TIMEOUT)
    }

    fn owner(process: &Voters) -> Owner {
        process.0[0].owner()
    }

    fn handle(process: &Voters, name: &str, owner: Option<Owner>, lease: Lease) -> Redlock {
        let lock = Redlock::new(&process.0, name).lease(lease);
        match owner {
            Some(owner) => lock.owner(owner),
            None => lock,
        }
    }

    /// What most of them have.
    async fn shown(&self, name: &str) -> Option<String> {
        let fields = join_all(self.nodes().iter().map(|node| field(node, name))).await;
        let most = |field: &&String| {
            fields
                .iter()
                .filter(|other| other.as_ref() == Some(field))
                .count()
                > 2
        };
        fields.iter().flatten().find(most).cloned()
    }

    fn is_of(process: &Voters, _: &Guard, shown: &str) -> bool {
        is_of(Self::owner(process), shown)
    }
}

impl Modelled for ZooKeeper {
    type Handle = ZkLock;
    /// The server looks at sessions every two seconds.
    const EXPIRY: Duration = SESSION.saturating_add(Duration::from_secs(2));
    const STEPS: usize = 16;

    fn servers(&self) -> Vec<String> {
        vec![self.server()]
    }

    async fn process_over(&self, addresses: &[String]) -> Member {
        self.process_at(&addresses[0]).await
    }

    fn owner(process: &Member) -> Owner {
        process.client.owner()
    }

    fn handle(process: &Member, name: &str, owner: Option<Owner>, _: Lease) -> ZkLock {
        let lock = process.client.lock(name);
        match owner {
            Some(owner) => lock.owner(owner),
            None => lock,
        }
    }

    /// By what made it, as the guard's token does.
    async fn shown(&self, name: &str) -> Option<String> {
        let mut nodes = self.left(name).await;
        nodes.sort_unstable_by_key(|node| node.rsplit('-').next().map(str::to_owned));
        let first = format!("{name}/{}", nodes.first()?);
        Some(
            self.outsider()
                .await
                .check_stat(&first)
                .await
                .expect("an answer")?
                .czxid
                .to_string(),
        )
    }

    fn is_of(_: &Member, guard: &Guard, shown: &str) -> bool {
        guard
            .fence()
            .is_some_and(|fence| fence.0.to_string() == shown)
    }
}
