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

use super::*;
use crate::{
    replay::act::{INITIAL_PIECES, USER_LOCK, place_order, put_voucher_on_sale},
    seckill::voucher,
    section::backstop::Backstop,
};

/// Orders another voucher under a lock that names no owner.
const LATE_FIXED_ID: Act = Act::custom("redis-lock-fixed-id of another voucher", USER_LOCK, |ctx, job| {
    Box::pin(order_another_voucher(ctx, job, "redis-lock-fixed-id"))
});
/// Orders another voucher under a lock that names its owner.
const LATE_OWNER: Act = Act::custom("redis-lock-owner of another voucher", USER_LOCK, |ctx, job| {
    Box::pin(order_another_voucher(ctx, job, "redis-lock-owner"))
});

/// A's lease ends, and B takes the lock and finds no order.
const B_GETS_IN: &[Step] = &[
    say("A 的租约到期，锁没了", "A's lease ends: its lock is gone"),
    LeaseEnds,
    say("同一个人的 B 拿到锁，查：没有订单", "B, of the same user, takes the lock, and asks: no order"),
    B.stops_at(Point::Checked),
];

pub(super) const RACE: Race = Race {
    lessons: &["002.late-unlock"],
    title: Bilingual::of("迟到的释放删掉了别人的锁", "A late unlock deletes another's lock"),
    breaks: Bilingual::of("DEL 不看锁是谁的", "DEL does not look whose lock it is"),
    cure: Bilingual::of("锁里写上持有者，释放前先判断", "the lock says whose it is, and the unlock looks"),
    anomalies: &[Anomaly::LateRelease, Anomaly::CheckThenAct],
    begin: &[say(
        "A 买另一张券：拿到这个人的锁，下了单，还没释放锁",
        "A orders another voucher under the user's lock, and has not unlocked yet",
    )],
    flaw: Variant {
        act: Act::Order("redis-lock-fixed-id"),
        steps: &[
            A.acting(LATE_FIXED_ID).lease(3000).stops_at(Point::Unlock),
            All(B_GETS_IN),
            say("A 释放锁：删掉的是 B 的", "A unlocks: what it deletes is B's"),
            A.finishes_and_unlocks(),
            say("同一个人的 C 也进来了，也下了单", "C, of the same user, gets in too, and has an order"),
            C.finishes(),
            say("B 写订单", "B writes its order"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(2),
    },
    cured: Variant {
        act: Act::Order("redis-lock-owner"),
        steps: &[
            A.acting(LATE_OWNER).lease(3000).stops_at(Point::Unlock),
            All(B_GETS_IN),
            say("A 先看：锁是 B 的，不删", "A looks first: the lock is B's, and A leaves it"),
            A.finishes_with_lock_lost(),
            say("同一个人的 C 被拒绝", "C, of the same user, is refused"),
            C.fails(),
            say("B 写订单", "B writes its order"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1),
    },
};

/// Puts another voucher on sale, orders it under the lock of the same user, and removes it.
async fn order_another_voucher(ctx: &Ctx, job: &Job, step: &str) -> Result<Deduction, Error> {
    let another = put_voucher_on_sale(ctx, INITIAL_PIECES).await?;
    let removed = ctx.clone();
    // Removes it even if the replay is cancelled.
    let goods = Backstop::new(ctx, async move { voucher::remove(&removed, another).await });
    let ordered = place_order(ctx, job, step, another, job.request.stock_id).await;
    goods.run_now().await.transpose()?;
    ordered
}
