//! Text 003: pauses beyond the lease, fencing, Redlock, deadlocks, limits.

mod locks;

use super::Chapter;
use crate::stock::Title;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "003",
    title: Title {
        zh: "锁的极限：失效、死锁、限流", en: "Where locks end: lost leases, deadlocks, limits"
    },
    lessons: &[
        locks::PAUSE,
        locks::SESSION,
        locks::RESTART,
        locks::CLOCK,
        locks::LATE_ANSWERS,
        locks::MASTER,
        locks::HEARTBEAT,
    ],
};
