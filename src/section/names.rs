//! The names that strategies and lessons use in the servers, for each product.

/// A name in a server that a strategy or a lesson uses for product 1; `docs/names.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A Redis key, with the keys that belong to it in Redisson's format.
    Redis(&'static str),
    /// The same as [`Redis`](Self::Redis) in the Redis of students' scripts.
    RedisMine(&'static str),
    /// A Redis key with a number: free permits, a latch's count.
    RedisCount(&'static str),
    /// A Redis key with a lease that is not renewed: a slower holder loses it.
    RedisFor(&'static str, FixedLease),
    /// The same as [`Redis`](Self::Redis) on each node of Redlock.
    RedisNodes(&'static str),
    /// A node of ZooKeeper, with all that is below it.
    ZooKeeper(&'static str),
    /// A prefix of keys in etcd: each key below it is of one who holds the lock or waits for it.
    Etcd(&'static str),
    /// A row of `tb_lock`.
    TableLock(&'static str),
    /// The highest fencing token that the product's row has seen.
    Fence,
}

/// How long a lease that is not renewed lasts: the course's time, or the configured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixedLease {
    /// The course's 3 s (§2.2).
    Course,
    /// `lock.lease_ms`.
    Configured,
}

/// A name in Redis for this product: `lock`, or `lock:7` for product 7.
pub(crate) fn in_redis(name: &str, stock_id: i64) -> String {
    if stock_id == 1 { name.to_owned() } else { format!("{name}:{stock_id}") }
}

/// The key in braces, unless it has some: a Redis Cluster keeps all names with the same text in braces in one slot.
pub(crate) fn in_braces(key: &str) -> String {
    if key.contains('{') { key.to_owned() } else { format!("{{{key}}}") }
}

/// A path in ZooKeeper or a prefix in etcd for this product: `/curator/lock`, or `/curator/lock-7` for product 7.
pub(crate) fn as_path(path: &str, stock_id: i64) -> String {
    if stock_id == 1 { path.to_owned() } else { format!("{path}-{stock_id}") }
}
