//! §1.8 The key has changed since WATCH: EXEC answers nil, and nothing was written.
//!
//! 1. A and B read the key, `GET`, and have not written yet.
//! 2. A sets 4999, and then B does.
//!
//! On its cure each watches the key before it reads. A's EXEC goes through; B's answers nil, since the key was written after
//! B's WATCH; B pauses and begins anew.
//!
//! What it survives: any number of instances, and holders that die. **What breaks it**: nothing; but the more there are, the
//! more of them hear nil.
//!
//! Next: `late_delete.rs`, where one at a time gets in.

use super::version_moved::both_write;
use crate::bilingual::Bilingual;
use crate::{
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Point, redis_polling},
    stock::Store,
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "1.8",
    title: Bilingual {
        zh: "EXEC 返回 nil",
        en: "EXEC answers nil",
    },
    breaks: Bilingual {
        zh: "没有 WATCH：SET 不问键变了没有",
        en: "without WATCH, SET does not ask whether the key has changed",
    },
    cure: Bilingual {
        zh: "WATCH，EXEC 得到 nil 就重来",
        en: "WATCH, and begin anew where EXEC answers nil",
    },
    runs: [WITHOUT_WATCH.name, "redis-watch"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 2,
            ..Ends::saw("retries 0", "重试 0 次", "0 retries")
        },
        Ends {
            sold: 2,
            gone: 2,
            ..Ends::saw("retries 1", "重试 1 次", "1 retry")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

/// `GET`, then `SET` of one less: a strategy's section without its lock.
pub(in crate::replay) const WITHOUT_WATCH: Act = Act {
    name: "get-then-set",
    names: &[],
    store: Some(Store::Redis),
    run: |ctx, job| Box::pin(redis_polling::read_then_write(ctx, job)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        if play.cured {
            "A 先 WATCH，再 GET"
        } else {
            "A GET"
        },
        if play.cured {
            "A: WATCH, then GET"
        } else {
            "A: GET"
        },
    )
    .await?;
    let a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    play.step("B 也一样", "and so does B").await?;
    let b = play.side_at(Point::Read, 'B', 1, act, None).await?;
    both_write(play, a, b).await
}
