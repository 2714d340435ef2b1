//! Locks that are wrong on purpose, each by one line. A clause that lets its twin pass is a clause that cannot fail.

use super::{
    Verdict, clauses,
    family::{Family, Process, until},
    redis::Redis,
    zookeeper::{Member, ZooKeeper},
};
use oversell_lock::{Guard, Lock, LockError, zk::ZkClient};
use redis::{
    AsyncTypedCommands, ExistenceCheck, SetExpiry, SetOptions, aio::MultiplexedConnection,
};
use std::{sync::Arc, time::Duration};
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// The twin must have failed, and so.
pub(crate) fn caught(verdict: Verdict, by: &str) -> Verdict {
    match verdict {
        Err(broken) if broken.contains(by) => Ok(()),
        Err(other) => Err(format!("caught, but for another reason: {other}")),
        Ok(()) => Err("the twin passed".into()),
    }
}

/// The twin is only wrong where its predecessor gives up after it has looked, which no test can see: it may take more
/// than one try.
pub(crate) async fn is_caught_when_somebody_gives_up(twin: Arc<QueueJumper>) -> Verdict {
    const TRIES: usize = 20;
    let mut verdict = Ok(());
    for _ in 0..TRIES {
        verdict = clauses::who_gives_up_does_not_let_the_next_one_in(twin.clone()).await;
        if verdict.is_err() {
            break;
        }
    }
    caught(verdict, "the third has Ok(Ok(Guard")
}

pub(crate) async fn is_caught_at_a_foreign_release(twin: Arc<Careless>) -> Verdict {
    caught(
        clauses::a_foreign_release_is_refused(twin).await,
        "a lost lock was released: Ok",
    )
}

// --- zk-lock that does not look again -----------------------------------------------------------------------------

/// A `ZkLock` that takes the lock when its watch fires, without looking again.
pub(crate) struct QueueJumper(ZooKeeper);

/// Its process: the honest client.
pub(crate) struct Jumper(Member);

/// Its contender.
pub(crate) struct JumpingLock(ZkClient, String);

impl QueueJumper {
    pub(crate) fn at(connect: String) -> Self {
        Self(ZooKeeper::at(connect))
    }
}

impl Family for QueueJumper {
    const NAME: &'static str = "twin_zk_without_a_second_look";
    const QUEUES: bool = true;
    type Process = Jumper;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> Jumper {
        let member = self.0.process_at(address).await;
        until("connected", || async { member.client.session().is_ok() })
            .await
            .expect("zookeeper is there");
        Jumper(member)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, holder: &Jumper, name: &str) {
        self.0.take_away(&holder.0, name).await;
    }
}

impl Process for Jumper {
    type Lock = JumpingLock;

    fn lock(&self, name: &str) -> JumpingLock {
        JumpingLock(self.0.client.clone(), name.to_owned())
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

impl Lock for JumpingLock {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let wrong = |error: zookeeper_client::Error| LockError::Unavailable {
            server: "zookeeper",
            reason: error.into(),
        };
        let client = self.0.session()?;
        let directory = CreateMode::Container.with_acls(Acls::anyone_all());
        client.mkdir(self.name(), &directory).await.map_err(wrong)?;
        let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let prefix = format!("_c_{}-lock-", uuid::Uuid::new_v4());
        let (_, sequence) = client
            .create(&format!("{}/{prefix}", self.name()), &[], &node)
            .await
            .map_err(wrong)?;
        let own = format!("{}/{prefix}{sequence}", self.name());
        let deleted = Deleted(client.clone(), own.clone());
        let mut sequences: Vec<_> = client.list_children(self.name()).await.map_err(wrong)?;
        sequences.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
        let at = sequences
            .iter()
            .position(|name| own.ends_with(name))
            .expect("our node");
        if let Some(before) = at.checked_sub(1) {
            let path = format!("{}/{}", self.name(), sequences[before]);
            let fired = async {
                match client.get_and_watch_data(&path).await {
                    Ok((_, _, watch)) => drop(watch.changed().await),
                    Err(Error::NoNode) => {}
                    Err(error) => return Err(wrong(error)),
                }
                Ok(())
            };
            tokio::time::timeout(wait, fired)
                .await
                .map_err(|_| LockError::Taken {
                    name: self.1.clone(),
                    waited: wait,
                })??;
            // Here the honest lock goes back to the list.
        }
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            drop(deleted);
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

/// Deletes a node when it is dropped.
struct Deleted(Client, String);

impl Drop for Deleted {
    fn drop(&mut self) {
        let (client, path) = (self.0.clone(), self.1.clone());
        tokio::spawn(async move { client.delete(&path, None).await });
    }
}

// --- redis-lock that does not check the owner ---------------------------------------------------------------------

/// A lock in Redis whose release deletes whatever is there.
pub(crate) struct Careless(Redis);

/// Its process.
pub(crate) struct CarelessProcess(MultiplexedConnection);

/// Its contender.
pub(crate) struct CarelessLock(MultiplexedConnection, String);

impl Careless {
    pub(crate) fn at(url: String) -> Self {
        Self(Redis::at(url))
    }
}

impl Family for Careless {
    const NAME: &'static str = "twin_redis_without_owner_check";
    const QUEUES: bool = false;
    type Process = CarelessProcess;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, _: &str) -> CarelessProcess {
        CarelessProcess(self.0.outsider().await)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, _: &CarelessProcess, name: &str) {
        self.0.outsider().await.del(name).await.expect("deleted");
    }
}

impl Process for CarelessProcess {
    type Lock = CarelessLock;

    fn lock(&self, name: &str) -> CarelessLock {
        CarelessLock(self.0.clone(), name.to_owned())
    }

    async fn close(&self) {}
}

impl Lock for CarelessLock {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let taken = || LockError::Taken {
            name: self.1.clone(),
            waited: wait,
        };
        let (mut redis, name) = (self.0.clone(), self.1.clone());
        let options = SetOptions::default()
            .conditional_set(ExistenceCheck::NX)
            .with_expiration(SetExpiry::PX(30_000));
        let set = redis
            .set_options(&name, "locked", options)
            .await
            .expect("an answer");
        set.ok_or_else(taken)?;
        let (guard, mut keeper) = Guard::new(&name, None);
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            // Here the honest lock compares the owner, in the same script.
            let deleted = redis.del(&name).await.expect("an answer");
            release.done(if deleted > 0 {
                Ok(())
            } else {
                Err(LockError::Lost { name })
            });
        });
        Ok(guard)
    }
}
