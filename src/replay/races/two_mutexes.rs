//! §1.5, §1.6 One process's mutex keeps its own requests apart, and nobody else's.
//!
//! 1. A has locked the mutex of its instance, and has read.
//! 2. B comes to another instance, which has a mutex of its own: B gets in too, and reads the same.
//! 3. Both write 4999: two are sold, one is gone.
//!
//! On its cure both come to one instance: B waits for the one mutex. That is no cure for three instances: `row_lock.rs` is.
//!
//! What it survives: any number of requests to one instance. **What breaks it**: the second instance.
//!
//! Next: `row_lock.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "1.5",
    title: Bilingual {
        zh: "两台实例，两把锁",
        en: "Two instances, two mutexes",
    },
    breaks: Bilingual {
        zh: "锁在进程里，另一台有它自己的锁",
        en: "the mutex is the process's, and another has its own",
    },
    cure: Bilingual {
        zh: "都到一台实例：一把锁（1.5）",
        en: "both come to one instance: one mutex (1.5)",
    },
    runs: ["mutex", "mutex"],
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
    play.step(
        "A 拿到这台实例的锁，读库存",
        "A locks the mutex of its instance, and reads",
    )
    .await?;
    let mut a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    if play.cured {
        play.step(
            "B 来到同一台：锁被占着，等",
            "B comes to the same one: the mutex is taken, and B waits",
        )
        .await?;
        let mut b = play.waiting('B', 0, act).await?;
        play.step("A 写完", "A writes").await?;
        a.to(Point::Written).await?;
        play.step("A 放锁，B 才进来", "A unlocks, and B gets in after it")
            .await?;
        a.ends().await?;
        return b.ends().await.map(drop);
    }
    play.step(
        "B 来到另一台：那里的锁没人占",
        "B comes to another one: nobody has the mutex there",
    )
    .await?;
    let mut b = play.side_at(Point::Read, 'B', 1, act, None).await?;
    play.step("A 写回 4999", "A writes 4999").await?;
    a.ends().await?;
    play.step(
        "B 也写回 4999：卖了两件，只少了一件",
        "B writes 4999 too: two are sold, one is gone",
    )
    .await?;
    b.ends().await.map(drop)
}
