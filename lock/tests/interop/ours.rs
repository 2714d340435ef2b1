//! Our processes, and their holds of a [`Kind`].

use super::{
    object::{Kind, Object},
    support::{Result, SOON},
};
use futures::future::{BoxFuture, FutureExt};
use oversell_lock::{
    Guard, Lease, Lock, LockError, Owner,
    etcd::EtcdClient,
    redis::{Permit, RedisClient, RedisSemaphore},
    zk::{ZkClient, ZkDoubleBarrier},
};
use std::{num::NonZeroU32, sync::Arc, time::Duration};

#[derive(Clone)]
pub(crate) enum Process {
    Redis(RedisClient),
    ZooKeeper(ZkClient),
    Etcd(EtcdClient),
}

/// A hold of one of ours.
pub(crate) enum Grant {
    Guards(Vec<Guard>),
    Permit(Permit),
    Member(ZkDoubleBarrier, String),
    /// Nothing to hold.
    Done,
}

/// The result of a call; `None` if there was nothing to release.
pub(crate) type Outcome = Result<Option<Grant>, LockError>;

/// Acquires, enters or waits, with a limit.
pub(crate) type Handle = Arc<dyn Fn(Duration) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Runs `take` with a handle of the library.
fn with<T, F>(of: T, take: impl Fn(T, Duration) -> F + Send + Sync + 'static) -> Handle
where
    T: Clone + Send + Sync + 'static,
    F: Future<Output = Result<Grant, LockError>> + Send + 'static,
{
    Arc::new(move |wait| take(of.clone(), wait).map(|got| got.map(Some)).boxed())
}

fn lock(lock: impl Lock + Clone + 'static) -> Handle {
    with(lock, |lock, wait| async move { Ok(Grant::Guards(vec![lock.acquire(wait).await?])) })
}

/// A latch's count, or a double barrier's members.
fn positive(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("at least one")
}

fn semaphore(ours: &RedisClient, object: &Object) -> RedisSemaphore {
    let semaphore = ours.semaphore(&object.name);
    match object.kind {
        Kind::Permits { lease: Some(lease), .. } => semaphore.lease(Lease::Fixed(lease)),
        _ => semaphore.without_lease(),
    }
}

impl Process {
    pub(crate) fn owner(&self) -> Owner {
        match self {
            Self::Redis(process) => process.owner(),
            Self::ZooKeeper(process) => process.owner(),
            Self::Etcd(process) => process.owner(),
        }
    }

    pub(crate) fn handle(&self, owner: Owner, object: &Object) -> Handle {
        let name = object.name.as_str();
        match (self, object.kind) {
            (_, Kind::Nothing) => with((), |(), _| async { Ok(Grant::Done) }),
            (Self::Redis(ours), Kind::Lock) => lock(ours.lock(name).owner(owner)),
            (Self::Redis(ours), Kind::Fair) => lock(ours.fair_lock(name).owner(owner)),
            (Self::Redis(ours), Kind::Read) => lock(ours.rw_lock(name).read().owner(owner)),
            (Self::Redis(ours), Kind::Write) => lock(ours.rw_lock(name).write().owner(owner)),
            (Self::Redis(ours), Kind::Permits { take, .. }) => with(semaphore(ours, object), move |semaphore, wait| async move {
                Ok(Grant::Permit(semaphore.acquire(take, wait).await?))
            }),
            (Self::Redis(ours), Kind::Latch(_)) => {
                with(ours.latch(name), |latch, wait| async move { latch.wait(wait).await.map(|()| Grant::Done) })
            }
            (Self::ZooKeeper(ours), Kind::Lock) => lock(ours.lock(name).owner(owner)),
            (Self::ZooKeeper(ours), Kind::Read) => lock(ours.rw_lock(name).read().owner(owner)),
            (Self::ZooKeeper(ours), Kind::Write) => lock(ours.rw_lock(name).write().owner(owner)),
            (Self::ZooKeeper(ours), Kind::Permits { all, take, .. }) => {
                with(ours.semaphore(name, all), move |semaphore, wait| async move {
                    Ok(Grant::Guards(semaphore.acquire(take, wait).await?))
                })
            }
            (Self::ZooKeeper(ours), Kind::Barrier) => {
                with(ours.barrier(name), |barrier, wait| async move { barrier.wait(wait).await.map(|()| Grant::Done) })
            }
            (Self::ZooKeeper(ours), Kind::Double(members)) => {
                with(ours.double_barrier(name, positive(members)), |barrier, wait| async move {
                    let member = barrier.enter(wait).await?;
                    Ok(Grant::Member(barrier, member))
                })
            }
            (Self::Etcd(ours), Kind::Lock | Kind::Rpc) => lock(ours.lock(name).owner(owner)),
            _ => unreachable!("this server has no {object}"),
        }
    }

    /// Releases a hold, or counts down or opens.
    pub(crate) fn release(&self, held: Option<Grant>, object: &Object) -> BoxFuture<'static, Outcome> {
        let (process, Object { kind, name, .. }) = (self.clone(), object.clone());
        async move {
            let done = match (held, process, kind) {
                (Some(Grant::Guards(guards)), ..) => {
                    for guard in guards {
                        guard.release().await?;
                    }
                    true
                }
                (Some(Grant::Permit(permit)), ..) => permit.release().await.map(|()| true)?,
                (Some(Grant::Member(barrier, member)), ..) => barrier.leave(&member, SOON).await.map(|()| true)?,
                (_, Self::Redis(ours), Kind::Latch(_)) => ours.latch(&name).count_down().await?.is_some(),
                (_, Self::ZooKeeper(ours), Kind::Barrier) => ours.barrier(&name).remove().await?,
                (_, _, kind) => kind == Kind::Nothing,
            };
            Ok(done.then_some(Grant::Done))
        }
        .boxed()
    }

    /// Whether it was not set before.
    pub(crate) async fn set(&self, object: &Object) -> Result<bool, LockError> {
        let name = object.name.as_str();
        match (self, object.kind) {
            (Self::Redis(ours), Kind::Permits { all, .. }) => semaphore(ours, object).try_set_permits(all).await,
            (Self::Redis(ours), Kind::Latch(count)) => ours.latch(name).try_set_count(positive(count)).await,
            (Self::ZooKeeper(ours), Kind::Barrier) => ours.barrier(name).set().await,
            _ => unreachable!("nobody sets {object}"),
        }
    }

    /// The free permits, or the remaining count.
    pub(crate) async fn number(&self, object: &Object) -> Result<Option<i64>> {
        let name = object.name.as_str();
        Ok(match (self, object.kind) {
            (Self::Redis(ours), Kind::Permits { .. }) => Some(semaphore(ours, object).available_permits().await?),
            (Self::Redis(ours), Kind::Latch(_)) => Some(ours.latch(name).get_count().await?.try_into()?),
            _ => None,
        })
    }

    /// A round trip to the server.
    pub(crate) async fn round_trip(&self) -> Result<()> {
        match self {
            Self::Redis(ours) => redis::cmd("PING").exec_async(&mut ours.connection()).await?,
            Self::ZooKeeper(ours) => drop(ours.session()?.check_stat("/").await?),
            Self::Etcd(ours) => drop(ours.check().await?),
        }
        Ok(())
    }
}
