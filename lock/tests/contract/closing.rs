//! `close()` of every client, and clients of a runtime that they are given.

use super::{
    redis::patient,
    support::*,
    zookeeper::{CHROOT, client_of},
};
use oversell_lock::{
    etcd::{EtcdClient, EtcdOptions},
    mysql::{MySqlOptions, TablePool},
    redis::{RedisClient, RedisOptions},
    zk::{ZkClient, ZkOptions},
};
use std::num::NonZeroU32;

/// A lease that ends after the test.
const LONG_LEASE: Lease = Lease::Watchdog(Duration::from_secs(600));

/// A waiter of this process and whoever comes later are refused, a holder that is left is told, and what it had is free
/// once it is released: long before a lease of ours ends.
async fn closes(close: impl Future<Output = ()>, [holder, late]: [AnyLock; 2], other: AnyLock) -> Result {
    let held = take(&holder).await?;
    let waiting = spawn_acquire(holder);
    until("it waits", async || !waiting.is_finished()).await?;
    let mut close = pin!(close);
    // It waits for the holder.
    ensure!(futures::poll!(&mut close).is_pending(), "closed under its holder");
    ensure_unavailable("a waiter", waiting.await?)?;
    ensure_unavailable("a late one", late.acquire(SOON).await)?;
    ensure_kept("a holder that has time to release", &held)?;
    close.await;
    wait_until_lost(&held).await?;
    ensure_lost("its release", held.release().await)?;
    pass(&other).await
}

#[apply(test!)]
async fn a_redis_client_closes_as_every_client_does(redis: &Redis) -> Result {
    let (name, process, other) = (name(), patient(&redis.host()), redis.client().await);
    let lock = |client: &RedisClient| client.lock(&name).lease(LONG_LEASE).boxed();
    let both = [lock(&process), lock(&process)];
    closes(process.close(), both, lock(&other)).await?;
    ensure_unavailable("a permit", process.semaphore(&name).initially(1).acquire(1, SOON).await)?;
    let limiter = process.rate_limiter(&name);
    ensure_unavailable("an admission", limiter.acquire(NonZeroU32::MIN, SOON).await)?;
    ensure_unavailable("a latch", process.latch(&name).wait(SOON).await)?;
    redis.no_key_left(&name).await
}

#[apply(test!)]
async fn a_mysql_pool_closes_as_every_client_does(table: &Table) -> Result {
    let (pool, other) = (table.client().await, table.client().await);
    let (name, second) = (name(), table.client().await);
    let lock = |pool: &TablePool| pool.table_lease_lock(&name).lease(LONG_LEASE).boxed();
    closes(pool.close(), [lock(&pool), lock(&pool)], lock(&other)).await?;
    ensure_unavailable("a connection", pool.conn(SOON).await.map(drop))?;
    let lock = |pool: &TablePool| pool.table_lock(&name).boxed();
    closes(second.close(), [lock(&second), lock(&second)], lock(&other)).await
}

#[apply(test!)]
async fn a_zookeeper_client_closes_as_every_client_does(zookeeper: &ZooKeeper) -> Result {
    let options = || ZkOptions::new(zookeeper.address()).chroot(CHROOT);
    let (process, other) = (client_of(options()).await?, client_of(options()).await?);
    let name = name();
    let lock = |client: &ZkClient| client.lock(&name).boxed();
    let both = [lock(&process), lock(&process)];
    closes(process.close(), both, lock(&other)).await
}

#[apply(test!)]
async fn an_etcd_client_closes_as_every_client_does(etcd: &Etcd) -> Result {
    let (name, process, other) = (name(), etcd.client().await, etcd.client().await);
    let lock = |client: &EtcdClient| client.lock(&name).boxed();
    closes(process.close(), [lock(&process), lock(&process)], lock(&other)).await
}

/// Holders that release in time end it early, without a loss.
#[apply(test!)]
async fn a_client_that_closes_waits_for_its_holders(redis: &Redis) -> Result {
    let (name, process) = (name(), patient(&redis.host()));
    let held = take(&process.lock(&name).lease(LONG_LEASE)).await?;
    let mut close = pin!(process.close());
    ensure!(futures::poll!(&mut close).is_pending(), "closed under its holder");
    held.release().await.context("in time")?;
    close.await;
    redis.no_key_left(&name).await
}

/// Outside a runtime a client is refused, unless it is given one; it never panics.
#[apply(test!)]
async fn clients_live_in_the_runtime_that_they_are_given(all: &'static super::register::Engines) -> Result {
    let runtime = tokio::runtime::Handle::current();
    let redis = RedisOptions::new(format!("redis://{}", all.redis.host()));
    let zk = ZkOptions::new(all.zookeeper.address()).chroot(CHROOT);
    let etcd = EtcdOptions::new(&all.etcd.url);
    let mysql = MySqlOptions::new(&all.table.url);
    let made = std::thread::spawn(move || {
        ensure_invalid("redis", RedisClient::new(redis.clone()))?;
        ensure_invalid("zookeeper", ZkClient::new(zk.clone()))?;
        ensure_invalid("etcd", EtcdClient::new(etcd.clone()))?;
        ensure_invalid("mysql", TablePool::new(mysql.clone()))?;
        anyhow::Ok((
            RedisClient::new(redis.runtime(runtime.clone()))?,
            ZkClient::new(zk.runtime(runtime.clone()))?,
            EtcdClient::new(etcd.runtime(runtime.clone()))?,
            TablePool::new(mysql.runtime(runtime))?,
        ))
    });
    let made = tokio::task::spawn_blocking(|| made.join()).await?;
    let (redis, zk, etcd, mysql) = made.map_err(|_| anyhow::anyhow!("it panicked"))??;
    pass(&redis.lock(&name())).await?;
    until("connected", async || zk.session().is_ok()).await?;
    pass(&zk.lock(&name())).await?;
    pass(&etcd.lock(&name())).await?;
    pass(&mysql.table_lock(&name())).await
}
