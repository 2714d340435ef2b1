//! §1.7.2 A plain read locks nothing; `SELECT … FOR UPDATE` locks the row until the commit, for all instances.
//!
//! 1. A reads on one instance, B on another: a plain SELECT asks nobody.
//! 2. Both write 4999.
//!
//! On its cure the read itself takes the row's lock: B's read waits in the server until A has committed, and then reads 4999.
//!
//! What it survives: any number of instances. **What breaks it**: nothing; but who waits holds a connection.
//!
//! Next: `shared_lock.rs`, the weaker lock.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "1.7.2",
    title: Bilingual {
        zh: "读的时候就锁住那一行",
        en: "The read itself locks the row",
    },
    breaks: Bilingual {
        zh: "普通的 SELECT 不加锁",
        en: "a plain SELECT locks nothing",
    },
    cure: Bilingual {
        zh: "SELECT … FOR UPDATE：行锁到提交才放",
        en: "SELECT … FOR UPDATE: the row is locked until the commit",
    },
    runs: ["none", "select-for-update"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 2,
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
        return cured(play, act).await;
    }
    play.step("A 读库存，没有加锁", "A reads the stock, and locks nothing")
        .await?;
    let mut a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    play.step(
        "另一台上的 B 也读到 5000",
        "B, on another instance, reads 5000 too",
    )
    .await?;
    let mut b = play.side_at(Point::Read, 'B', 1, act, None).await?;
    play.step("两个都写回 4999", "both write 4999").await?;
    a.ends().await?;
    b.ends().await.map(drop)
}

/// A reads under the lock of the row, and B waits for it.
pub(super) async fn cured(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 用 FOR UPDATE 读：这一行锁住了",
        "A reads FOR UPDATE: the row is locked",
    )
    .await?;
    let mut a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    play.step(
        "另一台上的 B 也要读：在数据库里等",
        "B, on another instance, wants to read too: it waits in the database",
    )
    .await?;
    let mut b = play.waiting('B', 1, act).await?;
    play.step("A 写 4999", "A writes 4999").await?;
    a.to(Point::Written).await?;
    play.step(
        "A 提交，行锁放开，B 读到 4999",
        "A commits, the row is free, and B reads 4999",
    )
    .await?;
    a.ends().await?;
    b.ends().await.map(drop)
}
