//! The names that strategies and lessons write in the servers, and what they are called for each product.

/// A name of `docs/names.md` that a strategy or a lesson writes in a server, for product 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A key of Redis, with all that belongs to it in Redisson's format.
    Redis(&'static str),
    /// A key of Redis that holds a number: permits that are free, what a latch still counts.
    RedisCount(&'static str),
    /// A key of Redis with a lease that nobody renews: a holder that stays longer is not alone any more.
    RedisFor(&'static str, Unrenewed),
    /// The same as [`Redis`](Self::Redis) on each node of Redlock.
    RedisNodes(&'static str),
    /// A node of ZooKeeper, with all that is below it.
    ZooKeeper(&'static str),
    /// A row of `tb_lock`.
    TableLock(&'static str),
    /// The highest fencing token that the product's row has seen.
    Fence,
}

/// A lease that nobody renews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrenewed {
    /// The course's 3 s (§2.2).
    Course,
    /// `lock.lease_ms`.
    Configured,
}

/// A name in Redis for this product: `lock`, or `lock:7` for product 7.
pub(crate) fn in_redis(name: &str, stock_id: i64) -> String {
    if stock_id == 1 {
        name.to_owned()
    } else {
        format!("{name}:{stock_id}")
    }
}

/// A path in ZooKeeper for this product: `/curator/lock`, or `/curator/lock-7` for product 7.
pub(crate) fn in_zookeeper(path: &str, stock_id: i64) -> String {
    if stock_id == 1 {
        path.to_owned()
    } else {
        format!("{path}-{stock_id}")
    }
}
