//! Fair locks that are wrong on purpose, each by one line: plain commands and a poll, and one fault. The same lock without
//! a fault passes, so that it is the fault that is caught.

use super::{
    fair::{drift, goes, order, queue_key, scores_key, storm},
    family::{Family, Kind},
    redis::Redis,
    support::*,
};
use oversell_lock::{Guard, Lock, LockError, Owner, redis::RedisClient};
use redis::Script;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    PushesIn,
    LeavesItsScore,
    LeavesTheOthersScores,
}

/// A contender.
#[derive(Clone)]
struct Twin {
    client: RedisClient,
    name: String,
    owner: Owner,
    fault: Fault,
}

/// In the queue, until it is dropped.
struct Place<'a>(&'a Twin, u64);

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
    async fn run(&self, script: &str, arguments: &[u64]) -> i64 {
        let script = Script::new(script);
        let mut call = script.key(&self.name);
        call.key(queue_key(&self.name))
            .key(scores_key(&self.name))
            .arg(self.owner.to_string())
            .arg(arguments);
        // Those whose test has ended may still be there when the server stops.
        let answer = call.invoke_async(&mut self.client.connection()).await;
        answer.unwrap_or(0)
    }

    fn has(&self, fault: Fault) -> u64 {
        u64::from(self.fault == fault)
    }
}

impl Lock for Twin {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let started = Instant::now();
        let limit = u64::try_from(wait.as_millis()).expect("a wait");
        let place = Place(self, limit);
        self.run(JOIN, &[limit]).await;
        // Here the honest lock takes it only as the head.
        while self.run(TRY, &[limit, self.has(Fault::PushesIn)]).await == 0 {
            if started.elapsed() > wait {
                let name = self.name.clone();
                return Err(LockError::Taken { name, waited: wait });
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        std::mem::forget(place);
        let (guard, mut keeper) = Guard::new(self.name(), None);
        let (mut redis, name) = (self.client.connection(), self.name.clone());
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            let freed = redis::cmd("DEL").arg(&name).exec_async(&mut redis).await;
            freed.ok();
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let (lock, limit) = (self.0.clone(), self.1);
        tokio::spawn(async move {
            // Here the honest lock takes its score away, and its wait off the scores of the others.
            let own = lock.has(Fault::LeavesItsScore);
            let others = lock.has(Fault::LeavesTheOthersScores);
            lock.run(LEAVE, &[limit, own, others]).await
        });
    }
}

/// The family of a twin.
macro_rules! twin {
    ($redis:ident, $fault:ident) => {{
        static KIND: Kind<Redis> = Kind::new("twin", &[], |client: &RedisClient, name, _| {
            let (client, name, owner) = (client.clone(), name.to_owned(), client.owner());
            Twin {
                client,
                name,
                owner,
                fault: Fault::$fault,
            }
            .boxed()
        })
        .queues();
        Family {
            server: $redis,
            kind: &KIND,
        }
    }};
}

#[apply(test!)]
async fn the_lock_of_the_twins_passes_without_a_fault(redis: &'static Redis) -> Result<()> {
    let twin = twin!(redis, None);
    order(twin).await?;
    drift(twin).await?;
    goes(twin).await?;
    storm(twin).await
}

#[apply(test!)]
async fn one_that_pushes_in_is_caught(redis: &'static Redis) -> Result<()> {
    caught(order(twin!(redis, PushesIn)).await, "the turns were")
}

#[apply(test!)]
async fn one_that_leaves_its_score_is_caught(redis: &'static Redis) -> Result<()> {
    caught(goes(twin!(redis, LeavesItsScore)).await, "scores have")
}

#[apply(test!)]
async fn one_that_leaves_the_scores_of_the_others_is_caught(redis: &'static Redis) -> Result<()> {
    caught(drift(twin!(redis, LeavesTheOthersScores)).await, "too high")
}
