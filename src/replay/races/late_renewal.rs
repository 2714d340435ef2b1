//! [001] 2.2.1.3 → §2.7 A's timer goes off after A's lease has ended.
//!
//! 1. A has the lock, has written, and stands still with its timer. Its lease ends.
//! 2. B takes the lock with a long lease, and reads. C waits.
//! 3. A's timer sends PEXPIRE for the key, which is B's by now: B has A's short lease from then on. It ends, and C gets in
//!    beside B.
//!
//! On its cure the renewal is a script that looks first whose lock it is: B's lease stays as it is.
//!
//! Next: `queue_order.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{
        Ends, Replay,
        acts::Act,
        play::{Pace, Play},
    },
    section::{Deducted, Job, Name, Point, Points, redis_polling as stage},
    stock::{Reentrant, Store},
};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

const FLAWED: &str = "redis-watchdog-blind";
/// The same lock as that of its cure.
const LOCK: &str = "lock:redis-watchdog";

pub(in crate::replay) const ACTS: &[Act] = &[Act {
    name: FLAWED,
    names: &[Name::Redis(LOCK)],
    store: Some(Store::Redis),
    run: |ctx, job| Box::pin(blind(ctx, job)),
}];

pub(super) const REPLAY: Replay = Replay {
    lesson: "001.renewal",
    title: Bilingual {
        zh: "迟到的续期续了别人的锁",
        en: "A late renewal is for another's lock",
    },
    breaks: Bilingual {
        zh: "EXPIRE 不看锁是谁的",
        en: "EXPIRE does not look whose lock it is",
    },
    cure: Bilingual {
        zh: "脚本先看是谁的，再续期",
        en: "a script looks whose it is, and then renews",
    },
    runs: [FLAWED, "redis-watchdog"],
    ends: [
        Ends {
            sold: 3,
            gone: 2,
            inside: 2,
            ..Ends::saw(
                "B's lease is cut",
                "B 的租约被改短了",
                "B's lease is cut short",
            )
        },
        Ends {
            sold: 3,
            gone: 3,
            inside: 1,
            ..Ends::saw(
                "B's lease is kept",
                "B 的租约没有动",
                "B's lease stays as it was",
            )
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

/// The lock of §2.7, but for its timer, which is the text's.
async fn blind(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let Reentrant { key, lease, .. } = Reentrant::new(ctx, job, LOCK);
    let held = stage::lock(ctx, job, Reentrant::new(ctx, job, LOCK)).await?;
    let timer = AbortOnDropHandle::new(tokio::spawn(renew(
        ctx.clone(),
        key,
        lease,
        job.seen.points().clone(),
    )));
    let section = async {
        let outcome = stage::read_then_write(ctx, job).await;
        drop(timer);
        outcome
    };
    stage::under(held, section).await
}

/// Renews whatever lock the key is by then.
async fn renew(ctx: Ctx, key: String, lease: u64, points: Points) {
    loop {
        tokio::time::sleep(Duration::from_millis(lease / 3)).await;
        points.at(Point::Renew).await;
        let renewed = redis::cmd("PEXPIRE")
            .arg(&key)
            .arg(lease)
            .exec_async(&mut ctx.redis.connection())
            .await;
        points.at(Point::Renewed).await;
        if let Err(error) = renewed {
            tracing::warn!(%error, key, "not renewed");
        }
    }
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    // Short at every pace, so that its timer comes soon.
    let short = if play.pace == Pace::Slow { 3000 } else { 600 };
    play.step(
        "A 拿到锁，写完，然后整个停住",
        "A has the lock, writes, and then stands still",
    )
    .await?;
    let mut a = play
        .side(&[Point::Written, Point::Renew], 'A', 2, act, Some(short))
        .await?;
    a.at(Point::Written).await?;
    a.at(Point::Renew).await?;
    play.step("A 的租约到期", "A's lease ends").await?;
    play.lease_ends().await?;
    play.step(
        "B 拿到锁，租约很长；C 在等",
        "B takes the lock with a long lease; C waits",
    )
    .await?;
    let mut b = play
        .side_at(Point::Read, 'B', 1, act, play.lease(60_000))
        .await?;
    let mut c = play
        .side_at(Point::Refused, 'C', 0, act, play.lease(10_000))
        .await?;
    play.step("A 的定时器醒了，去续期", "A's timer wakes, and renews")
        .await?;
    a.heads_for_any(&[Point::Written, Point::Renewed]);
    a.at(Point::Renewed).await?;
    let left = play.lease_left().await?;
    if left <= Some(short.cast_signed()) {
        "B's lease is cut".clone_into(&mut play.saw);
        play.step(
            "B 的租约被改成了 A 的：很快到期",
            "B's lease is A's from now on, and soon ends",
        )
        .await?;
        play.lease_ends().await?;
        play.step("C 进来了，和 B 同时在里面", "C gets in beside B")
            .await?;
        c.ends().await?;
        play.step("B 写完：把 C 卖的盖掉了", "B writes over what C has sold")
            .await?;
        b.ends().await?;
    } else {
        "B's lease is kept".clone_into(&mut play.saw);
        play.step(
            "脚本看到锁不是 A 的：不续",
            "the script finds another's lock, and renews nothing",
        )
        .await?;
        b.ends().await?;
        play.step("B 放锁以后，C 才进来", "C gets in after B")
            .await?;
        c.ends().await?;
    }
    a.ends().await.map(drop)
}
