//! The other handles on the same lock in Redis under the contract: one with tokens, one that is given its owner.

use super::{
    family::{Family, Process},
    redis::Redis,
};
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{RedisClient, RedisFencedLock, RedisLock},
};
use std::{marker::PhantomData, time::Duration};

/// A kind of handle.
pub(crate) trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
    type Lock: Lock + 'static;

    fn of(client: &RedisClient, name: &str) -> Self::Lock;
}

pub(crate) struct Plain;
pub(crate) struct Fenced;
pub(crate) struct Owned;

/// A re-entrant handle that takes its lock twice and gives it back as often.
pub(crate) struct Twice(RedisLock);

impl Kind for Plain {
    const NAME: &'static str = "redis";
    type Lock = RedisLock;

    fn of(client: &RedisClient, name: &str) -> RedisLock {
        client.lock(name)
    }
}

impl Kind for Fenced {
    const NAME: &'static str = "redis_fenced";
    type Lock = RedisFencedLock;

    fn of(client: &RedisClient, name: &str) -> RedisFencedLock {
        client.fenced_lock(name)
    }
}

impl Kind for Owned {
    const NAME: &'static str = "redis_reentrant";
    type Lock = Twice;

    fn of(client: &RedisClient, name: &str) -> Twice {
        Twice(client.lock(name).owner(client.owner()))
    }
}

impl Lock for Twice {
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The guard is the inner one; the outer one is given back as soon as the inner one is had.
    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let outer = self.0.acquire(wait).await?;
        let inner = self.0.acquire(Duration::ZERO).await?;
        outer.release().await?;
        Ok(inner)
    }
}

/// One kind on one server.
pub(crate) struct Handles<K> {
    pub(crate) redis: Redis,
    kind: PhantomData<K>,
}

/// Its process.
pub(crate) struct Holder<K> {
    pub(crate) client: RedisClient,
    kind: PhantomData<K>,
}

impl<K> Holder<K> {
    pub(crate) fn of(client: RedisClient) -> Self {
        Self { client, kind: PhantomData }
    }
}

impl<K> Handles<K> {
    pub(crate) fn at(url: String) -> Self {
        Self { redis: Redis::at(url), kind: PhantomData }
    }
}

impl<K: Kind> Family for Handles<K> {
    const NAME: &'static str = K::NAME;
    const QUEUES: bool = false;
    type Process = Holder<K>;

    fn server(&self) -> String {
        self.redis.server()
    }

    async fn process_at(&self, address: &str) -> Holder<K> {
        Holder::of(self.redis.process_at(address).await)
    }

    /// The counter of tokens stays, as it must, and for a few seconds who was seen waiting.
    async fn left(&self, name: &str) -> Vec<String> {
        let mut left = self.redis.left(name).await;
        left.retain(|key| !key.starts_with("redisson_lock_token:") && !key.ends_with(":seen"));
        left
    }

    async fn take_away(&self, holder: &Holder<K>, name: &str) {
        self.redis.take_away(&holder.client, name).await;
    }
}

impl<K: Kind> Process for Holder<K> {
    type Lock = K::Lock;

    fn lock(&self, name: &str) -> K::Lock {
        K::of(&self.client, name)
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
