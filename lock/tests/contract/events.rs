//! What a client's observer is told, and that it cannot hurt a lock.

use super::{
    redis::{LEASE, LIMIT},
    support::*,
    zookeeper::{CHROOT, client_of},
};
use oversell_lock::{
    LockEvent, LockObserver,
    etcd::{EtcdClient, EtcdOptions},
    mysql::{MySqlOptions, TablePool},
    redis::{RedisClient, RedisOptions},
    zk::ZkOptions,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// Writes down what it is told, and panics if asked to.
#[derive(Clone, Default)]
struct Log {
    events: Arc<Mutex<Vec<(&'static str, String)>>>,
    kinds: Arc<Mutex<BTreeSet<(String, &'static str)>>>,
    panics: bool,
}

impl LockObserver for Log {
    fn observe(&self, event: LockEvent<'_>) {
        let what = match event {
            LockEvent::Acquired { .. } => "acquired",
            LockEvent::NotAcquired { .. } => "not acquired",
            LockEvent::RenewedLate { .. } => "renewed late",
            LockEvent::Lost { .. } => "lost",
            LockEvent::Released { .. } => "released",
            LockEvent::NotReleased { .. } => "not released",
            _ => "something new",
        };
        self.events.lock().push((what, event.name().to_owned()));
        self.kinds.lock().insert((event.name().to_owned(), event.kind()));
        if self.panics {
            // Without the panic hook: a backtrace of this binary would hold up a worker, and the other tests, for seconds.
            std::panic::resume_unwind(Box::new("an observer that panics"));
        }
    }
}

impl Log {
    fn of(&self, name: &str) -> Vec<&'static str> {
        let events = self.events.lock();
        let of_it = events.iter().filter(|(_, of)| of == name);
        of_it.map(|(what, _)| *what).collect()
    }

    /// The kinds of lock in the events of this name.
    fn kinds_of(&self, name: &str) -> Vec<&'static str> {
        let kinds = self.kinds.lock();
        kinds.iter().filter(|(of, _)| of == name).map(|(_, kind)| *kind).collect()
    }

    async fn wait_for_events(&self, name: &str, wanted: &[&str]) -> Result {
        let came = until(&format!("{wanted:?}"), async || self.of(name) == wanted).await;
        came.with_context(|| format!("{name}: {:?}", self.of(name)))
    }
}

/// The events of a lock of this kind that is held, missed and released, and of a guard that is dropped.
async fn check_events(log: &Log, kind: &'static str, lock: AnyLock) -> Result {
    let name = lock.name().to_owned();
    let guard = take(&lock).await?;
    ensure_taken("beside it", lock.try_acquire().await)?;
    guard.release().await?;
    log.wait_for_events(&name, &["acquired", "not acquired", "released"]).await?;
    drop(take(&lock).await?);
    let dropped = ["acquired", "not acquired", "released", "acquired", "released"];
    log.wait_for_events(&name, &dropped).await?;
    ensure_equal("kinds", log.kinds_of(&name), [kind])
}

#[apply(test!)]
async fn the_events_of_every_lock_are_told(all: &'static super::register::Engines) -> Result {
    let log = Log::default();
    let url = format!("redis://{}", all.redis.host());
    let redis = RedisClient::new(RedisOptions::new(url).observer(log.clone()))?;
    check_events(&log, "RedisLock", redis.lock(&name()).boxed()).await?;
    check_events(&log, "RedisFencedLock", redis.fenced_lock(&name()).boxed()).await?;
    check_events(&log, "RedisFairLock", redis.fair_lock(&name()).boxed()).await?;
    check_events(&log, "RedisWriteLock", redis.rw_lock(&name()).write().boxed()).await?;
    let address = all.table.url.as_str();
    let mysql = TablePool::new(MySqlOptions::new(address).observer(log.clone()))?;
    check_events(&log, "TableLock", mysql.table_lock(&name()).boxed()).await?;
    check_events(&log, "TableLeaseLock", mysql.table_lease_lock(&name()).boxed()).await?;
    let options = ZkOptions::new(all.zookeeper.address()).chroot(CHROOT);
    let zk = client_of(options.observer(log.clone())).await?;
    check_events(&log, "ZkLock", zk.lock(&name()).boxed()).await?;
    check_events(&log, "ZkWriteLock", zk.rw_lock(&name()).write().boxed()).await?;
    check_events(&log, "ZkSemaphoreMutex", zk.semaphore_mutex(&name()).boxed()).await?;
    let etcd = EtcdClient::new(EtcdOptions::new(&all.etcd.url).observer(log.clone()))?;
    check_events(&log, "EtcdLock", etcd.lock(&name()).boxed()).await?;
    let name = name();
    let permit = redis.semaphore(&name).initially(1).acquire(1, SOON).await?;
    permit.release().await?;
    log.wait_for_events(&name, &["acquired", "released"]).await?;
    ensure_equal("kinds", log.kinds_of(&name), ["RedisSemaphore"])
}

/// A lost lock, a release that found it lost, and a renewal that came late.
#[apply(test!)]
async fn losses_and_late_renewals_are_told(redis: &Redis) -> Result {
    let (log, mute) = (Log::default(), Mute::to(redis.host())?);
    let options = RedisOptions::new(format!("redis://{}", mute.address()));
    let options = options.lease(LEASE).timeout(LIMIT).observer(log.clone());
    let process = RedisClient::new(options)?;
    let (gone, late, freed) = (name(), name(), name());
    let held = take(&process.lock(&gone).lease(Lease::Watchdog(LEASE))).await?;
    redis.delete(&gone).await;
    wait_until_lost(&held).await?;
    log.wait_for_events(&gone, &["acquired", "lost"]).await?;
    ensure_lost("a lost lock", held.release().await)?;
    log.wait_for_events(&gone, &["acquired", "lost"]).await?;
    let held = take(&process.lock(&freed).lease(Lease::Fixed(LEASE))).await?;
    redis.delete(&freed).await;
    ensure_lost("freed before", held.release().await)?;
    log.wait_for_events(&freed, &["acquired", "not released"]).await?;
    let held = take(&process.lock(&late).lease(Lease::Watchdog(LEASE))).await?;
    mute.mute();
    mute.answer_new_connections();
    log.wait_for_events(&late, &["acquired", "renewed late"]).await?;
    held.release().await?;
    log.wait_for_events(&late, &["acquired", "renewed late", "released"]).await
}

#[apply(test!)]
async fn an_observer_that_panics_costs_no_lock(redis: &Redis) -> Result {
    let log = Log { panics: true, ..Log::default() };
    let options = RedisOptions::new(format!("redis://{}", redis.host()));
    let process = RedisClient::new(options.observer(log.clone()))?;
    let name = name();
    let held = take(&process.lock(&name)).await?;
    ensure_kept("under an observer that panics", &held)?;
    held.release().await?;
    log.wait_for_events(&name, &["acquired", "released"]).await?;
    redis.no_key_left(&name).await
}
