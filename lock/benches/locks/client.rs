//! One client of each library, with the same two calls: take and release.

use super::scene::{Kind, Library, PERMITS};
use anyhow::{Context, Result, bail, ensure};
use oversell_lock::{
    Guard,
    redis::{Permit, RedisClient},
};
use redis::{Script, aio::MultiplexedConnection};
use redlock::RedLock;
use rslock::{LockGuard, LockManager};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::task::block_in_place;

/// Of every library; Redisson's default.
const LEASE: Duration = Duration::from_secs(30);
const LEASE_MS: usize = 30_000;

/// Longer than anybody waits here.
const WAIT: Duration = Duration::from_secs(100);

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../../src/redis/lua/acquire.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("../../src/redis/lua/tell.lua"), include_str!("../../src/redis/lua/release.lua")))
});

#[derive(Clone)]
pub(crate) enum Client {
    Bare(MultiplexedConnection),
    Ours(RedisClient),
    Rslock(LockManager),
    /// Its calls block.
    Redlock(Arc<RedLock>),
}

/// A hold; dropping it is not enough for all libraries.
pub(crate) enum Hold {
    Bare(MultiplexedConnection, String),
    Guard(Guard),
    Permit(Permit),
    Rslock(LockGuard),
    Redlock(Arc<RedLock>, String, Vec<u8>),
}

impl Client {
    pub(crate) async fn connect(library: Library, url: &str) -> Result<Self> {
        Ok(match library {
            Library::Bare => {
                let client = redis::Client::open(url)?;
                Self::Bare(client.get_multiplexed_async_connection().await?)
            }
            Library::Ours => Self::Ours(RedisClient::connect(url).await?),
            Library::Rslock => Self::Rslock(LockManager::new(vec![url])),
            Library::Redlock => Self::Redlock(Arc::new(RedLock::new(vec![url]))),
            Library::RedisPy => bail!("redis-py has a process of its own"),
        })
    }

    /// Takes a lock that no other process takes, and releases it: the bare scripts do not wait.
    pub(crate) async fn ping(&self) -> Result<()> {
        let name = format!("warm-up:{}", std::process::id());
        self.take(Kind::Lock, &name).await?.release().await
    }

    /// Makes what `kind` needs.
    pub(crate) async fn prepare(&self, kind: Kind, name: &str) -> Result<()> {
        if let (Self::Ours(client), Kind::Semaphore) = (self, kind) {
            client.semaphore(name).try_set_permits(PERMITS).await?;
        }
        Ok(())
    }

    pub(crate) async fn take(&self, kind: Kind, name: &str) -> Result<Hold> {
        Ok(match (self, kind) {
            (Self::Bare(connection), Kind::Lock) => {
                let mut connection = connection.clone();
                let mut script = ACQUIRE.key(name);
                script.arg(LEASE_MS).arg("owner");
                let (taken, _): (bool, i64) = script.invoke_async(&mut connection).await?;
                ensure!(taken, "somebody else has {name}");
                Hold::Bare(connection, name.to_owned())
            }
            (Self::Ours(client), kind) => match kind {
                Kind::Lock => Hold::Guard(client.lock(name).acquire(WAIT).await?),
                Kind::Read => Hold::Guard(client.rw_lock(name).read().acquire(WAIT).await?),
                Kind::Write => Hold::Guard(client.rw_lock(name).write().acquire(WAIT).await?),
                Kind::Semaphore => Hold::Permit(client.semaphore(name).acquire(1, WAIT).await?),
                Kind::ReadWrite => bail!("a contender reads or writes"),
            },
            (Self::Rslock(manager), Kind::Lock) => Hold::Rslock(manager.acquire(name.as_bytes(), LEASE).await?),
            (Self::Redlock(redlock), Kind::Lock) => {
                let taken = block_in_place(|| {
                    loop {
                        // After three tries it returns `None`.
                        if let Some(lock) = redlock.lock(name.as_bytes(), LEASE_MS).transpose() {
                            return lock.map(|lock| lock.val);
                        }
                    }
                });
                Hold::Redlock(Arc::clone(redlock), name.to_owned(), taken?)
            }
            (_, kind) => bail!("this library has no {kind}"),
        })
    }
}

impl Hold {
    pub(crate) async fn release(self) -> Result<()> {
        match self {
            Self::Bare(mut connection, name) => {
                let mut script = RELEASE.key(&name);
                script.arg("owner").arg("channel");
                let told: Option<i64> = script.invoke_async(&mut connection).await?;
                told.map(drop).context("somebody else has released it")
            }
            Self::Guard(guard) => Ok(guard.release().await?),
            Self::Permit(permit) => Ok(permit.release().await?),
            Self::Rslock(guard) => {
                guard.release().await;
                Ok(())
            }
            Self::Redlock(redlock, name, val) => {
                let lock = redlock::Lock { resource: name.into_bytes(), val, validity_time: 0, lock_manager: &redlock };
                block_in_place(|| redlock.unlock(&lock));
                Ok(())
            }
        }
    }
}
