//! §3.4.2 The herd: one gives the lock back, and how many are woken?
//!
//! 1. Fifty wait in a queue of numbered nodes, each with a session of its own, and all watch the directory.
//! 2. One release after the other: 50 are woken, 49, 48 … and each time one of them gets in.
//!
//! On its cure each watches the node before its own: a release wakes one.
//!
//! Points: `woken`, with the number, for each release.
//!
//! Next: `queue_of_nodes.rs`.

use crate::bilingual::Bilingual;
use crate::{
    classroom::zk_herd::{self, Watch},
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Point},
};

const WAITERS: u16 = 50;

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: "zk-watch-parent",
        names: &[],
        store: None,
        run: |ctx, job| Box::pin(drain(ctx, job, Watch::Parent)),
    },
    Act {
        name: "zk-watch-predecessor",
        names: &[],
        store: None,
        run: |ctx, job| Box::pin(drain(ctx, job, Watch::Predecessor)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.4",
    title: Bilingual {
        zh: "羊群效应：放一次锁，叫醒几个",
        en: "The herd effect: how many does a release wake",
    },
    breaks: Bilingual {
        zh: "都盯着父节点：放一次锁，全部叫醒",
        en: "all watch the directory: each release wakes all of them",
    },
    cure: Bilingual {
        zh: "只盯前一个节点：放一次锁，叫醒一个",
        en: "each watches the node before its own: a release wakes one",
    },
    runs: ["zk-watch-parent", "zk-watch-predecessor"],
    ends: [
        Ends::saw(
            "50 49 48 … 2 1 0",
            "每次放锁叫醒几个：50 49 48 … 2 1 0",
            "woken at each release: 50 49 48 … 2 1 0",
        ),
        Ends::saw(
            "1 1 1 … 1 1 0",
            "每次放锁叫醒几个：1 1 1 … 1 1 0",
            "woken at each release: 1 1 1 … 1 1 0",
        ),
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let watched = if play.cured {
        ("前一个节点", "the node before its own")
    } else {
        ("父节点", "the directory")
    };
    play.step(
        format!("一个持有锁，{WAITERS} 个排队，每个都盯着{}", watched.0),
        format!(
            "one has the lock, {WAITERS} wait, and each watches {}",
            watched.1
        ),
    )
    .await?;
    let mut a = play.side(&[], 'A', play.other(0), act, None).await?;
    play.step(
        "一个一个放锁：每次叫醒几个",
        "one release after the other: how many each of them wakes",
    )
    .await?;
    a.ends().await?;
    let woken = play
        .log()
        .since(0)
        .into_iter()
        .filter(|event| event.event == "woken");
    let woken: Vec<_> = woken
        .filter_map(|event| Some(event.value?.as_str()?.to_owned()))
        .collect();
    if let (Some(first), Some(last)) = (woken.first_chunk::<3>(), woken.last_chunk::<3>()) {
        play.saw = format!("{} … {}", first.join(" "), last.join(" "));
    }
    Ok(())
}

/// Drains a queue.
async fn drain(ctx: &Ctx, job: &Job, watch: Watch) -> Result<Deducted, Error> {
    let drained = zk_herd::queue(ctx, WAITERS, job.wait_left(), watch).await?;
    for woken in drained.0 {
        job.tell(Point::Woken, woken).await;
    }
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: None,
    })
}
