//! [003] The holder's process stands still for longer than its lease, and then writes what it had worked out before.
//!
//! 1. A has the lock, and has read; its process is stopped (SIGSTOP), as by a long garbage collection.
//! 2. Nobody renews the lease: it ends. B takes the lock, reads and writes.
//! 3. A goes on, believes that the lock is its own, and writes over B.
//!
//! On its cure both show a token to the row. B's is higher; the row refuses A's write, and A has sold nothing. That two were
//! inside is not cured by that: no lock with a lease can.
//!
//! **What it cannot do** without a lab: stop a process. There A's request stands still and its process does not, so the
//! lease is ended here.
//!
//! Next: `paused_session.rs`, the same in ZooKeeper.

use crate::{bilingual::Bilingual, section::Point};
use crate::{
    error::Error,
    replay::{Ends, Replay, play::Play},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "003.pause",
    title: Bilingual {
        zh: "持有者停得比租约还久",
        en: "A holder that is paused beyond its lease",
    },
    breaks: Bilingual {
        zh: "醒来以后还以为锁是自己的，照样写",
        en: "it wakes, believes that the lock is its own, and writes",
    },
    cure: Bilingual {
        zh: "栅栏令牌：行只认更大的，拒绝旧的",
        en: "a fencing token: the row refuses the older one",
    },
    runs: ["redis-lock", "redis-fenced"],
    ends: [
        Ends {
            sold: 2,
            gone: 1,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 2,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step("A 拿到锁，读库存", "A has the lock, and reads the stock")
        .await?;
    let mut a = play
        .side_at(Point::Read, 'A', play.other(1), act, play.lease(3000))
        .await?;
    let stands_still = play.pause(&a).await?;
    let step = if stands_still {
        (
            "A 的进程停住了（SIGSTOP）：没人续期，租约到期",
            "A's process is stopped (SIGSTOP): the lease is not renewed, and ends",
        )
    } else {
        (
            "A 的请求停住了；这里没有 lab，租约由我们结束",
            "A's request stands still; no lab is here, so its lease is ended for it",
        )
    };
    play.step(step.0, step.1).await?;
    play.unrenewed_lease_ends(stands_still).await?;
    play.step("B 拿到锁，读", "B takes the lock, and reads")
        .await?;
    let mut b = play
        .side_at(Point::Read, 'B', play.other(0), act, play.lease(10_000))
        .await?;
    play.step("B 写完，放锁", "B writes, and releases").await?;
    b.ends().await?;
    play.step(
        "A 醒了，不知道锁已经没了，接着写",
        "A wakes, does not know that its lock is gone, and writes",
    )
    .await?;
    play.resume(&a).await?;
    a.ends().await.map(drop)
}
