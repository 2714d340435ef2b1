//! Chapter 2: locks in Redis, from SETNX to Redisson; and text 001, which goes the same way in short.

mod cluster;
mod hash;
mod objects;
mod redisson;
mod scripts;
mod setnx;
mod text_001;

use super::{Chapter, NoVerdict};
use crate::bilingual::Bilingual;
use redis::{FromRedisValue, aio::MultiplexedConnection};
use std::time::Duration;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "2",
    title: Bilingual {
        zh: "基于 Redis 的分布式锁",
        en: "Distributed locks with Redis",
    },
    lessons: &[
        setnx::ONE_OF_MANY,
        setnx::DEAD_HOLDER,
        setnx::EXPIRE_AFTERWARDS,
        setnx::WITH_A_LEASE,
        setnx::LATE_DELETE,
        setnx::LOOK_THEN_DELETE,
        scripts::ATOMIC,
        scripts::COUNT_TO_THREE,
        scripts::NO_ROLLBACK,
        scripts::SMALL,
        scripts::LOCAL_VARIABLES,
        scripts::A_NUMBER,
        scripts::ARGUMENTS,
        scripts::CALL,
        scripts::CALL_WITH_ARGUMENTS,
        scripts::PCALL,
        scripts::COMPARE_AND_DELETE,
        hash::RE_ENTRY,
        hash::ENTER,
        hash::LEAVE,
        hash::UNDER_LOAD,
        hash::WATCHDOG,
        hash::EVERY_THIRD,
        cluster::FAIL_OVER,
        cluster::REDLOCK,
        cluster::DEAD_NODES,
        redisson::LOCK,
        redisson::REDISSON_OR_BY_HAND,
        redisson::THIRTY_SECONDS,
        redisson::ONLY_THE_OWNER,
        redisson::LEASE_TIME,
        redisson::TRY_LOCK,
        objects::FAIR,
        objects::FIVE_DEAD,
        objects::ALL_OR_NONE,
        objects::MOST_NODES,
        objects::READ_WRITE,
        objects::SEMAPHORE,
        objects::LATCH,
        text_001::SET_NX,
        text_001::DEL,
        text_001::LATE_DELETE,
        text_001::LATE_RENEWAL,
        text_001::READ_WRITE,
        text_001::DOWNGRADE,
        text_001::TWO_MASTERS,
        text_001::REDLOCK,
    ],
};

/// A key of an experiment's own.
fn own(name: &str) -> String {
    format!("course:{:08x}:{name}", fastrand::u32(..))
}

/// One command, as it is typed into `redis-cli`.
async fn ask<T: FromRedisValue>(
    redis: &mut MultiplexedConnection,
    line: &[&str],
) -> Result<T, NoVerdict> {
    let mut command = redis::Cmd::new();
    command
        .arg(line)
        .query_async(redis)
        .await
        .map_err(NoVerdict::failed)
}

/// Waits until there is such a key.
async fn until_there(redis: &mut MultiplexedConnection, key: &str) -> Result<(), NoVerdict> {
    let there = async {
        while !ask::<bool>(redis, &["EXISTS", key]).await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    };
    let there = tokio::time::timeout(Duration::from_secs(10), there).await;
    there.unwrap_or_else(|_| Err(NoVerdict::failed(format!("nobody writes {key}"))))
}
