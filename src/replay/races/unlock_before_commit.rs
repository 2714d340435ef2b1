//! [002] The mutex inside the transaction is given back before the commit.
//!
//! 1. A locks the mutex, reads 5000, writes 4999, unlocks. It has not committed yet.
//! 2. B locks the mutex, on the same instance, and reads: 5000, since what is not committed is invisible to a plain read.
//! 3. A commits; B writes 4999, and commits: two are sold, one is gone, and never were two under the mutex.
//!
//! On its cure the mutex is round the write and its commit: B reads what A has committed.
//!
//! What it survives: nothing. **What breaks it**: a lock must be wider than the transaction.
//!
//! Next: `one_order.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "002.unlock-before-commit",
    title: Bilingual {
        zh: "先解锁，后提交",
        en: "Unlock first, commit afterwards",
    },
    breaks: Bilingual {
        zh: "解锁与提交之间，别人读到的还是旧的",
        en: "between the unlock and the commit another reads what was there before",
    },
    cure: Bilingual {
        zh: "锁包住整个事务：提交以后才解锁",
        en: "the lock is wider than the transaction: commit, then unlock",
    },
    runs: ["mutex-commit-late", "mutex"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 1,
            ..Ends::NOTHING
        },
        Ends {
            sold: 2,
            gone: 2,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if play.cured {
        play.step(
            "A 拿到锁，读，写，也提交了；还没解锁",
            "A locks, reads, writes and commits; it has not unlocked yet",
        )
        .await?;
        let mut a = play.side_at(Point::Written, 'A', 0, act, None).await?;
        play.step("B 等锁", "B waits for the mutex").await?;
        let mut b = play.waiting('B', 0, act).await?;
        play.step("A 解锁，B 读到 4999", "A unlocks, and B reads 4999")
            .await?;
        a.ends().await?;
        return b.ends().await.map(drop);
    }
    play.step(
        "A 在事务里：拿到锁，读，写，解锁；还没提交",
        "A, in a transaction: locks, reads, writes, unlocks; it has not committed yet",
    )
    .await?;
    let mut a = play.side_at(Point::Released, 'A', 0, act, None).await?;
    play.step(
        "锁空着，B 拿到，读到的还是 5000",
        "the mutex is free: B locks it, and still reads 5000",
    )
    .await?;
    let mut b = play.side_at(Point::Read, 'B', 0, act, None).await?;
    b.heads_for_any(&[]);
    play.step("A 提交 4999", "A commits 4999").await?;
    a.ends().await?;
    play.step(
        "B 也写 4999、提交：卖了两件，只少了一件",
        "B writes 4999 too, and commits: two are sold, one is gone",
    )
    .await?;
    b.ends().await.map(drop)
}
