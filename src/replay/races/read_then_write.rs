//! §1.3 Two read the same number, and both write one less.
//!
//! 1. A reads 5000, and has not written yet.
//! 2. B reads 5000 too.
//! 3. Both write 4999: two are sold, one is gone.
//!
//! On its cure, one statement that checks and writes, there is nothing between for B to come into.
//!
//! Next: `two_mutexes.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "1.3",
    title: Bilingual {
        zh: "两个人同时看到 5000",
        en: "Two read 5000 at the same time",
    },
    breaks: Bilingual {
        zh: "读与写之间，另一个人也读了",
        en: "between the read and the write another one reads",
    },
    cure: Bilingual {
        zh: "一条 UPDATE 里检查并扣减",
        en: "one UPDATE that checks and deducts",
    },
    runs: ["none", "single-update"],
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
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if act == "single-update" {
        return cured(play, act).await;
    }
    play.step("A 读库存", "A reads the stock").await?;
    let mut a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    play.step("A 还没写，B 也读", "A has not written yet, and B reads too")
        .await?;
    let mut b = play.side_at(Point::Read, 'B', 0, act, None).await?;
    play.step("A 写回 4999", "A writes 4999").await?;
    a.ends().await?;
    play.step(
        "B 也写回 4999：卖了两件，只少了一件",
        "B writes 4999 too: two are sold, one is gone",
    )
    .await?;
    b.ends().await.map(drop)
}

async fn cured(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 一条语句检查并扣减",
        "A checks and deducts in one statement",
    )
    .await?;
    play.side(&[], 'A', 0, act, None).await?.ends().await?;
    play.step(
        "B 也一样：中间插不进任何人",
        "and so does B: nobody fits in between",
    )
    .await?;
    play.side(&[], 'B', 0, act, None)
        .await?
        .ends()
        .await
        .map(drop)
}
