//! A process that was stopped (`SIGSTOP`, a pause of its machine) beyond its lease: the first thing that it asks when it
//! goes on is answered by the clock. Such a process is a thread here, with a runtime of its own that does nothing.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name},
    redis::Redis,
    twins::caught,
};
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{RedisClient, RedisLock},
};
use std::{sync::Arc, time::Duration};
use tokio::{runtime::Builder, sync::oneshot};

/// Another has the lock by the time it goes on, and it knows before any task of it has run.
pub(crate) async fn a_process_that_stood_still_knows_at_once<F: Family>(family: Arc<F>) -> Verdict {
    let (name, next) = (name(), family.process().await);
    let (has, held) = oneshot::channel();
    let (go_on, stands) = std::sync::mpsc::channel::<()>();
    let still = std::thread::spawn({
        let (family, name) = (Arc::clone(&family), name.clone());
        move || {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| e.to_string())?;
            runtime.block_on(async move {
                let process = family.process().await;
                let guard = says("the first", process.lock(&name).acquire(SOON).await)?;
                ensure(!guard.is_lost(), || "lost as soon as it was had".into())?;
                has.send(()).map_err(|()| "the test has ended")?;
                stands.recv().map_err(|e| e.to_string())?;
                ensure(guard.is_lost(), || {
                    "it went on and did not know that its lock is lost".into()
                })?;
                let work = guard.run(async { "done" }).await;
                ensure(matches!(work, Err(LockError::Lost { .. })), || {
                    format!("its work was done: {work:?}")
                })?;
                let late = guard.release().await;
                ensure(matches!(late, Err(LockError::Lost { .. })), || {
                    format!("its release: {late:?}")
                })?;
                process.close().await;
                Ok::<(), String>(())
            })
        }
    });
    held.await.map_err(|_| "it never had the lock")?;
    let guard = says(
        "the next, once its lease has ended",
        next.lock(&name).acquire(SOON).await,
    )?;
    go_on.send(()).map_err(|e| e.to_string())?;
    let verdict = tokio::task::spawn_blocking(|| still.join())
        .await
        .map_err(|e| e.to_string())?;
    verdict.map_err(|_| "it panicked")??;
    ensure(!guard.is_lost(), || {
        "the next holder's lock went with it".into()
    })?;
    says("release", guard.release().await)
}

/// The twin: a lock whose holder knows only what it was told.
pub(crate) struct OnlyTold(Redis);

impl OnlyTold {
    pub(crate) fn at(url: String) -> Self {
        Self(Redis::at(url))
    }
}

/// Its process.
pub(crate) struct Deaf(RedisClient);

/// Its contender.
pub(crate) struct ToldLock(RedisLock);

impl Family for OnlyTold {
    const NAME: &'static str = "twin_redis_that_only_listens";
    const QUEUES: bool = false;
    type Process = Deaf;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, address: &str) -> Deaf {
        Deaf(self.0.process_at(address).await)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, holder: &Deaf, name: &str) {
        self.0.take_away(&holder.0, name).await;
    }
}

impl Process for Deaf {
    type Lock = ToldLock;

    fn lock(&self, name: &str) -> ToldLock {
        ToldLock(self.0.lock(name))
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

impl Lock for ToldLock {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let honest = self.0.acquire(wait).await?;
        // Here the honest guard has the end of its lease with it.
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move {
            let asked = tokio::select! {
                asked = keeper.asked_to_release() => asked,
                () = honest.lost() => {
                    keeper.tell_lost();
                    keeper.asked_to_release().await
                }
            };
            asked.done(honest.release().await);
        });
        Ok(guard)
    }
}

pub(crate) async fn is_caught(twin: Arc<OnlyTold>) -> Verdict {
    caught(
        a_process_that_stood_still_knows_at_once(twin).await,
        "did not know that its lock is lost",
    )
}
