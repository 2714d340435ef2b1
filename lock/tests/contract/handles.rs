//! The other handles on a lock in Redis under the contract: one with tokens, those that are given an owner.

use super::{
    family::{Family, Process, Then, Twice},
    redis::Redis,
};
use oversell_lock::{
    Lock,
    redis::{
        RedisClient, RedisFairLock, RedisFencedLock, RedisLock, RedisReadLock, RedisWriteLock,
    },
};
use std::marker::PhantomData;

/// A kind of handle.
pub(crate) trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
    type Lock: Lock + 'static;

    fn of(client: &RedisClient, name: &str) -> Self::Lock;
}

pub(crate) struct Plain;
pub(crate) struct Fenced;
pub(crate) struct Owned;

/// The same with a queue, and with a lock for writing.
pub(crate) struct OwnedFair;
pub(crate) struct OwnedWrite;
/// A reader that was the writer before, and so came in alone.
pub(crate) struct Read;

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
    type Lock = Twice<RedisLock>;

    fn of(client: &RedisClient, name: &str) -> Self::Lock {
        Twice::of(client.lock(name).owner(client.owner()))
    }
}

impl Kind for OwnedFair {
    const NAME: &'static str = "redis_fair_reentrant";
    type Lock = Twice<RedisFairLock>;

    fn of(client: &RedisClient, name: &str) -> Self::Lock {
        Twice::of(client.fair_lock(name).owner(client.owner()))
    }
}

impl Kind for OwnedWrite {
    const NAME: &'static str = "redis_write_reentrant";
    type Lock = Twice<RedisWriteLock>;

    fn of(client: &RedisClient, name: &str) -> Self::Lock {
        Twice::of(client.rw_lock(name).write().owner(client.owner()))
    }
}

impl Kind for Read {
    const NAME: &'static str = "redis_read";
    type Lock = Then<RedisWriteLock, RedisReadLock>;

    fn of(client: &RedisClient, name: &str) -> Self::Lock {
        let (lock, owner) = (client.rw_lock(name), client.owner());
        Then(lock.write().owner(owner), lock.read().owner(owner))
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
        Self {
            client,
            kind: PhantomData,
        }
    }
}

impl<K> Handles<K> {
    pub(crate) fn at(url: String) -> Self {
        Self {
            redis: Redis::at(url),
            kind: PhantomData,
        }
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
