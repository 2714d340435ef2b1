//! §2.5 The late delete once more, against the script that compares and deletes.
//!
//! 1. A has written, and has not deleted its lock yet; its lease ends.
//! 2. B takes the lock, and reads.
//! 3. A deletes the key, which is B's by now. C gets in beside B.
//!
//! On its cure A's script finds another's name in the key, and leaves it: `lost`. C waits until B is through.
//!
//! Next: `reentry.rs`.

use super::look_then_delete::late_unlock;
use crate::replay::{Ends, Replay};
use crate::{bilingual::Bilingual, section::Point};

const FLAWED: &str = "redis-setnx-ttl";

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.5",
    title: Bilingual {
        zh: "写完以后、删锁以前，租约到期",
        en: "The lease ends between the write and the delete",
    },
    breaks: Bilingual {
        zh: "DEL 不看锁是谁的",
        en: "DEL does not look whose lock it is",
    },
    cure: Bilingual {
        zh: "脚本先比较，是自己的才删",
        en: "a script compares, and deletes only its own",
    },
    runs: [FLAWED, "redis-setnx-lua"],
    ends: [
        Ends {
            sold: 3,
            gone: 2,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 3,
            gone: 3,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| {
        let step = (
            "A 还没删锁，租约到期",
            "the lease ends before A deletes the lock",
        );
        Box::pin(late_unlock(play, act, Point::Written, step, act == FLAWED))
    },
};
