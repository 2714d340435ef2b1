//! One Redis, and the kinds of locks on it.

pub(crate) mod access;
pub(crate) mod cluster;
pub(crate) mod cuts;
pub(crate) mod fair;
pub(crate) mod faults;
pub(crate) mod fences;
pub(crate) mod given;
pub(crate) mod holds;
pub(crate) mod java_watchdog;
pub(crate) mod latch;
pub(crate) mod leased_permits;
pub(crate) mod outages;
pub(crate) mod own;
pub(crate) mod own_cluster;
pub(crate) mod permits;
pub(crate) mod rate;
pub(crate) mod read_write;
pub(crate) mod redlock;
pub(crate) mod redlock_faults;
pub(crate) mod refusals;
pub(crate) mod replicas;
pub(crate) mod rw_holds;
pub(crate) mod rw_line;
pub(crate) mod sentinel;

use crate::{
    family::{
        Capability::{self, *},
        asked, operator,
    },
    multi::{in_any_order, parts},
    redis::fair::{queue_key, scores_key},
    support::*,
};
use oversell_lab::clients::redis_at::redis_at;
use oversell_lock::redis::{RedisClient, RedisOptions};
use redis::{AsyncTypedCommands, aio::MultiplexedConnection};
use std::collections::BTreeSet;
use tokio::sync::OnceCell;

const PLAIN: &[Capability] = &[Contract, OneServer, Losable];

static KINDS: &[Kind<Redis>] = &[
    Kind::new("redis", &[Contract, OneServer, Losable, Leased, Reentrant, Layered, Shown], |client: &RedisClient, name, ask| {
        asked!(client.lock(name), ask).boxed()
    })
    .shows(|client: &RedisClient, name| operator!(client.lock(name))),
    Kind::once_more(
        "redis_fenced",
        &[Contract, OneServer, Losable, Leased, Reentrant, Shown],
        |client: &RedisClient, name, ask| asked!(client.fenced_lock(name), ask).boxed(),
    )
    .shows(|client: &RedisClient, name| operator!(client.fenced_lock(name))),
    Kind::once_more("redis_fair", &[Contract, OneServer, Losable, Leased, Reentrant, InTurn, Shown], fair)
        .shows(|client: &RedisClient, name| operator!(client.fair_lock(name)))
        .queues(),
    Kind::once_more("redis_write", &[Contract, OneServer, Losable, Leased, Reentrant, Shown], write)
        .shows(|client: &RedisClient, name| operator!(client.rw_lock(name).write()))
        .reads(read),
    Kind::once_more("redis_multi", PLAIN, |client: &RedisClient, name, ask| {
        in_any_order(parts(name).map(|part| asked!(client.lock(&part), ask))).boxed()
    })
    .parts(|name| parts(name).into()),
];

/// The lock is not for one holder alone.
static READ: Kind<Redis> = Kind::new("redis_read", &[], read);

/// Every kind that is given a lease, the read lock among them.
pub(crate) fn with_lease(redis: &'static Redis) -> impl Iterator<Item = Family<Redis>> {
    let read = Family { server: redis, kind: &READ };
    let leased = |family: &Family<Redis>| family.kind.can.contains(&Leased);
    redis.families().filter(leased).chain([read])
}

/// Reads a lock's holders from its key: the fields of a hash, but for the mode of a read-write lock.
pub(crate) const HOLDERS: &str = "
    local holders = {}
    for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
        if field ~= 'mode' then
            holders[#holders + 1] = field
        end
    end
    return holders";

/// Whether this key goes with the lock. The counter of tokens stays, as it must, and `{n}:seen` for a few seconds; the
/// queue of a fair lock is counted by its waiters.
pub(crate) fn is_lock(key: &str) -> bool {
    let others = ["redisson_lock_token:", "redisson_lock_queue:", "redisson_lock_timeout:"];
    !key.ends_with(":seen") && !others.iter().any(|prefix| key.starts_with(prefix))
}

fn fair(client: &RedisClient, name: &str, ask: Ask) -> AnyLock {
    asked!(client.fair_lock(name), ask).boxed()
}

pub(crate) fn read(client: &RedisClient, name: &str, ask: Ask) -> AnyLock {
    asked!(client.rw_lock(name).read(), ask).boxed()
}

pub(crate) fn write(client: &RedisClient, name: &str, ask: Ask) -> AnyLock {
    asked!(client.rw_lock(name).write(), ask).boxed()
}

/// A busy machine still renews it in time, and a test can wait for its end.
pub(crate) const LEASE: Duration = Duration::from_secs(9);

/// The time limit of a command on a connection that a test may mute.
pub(crate) const LIMIT: Duration = Duration::from_secs(3);

pub(crate) struct Redis {
    url: String,
    /// The address for programs, if it is another one.
    front: Option<String>,
    outsider: OnceCell<MultiplexedConnection>,
}

impl Redis {
    pub(crate) const fn at(url: String) -> Self {
        let outsider = OnceCell::const_new();
        Self { url, front: None, outsider }
    }

    /// A Redis that programs reach at another address.
    pub(crate) fn behind(url: String, front: String) -> Self {
        Self { front: Some(front), ..Self::at(url) }
    }

    pub(crate) fn front(&self) -> String {
        self.front.clone().unwrap_or_else(|| self.host())
    }

    /// The test's own connection to the server, used thousands of times, with long time limits.
    pub(crate) async fn outsider(&self) -> MultiplexedConnection {
        let connect = || async { redis_at(&self.url).await.expect("redis is there") };
        self.outsider.get_or_init(connect).await.clone()
    }

    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let (word, arguments) = words.split_first().context("a command")?;
        let mut command = redis::cmd(word);
        let command = command.arg(arguments);
        Ok(command.query_async(&mut self.outsider().await).await?)
    }

    pub(crate) async fn run(&self, commands: &[&[&str]]) -> Result {
        let mut all = redis::pipe();
        all.atomic();
        for words in commands {
            all.cmd(words[0]).arg(&words[1..]);
        }
        Ok(all.exec_async(&mut self.outsider().await).await?)
    }

    /// A connection that receives all messages of matching channels.
    pub(crate) async fn listener(&self, channels: &str) -> Result<redis::aio::PubSub> {
        let client = redis::Client::open(self.url.as_str())?;
        let mut listener = client.get_async_pubsub().await?;
        listener.psubscribe(channels).await?;
        Ok(listener)
    }

    /// Every command that the server gets from now on.
    pub(crate) async fn monitor(&self) -> Result<redis::aio::Monitor> {
        let client = redis::Client::open(self.url.as_str())?;
        Ok(client.get_async_monitor().await?)
    }

    /// Waits until `n` connections subscribe to this channel.
    pub(crate) async fn until_heard_by(&self, channel: &str, n: i64) -> Result {
        let heard = async || {
            let asked: Result<(String, i64)> = self.ask(&["PUBSUB", "NUMSUB", channel]).await;
            asked.is_ok_and(|(_, heard_by)| heard_by == n)
        };
        until(&format!("{n} hear {channel}"), heard).await
    }

    pub(crate) fn host(&self) -> String {
        let host = self.url.trim_start_matches("redis://");
        host.trim_end_matches('/').to_owned()
    }

    /// Every key that contains this name, sorted: Redis lists them in no fixed order.
    pub(crate) async fn keys(&self, name: &str) -> Vec<String> {
        let mut outsider = self.outsider().await;
        let mut keys = outsider.keys(format!("*{name}*")).await.expect("a list");
        keys.sort_unstable();
        keys
    }

    pub(crate) async fn no_key_left(&self, name: &str) -> Result {
        let none = async || self.keys(name).await.is_empty();
        until("no key is left", none).await
    }

    pub(crate) async fn delete(&self, key: &str) {
        self.outsider().await.del(key).await.expect("deleted");
    }

    /// The owners in a fair lock's queue, and those with a score.
    async fn queued(&self, name: &str) -> BTreeSet<String> {
        let mut outsider = self.outsider().await;
        let (queue, scores) = (queue_key(name), scores_key(name));
        let mut both = redis::pipe();
        both.atomic().lrange(queue, 0, -1).zrange(scores, 0, -1);
        let both: redis::RedisResult<[BTreeSet<String>; 2]> = both.query_async(&mut outsider).await;
        both.expect("an answer").into_iter().flatten().collect()
    }
}

/// A process whose connection is never muted: only a stalled machine delays its commands.
pub(crate) fn patient(address: &str) -> RedisClient {
    client(&Process::new(), address, LEASE, SOON)
}

/// A client of `process` with this lease and this time limit.
pub(crate) fn client(process: &Process, address: &str, lease: Duration, timeout: Duration) -> RedisClient {
    let options = RedisOptions::new(format!("redis://{address}")).process(process.clone());
    RedisClient::new(options.lease(lease).timeout(timeout)).expect("an address")
}

impl Server for Redis {
    type Client = RedisClient;

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }

    fn address(&self) -> String {
        self.host()
    }

    /// A test that may mute the connection needs to notice silence soon.
    async fn client_at(&self, address: &str) -> RedisClient {
        if address == self.host() {
            return patient(address);
        }
        client(&Process::new(), address, LEASE, LIMIT)
    }

    fn owner(client: &RedisClient) -> Owner {
        client.owner()
    }

    /// The lock, and each waiter of a fair one.
    async fn left(&self, name: &str) -> Vec<String> {
        let mut left = self.keys(name).await;
        left.retain(|key| is_lock(key));
        left.extend(self.queued(name).await);
        left
    }

    async fn holders(&self, name: &str) -> Vec<String> {
        let holders = self.ask(&["EVAL", HOLDERS, "1", name]).await;
        holders.expect("`HOLDERS` knows its key")
    }

    async fn take_away(&self, _: &RedisClient, name: &str) {
        self.delete(name).await;
    }

    /// By its channel, or by its place in the queue if a process's waiters share one pattern.
    async fn is_waited_for(&self, name: &str) -> bool {
        let channels = ["PUBSUB", "CHANNELS", &format!("*{name}*")];
        let channels: Result<Vec<String>> = self.ask(&channels).await;
        channels.is_ok_and(|channels| !channels.is_empty()) || !self.queued(name).await.is_empty()
    }

    async fn ends_in(&self, name: &str) -> Option<Duration> {
        let millis: i64 = self.ask(&["PTTL", name]).await.expect("an answer");
        Some(Duration::from_millis(millis.try_into().unwrap_or(0)))
    }
}
