//! §4, §4.3 The holder of a row in `tb_lock` dies: its row stays.
//!
//! 1. A has inserted the row, has read, and is never heard of again.
//! 2. B cannot insert it, however long it waits.
//!
//! On its cure the row has the end of its lease in it. Nobody renews it for A, so it ends; B sweeps the row away, and gets in.
//!
//! (A's process goes on here: A stands still for good, and its lease is ended for it, since its watchdog would renew it.)
//!
//! What it survives: with the lease, a holder that dies. **What breaks it**: a holder that is not dead but paused, and then
//! writes.
//!
//! Next: `unlock_before_commit.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{
        Ends, Line, Replay,
        play::{Pace, Play},
    },
};
use std::time::Duration;

pub(super) const REPLAY: Replay = Replay {
    lesson: "4",
    title: Bilingual {
        zh: "持有者死了，那一行还在",
        en: "The holder dies, and its row stays",
    },
    breaks: Bilingual {
        zh: "没人删那一行，谁也插不进去",
        en: "nobody deletes the row, and nobody can insert it",
    },
    cure: Bilingual {
        zh: "行里写上租约，到期由后来者清掉（4.3）",
        en: "the row has a lease, and who comes later sweeps it away (4.3)",
    },
    runs: ["table-lock", "table-lock-lease"],
    ends: [
        Ends {
            inside: 1,
            ..Ends::saw("B does not get in", "B 进不去", "B does not get in")
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 插入了那一行：拿到锁",
        "A has inserted the row: the lock is its own",
    )
    .await?;
    let _dead = play
        .side_at(Point::Read, 'A', 2, act, Some(600_000))
        .await?;
    play.step("A 死了，行还在", "A dies, and its row stays")
        .await?;
    play.stage.died('A');
    if play.cured {
        play.step(
            "没人替 A 续约：租约到期",
            "nobody renews A's lease: it ends",
        )
        .await?;
        play.sights.end_leases().await?;
        play.step("B 清掉那一行，进来了", "B sweeps the row away, and gets in")
            .await?;
        return play
            .side(&[], 'B', 1, act, None)
            .await?
            .ends()
            .await
            .map(drop);
    }
    play.step(
        "B 插不进去，一直试",
        "B cannot insert it, and tries again and again",
    )
    .await?;
    let patience = Duration::from_millis(if play.pace == Pace::Fast { 300 } else { 3000 });
    let end = play
        .side_that_waits(patience, &[], 'B', 1, act, None)
        .await?
        .ends()
        .await?;
    if matches!(&end, Line::Failed { kind, .. } if kind == "not-had") {
        play.saw = "B does not get in".to_owned();
    }
    Ok(())
}
