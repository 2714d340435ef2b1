//! `RedisLock` and Java's `RLock`.

use super::exclusion::Kind;
use oversell_lock::redis::{RedisClient, RedisLock};

pub(crate) struct Plain;

impl Kind for Plain {
    const JAVA: &'static str = "lock";
    type Lock = RedisLock;

    fn lock(process: &RedisClient, name: &str) -> RedisLock {
        process.lock(name)
    }
}
