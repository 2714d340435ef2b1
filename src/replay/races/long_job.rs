//! §2.6 → §2.7 A's job takes longer than its lease.
//!
//! 1. A has the lock, has read, and is busy. Its lease ends.
//! 2. B gets in, and reads the same number.
//! 3. Both write: two are sold, one is gone. A's unlock finds its lock lost.
//!
//! On its cure a timer begins the lease anew every third of it: B waits until A is through.
//!
//! Next: `late_renewal.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{
        Ends, Replay,
        play::{Pace, Play},
    },
};

const FLAWED: &str = "redis-reentrant";

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.7",
    title: Bilingual {
        zh: "业务比租约长",
        en: "A job longer than its lease",
    },
    breaks: Bilingual {
        zh: "租约到期，锁中途没了",
        en: "the lease ends, and the lock is gone in the middle",
    },
    cure: Bilingual {
        zh: "看门狗：每过三分之一就续一次",
        en: "a watchdog renews every third of the lease",
    },
    runs: [FLAWED, "redis-watchdog"],
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
            ..Ends::saw("renewed", "续期了", "it was renewed")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 拿到锁，读库存，然后一直忙",
        "A has the lock, reads the stock, and is busy",
    )
    .await?;
    if act == FLAWED {
        let mut a = play
            .side_at(Point::Read, 'A', 2, act, play.lease(3000))
            .await?;
        play.step("没人续期：租约到期", "nobody renews: the lease ends")
            .await?;
        play.lease_ends().await?;
        play.step("B 进来了，和 A 同时在里面", "B gets in beside A")
            .await?;
        let mut b = play
            .side_at(Point::Read, 'B', 1, act, play.lease(10_000))
            .await?;
        play.step(
            "A 写完才发现：锁早已不是它的",
            "A writes, and finds its lock lost",
        )
        .await?;
        a.ends().await?;
        play.step("B 写的是同一个数", "B writes the same number")
            .await?;
        return b.ends().await.map(drop);
    }
    // The course's 3 s at every pace: a renewal that a busy machine delays by two thirds of it still comes in time.
    let mut a = play.side_at(Point::Read, 'A', 2, act, Some(3000)).await?;
    play.step("B 在等", "B waits").await?;
    let mut b = play
        .side_at(Point::Refused, 'B', 1, act, play.lease(10_000))
        .await?;
    play.step(
        "定时器每过三分之一就把租约续满",
        "a timer begins the lease anew every third of it",
    )
    .await?;
    // So long that at a slow pace the first lease would be over.
    a.passes(Point::Renewed, if play.pace == Pace::Slow { 4 } else { 1 })
        .await?;
    "renewed".clone_into(&mut play.saw);
    play.step(
        "锁还是 A 的：A 写完，放锁",
        "the lock is still A's, who writes and releases",
    )
    .await?;
    a.ends().await?;
    play.step("然后 B 才进来", "and then B gets in").await?;
    b.ends().await.map(drop)
}
