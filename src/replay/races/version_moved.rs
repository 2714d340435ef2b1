//! §1.7.3 The row's version has moved since it was read: the write changes nothing, and is tried anew.
//!
//! 1. A and B read the same row.
//! 2. A writes; B writes over it.
//!
//! On its cure each write says which version it has read. A's moves the version; B's finds another one, changes no row, and B
//! reads anew: 4999.
//!
//! What it survives: any number of instances, and holders that die. **What breaks it**: nothing; but of all who have read one
//! version only one gets through.
//!
//! Next: `exec_nil.rs`, the same idea in Redis.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{
        Ends, Replay,
        play::{Play, Side, retries},
    },
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "1.7.3",
    title: Bilingual {
        zh: "版本号变了，重来",
        en: "The version has moved: try anew",
    },
    breaks: Bilingual {
        zh: "写的时候不问有没有人先写了",
        en: "the write does not ask whether another was first",
    },
    cure: Bilingual {
        zh: "版本号没变才写，变了就重读",
        en: "write only if the version still stands, else read anew",
    },
    runs: ["none", "version-cas"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 2,
            ..Ends::saw("retries 0", "重试 0 次", "0 retries")
        },
        Ends {
            sold: 2,
            gone: 2,
            ..Ends::saw("retries 1", "重试 1 次", "1 retry")
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step("A 读", "A reads").await?;
    let a = play.side_at(Point::Read, 'A', 0, act, None).await?;
    play.step("另一台上的 B 也读", "B, on another instance, reads too")
        .await?;
    let b = play.side_at(Point::Read, 'B', 1, act, None).await?;
    both_write(play, a, b).await
}

/// A writes first, and then B, which has read before.
pub(super) async fn both_write(play: &mut Play, mut a: Side, mut b: Side) -> Result<(), Error> {
    play.step("A 写", "A writes").await?;
    let a = a.ends().await?;
    if play.cured {
        play.step(
            "B 写不成：它读过以后有人写了",
            "B's write changes nothing: another wrote after B had read",
        )
        .await?;
        b.to(Point::Conflict).await?;
        play.step("B 重新读，再写", "B reads anew, and writes")
            .await?;
    } else {
        play.step("B 也写：盖掉了 A 的", "B writes over it").await?;
    }
    let b = b.ends().await?;
    play.saw = format!("retries {}", retries(&a) + retries(&b));
    Ok(())
}
