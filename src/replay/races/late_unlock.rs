//! [002] 误删: an order is late, and its unlock deletes the lock of the user's next one.
//!
//! 1. A, an order of another voucher by the same user, has taken longer than its lease: the lock is gone.
//! 2. B, the user's next order, has the lock, and finds no order.
//! 3. A unlocks by a `DEL` that looks at nothing: the lock is B's.
//! 4. C, one more order of the user, gets in, and finds no order either: one user has two orders.
//!
//! On its cure the lock says whose it is, and A leaves it: C is refused.
//!
//! What it survives: with an owner in it, nearly every late unlock. **What breaks it**: a lease that ends between GET and DEL:
//! `look_then_delete.rs`.
//!
//! Next: `forced.rs`.

use super::one_order::{FIXED_ID, LOCK, OWNER};
use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{
        Ends, Replay,
        acts::{Act, order},
        goods,
        play::Play,
    },
    seckill::voucher,
    section::{Deducted, Job, Point},
};

pub(super) const REPLAY: Replay = Replay {
    lesson: "002.late-unlock",
    title: Bilingual {
        zh: "迟到的释放删掉了别人的锁",
        en: "A late unlock deletes another's lock",
    },
    breaks: Bilingual {
        zh: "DEL 不看锁是谁的",
        en: "DEL does not look whose lock it is",
    },
    cure: Bilingual {
        zh: "锁里写上是谁的，释放前先看",
        en: "the lock says whose it is, and the unlock looks",
    },
    runs: [FIXED_ID.name, OWNER.name],
    ends: [
        Ends {
            sold: 2,
            gone: 2,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

pub(super) const LATE_FIXED_ID: Act = Act {
    name: "redis-lock-fixed-id of another voucher",
    names: LOCK,
    store: None,
    run: |ctx, job| Box::pin(late(ctx, job, FIXED_ID.name)),
};

pub(super) const LATE_OWNER: Act = Act {
    name: "redis-lock-owner of another voucher",
    names: LOCK,
    store: None,
    run: |ctx, job| Box::pin(late(ctx, job, OWNER.name)),
};

/// An order of a voucher of its own, under the lock of the same user.
async fn late(ctx: &Ctx, job: &Job, step: &str) -> Result<Deducted, Error> {
    let another = goods::on_sale(ctx).await?;
    let ordered = order(ctx, job, step, another).await;
    voucher::remove(ctx, another).await?;
    ordered
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let late = if play.cured {
        LATE_OWNER.name
    } else {
        LATE_FIXED_ID.name
    };
    let lease = play.lease(3000);
    play.step(
        "A 买另一张券：拿到这个人的锁，下了单，还没放锁",
        "A orders another voucher under the user's lock, and has not unlocked yet",
    )
    .await?;
    let mut a = play.side_at(Point::Unlock, 'A', 2, late, lease).await?;
    play.step("A 的租约到期，锁没了", "A's lease ends: its lock is gone")
        .await?;
    play.lease_ends().await?;
    play.step(
        "同一个人的 B 拿到锁，查：没有订单",
        "B, of the same user, takes the lock, and asks: no order",
    )
    .await?;
    let mut b = play
        .side_at(Point::Checked, 'B', 1, act, play.lease(10_000))
        .await?;
    if play.cured {
        play.step(
            "A 先看：锁是 B 的，不删",
            "A looks first: the lock is B's, and A leaves it",
        )
        .await?;
    } else {
        play.step("A 放锁：删掉的是 B 的", "A unlocks: what it deletes is B's")
            .await?;
    }
    a.ends().await?;
    if play.cured {
        play.step("同一个人的 C 被拒绝", "C, of the same user, is refused")
            .await?;
    } else {
        play.step(
            "同一个人的 C 也进来了，也下了单",
            "C, of the same user, gets in too, and has an order",
        )
        .await?;
    }
    play.side(&[], 'C', 0, act, play.lease(10_000))
        .await?
        .ends()
        .await?;
    play.step("B 写订单", "B writes its order").await?;
    b.ends().await.map(drop)
}
