//! What random programs are run on: every kind of lock and semaphore, and what they need to know of each engine.
//!
//! Next to read: `gates.rs`, the programs of what is not held.

use super::{
    checker::Share,
    family::asked,
    programs::{Driven, Subject, Taking, keep_the_rules},
    recorder::{Held, share},
    redis,
    redlock::clients_with,
    refusals::{self, Refusal, Refuser},
    support::*,
    zookeeper::{ANSWER, Member, SESSION, client_at},
};
use futures::{FutureExt, future::BoxFuture};
use oversell_lock::{
    MultiLock,
    local::Mutexes,
    mysql::MySqlPool,
    redis::{RedisClient, Redlock},
};
use std::{future::ready, io};

/// A busy machine may need a part of it.
const TIMEOUT: Duration = Duration::from_millis(600);
/// Some answers are later than the time-out.
const LATE: Duration = Duration::from_millis(250);
/// Longer than the short leases of programs.
const EXPIRY: Duration = Duration::from_millis(350);
/// A try connects at most four times and asks twice, each within the client's time-out, and may begin when the wait ends;
/// what several parts are made of asks for each.
const REDIS_ANSWER: Duration = TIMEOUT.saturating_mul(3 * 2 * 6);

impl Driven for Redis {
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;
    const ANSWER: Duration = REDIS_ANSWER;
    const LATE: Duration = LATE;
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

impl Driven for Five {
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;
    const ANSWER: Duration = REDIS_ANSWER;
    const LATE: Duration = LATE;
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

impl Driven for ZooKeeper {
    /// The server looks at sessions every two seconds.
    const EXPIRY: Duration = SESSION.saturating_add(Duration::from_secs(2));
    const STEPS: usize = 20;
    /// An answer is waited for 2 s, for a connection 1 s more; the parts of a lock each have as much.
    const ANSWER: Duration = Duration::from_secs(3 * 3);
    const REFUSALS: &'static [Refusal] = &[];

    fn servers(&self) -> Vec<String> {
        self.address().split(',').map(str::to_owned).collect()
    }

    async fn client_over(&self, addresses: &[String]) -> Member {
        let client = client_at(addresses.join(","), SESSION, ANSWER).await;
        Member {
            client: client.expect("zookeeper is there"),
            way: Proxy::to(addresses[0].clone()).expect("a free port"),
        }
    }
}

impl Driven for Table {
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 40;
    /// A try needs a connection, inserts, and sweeps on another one: each connection and each statement has 3 s.
    const ANSWER: Duration = Duration::from_secs(5 * 3);
    const REFUSALS: &'static [Refusal] = &refusals::MYSQL;

    fn servers(&self) -> Vec<String> {
        vec![self.address()]
    }

    fn refuser(server: String) -> Option<io::Result<Refuser>> {
        Some(Refuser::mysql(server))
    }

    async fn client_over(&self, addresses: &[String]) -> MySqlPool {
        self.pool(&addresses[0], 4)
    }
}

/// The mutexes of one process: both parties share them.
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

impl Driven for Local {
    const EXPIRY: Duration = EXPIRY;
    const STEPS: usize = 60;
    const ANSWER: Duration = Duration::ZERO;
    const REFUSALS: &'static [Refusal] = &[];

    fn servers(&self) -> Vec<String> {
        Vec::new()
    }

    async fn client_over(&self, _: &[String]) -> Arc<Mutexes<String>> {
        self.0.clone()
    }
}

/// Takes a lock.
pub(crate) fn taking(share: Share, lock: impl Lock + 'static, wait: Duration) -> Taking {
    let taken = async move { Ok(vec![Held::Guard(lock.acquire(wait).await?)]) };
    Taking {
        share,
        taken: taken.boxed(),
    }
}

const LOST: &[&str] = &[
    "done",
    "taken again",
    "not in time",
    "no answer",
    "lost",
    "gone",
];
/// Of what no owner takes twice.
const ONCE: &[&str] = &["done", "not in time", "no answer", "lost", "gone"];
const READ: &[&str] = &[
    "done",
    "taken again",
    "together",
    "not in time",
    "no answer",
    "lost",
    "gone",
];
const PERMITS: &[&str] = &["done", "together", "not in time", "no answer", "gone"];
/// Of what has no lease.
const KEPT: &[&str] = &["done", "not in time", "no answer", "gone"];

impl<S: Driven> Subject<S> {
    /// A lock that is for one alone, and is lost with its lease or session.
    pub(crate) const fn lock(take: fn(&S::Client, &str, Ask, Duration, u8) -> Taking) -> Self {
        Self {
            permits: 0,
            reentrant: true,
            take,
            left: |server, name| server.left(name).boxed(),
            wanted: LOST,
        }
    }
}

/// What is left of what has parts.
fn left_of<'a, S: Server>(
    server: &'a S,
    parts: impl IntoIterator<Item = String>,
) -> BoxFuture<'a, Vec<String>> {
    let parts: Vec<_> = parts.into_iter().collect();
    async move {
        join_all(parts.iter().map(|part| server.left(part)))
            .await
            .concat()
    }
    .boxed()
}

macro_rules! subjects {
    ($($test:ident: $static:ident on $engine:ident = $subject:expr;)*) => {$(
        pub(crate) static $static: Subject<$engine> = $subject;

        test! {
            async fn $test(engine: &'static $engine) -> Result {
                keep_the_rules(stringify!($static), engine, &$static, ready(Ok(()))).await
            }
        }
    )*};
}

subjects! {
    random_programs_with_a_redis_lock_keep_the_rules: LOCK on Redis = Subject::lock(
        |client: &RedisClient, name, ask, wait, _| taking(Share::Alone, asked!(client.lock(name), ask), wait));
    random_programs_with_a_fenced_lock_keep_the_rules: FENCED_LOCK on Redis = Subject::lock(
        |client: &RedisClient, name, ask, wait, _| taking(Share::Alone, asked!(client.fenced_lock(name), ask), wait));
    random_programs_with_a_fair_lock_keep_the_rules: FAIR_LOCK on Redis = Subject::lock(
        |client: &RedisClient, name, ask, wait, _| taking(Share::Alone, asked!(client.fair_lock(name), ask), wait));
    random_programs_with_a_read_write_lock_keep_the_rules: RW_LOCK on Redis = Subject {
        wanted: READ,
        ..Subject::lock(|client: &RedisClient, name, ask, wait, half| match half % 2 {
            0 => taking(share(false), asked!(client.rw_lock(name).write(), ask), wait),
            _ => taking(share(true), asked!(client.rw_lock(name).read(), ask), wait),
        })
    };
    random_programs_with_a_multi_lock_keep_the_rules: MULTI_LOCK on Redis = Subject {
        left: |redis, name| left_of(redis, super::multi::parts(name)),
        reentrant: false,
        wanted: ONCE,
        ..Subject::lock(|client: &RedisClient, name, ask, wait, half| {
            let mut parts: Vec<_> = super::multi::parts(name).map(|part| asked!(client.lock(&part), ask)).into();
            if half == 1 {
                parts.reverse();
            }
            taking(Share::Alone, MultiLock::new(parts), wait)
        })
    };
    random_programs_with_a_semaphore_keep_the_rules: SEMAPHORE on Redis = Subject {
        permits: 3,
        reentrant: false,
        take: |client: &RedisClient, name, _, wait, half| {
            let permits = u32::from(half % 3) + 1;
            let semaphore = client.semaphore(name).initially(3);
            let taken = async move { Ok(vec![Held::Permit(semaphore.acquire(permits, wait).await?)]) };
            Taking { share: Share::Permits(permits), taken: taken.boxed() }
        },
        left: |redis, name| async move {
            let mut left = redis.keys(name).await;
            let free: Option<u32> = redis.ask(&["GET", name]).await.ok().flatten();
            left.retain(|key| key != name && !key.contains(":gone:"));
            left.extend((free != Some(3)).then(|| format!("{free:?} permits free of 3")));
            left
        }.boxed(),
        wanted: PERMITS,
    };
    random_programs_with_a_redlock_keep_the_rules: REDLOCK on Five = Subject::lock(
        |clients: &Vec<RedisClient>, name, ask, wait, _| taking(Share::Alone, asked!(Redlock::new(clients, name), ask), wait));
    random_programs_with_a_zookeeper_lock_keep_the_rules: ZK_LOCK on ZooKeeper = Subject::lock(
        |member: &Member, name, ask, wait, _| match ask.owner {
            Some(owner) => taking(Share::Alone, member.client.lock(name).owner(owner), wait),
            None => taking(Share::Alone, member.client.lock(name), wait),
        });
    random_programs_with_a_zookeeper_read_write_lock_keep_the_rules: ZK_RW_LOCK on ZooKeeper = Subject::lock(
        |member: &Member, name, ask, wait, half| {
            let (lock, owner) = (member.client.rw_lock(name), ask.owner.unwrap_or_else(|| member.client.owner()));
            match half % 2 {
                0 => taking(share(false), lock.write().owner(owner), wait),
                _ => taking(share(true), lock.read().owner(owner), wait),
            }
        });
    random_programs_with_a_zookeeper_multi_lock_keep_the_rules: ZK_MULTI_LOCK on ZooKeeper = Subject {
        left: |zookeeper, name| left_of(zookeeper, super::multi::parts(name)),
        reentrant: false,
        wanted: ONCE,
        ..Subject::lock(|member: &Member, name, _, wait, half| {
            let mut parts: Vec<_> = super::multi::parts(name).map(|part| member.client.lock(&part)).into();
            if half == 1 {
                parts.reverse();
            }
            taking(Share::Alone, MultiLock::new(parts), wait)
        })
    };
    random_programs_with_a_semaphore_mutex_keep_the_rules: ZK_SEMAPHORE_MUTEX on ZooKeeper = Subject {
        left: |zookeeper, name| left_of(zookeeper, ["leases", "locks"].map(|part| format!("{name}/{part}"))),
        reentrant: false,
        wanted: ONCE,
        ..Subject::lock(|member: &Member, name, _, wait, _| taking(Share::Alone, member.client.semaphore_mutex(name), wait))
    };
    random_programs_with_a_zookeeper_semaphore_keep_the_rules: ZK_SEMAPHORE on ZooKeeper = Subject {
        permits: 3,
        reentrant: false,
        wanted: PERMITS,
        left: |zookeeper, name| left_of(zookeeper, ["leases", "locks"].map(|part| format!("{name}/{part}"))),
        take: |member: &Member, name, _, wait, half| {
            let (semaphore, leases) = (member.client.semaphore(name, 3), u32::from(half % 3) + 1);
            let taken = async move {
                let leases = semaphore.acquire(leases, wait).await?;
                Ok(leases.into_iter().map(Held::Guard).collect())
            };
            Taking { share: Share::Permits(1), taken: taken.boxed() }
        },
    };
    random_programs_with_a_table_lease_lock_keep_the_rules: TABLE_LEASE_LOCK on Table = Subject::lock(
        |pool: &MySqlPool, name, ask, wait, _| taking(Share::Alone, asked!(pool.table_lease_lock(name), ask), wait));
    random_programs_with_a_table_lock_keep_the_rules: TABLE_LOCK on Table = Subject {
        reentrant: false,
        wanted: KEPT,
        ..Subject::lock(|pool: &MySqlPool, name, _, wait, _| taking(Share::Alone, pool.table_lock(name), wait))
    };
}

static MUTEXES: Subject<Local> = Subject {
    permits: 0,
    reentrant: false,
    take: |mutexes, name, _, wait, _| {
        let (mutexes, name) = (mutexes.clone(), name.to_owned());
        let taken = async move {
            let held = mutexes.lock(&name, wait).await;
            let held = held.ok_or_else(|| in_vain(&name, wait))?;
            Ok(vec![Held::Local(held)])
        };
        Taking {
            share: Share::Alone,
            taken: taken.boxed(),
        }
    },
    left: |local, name| local.left(name).boxed(),
    wanted: &["done", "not in time", "gone"],
};

#[apply(test!)]
async fn random_programs_with_local_mutexes_keep_the_rules(_: &'static Redis) -> Result {
    static LOCAL: std::sync::LazyLock<Local> = std::sync::LazyLock::new(|| Local(Arc::default()));
    keep_the_rules("MUTEXES", &*LOCAL, &MUTEXES, ready(Ok(()))).await
}
