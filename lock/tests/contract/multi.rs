//! `MultiLock` under the contract, what it promises beyond it, and the twin that keeps what it has.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name},
    redis::Redis,
};
use oversell_lock::{
    Guard, Lock, LockError, MultiLock,
    redis::{RedisClient, RedisLock},
};
use std::{sync::Arc, time::Duration};

const SHORT: Duration = Duration::from_millis(300);

fn parts(name: &str) -> [String; 3] {
    [1, 2, 3].map(|n| format!("{name}-{n}"))
}

/// `MultiLock`s of three locks in one Redis.
pub(crate) struct Multi(Redis);

/// Its process.
pub(crate) struct MultiProcess(RedisClient);

impl Multi {
    pub(crate) fn at(url: String) -> Self {
        Self(Redis::at(url))
    }
}

impl Family for Multi {
    const NAME: &'static str = "multi";
    const QUEUES: bool = false;
    type Process = MultiProcess;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> MultiProcess {
        MultiProcess(self.0.process_at(address).await)
    }

    /// In one order, however Redis lists them.
    async fn left(&self, name: &str) -> Vec<String> {
        let mut left = self.0.left(name).await;
        left.sort_unstable();
        left
    }

    async fn take_away(&self, holder: &MultiProcess, name: &str) {
        for part in parts(name) {
            self.0.take_away(&holder.0, &part).await;
        }
    }
}

impl Process for MultiProcess {
    type Lock = MultiLock<RedisLock>;

    fn lock(&self, name: &str) -> Self::Lock {
        MultiLock::new(parts(name).map(|part| self.0.lock(&part)).into())
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

/// Over any kind of lock: each process takes the same two, the other one first.
pub(crate) async fn two_of_opposite_orders_both_go_on<F: Family>(family: Arc<F>) -> Verdict {
    const ROUNDS: usize = 5;
    let name = name();
    let names = [format!("{name}-1"), format!("{name}-2")];
    let rounds = [false, true].map(async |turned| {
        let process = family.process().await;
        let mut parts: Vec<_> = names.iter().map(|name| process.lock(name)).collect();
        if turned {
            parts.reverse();
        }
        let multi = MultiLock::new(parts);
        for _ in 0..ROUNDS {
            let guard = says("a turn", multi.acquire(SOON * 3).await)?;
            tokio::task::yield_now().await;
            says("release", guard.release().await)?;
        }
        process.close().await;
        Ok::<_, String>(())
    });
    futures::future::try_join_all(rounds).await.map(|_| ())
}

/// Another has the last part only.
pub(crate) async fn who_misses_one_part_keeps_none<F>(family: Arc<F>) -> Verdict
where
    F: Family + AsRef<Redis>,
{
    let name = name();
    let ([first, second, last], other) = (parts(&name), family.as_ref().as_ref().process().await);
    let held = says("the last part", other.lock(&last).acquire(SOON).await)?;
    let process = family.process().await;
    for wait in [Duration::ZERO, SHORT] {
        let missed = process.lock(&name).acquire(wait).await;
        ensure(matches!(missed, Err(LockError::Taken { .. })), || {
            format!("without its last part: {missed:?}")
        })?;
        for part in [&first, &second] {
            let free = other
                .lock(part)
                .try_acquire()
                .await
                .map_err(|error| format!("a part was kept: {error}"))?;
            says("release", free.release().await)?;
        }
    }
    says("release", held.release().await)
}

impl AsRef<Redis> for Multi {
    fn as_ref(&self) -> &Redis {
        &self.0
    }
}

pub(crate) async fn the_loss_of_one_part_is_told_and_named(family: Arc<Multi>) -> Verdict {
    let (name, process) = (name(), family.process().await);
    let guard = says("all parts", process.lock(&name).acquire(SOON).await)?;
    let [_, second, _] = parts(&name);
    family.0.take_away(&process.0, &second).await;
    tokio::time::timeout(SOON, guard.lost())
        .await
        .map_err(|_| "the holder was never told")?;
    match guard.release().await {
        Err(LockError::Lost { name }) if name == second => {}
        other => return Err(format!("{second} was lost: {other:?}")),
    }
    let left = family.left(&name).await;
    ensure(left.is_empty(), || format!("left: {left:?}"))
}

/// Wrong on purpose: what it has when it misses one it keeps.
pub(crate) struct Greedy(Redis);

/// Its process.
pub(crate) struct GreedyProcess(RedisClient);

/// Its contender.
pub(crate) struct GreedyLock(Vec<RedisLock>);

impl Greedy {
    pub(crate) fn at(url: String) -> Self {
        Self(Redis::at(url))
    }
}

impl AsRef<Redis> for Greedy {
    fn as_ref(&self) -> &Redis {
        &self.0
    }
}

impl Family for Greedy {
    const NAME: &'static str = "twin_multi_that_keeps_parts";
    const QUEUES: bool = false;
    type Process = GreedyProcess;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> GreedyProcess {
        GreedyProcess(self.0.process_at(address).await)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, holder: &GreedyProcess, name: &str) {
        self.0.take_away(&holder.0, name).await;
    }
}

impl Process for GreedyProcess {
    type Lock = GreedyLock;

    fn lock(&self, name: &str) -> GreedyLock {
        GreedyLock(parts(name).map(|part| self.0.lock(&part)).into())
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

impl Lock for GreedyLock {
    fn name(&self) -> &str {
        "greedy"
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let mut had = Vec::new();
        for part in &self.0 {
            match part.acquire(wait).await {
                Ok(guard) => had.push(guard),
                Err(error) => {
                    // Here the honest lock gives back.
                    std::mem::forget(had);
                    return Err(error);
                }
            }
        }
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move {
            let asked = keeper.asked_to_release().await;
            drop(had);
            asked.done(Ok(()));
        });
        Ok(guard)
    }
}

pub(crate) async fn is_caught(twin: Arc<Greedy>) -> Verdict {
    super::twins::caught(
        who_misses_one_part_keeps_none(twin).await,
        "a part was kept",
    )
}
