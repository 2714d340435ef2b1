//! `/test/zk/read`, `/write`, `/semaphore`, `/multi`, `/reentrant`: Curator's locks, to be tried from several browser
//! windows.

use super::{lesson, visit};
use crate::classroom::{zk_locks, zk_semaphore};

lesson!(
    /// Takes the read half of Curator's read-write lock and keeps it for ten seconds after the answer.
    read, "/test/zk/read", "/curator/rwlock", "测试读", "It has the read half, together with other readers", zk_locks::KEPT,
    zk_locks::read
);
lesson!(
    /// Takes the write half of Curator's read-write lock and keeps it for ten seconds after the answer.
    write, "/test/zk/write", "/curator/rwlock", "测试写", "It has the write half, alone", zk_locks::KEPT, zk_locks::write
);
lesson!(
    /// Five are inside at once, each for ten to twenty seconds; both ends are written to the Redis list `log`.
    semaphore, "/test/zk/semaphore", "/locks/semaphore", "hello Semaphore", "It was inside, and has left",
    zk_semaphore::stay(), zk_semaphore::visit
);
visit!(
    /// Takes three of Curator's locks as one.
    multi, "/test/zk/multi", "/curator/multi",
    "拿到 /curator/multi/1 #1\n拿到 /curator/multi/2 #2\n拿到 /curator/multi/3 #3\n放掉 /curator/multi/3 #3\n…", zk_locks::multi
);
visit!(
    /// Takes one of Curator's locks twice as one owner.
    reentrant, "/test/zk/reentrant", "/curator/reentrant",
    "拿到 /curator/reentrant #1\n拿到 /curator/reentrant #2\n放掉 /curator/reentrant #1\n…", zk_locks::reentrant
);
