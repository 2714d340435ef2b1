//! §2.3 → §2.5 The lease ends between the look (GET) and the delete (DEL).
//!
//! 1. A has written, and GET says that the lock is its own.
//! 2. The lease ends; B takes the lock, and reads.
//! 3. A deletes the key, which is B's by now.
//! 4. C gets in beside B.
//!
//! On its cure both are one script: nothing comes between.
//!
//! Next: `count_to_three.rs`.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.3",
    title: Bilingual {
        zh: "租约在 GET 和 DEL 之间到期",
        en: "The lease ends between GET and DEL",
    },
    breaks: Bilingual {
        zh: "看和删是两条命令",
        en: "the look and the delete are two commands",
    },
    cure: Bilingual {
        zh: "一段脚本里比较并删除（2.5）",
        en: "compare and delete in one script (2.5)",
    },
    runs: ["redis-setnx-owner", "redis-setnx-lua"],
    ends: [
        Ends {
            sold: 3,
            gone: 2,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 3,
            gone: 3,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if act == "redis-setnx-owner" {
        let step = (
            "GET 说锁是 A 的；这时租约到期",
            "GET says that the lock is A's; then the lease ends",
        );
        late_unlock(play, act, Point::Checked, step, true).await
    } else {
        // Where it is one script, the last point before it is after the write.
        let step = (
            "A 还没删锁，租约到期",
            "the lease ends before A deletes the lock",
        );
        late_unlock(play, act, Point::Written, step, false).await
    }
}

/// A stands at this point, with nothing left to do but delete its lock, when its lease ends. Where that is flawed, C then
/// gets in beside B.
pub(super) async fn late_unlock(
    play: &mut Play,
    act: &'static str,
    before_the_delete: Point,
    step: (&'static str, &'static str),
    flawed: bool,
) -> Result<(), Error> {
    play.step("A 拿到锁，读，写", "A has the lock, reads, and writes")
        .await?;
    let mut a = play
        .side_at(before_the_delete, 'A', 2, act, play.lease(3000))
        .await?;
    play.step(step.0, step.1).await?;
    play.lease_ends().await?;
    play.step("B 拿到锁，读", "B takes the lock, and reads")
        .await?;
    let mut b = play
        .side_at(Point::Read, 'B', 1, act, play.lease(10_000))
        .await?;
    play.step("C 在等", "C waits").await?;
    let mut c = play
        .side_at(Point::Refused, 'C', 0, act, play.lease(10_000))
        .await?;
    if flawed {
        play.step("A 的 DEL 删掉了 B 的锁", "A's DEL deletes B's lock")
            .await?;
        a.ends().await?;
        play.step("C 进来了，和 B 同时在里面", "C gets in beside B")
            .await?;
        c.ends().await?;
        play.step("B 写完：把 C 卖的盖掉了", "B writes over what C has sold")
            .await?;
        b.ends().await.map(drop)
    } else {
        play.step(
            "A 的脚本比较：不是它的，不删",
            "A's script compares: it is not A's, and stays",
        )
        .await?;
        a.ends().await?;
        play.step("B 写完，放锁", "B writes, and releases").await?;
        b.ends().await?;
        play.step("然后 C 才进来", "and then C gets in").await?;
        c.ends().await.map(drop)
    }
}
