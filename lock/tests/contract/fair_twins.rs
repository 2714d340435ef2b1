//! Fair locks that are wrong on purpose, each by one line: plain commands and a poll, and one fault. The same lock without
//! a fault passes, so that it is the fault that is caught.

use super::{
    Verdict,
    fair::{Fair, drift, goes, order, queue_key, scores_key, storm},
    family::{Family, Process},
    twins::caught,
};
use oversell_lock::{Guard, Lock, LockError, Owner};
use redis::{Script, aio::MultiplexedConnection};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    PushesIn,
    LeavesItsScore,
    LeavesTheOthersScores,
}

/// The family of one twin.
struct Twin(Fair, Fault);

/// Its process.
struct TwinProcess(MultiplexedConnection, oversell_lock::Process, Fault);

/// Its contender.
struct TwinLock(MultiplexedConnection, String, Owner, Fault);

/// In the queue, until it is dropped.
struct Place<'a>(&'a TwinLock, u64);

const JOIN: &str = "
    local last = redis.call('lindex', KEYS[2], -1)
    local time = redis.call('time')
    local before = last and redis.call('zscore', KEYS[3], last) or time[1] * 1000
    redis.call('zadd', KEYS[3], before + ARGV[2], ARGV[1])
    return redis.call('rpush', KEYS[2], ARGV[1])";
const TRY: &str = "
    local head = redis.call('lindex', KEYS[2], 0)
    if redis.call('exists', KEYS[1]) == 1 or (head ~= ARGV[1] and ARGV[3] == '0') then return 0 end
    redis.call('hset', KEYS[1], ARGV[1], 1)
    redis.call('lrem', KEYS[2], 1, ARGV[1])
    redis.call('zrem', KEYS[3], ARGV[1])
    return 1";
const LEAVE: &str = "
    local behind = false
    for _, owner in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
      if behind and ARGV[4] == '0' then redis.call('zincrby', KEYS[3], -ARGV[2], owner) end
      behind = behind or owner == ARGV[1]
    end
    if ARGV[3] == '0' then redis.call('zrem', KEYS[3], ARGV[1]) end
    if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then redis.call('del', KEYS[1]) end
    return redis.call('lrem', KEYS[2], 1, ARGV[1])";

impl Twin {
    fn of(fair: &Fair, fault: Fault) -> Self {
        Self(Fair::at(format!("redis://{}", fair.server())), fault)
    }
}

impl Family for Twin {
    const NAME: &'static str = "twin_fair";
    const QUEUES: bool = true;
    type Process = TwinProcess;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, _: &str) -> TwinProcess {
        TwinProcess(
            self.0.0.outsider().await,
            oversell_lock::Process::new(),
            self.1,
        )
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, _: &TwinProcess, name: &str) {
        self.0.take_away(&self.0.process().await, name).await;
    }
}

impl Process for TwinProcess {
    type Lock = TwinLock;

    fn lock(&self, name: &str) -> TwinLock {
        TwinLock(self.0.clone(), name.to_owned(), self.1.owner(), self.2)
    }

    async fn close(&self) {}
}

impl TwinLock {
    async fn run(&self, script: &str, arguments: &[u64]) -> i64 {
        let script = Script::new(script);
        let mut call = script.key(&self.1);
        call.key(queue_key(&self.1))
            .key(scores_key(&self.1))
            .arg(self.2.to_string())
            .arg(arguments);
        // Those whose test has ended may still be there when the server stops.
        call.invoke_async(&mut self.0.clone()).await.unwrap_or(0)
    }

    fn has(&self, fault: Fault) -> u64 {
        u64::from(self.3 == fault)
    }
}

impl Lock for TwinLock {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let started = Instant::now();
        let limit = u64::try_from(wait.as_millis()).expect("a wait");
        let place = Place(self, limit);
        self.run(JOIN, &[limit]).await;
        // Here the honest lock takes it only as the head.
        while self.run(TRY, &[limit, self.has(Fault::PushesIn)]).await == 0 {
            if started.elapsed() > wait {
                return Err(LockError::Taken {
                    name: self.1.clone(),
                    waited: wait,
                });
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        std::mem::forget(place);
        let (guard, mut keeper) = Guard::new(self.name(), None);
        let (mut redis, name) = (self.0.clone(), self.1.clone());
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            redis::cmd("DEL")
                .arg(&name)
                .exec_async(&mut redis)
                .await
                .ok();
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let TwinLock(redis, name, owner, fault) = self.0;
        let (lock, limit) = (
            TwinLock(redis.clone(), name.clone(), *owner, *fault),
            self.1,
        );
        tokio::spawn(async move {
            // Here the honest lock takes its score away, and its wait off the scores of the others.
            let faults = [
                limit,
                lock.has(Fault::LeavesItsScore),
                lock.has(Fault::LeavesTheOthersScores),
            ];
            lock.run(LEAVE, &faults).await
        });
    }
}

pub(crate) async fn the_lock_of_the_twins_passes_without_a_fault(fair: Arc<Fair>) -> Verdict {
    let twin = Arc::new(Twin::of(&fair, Fault::None));
    order(&fair.0, &*twin).await?;
    drift(&fair.0, &*twin).await?;
    goes(&fair.0, &*twin).await?;
    storm(&fair.0, twin).await
}

pub(crate) async fn one_that_pushes_in_is_caught(fair: Arc<Fair>) -> Verdict {
    caught(
        order(&fair.0, &Twin::of(&fair, Fault::PushesIn)).await,
        "the turns were",
    )
}

pub(crate) async fn one_that_leaves_its_score_is_caught(fair: Arc<Fair>) -> Verdict {
    caught(
        goes(&fair.0, &Twin::of(&fair, Fault::LeavesItsScore)).await,
        "scores have",
    )
}

pub(crate) async fn one_that_leaves_the_scores_of_the_others_is_caught(fair: Arc<Fair>) -> Verdict {
    caught(
        drift(&fair.0, &Twin::of(&fair, Fault::LeavesTheOthersScores)).await,
        "too high",
    )
}
