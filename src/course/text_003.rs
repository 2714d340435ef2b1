//! Text 003: pauses beyond the lease, fencing, Redlock, deadlocks, limits.

mod deadlocks;
mod limits;
mod locks;
mod throughput;

use super::Chapter;
use crate::bilingual::Bilingual;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "003",
    title: Bilingual {
        zh: "锁的极限：失效、死锁、限流",
        en: "Where locks end: lost leases, deadlocks, limits",
    },
    lessons: &[
        throughput::QPS,
        throughput::STATIC,
        throughput::CACHE,
        throughput::BALANCE,
        limits::TOKEN_BUCKET,
        limits::EACH_INSTANCE,
        limits::QUEUED,
        limits::NO_DELAY,
        limits::CONNECTIONS,
        locks::PAUSE,
        locks::SESSION,
        locks::RESTART,
        locks::CLOCK,
        locks::LATE_ANSWERS,
        locks::MASTER,
        locks::HEARTBEAT,
        deadlocks::TABLE_LOCK,
        deadlocks::OPTIMISTIC,
        deadlocks::NO_INDEX,
        deadlocks::OPPOSITE_ORDER,
        deadlocks::SHARED_TO_EXCLUSIVE,
        deadlocks::FULL_SCAN,
        deadlocks::GAP,
        deadlocks::LOCK_WAIT,
    ],
};
