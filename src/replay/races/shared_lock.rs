//! §1.7.2, [003] Two read under a shared lock, and both want to write: a deadlock.
//!
//! 1. A and B read under `LOCK IN SHARE MODE`: both may.
//! 2. A wants to write, and waits until B's shared lock is gone. B wants to write, and waits until A's is.
//! 3. The server sees the circle and rolls one of them back, which begins anew.
//!
//! On its cure they read `FOR UPDATE`: B waits before it has read, and nobody is rolled back.
//!
//! What it survives: nothing is oversold, with the cure or without. **What breaks it**: the price: work is thrown away.
//!
//! Next: `version_moved.rs`, which locks nothing.

use super::row_lock;
use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{
        Ends, Replay,
        play::{Play, retries},
    },
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "1.7.2.shared",
    title: Bilingual {
        zh: "共享锁升级：互相等待",
        en: "Shared locks that both want to become exclusive",
    },
    breaks: Bilingual {
        zh: "都拿着共享锁，都等对方放",
        en: "both have the shared lock, and wait for the other's",
    },
    cure: Bilingual {
        zh: "要写的，一开始就用 FOR UPDATE 读",
        en: "who is going to write reads FOR UPDATE",
    },
    runs: ["select-share", "select-for-update"],
    ends: [
        Ends {
            sold: 2,
            gone: 2,
            inside: 2,
            ..Ends::saw("retries 1", "重试 1 次", "1 retry")
        },
        Ends {
            sold: 2,
            gone: 2,
            inside: 1,
            ..Ends::saw("retries 0", "重试 0 次", "0 retries")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if play.cured {
        play.saw = "retries 0".to_owned();
        return row_lock::cured(play, act).await;
    }
    play.step("A 用共享锁读", "A reads under a shared lock")
        .await?;
    let mut a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    play.step(
        "B 也用共享锁读：可以同时",
        "B reads under a shared lock too: both may",
    )
    .await?;
    let mut b = play.side_at(Point::Read, 'B', 1, act, None).await?;
    play.step(
        "A 要写：等 B 放共享锁",
        "A wants to write, and waits for B's shared lock",
    )
    .await?;
    a.heads_for_any(&[]);
    play.step(
        "B 也要写：死锁。数据库回滚其中一个，它从头再来",
        "B wants to write too: a deadlock. The server rolls one back, which begins anew",
    )
    .await?;
    let (a, b) = tokio::try_join!(a.ends(), b.ends())?;
    play.saw = format!("retries {}", retries(&a) + retries(&b));
    Ok(())
}
