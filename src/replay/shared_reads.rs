//! Reads of Redis and MySQL that all replays of an instance share: one pipelined read, or one query, for each kind and tick.
//!
//! 1. A replay asks for a key ([`SharedRead::read`]).
//! 2. Keys that are asked for while a read is under way, or until its tick is over, go together with the next one.
//! 3. Each caller gets its own answer. A server that does not answer fails those that asked for it, and no other.
//!
//! Next: `observer.rs`.

use crate::{ctx::Ctx, error::Error, section::names, server::Server, stock_admin::NODES};
use futures::future::{BoxFuture, join_all};
use oversell_lock::redis::Connection;
use parking_lot::Mutex;
use redis::{FromRedisValue, RedisResult, Value};
use sqlx::{Encode, FromRow, MySql, QueryBuilder, Type, mysql::MySqlRow};
use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

/// The least time between the starts of two reads of one kind.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(10);
/// Time limit of one read; a slower server counts as down.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit of the read of one node of Redlock, which then counts as down.
const NODE_TIMEOUT: Duration = Duration::from_millis(200);

/// One owner's hold of a lock, as its server has it: a lock that several readers share gives one entry for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockEntry {
    pub(super) key: String,
    /// The text in the server that stands for the owner.
    pub(super) owner: String,
    /// The rest of the lease in milliseconds; -1 for a lock without one, `None` in ZooKeeper, which has no leases, and in
    /// etcd, which tells whole seconds.
    pub(super) pttl: Option<i64>,
    /// The owner's holds, if the lock counts them.
    pub(super) count: Option<i64>,
    /// The owner and its waiters, in the server's order; empty if the server lists no waiters.
    pub(super) queue: Vec<String>,
}

/// The reads that all replays of this instance share.
#[derive(Debug)]
pub(super) struct SharedReads {
    /// Of the main Redis.
    pub(super) redis: SharedRead<String, RedisEntry>,
    /// Of the Redis of visitors' scripts.
    pub(super) mine: SharedRead<String, RedisEntry>,
    /// Of each node of Redlock, by its number. A node that is down has no entry.
    pub(super) nodes: SharedRead<(usize, String), RedisEntry>,
    /// The pieces of a product, those in buckets included, and its fence.
    pub(super) products: SharedRead<i64, (i64, u64)>,
    /// The pieces of a voucher.
    pub(super) vouchers: SharedRead<i64, i64>,
    /// The rows of `tb_lock`, by name.
    pub(super) table_locks: SharedRead<String, LockEntry>,
}

impl LockEntry {
    /// The lock of the first in this queue; `None` if nobody is in it.
    pub(super) fn of_queue(key: String, queue: Vec<String>) -> Option<Self> {
        let owner = queue.first().cloned()?;
        Some(Self { key, owner, pttl: None, count: None, queue })
    }

    /// Puts the name of the node before the key: `redis-2 redLock:7`.
    pub(super) fn on_node(self, n: usize) -> Self {
        Self { key: format!("{} {}", NODES[n], self.key), ..self }
    }

    /// Whether the lock never ends by itself, though its server has leases.
    pub(super) fn has_no_lease(&self) -> bool {
        self.pttl == Some(-1)
    }

    /// Whether both are the same hold, seen at different times.
    pub(super) fn is_same_hold(&self, other: &Self) -> bool {
        self.key == other.key && self.owner == other.owner
    }
}

impl Default for SharedReads {
    fn default() -> Self {
        Self {
            redis: SharedRead::new(Server::Redis, |ctx, keys| Box::pin(read_keys(ctx.redis.connection(), keys))),
            mine: SharedRead::new(Server::Redis, |ctx, keys| Box::pin(read_keys(ctx.mine.connection(), keys))),
            nodes: SharedRead::new(Server::Redis, |ctx, keys| Box::pin(read_nodes(ctx, keys))),
            products: SharedRead::new(Server::MySql, |ctx, ids| Box::pin(read_products(ctx, ids))),
            vouchers: SharedRead::new(Server::MySql, |ctx, ids| Box::pin(select(ctx, SELECT_VOUCHERS, ids))),
            table_locks: SharedRead::new(Server::MySql, |ctx, names| Box::pin(read_table_locks(ctx, names))),
        }
    }
}

/// A function that reads these keys from a server. A key that is not there has no value.
type Fetch<K, V> = fn(Ctx, Vec<K>) -> BoxFuture<'static, Result<HashMap<K, V>, Error>>;

/// The value of a key; `None` if the key is not there.
type Answer<V> = Result<Option<V>, Error>;

/// The shared reads of one kind: one task reads what all replays have asked for.
#[derive(Debug)]
pub(super) struct SharedRead<K, V> {
    waiting: Arc<Mutex<PendingReads<K, V>>>,
    server: Server,
    fetch: Fetch<K, V>,
}

/// The requests for the next read, and whether the reading task runs.
#[derive(Debug)]
struct PendingReads<K, V> {
    asked: Vec<(K, oneshot::Sender<Answer<V>>)>,
    is_reading: bool,
}

impl<K, V> SharedRead<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
{
    fn new(server: Server, fetch: Fetch<K, V>) -> Self {
        let waiting = PendingReads { asked: Vec::new(), is_reading: false };
        Self { waiting: Arc::new(Mutex::new(waiting)), server, fetch }
    }

    /// Waits for the server's next read, which reads this key with those of all other replays of this instance; `None` if the
    /// key is not there. Each error is an [`Error::Replay`].
    pub(super) async fn read(&self, ctx: &Ctx, key: K) -> Answer<V> {
        let answer = self.request(ctx, key).await.map_err(Error::replay)?;
        answer.map_err(Error::replay)
    }

    /// Adds a key to the next read, and starts the reading task if none runs.
    fn request(&self, ctx: &Ctx, key: K) -> oneshot::Receiver<Answer<V>> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.asked.push((key, sender));
        if !mem::replace(&mut waiting.is_reading, true) {
            // In a task of its own: a replay that is cancelled takes the answers of no other with it.
            tokio::spawn(read_all(ctx.clone(), Arc::clone(&self.waiting), self.server, self.fetch));
        }
        answer
    }
}

/// Reads all requested keys at once, at most every [`MIN_READ_INTERVAL`], until nobody waits.
async fn read_all<K, V>(ctx: Ctx, waiting: Arc<Mutex<PendingReads<K, V>>>, server: Server, fetch: Fetch<K, V>)
where
    K: Clone + Eq + Hash,
    V: Clone,
{
    loop {
        let begun = Instant::now();
        let asked = mem::take(&mut waiting.lock().asked);
        let keys: HashSet<_> = asked.iter().map(|(key, _)| key.clone()).collect();
        let found = timeout(READ_TIMEOUT, fetch(ctx.clone(), keys.into_iter().collect())).await;
        let found = found.unwrap_or_else(|_| Err(Error::unavailable(server, "no answer in time")));
        for (key, sender) in asked {
            let answer = found.as_ref().map(|found| found.get(&key).cloned()).map_err(Clone::clone);
            // Whoever asked may be gone.
            drop(sender.send(answer));
        }
        {
            let mut waiting = waiting.lock();
            if waiting.asked.is_empty() {
                waiting.is_reading = false;
                return;
            }
        }
        sleep(MIN_READ_INTERVAL.saturating_sub(begun.elapsed())).await;
    }
}

/// A key of Redis as it was read, with its lease in milliseconds and, of a fair lock, the queue.
#[derive(Debug, Clone)]
pub(super) struct RedisEntry {
    key: String,
    pttl: i64,
    /// Of a string.
    text: Option<String>,
    /// Of a hash.
    fields: Vec<(String, String)>,
    /// The queue of a fair lock.
    waiting: Vec<String>,
}

impl RedisEntry {
    /// The string as a number; `None` if the key has no string, or one that is no number.
    pub(super) fn number(&self) -> Option<i64> {
        self.text.as_ref()?.parse().ok()
    }

    /// The locks of this key: one if it is a string, one for each owner if it is a hash, as that of a read-write lock. A fair
    /// lock has a queue of waiters too.
    pub(super) fn locks(self) -> Vec<LockEntry> {
        let owners = self.fields.into_iter().filter(|(field, _)| field != "mode");
        let owners = owners.map(|(owner, count)| (owner, count.parse().ok()));
        let owners = self.text.map(|owner| (owner, None)).into_iter().chain(owners);
        let held = owners.map(|(owner, count)| {
            let queue = match self.waiting.is_empty() {
                true => Vec::new(),
                false => [&owner].into_iter().chain(&self.waiting).cloned().collect(),
            };
            LockEntry { key: self.key.clone(), owner, pttl: Some(self.pttl), count, queue }
        });
        held.collect()
    }
}

/// Reads the keys of each Redlock node, all nodes at once.
async fn read_nodes(ctx: Ctx, keys: Vec<(usize, String)>) -> Result<HashMap<(usize, String), RedisEntry>, Error> {
    let nodes = ctx.nodes.iter().enumerate().map(async |(n, node)| {
        let keys = keys.iter().filter(|(of, _)| *of == n).map(|(_, key)| key.clone()).collect();
        let entries = timeout(NODE_TIMEOUT, read_keys(node.connection(), keys)).await.ok()?.ok()?;
        Some(entries.into_iter().map(move |(key, entry)| ((n, key), entry)))
    });
    Ok(join_all(nodes).await.into_iter().flatten().flatten().collect())
}

/// Reads keys of one node in one pipeline. Of a key that is no hash HGETALL fails, of one that is no string GET: a command that
/// is refused is no error here.
async fn read_keys(mut node: Connection, keys: Vec<String>) -> Result<HashMap<String, RedisEntry>, Error> {
    let mut read = redis::pipe();
    read.ignore_errors();
    for key in &keys {
        let queue = format!("redisson_lock_queue:{}", names::in_braces(key));
        read.cmd("PTTL").arg(key).get(key).hgetall(key);
        read.cmd("LRANGE").arg(queue).arg(0).arg(-1);
    }
    let answers: RedisResult<Vec<RedisResult<Value>>> = read.query_async(&mut node).await;
    let mut answers = answers.map_err(|error| Error::unavailable(Server::Redis, error))?.into_iter();
    let entries = keys.into_iter().map(|key| {
        let entry = RedisEntry {
            key: key.clone(),
            pttl: next_answer(&mut answers).unwrap_or(-2),
            text: next_answer::<Option<String>>(&mut answers).flatten(),
            fields: next_answer(&mut answers).unwrap_or_default(),
            waiting: next_answer(&mut answers).unwrap_or_default(),
        };
        (key, entry)
    });
    Ok(entries.collect())
}

/// The next answer of the pipeline; `None` if that command was refused, or the answer is of another type.
fn next_answer<T: FromRedisValue>(answers: &mut impl Iterator<Item = RedisResult<Value>>) -> Option<T> {
    T::from_redis_value(answers.next()?.ok()?).ok()
}

/// Number, pieces (those in buckets included) and fence of these products. The list of numbers and `)` follow.
const SELECT_PRODUCTS: &str = "SELECT id, CAST(count + (SELECT COALESCE(SUM(count), 0) FROM db_stock_bucket \
                             WHERE stock_id = db_stock.id) AS SIGNED), fence FROM db_stock WHERE id IN (";
/// Number and stock of these vouchers. The list of numbers and `)` follow.
const SELECT_VOUCHERS: &str = "SELECT voucher_id, CAST(stock AS SIGNED) FROM tb_seckill_voucher WHERE voucher_id IN (";
/// The rows of `tb_lock` of these names: name, owner, holds and the rest of the lease in milliseconds, NULL without a lease.
/// The list of names and `)` follow.
const SELECT_LOCKS: &str = "SELECT CONVERT(lock_name USING utf8mb4), CONVERT(COALESCE(owner, server_name, '') USING utf8mb4), CAST(holds AS SIGNED), \
                            TIMESTAMPDIFF(MICROSECOND, NOW(3), expires_at) DIV 1000 FROM tb_lock WHERE lock_name IN (";
/// Stands before a query: a Galera node first applies every earlier commit of any node; other servers read it as a comment.
const WAIT_FOR_GALERA_WRITES: &str = "/*M!100100 SET STATEMENT wsrep_sync_wait = 1 FOR */ ";

/// Reads the pieces and the fence of these products.
async fn read_products(ctx: Ctx, ids: Vec<i64>) -> Result<HashMap<i64, (i64, u64)>, Error> {
    let rows: Vec<(i64, i64, u64)> = select(ctx, SELECT_PRODUCTS, ids).await?;
    Ok(rows.into_iter().map(|(id, pieces, fence)| (id, (pieces, fence))).collect())
}

/// Reads the locks in these rows of `tb_lock`. Without an end it has no lease; once its lease is over, it stays until a locker
/// deletes it.
async fn read_table_locks(ctx: Ctx, names: Vec<String>) -> Result<HashMap<String, LockEntry>, Error> {
    let rows: Vec<(String, String, Option<i64>, Option<i64>)> = select(ctx, SELECT_LOCKS, names).await?;
    let locks = rows.into_iter().map(|(key, owner, count, left)| {
        let pttl = Some(left.map_or(-1, |left| left.max(0)));
        (key.clone(), LockEntry { key, owner, pttl, count, queue: Vec::new() })
    });
    Ok(locks.collect())
}

/// The rows of these keys, after all earlier commits of a Galera cluster.
async fn select<K, R, C>(ctx: Ctx, select: &str, keys: Vec<K>) -> Result<C, Error>
where
    K: Encode<'static, MySql> + Type<MySql> + Send + 'static,
    R: for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
    C: FromIterator<R>,
{
    let mut query = QueryBuilder::new(format!("{WAIT_FOR_GALERA_WRITES}{select}"));
    let mut list = query.separated(", ");
    for key in keys {
        list.push_bind(key);
    }
    query.push(")");
    let mut conn = ctx.admin_conn(READ_TIMEOUT).await?;
    let rows = query.build_query_as().persistent(false).fetch_all(&mut *conn).await?;
    conn.done();
    Ok(rows.into_iter().collect())
}
