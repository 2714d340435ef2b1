//! §3.7.3 Two read and one writes: who has to wait for whom?
//!
//! 1. Under one exclusive lock the reader B waits for the reader A, though neither changes anything.
//! 2. C, who writes, waits for both.
//!
//! On its cure, the read-write lock, A and B are inside together; C waits until both have gone. A writer may read besides
//! (a downgrade); a reader that wants to write is refused at once, since it would wait for itself.
//!
//! Points: `locked`, `downgraded`, `upgrade-refused`.
//!
//! Next: `zk_barriers.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, LockState, Name, Point},
};
use oversell_lock::{Guard, Lock};
use std::time::Duration;

const LOCK: &str = "/curator/rwlock";
const NAMES: &[Name] = &[Name::ZooKeeper(LOCK)];

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: "zk-exclusive",
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(alone(ctx, job)),
    },
    Act {
        name: "zk-read",
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(read(ctx, job)),
    },
    Act {
        name: "zk-write-half",
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(write(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.7.3",
    title: Bilingual {
        zh: "两个读，一个写",
        en: "Two read, one writes",
    },
    breaks: Bilingual {
        zh: "只有一把独占锁：读的也要等读的",
        en: "one exclusive lock: readers wait for readers",
    },
    cure: Bilingual {
        zh: "读写锁：读的一起读，写的独占",
        en: "a read-write lock: readers together, a writer alone",
    },
    runs: ["zk-exclusive", "zk-read"],
    ends: [
        Ends {
            inside: 1,
            ..Ends::saw(
                "A B C",
                "进去的顺序：A B C",
                "they got in in the order A B C",
            )
        },
        Ends {
            inside: 2,
            ..Ends::saw(
                "A B C, upgrade refused, downgraded",
                "进去的顺序：A B C；读锁升级成写锁被拒绝，写锁降级成读锁可以",
                "they got in in the order A B C; the upgrade to a write lock is refused, the downgrade to a read lock is not",
            )
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let writes = if play.cured { "zk-write-half" } else { act };
    play.step("A 在读", "A reads").await?;
    let mut a = play.side_at(Point::Locked, 'A', 2, act, None).await?;
    let mut b = play.side(&[Point::Locked], 'B', 1, act, None).await?;
    if play.cured {
        play.step(
            "B 也来读：和 A 一起",
            "B comes to read too: together with A",
        )
        .await?;
        b.at(Point::Locked).await?;
        play.step(
            "C 要写：等所有读的走完",
            "C wants to write: it waits until all readers have gone",
        )
        .await?;
    } else {
        play.step("B 也来读：等 A", "B comes to read too: it waits for A")
            .await?;
        play.queued(1).await?;
        play.step("C 要写：排在后面", "C wants to write: behind them")
            .await?;
    }
    let mut c = play.side(&[Point::Locked], 'C', 0, writes, None).await?;
    play.queued(2).await?;
    play.step("A 读完", "A has read").await?;
    a.ends().await?;
    b.at(Point::Locked).await?;
    play.step("B 读完", "B has read").await?;
    b.ends().await?;
    c.at(Point::Locked).await?;
    play.step("C 独自写", "C writes, alone").await?;
    c.ends().await?;
    play.saw = play.stage.order();
    if play.cured {
        let events = play.log().since(0);
        let was = |what: &str| events.iter().any(|event| event.event == what);
        for (what, words) in [
            ("upgrade-refused", ", upgrade refused"),
            ("downgraded", ", downgraded"),
        ] {
            play.saw += if was(what) { words } else { "" };
        }
    }
    Ok(())
}

async fn alone(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let guard = ctx
        .zk
        .lock(&job.zk_path(LOCK))
        .acquire(job.wait_left())
        .await?;
    job.at(Point::Locked).await;
    given_back(job, guard).await
}

async fn read(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let (lock, owner) = (ctx.zk.rw_lock(&job.zk_path(LOCK)), job.owner(ctx));
    let guard = lock.read().owner(owner).acquire(job.wait_left()).await?;
    job.at(Point::Locked).await;
    if lock
        .write()
        .owner(owner)
        .acquire(Duration::ZERO)
        .await
        .is_err()
    {
        job.at(Point::UpgradeRefused).await;
    }
    given_back(job, guard).await
}

async fn write(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let (lock, owner) = (ctx.zk.rw_lock(&job.zk_path(LOCK)), job.owner(ctx));
    let guard = lock.write().owner(owner).acquire(job.wait_left()).await?;
    job.at(Point::Locked).await;
    let reading = lock.read().owner(owner).acquire(job.wait_left()).await?;
    job.at(Point::Downgraded).await;
    guard.release().await?;
    given_back(job, reading).await
}

async fn given_back(job: &Job, guard: Guard) -> Result<Deducted, Error> {
    job.at(Point::Left).await;
    guard.release().await?;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: Some(LockState::Kept),
    })
}
