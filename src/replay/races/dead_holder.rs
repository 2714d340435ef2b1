//! §2.1 → §2.2 The holder dies, and its key stays for ever.
//!
//! 1. A has the lock, and dies: for Redis and for all others it never goes on.
//! 2. B tries again and again, and gives up.
//!
//! On its cure the key has a lease, which ends: B gets in. What A has not written is not sold.
//!
//! Next: `late_delete.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{
        Ends, Replay,
        actor::Line,
        play::{Pace, Play, gone_wrong},
    },
};
use std::time::Duration;

const FLAWED: &str = "redis-setnx";

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.1",
    title: Bilingual {
        zh: "持有者死了，谁也进不去",
        en: "The holder dies, and nobody gets in",
    },
    breaks: Bilingual {
        zh: "没人删的键永远在",
        en: "a key that nobody deletes stays for ever",
    },
    cure: Bilingual {
        zh: "加锁时就带上过期时间（2.2）",
        en: "the key is written with a lease (2.2)",
    },
    runs: [FLAWED, "redis-setnx-ttl"],
    ends: [
        Ends {
            inside: 1,
            ..Ends::saw("B gives up", "B 等不到，放弃了", "B gives up")
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 1,
            ..Ends::saw("B gets in", "B 进去了", "B gets in")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step("A 拿到锁，读库存", "A has the lock, and reads the stock")
        .await?;
    let a = play
        .side_at(Point::Read, 'A', 2, act, play.lease(3000))
        .await?;
    play.step(
        "A 死了：没有人会删它的锁",
        "A dies: nobody will delete its lock",
    )
    .await?;
    play.dies(&a, act);
    play.step("B 在等", "B waits").await?;
    // Longer than the lease that the cure would have.
    let wait = Duration::from_millis(if play.pace == Pace::Slow { 4000 } else { 200 });
    let wait = if act == FLAWED {
        wait
    } else {
        Duration::from_secs(20)
    };
    let mut b = play
        .side_that_waits(wait, &[Point::Refused], 'B', 1, act, play.lease(10_000))
        .await?;
    b.at(Point::Refused).await?;
    if act == FLAWED {
        play.step(
            "这个键没有过期时间：B 再等也没用",
            "the key has no lease: B waits for nothing",
        )
        .await?;
        let end = b.ends().await?;
        let gave_up = matches!(&end, Line::Failed { kind, .. } if kind == "not-had");
        play.saw = gave_up
            .then(|| "B gives up".to_owned())
            .ok_or_else(|| gone_wrong(format!("B: {end:?}")))?;
    } else {
        play.step(
            "租约到期，锁自己没了",
            "the lease ends, and the lock is gone by itself",
        )
        .await?;
        play.lease_ends().await?;
        play.step("B 进来了", "B gets in").await?;
        b.ends().await?;
        "B gets in".clone_into(&mut play.saw);
    }
    Ok(())
}
