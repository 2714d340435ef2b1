//! §2.5 The late delete once more, against the script that compares and deletes.
//!
//! 1. A has written, and has not deleted its lock yet; its lease ends.
//! 2. B takes the lock, and reads.
//! 3. A deletes the key, which is B's by now. C gets in beside B.
//!
//! On its cure A's script finds another's name in the key, and leaves it: `lost`. C waits until B is through.
//!
//! Next: `reentry.rs`.

use super::look_then_delete::{A_DELETES_LOCK_OF_B, A_LEAVES_LOCK_OF_B, LEASE_ENDS_BEFORE_DELETE};
use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["2.5"],
    title: Bilingual::of("写完以后、删锁以前，租约到期", "The lease ends between the write and the delete"),
    breaks: Bilingual::of("DEL 不看锁是谁的", "DEL does not look whose lock it is"),
    cure: Bilingual::of("脚本先比较，是自己的才删", "a script compares, and deletes only its own"),
    anomalies: &[Anomaly::LateRelease, Anomaly::LostUpdate],
    begin: &[All(LEASE_ENDS_BEFORE_DELETE)],
    flaw: Variant {
        act: Act::Strategy("redis-setnx-ttl"),
        steps: &[All(A_DELETES_LOCK_OF_B)],
        expected: ExpectedResult::sold(3, 2).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-setnx-lua"),
        steps: &[All(A_LEAVES_LOCK_OF_B)],
        expected: ExpectedResult::sold(3, 3).inside(1),
    },
};
