//! What re-entry, readers and leases in ZooKeeper promise, and the twins that break it.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    zookeeper::{Member, ZooKeeper},
};
use oversell_lock::{Guard, Lock, LockError, zk::ZkClient};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use zookeeper_client::{Acls, Client, CreateMode, Error};

pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// A uuid, as a Java process would have one.
pub(crate) const JAVA: &str = "_c_3f0c9a52-6f0e-4d0b-9a43-0d0c8f6a7b11-";

pub(crate) async fn take(lock: &impl Lock) -> Result<Guard, String> {
    says("the lock must be had", lock.acquire(SOON).await)
}

pub(crate) fn refused<T>(what: &str, result: &Result<T, LockError>) -> Verdict {
    match result {
        Err(LockError::Taken { .. }) => Ok(()),
        Err(other) => Err(format!("{what}: {other}")),
        Ok(_) => Err(format!("{what}: was let in")),
    }
}

pub(crate) async fn gone(zookeeper: &ZooKeeper, name: &str) -> Verdict {
    until("nothing is left", || async {
        zookeeper.left(name).await.is_empty()
    })
    .await
}

/// A node of another implementation.
pub(crate) async fn node(outsider: &Client, path: &str) -> Result<String, String> {
    let container = CreateMode::Container.with_acls(Acls::anyone_all());
    let ephemeral = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let mut made = outsider.create(path, &[], &ephemeral).await;
    if let Err(Error::NoNode) = made {
        let (directory, _) = path.rsplit_once('/').ok_or("no directory")?;
        outsider
            .mkdir(directory, &container)
            .await
            .map_err(|e| e.to_string())?;
        made = outsider.create(path, &[], &ephemeral).await;
    }
    let (_, sequence) = made.map_err(|e| e.to_string())?;
    Ok(format!("{path}{sequence}"))
}

/// The name without its uuid, which must be one.
pub(crate) fn shape(node: &str) -> Result<String, String> {
    let (directory, node) = node.rsplit_once('/').unwrap_or(("", node));
    let rest = node
        .strip_prefix("_c_")
        .ok_or_else(|| format!("not protected: {node}"))?;
    let (uuid, rest) = rest
        .split_at_checked(36)
        .ok_or_else(|| format!("no uuid: {node}"))?;
    uuid::Uuid::parse_str(uuid).map_err(|e| format!("{node}: {e}"))?;
    Ok(format!("{directory}|{rest}"))
}

// --- re-entry -----------------------------------------------------------------------------------------------------

/// Two holds of one owner, the first given back: another owner must still be kept out.
async fn the_node_stays(
    first: &impl Lock,
    second: &impl Lock,
    other: &impl Lock,
) -> Result<Guard, String> {
    let (outer, inner) = (take(first).await?, take(second).await?);
    says("release", outer.release().await)?;
    refused("under the second hold", &other.try_acquire().await)?;
    Ok(inner)
}

pub(crate) async fn the_node_goes_with_the_last_hold_of_its_owner(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (process, other) = (zookeeper.process().await, zookeeper.process().await);
    for write in [false, true] {
        let (name, owner) = (name(), process.client.owner());
        let inner = if write {
            let lock = process.client.rw_lock(&name).write().owner(owner);
            the_node_stays(&lock, &lock.clone(), &other.client.rw_lock(&name).write()).await?
        } else {
            let lock = process.lock(&name).owner(owner);
            the_node_stays(&lock, &lock.clone(), &other.lock(&name)).await?
        };
        let left = zookeeper.left(&name).await;
        ensure(left.len() == 1, || format!("two holds have {left:?}"))?;
        says("release", inner.release().await)?;
        gone(&zookeeper, &name).await?;
    }
    Ok(())
}

/// A lock whose guards are all the same: the first that is released frees it.
struct FreedWithTheFirst<L>(L, Arc<tokio::sync::Mutex<Option<Guard>>>);

impl<L: Lock> Lock for FreedWithTheFirst<L> {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let mut held = self.1.lock().await;
        if held.is_none() {
            *held = Some(self.0.acquire(wait).await?);
        }
        let (guard, mut keeper) = Guard::new(self.name(), None);
        let held = self.1.clone();
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            // Here the honest lock looks whether it is the last.
            if let Some(guard) = held.lock().await.take() {
                guard.release().await.ok();
            }
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

pub(crate) async fn a_release_that_frees_with_the_first_hold_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let name = name();
    let (process, other) = (zookeeper.process().await, zookeeper.process().await);
    let twin = FreedWithTheFirst(process.lock(&name), Arc::default());
    match the_node_stays(&twin, &twin, &other.lock(&name)).await {
        Err(broken) if broken.contains("was let in") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

pub(crate) async fn tasks_of_one_owner_do_not_queue_behind_each_other(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let lock = process.lock(&name).owner(process.client.owner());
    let (one, other) = tokio::join!(lock.acquire(SOON), lock.acquire(SOON));
    let (one, other) = (says("one", one)?, says("the other", other)?);
    let left = zookeeper.left(&name).await;
    ensure(left.len() == 1, || format!("two holds have {left:?}"))?;
    drop(one);
    says("release", other.release().await)?;
    gone(&zookeeper, &name).await
}

/// What Curator answers with true: its re-entry does not ask the server.
pub(crate) async fn an_owner_that_lost_the_lock_does_not_come_in_again(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let lock = process.lock(&name).owner(process.client.owner());
    let guard = take(&lock).await?;
    zookeeper.take_away(&process, &name).await;
    until("connected again", || async {
        process.client.session().is_ok()
    })
    .await?;
    match lock.acquire(SOON).await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("after the session: {other:?}")),
    }
    match guard.release().await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("a lost lock was released: {other:?}")),
    }
    says("release", take(&lock).await?.release().await)
}

// --- readers and writers ------------------------------------------------------------------------------------------

/// A writer is inside: no reader may come in.
async fn a_writer_keeps_out(holder: &Member, reader: &impl Lock) -> Verdict {
    let writer = take(&holder.client.rw_lock(reader.name()).write()).await?;
    let refusal = refused("a reader beside a writer", &reader.acquire(SHORT).await);
    says("release", writer.release().await)?;
    refusal
}

pub(crate) async fn readers_are_together_and_a_writer_is_alone(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let name = name();
    let (process, other) = (zookeeper.process().await, zookeeper.process().await);
    let lock = process.client.rw_lock(&name);
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push(take(&lock.read()).await?);
    }
    readers.push(take(&other.client.rw_lock(&name).read()).await?);
    refused(
        "a writer beside readers",
        &other.client.rw_lock(&name).write().acquire(SHORT).await,
    )?;
    let left = zookeeper.left(&name).await;
    ensure(left.len() == 6, || format!("six readers have {left:?}"))?;
    for reader in readers {
        says("release", reader.release().await)?;
    }
    a_writer_keeps_out(&process, &other.client.rw_lock(&name).read()).await?;
    gone(&zookeeper, &name).await
}

pub(crate) async fn a_reader_stands_behind_a_writer_that_waits(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let name = name();
    let (process, other) = (zookeeper.process().await, zookeeper.process().await);
    let (lock, there) = (process.client.rw_lock(&name), other.client.rw_lock(&name));
    let reader = take(&lock.read()).await?;
    let writer = tokio::spawn({
        let writer = there.write();
        async move { writer.acquire(SOON).await }
    });
    until("the writer is queued", || async {
        zookeeper.left(&name).await.len() == 2
    })
    .await?;
    refused(
        "a reader behind a waiting writer",
        &lock.read().acquire(SHORT).await,
    )?;
    says("release", reader.release().await)?;
    let writer = says("the writer", writer.await.map_err(|e| e.to_string())?)?;
    says("release", writer.release().await)?;
    gone(&zookeeper, &name).await
}

/// A reader that does not look for writers before it.
struct Blind(ZkClient, String);

impl Lock for Blind {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
        let client = self.0.session()?;
        // Here the honest lock lists the directory.
        let made = node(&client, &format!("{}/{JAVA}__READ__", self.1)).await;
        let path = made.map_err(|reason| LockError::Unavailable {
            server: "zookeeper",
            reason: reason.into(),
        })?;
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            client.delete(&path, None).await.ok();
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

pub(crate) async fn a_reader_that_ignores_writers_is_caught(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (process, other) = (zookeeper.process().await, zookeeper.process().await);
    until("connected", || async { other.client.session().is_ok() }).await?;
    match a_writer_keeps_out(&process, &Blind(other.client.clone(), name())).await {
        Err(broken) if broken.contains("was let in") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

pub(crate) async fn a_writer_may_read_and_a_reader_may_not_write(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let name = name();
    let (process, other) = (zookeeper.process().await, zookeeper.process().await);
    let owner = process.client.owner();
    let lock = process.client.rw_lock(&name);
    let (read, write) = (lock.read().owner(owner), lock.write().owner(owner));
    let there = other.client.rw_lock(&name);
    let writing = take(&write).await?;
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let waiter = lock.write();
            tokio::spawn(async move { waiter.acquire(SOON).await?.release().await })
        })
        .collect();
    until("the waiters are queued", || async {
        zookeeper.left(&name).await.len() == 4
    })
    .await?;
    let (reading, again) = (take(&read).await?, take(&read).await?);
    says("writing once more", take(&write).await?.release().await)?;
    let mut shapes = zookeeper
        .left(&name)
        .await
        .iter()
        .map(|n| shape(n))
        .collect::<Result<Vec<_>, _>>()?;
    shapes.sort();
    let writers = (0..4).map(|n| format!("|-__WRIT__{n:010}"));
    let expected: Vec<_> = std::iter::once("|-__READ__0000000000".to_owned())
        .chain(writers)
        .collect();
    ensure(shapes == expected, || {
        format!("Curator's names would be {expected:?}: {shapes:?}")
    })?;
    says("release", writing.release().await)?;
    refused(
        "a writer beside the downgraded one",
        &there.write().acquire(SHORT).await,
    )?;
    match write.acquire(SOON).await {
        Err(LockError::Invalid { .. }) => {}
        other => return Err(format!("an upgrade: {other:?}")),
    }
    says("release", reading.release().await)?;
    refused(
        "a writer beside the last hold",
        &there.write().acquire(SHORT).await,
    )?;
    says("release", again.release().await)?;
    for waiter in waiters {
        says("a waiter", waiter.await.map_err(|e| e.to_string())?)?;
    }
    says("release", take(&write).await?.release().await)?;
    gone(&zookeeper, &name).await
}

/// Another implementation's downgraded writer: two nodes of one sequence.
pub(crate) async fn nodes_of_other_implementations_are_respected(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, outsider) = (
        name(),
        zookeeper.process().await,
        zookeeper.outsider().await,
    );
    let lock = process.client.rw_lock(&name);
    let writer = node(&outsider, &format!("{name}/{JAVA}__WRIT__")).await?;
    let reader = writer.replace("__WRIT__", "__READ__");
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    outsider
        .create(&reader, &[], &ephemeral)
        .await
        .map_err(|e| e.to_string())?;
    refused(
        "a reader behind a writer",
        &lock.read().acquire(SHORT).await,
    )?;
    outsider
        .delete(&writer, None)
        .await
        .map_err(|e| e.to_string())?;
    let guard = take(&lock.read()).await?;
    refused(
        "a writer behind a reader",
        &lock.write().acquire(SHORT).await,
    )?;
    outsider
        .delete(&reader, None)
        .await
        .map_err(|e| e.to_string())?;
    says("release", guard.release().await)?;
    says("release", take(&lock.write()).await?.release().await)?;
    gone(&zookeeper, &name).await
}

/// Three processes, each with readers and writers: who writes is alone, also against those who read.
pub(crate) async fn a_crowd_of_readers_and_writers_keeps_apart(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    const WRITER: i64 = 1000;
    let (name, inside, wrong) = (
        name(),
        Arc::new(AtomicI64::new(0)),
        Arc::new(AtomicI64::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let process = Arc::new(zookeeper.process().await);
        for n in 0..6 {
            let (process, name, inside, wrong) =
                (process.clone(), name.clone(), inside.clone(), wrong.clone());
            tasks.spawn(async move {
                let lock = process.client.rw_lock(&name);
                for _ in 0..5 {
                    let writes = n % 3 == 0;
                    let guard = if writes {
                        take(&lock.write()).await?
                    } else {
                        take(&lock.read()).await?
                    };
                    let mine = if writes { WRITER } else { 1 };
                    let before = inside.fetch_add(mine, SeqCst);
                    if before >= WRITER || (writes && before > 0) {
                        wrong.fetch_add(1, SeqCst);
                    }
                    for _ in 0..5 {
                        tokio::task::yield_now().await;
                    }
                    inside.fetch_sub(mine, SeqCst);
                    says("release", guard.release().await)?;
                }
                Ok::<_, String>(())
            });
        }
    }
    for result in tasks.join_all().await {
        result?;
    }
    let wrong = wrong.load(SeqCst);
    ensure(wrong == 0, || format!("{wrong} were inside with a writer"))?;
    gone(&zookeeper, &name).await
}
