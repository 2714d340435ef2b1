//! Reads of the servers that all replays of an instance share: one pipelined read for each server and tick.
//!
//! 1. A replay asks for a key ([`SharedRead::read`]).
//! 2. Keys that are asked for while a read is under way, or until its tick is over, go together with the next one.
//! 3. Each caller gets its own answer. A server that does not answer fails those that asked for it, and no other.
//!
//! Next: `observer.rs`.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{etcd, names},
    server::Server,
    stock_admin::zookeeper_unavailable,
};
use futures::future::{BoxFuture, join_all};
use oversell_lock::{mysql::Conn, redis::Connection};
use parking_lot::Mutex;
use redis::{FromRedisValue, RedisResult, Value};
use sqlx::{MySql, QueryBuilder, Row as _, mysql::MySqlRow};
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

/// The least time between the starts of two reads of one server.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(10);
/// Time limit of one read; a slower server counts as down.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
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

/// The reads of each server that all replays of this instance share.
#[derive(Debug)]
pub(super) struct SharedReads {
    /// Of the main Redis.
    pub(super) redis: SharedRead<NodeKey, RedisEntry>,
    /// Of the Redis of visitors' scripts.
    pub(super) mine: SharedRead<NodeKey, RedisEntry>,
    /// Of each node of Redlock.
    pub(super) nodes: SharedRead<NodeKey, RedisEntry>,
    pub(super) mysql: SharedRead<Row, RowState>,
    pub(super) zookeeper: SharedRead<String, Option<LockEntry>>,
    pub(super) etcd: SharedRead<String, Option<LockEntry>>,
}

/// The number of a Redis node, and a key there.
type NodeKey = (usize, String);

impl LockEntry {
    /// Puts the name of the node before the key: `redis-2 redLock:7`.
    pub(super) fn on_node(self, n: usize) -> Self {
        Self { key: format!("{} {}", node_name(n), self.key), ..self }
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

/// The lab's name of a Redis node: `redis`, `redis-2` …
pub(super) fn node_name(n: usize) -> String {
    match n {
        0 => "redis".to_owned(),
        n => format!("redis-{}", n + 1),
    }
}

impl Default for SharedReads {
    fn default() -> Self {
        Self {
            redis: SharedRead::new(|ctx, keys| Box::pin(read_keys(ctx.redis.connection(), keys, READ_TIMEOUT))),
            mine: SharedRead::new(|ctx, keys| Box::pin(read_keys(ctx.mine.connection(), keys, READ_TIMEOUT))),
            nodes: SharedRead::new(|ctx, keys| Box::pin(read_nodes(ctx, keys))),
            mysql: SharedRead::new(|ctx, keys| Box::pin(read_mysql(ctx, keys))),
            zookeeper: SharedRead::new(|ctx, keys| Box::pin(read_zookeeper(ctx, keys))),
            etcd: SharedRead::new(|ctx, keys| Box::pin(read_etcd(ctx, keys))),
        }
    }
}

/// A function that reads these keys from one server, and returns a value or an error for each.
type Fetch<K, V> = fn(Ctx, Vec<K>) -> BoxFuture<'static, HashMap<K, Result<V, Error>>>;

/// The shared reads of one server: one task reads what all replays have asked for.
#[derive(Debug)]
pub(super) struct SharedRead<K, V> {
    waiting: Arc<Mutex<PendingReads<K, V>>>,
    fetch: Fetch<K, V>,
}

/// The requests for the next read, and whether the reading task runs.
#[derive(Debug)]
struct PendingReads<K, V> {
    asked: Vec<(K, oneshot::Sender<Result<V, String>>)>,
    is_reading: bool,
}

impl<K, V> SharedRead<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
{
    fn new(fetch: Fetch<K, V>) -> Self {
        let waiting = PendingReads { asked: Vec::new(), is_reading: false };
        Self { waiting: Arc::new(Mutex::new(waiting)), fetch }
    }

    /// Waits for the server's next read, which reads this key with those of all other replays of this instance. Each error
    /// is an [`Error::Replay`].
    pub(super) async fn read(&self, ctx: &Ctx, key: K) -> Result<V, Error> {
        let answer = self.request(ctx, key).await.map_err(Error::replay)?;
        answer.map_err(Error::replay)
    }

    /// Adds a key to the next read, and starts the reading task if none runs.
    fn request(&self, ctx: &Ctx, key: K) -> oneshot::Receiver<Result<V, String>> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.asked.push((key, sender));
        if !mem::replace(&mut waiting.is_reading, true) {
            // In a task of its own: a replay that is cancelled takes the answers of no other with it.
            tokio::spawn(read_all(ctx.clone(), Arc::clone(&self.waiting), self.fetch));
        }
        answer
    }
}

/// Reads all requested keys at once, at most every [`MIN_READ_INTERVAL`], until nobody waits.
async fn read_all<K, V>(ctx: Ctx, waiting: Arc<Mutex<PendingReads<K, V>>>, fetch: Fetch<K, V>)
where
    K: Clone + Eq + Hash,
    V: Clone,
{
    loop {
        let begun = Instant::now();
        let asked = mem::take(&mut waiting.lock().asked);
        let mut keys: Vec<_> = asked.iter().map(|(key, _)| key.clone()).collect();
        let mut known = HashSet::new();
        keys.retain(|key| known.insert(key.clone()));
        let found = fetch(ctx.clone(), keys).await;
        for (key, sender) in asked {
            let answer = match found.get(&key) {
                Some(Ok(value)) => Ok(value.clone()),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("it was not read (a bug)".to_owned()),
            };
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
async fn read_nodes(ctx: Ctx, keys: Vec<NodeKey>) -> HashMap<NodeKey, Result<RedisEntry, Error>> {
    let nodes = ctx.nodes.iter().enumerate().map(|(n, node)| {
        let keys = keys.iter().filter(|(of, _)| *of == n).cloned().collect();
        read_keys(node.connection(), keys, NODE_TIMEOUT)
    });
    join_all(nodes).await.into_iter().flatten().collect()
}

/// Reads keys of one node in one pipeline; without an answer within `limit` each of them fails. Of a key that is no hash
/// HGETALL fails, of one that is no string GET: a command that is refused is no error here.
async fn read_keys(mut node: Connection, keys: Vec<NodeKey>, limit: Duration) -> HashMap<NodeKey, Result<RedisEntry, Error>> {
    if keys.is_empty() {
        return HashMap::new();
    }
    let mut read = redis::pipe();
    read.ignore_errors();
    for (_, key) in &keys {
        let queue = format!("redisson_lock_queue:{}", names::in_braces(key));
        read.cmd("PTTL").arg(key).get(key).hgetall(key);
        read.cmd("LRANGE").arg(queue).arg(0).arg(-1);
    }
    let answer: Result<RedisResult<Vec<RedisResult<Value>>>, _> = timeout(limit, read.query_async(&mut node)).await;
    let unavailable = |reason: &str| Error::Unavailable { server: Server::Redis.name(), reason: reason.to_owned() };
    let answers = match answer {
        Ok(Ok(answers)) => answers,
        Ok(Err(error)) => {
            let failed = |key| (key, Err(unavailable(&error.to_string())));
            return keys.into_iter().map(failed).collect();
        }
        Err(_) => {
            let failed = |key| (key, Err(unavailable("no answer in time")));
            return keys.into_iter().map(failed).collect();
        }
    };
    let mut answers = answers.into_iter();
    let entries = keys.into_iter().map(|key| {
        let entry = RedisEntry {
            key: key.1.clone(),
            pttl: next_answer(&mut answers).unwrap_or(-2),
            text: next_answer::<Option<String>>(&mut answers).flatten(),
            fields: next_answer(&mut answers).unwrap_or_default(),
            waiting: next_answer(&mut answers).unwrap_or_default(),
        };
        (key, Ok(entry))
    });
    entries.collect()
}

/// The next answer of the pipeline; `None` if that command was refused, or the answer is of another type.
fn next_answer<T: FromRedisValue>(answers: &mut impl Iterator<Item = RedisResult<Value>>) -> Option<T> {
    T::from_redis_value(answers.next()?.ok()?).ok()
}

/// A row of MySQL that a replay asks for: a product or voucher by its id, a lock by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Row {
    Stock(i64),
    Voucher(i64),
    Lock(String),
}

/// A row as it was read; empty if there is none.
#[derive(Debug, Clone, Default)]
pub(super) struct RowState {
    /// Pieces left.
    pub(super) count: Option<i64>,
    pub(super) fence: Option<u64>,
    pub(super) lock: Option<LockEntry>,
}

/// Number, pieces (those in buckets included) and fence of these products. The list of numbers and `)` follow.
const SELECT_STOCKS: &str = "SELECT id, CAST(count + (SELECT COALESCE(SUM(count), 0) FROM db_stock_bucket \
                             WHERE stock_id = db_stock.id) AS SIGNED), fence FROM db_stock WHERE id IN (";
/// Number and stock of these vouchers. The list of numbers and `)` follow.
const SELECT_VOUCHERS: &str = "SELECT voucher_id, CAST(stock AS SIGNED) FROM tb_seckill_voucher WHERE voucher_id IN (";
/// The rows of `tb_lock` of these names: name, owner, holds and the rest of the lease in milliseconds, NULL without a lease.
/// The list of names and `)` follow.
const SELECT_LOCKS: &str = "SELECT CONVERT(lock_name USING utf8mb4), CONVERT(COALESCE(owner, server_name, '') USING utf8mb4), CAST(holds AS SIGNED), \
                            TIMESTAMPDIFF(MICROSECOND, NOW(3), expires_at) DIV 1000 FROM tb_lock WHERE lock_name IN (";
/// Stands before a query: a Galera node first applies every earlier commit of any node; other servers read it as a comment.
const WAIT_FOR_GALERA_WRITES: &str = "/*M!100100 SET STATEMENT wsrep_sync_wait = 1 FOR */ ";

/// Reads these rows of MySQL; if that fails, each of them fails.
async fn read_mysql(ctx: Ctx, keys: Vec<Row>) -> HashMap<Row, Result<RowState, Error>> {
    let read = timeout(READ_TIMEOUT, read_rows(&ctx, &keys)).await;
    let read = read.unwrap_or_else(|_| Err(Error::unavailable(Server::MySql, "no answer in time")));
    match read {
        Ok(mut rows) => {
            let found = |key: Row| {
                let row = rows.remove(&key).unwrap_or_default();
                (key, Ok(row))
            };
            keys.into_iter().map(found).collect()
        }
        Err(error) => {
            let reason = error.to_string();
            let failed = |key| (key, Err(Error::unavailable(Server::MySql, &reason)));
            keys.into_iter().map(failed).collect()
        }
    }
}

/// The stocks, vouchers and table locks of these keys; a row that is not there has no entry.
async fn read_rows(ctx: &Ctx, keys: &[Row]) -> Result<HashMap<Row, RowState>, Error> {
    let mut conn = ctx.admin_conn(READ_TIMEOUT).await?;
    let mut rows = HashMap::new();
    let stocks = keys.iter().filter_map(|key| match key {
        Row::Stock(id) => Some(*id),
        _ => None,
    });
    for row in fetch(&mut conn, query_for(SELECT_STOCKS, stocks)).await? {
        let state = RowState { count: row.try_get(1)?, fence: row.try_get(2)?, lock: None };
        rows.insert(Row::Stock(row.try_get(0)?), state);
    }
    let vouchers = keys.iter().filter_map(|key| match key {
        Row::Voucher(id) => Some(*id),
        _ => None,
    });
    for row in fetch(&mut conn, query_for(SELECT_VOUCHERS, vouchers)).await? {
        let state = RowState { count: row.try_get(1)?, ..RowState::default() };
        rows.insert(Row::Voucher(row.try_get(0)?), state);
    }
    let locks = keys.iter().filter_map(|key| match key {
        Row::Lock(name) => Some(name.clone()),
        _ => None,
    });
    for row in fetch(&mut conn, query_for(SELECT_LOCKS, locks)).await? {
        let lock = lock_of(&row)?;
        let state = RowState { lock: Some(lock.clone()), ..RowState::default() };
        rows.insert(Row::Lock(lock.key), state);
    }
    conn.done();
    Ok(rows)
}

/// Runs the query; without one there are no rows.
async fn fetch(conn: &mut Conn, query: Option<QueryBuilder<'_, MySql>>) -> Result<Vec<MySqlRow>, sqlx::Error> {
    let Some(mut query) = query else {
        return Ok(Vec::new());
    };
    query.build().persistent(false).fetch_all(&mut **conn).await
}

/// The query of these keys, after all earlier commits of a Galera cluster; `None` without keys.
fn query_for<'a, T>(select: &str, keys: impl Iterator<Item = T>) -> Option<QueryBuilder<'a, MySql>>
where
    T: sqlx::Encode<'a, MySql> + sqlx::Type<MySql> + Send + 'a,
{
    let mut keys = keys.peekable();
    keys.peek()?;
    let mut query = QueryBuilder::new(format!("{WAIT_FOR_GALERA_WRITES}{select}"));
    let mut list = query.separated(", ");
    for key in keys {
        list.push_bind(key);
    }
    query.push(")");
    Some(query)
}

/// The lock in a row of `tb_lock`. Without an end it has no lease; once its lease is over, it stays until a locker deletes it.
fn lock_of(row: &MySqlRow) -> Result<LockEntry, sqlx::Error> {
    let left: Option<i64> = row.try_get(3)?;
    Ok(LockEntry {
        key: row.try_get(0)?,
        owner: row.try_get(1)?,
        pttl: Some(left.map_or(-1, |left| left.max(0))),
        count: row.try_get(2)?,
        queue: Vec::new(),
    })
}

/// Reads the locks at these paths, each within [`READ_TIMEOUT`].
async fn read_zookeeper(ctx: Ctx, paths: Vec<String>) -> HashMap<String, Result<Option<LockEntry>, Error>> {
    let nodes = paths.into_iter().map(|path| {
        let ctx = &ctx;
        async move {
            let node = timeout(READ_TIMEOUT, read_node(ctx, &path)).await;
            let late = |_| Err(Error::unavailable(Server::ZooKeeper, "no answer in time"));
            (path, node.unwrap_or_else(late))
        }
    });
    join_all(nodes).await.into_iter().collect()
}

/// Reads the locks at these prefixes, each within [`READ_TIMEOUT`].
async fn read_etcd(ctx: Ctx, prefixes: Vec<String>) -> HashMap<String, Result<Option<LockEntry>, Error>> {
    let locks = prefixes.into_iter().map(|prefix| {
        let ctx = &ctx;
        async move {
            let contenders = timeout(READ_TIMEOUT, etcd::contenders(ctx, &prefix)).await;
            let late = |_| Err(Error::unavailable(Server::Etcd, "no answer in time"));
            let lock = contenders.unwrap_or_else(late).map(|contenders| {
                let queue: Vec<_> = contenders.into_iter().map(|contender| contender.owner).collect();
                let owner = queue.first().cloned()?;
                Some(LockEntry { key: prefix.clone(), owner, pttl: None, count: None, queue })
            });
            (prefix, lock)
        }
    });
    join_all(locks).await.into_iter().collect()
}

/// The lock at `path`: the node itself, or its children by number, of which the first holds it. `None` if nobody does.
async fn read_node(ctx: &Ctx, path: &str) -> Result<Option<LockEntry>, Error> {
    let zk = ctx.zk.session()?;
    let mut below = match zk.list_children(path).await {
        Ok(below) => below,
        Err(zookeeper_client::Error::NoNode) => return Ok(None),
        Err(error) => return Err(zookeeper_unavailable(error)),
    };
    let number = |name: &String| name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().to_owned();
    below.sort_by_key(number);
    let paths: Vec<_> = match below.is_empty() {
        true => vec![path.to_owned()],
        false => below.iter().map(|name| format!("{path}/{name}")).collect(),
    };
    let mut queue = Vec::new();
    for node in join_all(paths.iter().map(|path| zk.get_data(path))).await {
        match node {
            // A directory without data is no lock.
            Ok((data, stat)) if !data.is_empty() || stat.ephemeral_owner != 0 => {
                // A shared count stores four bytes here, and is no lock.
                let owner = String::from_utf8(data).ok().filter(|owner| !owner.contains('\0'));
                queue.extend(owner);
            }
            Ok(_) | Err(zookeeper_client::Error::NoNode) => {}
            Err(error) => return Err(zookeeper_unavailable(error)),
        }
    }
    let Some(owner) = queue.first().cloned() else {
        return Ok(None);
    };
    Ok(Some(LockEntry { key: path.to_owned(), owner, pttl: None, count: None, queue }))
}
