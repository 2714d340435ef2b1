//! §2.2 → §2.3 A's job outlives its lease, and then A deletes what is there: B's lock.
//!
//! 1. A has the lock, has read, and works longer than its lease.
//! 2. The lease ends; B takes the lock, and reads.
//! 3. A writes, and deletes the key, which is B's by now.
//! 4. C gets in beside B.
//!
//! On its cure A looks first whose key it is, and leaves it: C waits until B is through. That A and B were both inside is
//! not cured by that: §2.7 is.
//!
//! Next: `look_then_delete.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.2",
    title: Bilingual {
        zh: "迟到的 DEL 删掉了别人的锁",
        en: "A late DEL deletes another's lock",
    },
    breaks: Bilingual {
        zh: "业务比租约长，DEL 不看锁是谁的",
        en: "the job outlives its lease, and DEL does not look",
    },
    cure: Bilingual {
        zh: "锁里写上是谁的，删之前先看（2.3）",
        en: "the key names its owner, who looks first (2.3)",
    },
    runs: ["redis-setnx-ttl", "redis-setnx-owner"],
    ends: [
        Ends {
            sold: 3,
            gone: 1,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 3,
            gone: 2,
            inside: 2,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let lease = play.lease(3000);
    play.step(
        "A 拿到锁，读库存，然后一直忙",
        "A has the lock, reads the stock, and is busy",
    )
    .await?;
    let mut a = play.side_at(Point::Read, 'A', 2, act, lease).await?;
    play.step(
        "A 的租约到期：锁没了，A 还在忙",
        "A's lease ends: its lock is gone, and A is still busy",
    )
    .await?;
    play.lease_ends().await?;
    play.step("B 拿到锁，也读", "B takes the lock, and reads too")
        .await?;
    let mut b = play
        .side_at(Point::Read, 'B', 1, act, play.lease(10_000))
        .await?;
    play.step("C 在等", "C waits").await?;
    let mut c = play
        .side_at(Point::Refused, 'C', 0, act, play.lease(10_000))
        .await?;
    play.step("A 写完，删锁", "A writes, and deletes the lock")
        .await?;
    a.ends().await?;
    if act == "redis-setnx-ttl" {
        play.step(
            "删的是 B 的锁：C 进来了，和 B 同时在里面",
            "it was B's: C gets in beside B",
        )
        .await?;
        c.ends().await?;
        play.step("B 写完：把 C 卖的也盖掉了", "B writes over what C has sold")
            .await?;
        b.ends().await.map(drop)
    } else {
        play.step(
            "锁是 B 的，A 不删；B 写完",
            "the lock is B's, and A leaves it; B writes",
        )
        .await?;
        b.ends().await?;
        play.step("B 放锁以后，C 才进来", "C gets in after B")
            .await?;
        c.ends().await.map(drop)
    }
}
