//! The locks that random programs run on: every kind of lock, the semaphores and the mutexes of one process, and the
//! engines' limits.
//!
//! Next to read: `gates.rs`, the programs of what is not held.

use super::{
    checker::Share,
    family::Capability::{Losable, Reentrant},
    programs::{Acquisition, ProgramServer, Subject, ensure_rules_kept},
    recorder::Grant,
    redis,
    redis::redlock::clients_with,
    refusals::{self, Refusal, Refuser},
    register::driven,
    support::*,
    zookeeper::{Member, REPLY_TIMEOUT, SESSION, client_at, semaphore_parts},
};
use futures::{FutureExt, future::BoxFuture};
use oversell_lock::{
    etcd::{EtcdClient, EtcdOptions},
    local::Mutexes,
    mysql::TablePool,
    redis::{RedisClient, RedisSemaphore},
};
use std::{
    future::ready,
    io,
    sync::{Arc, LazyLock},
};

/// A lease in etcd that ends within a program, and the time limit of an answer there.
const PROGRAM_LEASE: Duration = Duration::from_secs(4);
const ETCD_TIMEOUT: Duration = Duration::from_secs(2);
/// A busy machine may need a part of it.
const TIMEOUT: Duration = Duration::from_millis(600);
/// Some delays exceed the timeout.
const REPLY_DELAY: Duration = Duration::from_millis(250);
/// A try connects at most four times and sends two requests, each within the client's timeout, and may begin when the
/// wait ends; a lock of several parts does so for each.
const REDIS_ANSWER: Duration = TIMEOUT.saturating_mul(3 * 2 * 6);

impl ProgramServer for Redis {
    const REPLY_TIMEOUT: Duration = REDIS_ANSWER;
    const REPLY_DELAY: Duration = REPLY_DELAY;
    const REFUSALS: &'static [Refusal] = &refusals::REDIS;

    fn servers(&self) -> Vec<String> {
        vec![self.front()]
    }

    fn refuser(server: String) -> Option<io::Result<Refuser>> {
        Some(Refuser::redis(server))
    }

    async fn client_over(&self, addresses: &[String]) -> RedisClient {
        redis::client(&Process::new(), &addresses[0], SOON, TIMEOUT)
    }
}

impl ProgramServer for Five {
    const REPLY_TIMEOUT: Duration = REDIS_ANSWER;
    const REPLY_DELAY: Duration = REPLY_DELAY;
    const REFUSALS: &'static [Refusal] = &refusals::REDIS;

    fn servers(&self) -> Vec<String> {
        self.hosts()
    }

    fn refuser(server: String) -> Option<io::Result<Refuser>> {
        Some(Refuser::redis(server))
    }

    async fn client_over(&self, addresses: &[String]) -> Vec<RedisClient> {
        clients_with(addresses, TIMEOUT)
    }
}

impl ProgramServer for ZooKeeper {
    /// The server checks sessions every two seconds.
    const EXPIRY: Duration = SESSION.saturating_add(Duration::from_secs(2));
    const STEPS: usize = 20;
    /// An answer may take 2 s and a connection 1 s more, for each part of a lock.
    const REPLY_TIMEOUT: Duration = Duration::from_secs(3 * 3);

    fn servers(&self) -> Vec<String> {
        self.address().split(',').map(str::to_owned).collect()
    }

    async fn client_over(&self, addresses: &[String]) -> Member {
        let client = client_at(addresses.join(","), SESSION, REPLY_TIMEOUT).await;
        Member { client: client.expect("zookeeper is there"), way: Proxy::to(addresses[0].clone()).expect("a free port") }
    }
}

impl ProgramServer for Etcd {
    /// The server ends leases twice a second.
    const EXPIRY: Duration = PROGRAM_LEASE.saturating_add(Duration::from_secs(2));
    const STEPS: usize = 20;
    /// A request may take [`ETCD_TIMEOUT`]: a lease, a key, looks for as long as the lease is sure, and its revocation.
    const REPLY_TIMEOUT: Duration = PROGRAM_LEASE.saturating_add(Duration::from_secs(4 * 2));

    fn servers(&self) -> Vec<String> {
        self.address().split(',').map(str::to_owned).collect()
    }

    async fn client_over(&self, addresses: &[String]) -> EtcdClient {
        let options = EtcdOptions::new(addresses.join(","));
        EtcdClient::new(options.lease(PROGRAM_LEASE).timeout(ETCD_TIMEOUT)).expect("an address")
    }
}

impl ProgramServer for Table {
    const STEPS: usize = 40;
    /// A try connects, inserts, and sweeps on another connection; each connection and statement may take 3 s.
    const REPLY_TIMEOUT: Duration = Duration::from_secs(5 * 3);
    const REFUSALS: &'static [Refusal] = &refusals::MYSQL;

    fn servers(&self) -> Vec<String> {
        vec![self.address()]
    }

    fn refuser(server: String) -> Option<io::Result<Refuser>> {
        Some(Refuser::mysql(server))
    }

    async fn client_over(&self, addresses: &[String]) -> TablePool {
        self.pool(&addresses[0], 4)
    }
}

/// The mutexes of one process, which all parties share.
pub(crate) struct Local(Arc<Mutexes<String>>);

impl Server for Local {
    type Client = Arc<Mutexes<String>>;

    fn kinds() -> &'static [Kind<Self>] {
        &[]
    }

    fn address(&self) -> String {
        String::new()
    }

    async fn client_at(&self, _: &str) -> Arc<Mutexes<String>> {
        self.0.clone()
    }

    async fn left(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    async fn take_away(&self, _: &Arc<Mutexes<String>>, _: &str) {}
}

impl ProgramServer for Local {
    const REPLY_TIMEOUT: Duration = Duration::ZERO;

    fn servers(&self) -> Vec<String> {
        Vec::new()
    }

    async fn client_over(&self, _: &[String]) -> Arc<Mutexes<String>> {
        self.0.clone()
    }
}

/// The events that a program must reach, unless some cannot happen.
const WANTED: [&str; 7] = ["done", "taken again", "together", "not in time", "no answer", "lost", "gone"];

fn wanted(never: &[&str]) -> Vec<&'static str> {
    let wanted = WANTED.into_iter();
    wanted.filter(|wanted| !never.contains(wanted)).collect()
}

impl<S: ProgramServer> Subject<S> {
    /// A kind of lock; an odd number asks for its reading half, if it has one.
    pub(crate) fn of(kind: &'static Kind<S>) -> Self {
        let (reentrant, losable) = (kind.can.contains(&Reentrant), kind.can.contains(&Losable));
        let never =
            [(!reentrant).then_some("taken again"), kind.read.is_none().then_some("together"), (!losable).then_some("lost")];
        Self {
            permits: 0,
            reentrant,
            take: Box::new(|client, name, ask, wait, half| {
                let read = kind.read.filter(|_| half % 2 == 1);
                let lock = read.unwrap_or(kind.make)(client, name, ask);
                let share = read.map_or(Share::Alone, |_| Share::Reader);
                let taken = async move { Ok(vec![Grant::Guard(lock.acquire(wait).await?)]) };
                Acquisition { share, taken: taken.boxed() }
            }),
            left: Box::new(|server, name| left_of(server, (kind.parts)(name))),
            wanted: wanted(&never.into_iter().flatten().collect::<Vec<_>>()),
        }
    }
}

/// The entries of a lock with parts.
fn left_of<S: Server>(server: &S, parts: Vec<String>) -> BoxFuture<'_, Vec<String>> {
    let left = async move { join_all(parts.iter().map(|part| server.left(part))).await };
    left.map(|left| left.concat()).boxed()
}

/// Checks that the lock keeps the rules in every program.
#[apply(driven!)]
async fn random_programs_keep_the_rules<S: ProgramServer>(family: Family<S>) -> Result {
    let Family { server, kind } = family;
    ensure_rules_kept(kind.name, server, &Subject::of(kind), ready(Ok(()))).await
}

fn take_permits(semaphore: RedisSemaphore, wait: Duration, half: u8) -> Acquisition {
    let permits = u32::from(half % 3) + 1;
    let taken = async move { Ok(vec![Grant::Permit(semaphore.acquire(permits, wait).await?)]) };
    Acquisition { share: Share::Permits(permits), taken: taken.boxed() }
}

pub(crate) fn semaphore() -> Subject<Redis> {
    Subject {
        permits: 3,
        reentrant: false,
        take: Box::new(|client: &RedisClient, name, _, wait, half| {
            take_permits(client.semaphore(name).initially(3).without_lease(), wait, half)
        }),
        left: Box::new(|redis, name| {
            let left = async move {
                let mut left = redis.keys(name).await;
                let free: Option<u32> = redis.ask(&["GET", name]).await.ok().flatten();
                left.retain(|key| key != name && !key.contains(":gone:"));
                left.extend((free != Some(3)).then(|| format!("{free:?} permits free of 3")));
                left
            };
            left.boxed()
        }),
        wanted: wanted(&["taken again", "lost"]),
    }
}

/// The same with a lease for each permit, as it is by default.
fn leased_semaphore() -> Subject<Redis> {
    Subject {
        permits: 3,
        reentrant: false,
        take: Box::new(|client: &RedisClient, name, ask, wait, half| {
            let lease = ask.lease.unwrap_or(Lease::Watchdog(SOON));
            take_permits(client.semaphore(name).initially(3).lease(lease), wait, half)
        }),
        left: Box::new(|redis, name| {
            let left = async move {
                let keys = redis.keys(name).await;
                let timeouts = format!("{{{name}}}:timeout");
                let held: i64 = redis.ask(&["ZCARD", &timeouts]).await.unwrap_or(-1);
                let free: Option<i64> = redis.ask(&["GET", name]).await.ok().flatten();
                let all = free.is_none_or(|free| free + held == 3);
                let other = keys.iter().filter(|key| *key != name && **key != timeouts);
                let mut left: Vec<_> = other.cloned().collect();
                left.extend((!all).then(|| format!("{free:?} permits free, {held} held of 3")));
                left.extend((held != 0).then(|| format!("{held} permits are held")));
                left
            };
            left.boxed()
        }),
        wanted: wanted(&["taken again"]),
    }
}

#[apply(test!)]
async fn random_programs_with_leased_permits_keep_the_rules(redis: &'static Redis) -> Result {
    ensure_rules_kept("PERMITS", redis, &leased_semaphore(), ready(Ok(()))).await
}

#[apply(test!)]
async fn random_programs_with_a_semaphore_keep_the_rules(redis: &'static Redis) -> Result {
    ensure_rules_kept("SEMAPHORE", redis, &semaphore(), ready(Ok(()))).await
}

pub(crate) fn zk_semaphore() -> Subject<ZooKeeper> {
    Subject {
        permits: 3,
        reentrant: false,
        take: Box::new(|member: &Member, name, _, wait, half| {
            let semaphore = member.client.semaphore(name, 3);
            let leases = u32::from(half % 3) + 1;
            let taken = async move {
                let leases = semaphore.acquire(leases, wait).await?;
                Ok(leases.into_iter().map(Grant::Guard).collect())
            };
            Acquisition { share: Share::Permits(1), taken: taken.boxed() }
        }),
        left: Box::new(|zookeeper, name| left_of(zookeeper, semaphore_parts(name))),
        wanted: wanted(&["taken again", "lost"]),
    }
}

#[apply(test!)]
async fn random_programs_with_a_zookeeper_semaphore_keep_the_rules(zookeeper: &'static ZooKeeper) -> Result {
    ensure_rules_kept("ZK_SEMAPHORE", zookeeper, &zk_semaphore(), ready(Ok(()))).await
}

#[apply(test!)]
async fn random_programs_with_local_mutexes_keep_the_rules(_: &'static Redis) -> Result {
    static LOCAL: LazyLock<Local> = LazyLock::new(|| Local(Arc::default()));
    let mutexes = Subject {
        permits: 0,
        reentrant: false,
        take: Box::new(|mutexes: &Arc<Mutexes<String>>, name, _, wait, _| {
            let (mutexes, name) = (mutexes.clone(), name.to_owned());
            let taken = async move {
                let held = mutexes.lock(&name, wait).await;
                let held = held.ok_or_else(|| wait_over_error(&name, wait))?;
                Ok(vec![Grant::Local(held)])
            };
            Acquisition { share: Share::Alone, taken: taken.boxed() }
        }),
        left: Box::new(|local: &Local, name| local.left(name).boxed()),
        wanted: wanted(&["taken again", "together", "no answer", "lost"]),
    };
    ensure_rules_kept("MUTEXES", &*LOCAL, &mutexes, ready(Ok(()))).await
}
