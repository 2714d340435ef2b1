//! §3.5 as printed: one count for the locks of all names.
//!
//! 1. B has the lock of the stock, and has read.
//! 2. A takes the lock of its user: nobody has that one. Inside it takes the lock of the stock. Its count is 1 already, so it
//!    is let in, beside B.
//!
//! On its cure each lock has a count of its own, and A waits for B.
//!
//! Next: `zk_number_zero.rs`, what the printed locks of ZooKeeper have in common.

use super::*;
use crate::stock::{self, THREAD_LOCAL, reentrant_as_printed, run_locked_as_printed};
use std::cell::Cell;

/// The path of the user's lock.
const USER: &str = "/distributed/zk-user";

pub(super) const RACE: Race = Race {
    lessons: &["3.5.printed"],
    title: Bilingual::of("拿着用户锁，直接进了库存锁", "With the lock of a user, into the lock of the stock"),
    breaks: Bilingual::of(
        "静态的 THREAD_LOCAL：所有的锁共用一个计数",
        "a static THREAD_LOCAL: one count for the locks of all names",
    ),
    cure: Bilingual::of("每把锁各记各的", "each lock has a count of its own"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[say("B 拿到库存锁，读库存", "B has the lock of the stock, and reads"), B.stops_at(Point::Read)],
    flaw: Variant {
        act: Act::Strategy("zk-reentrant-as-printed"),
        steps: &[
            say(
                "A 拿到用户锁，再要库存锁：计数已经是 1，直接放行",
                "A has the lock of a user, and takes that of the stock: its count is 1, and it is let in",
            ),
            A.acting(TAKE_BOTH_AS_PRINTED).stops_at(Point::Read),
            say("B 写 4999，A 也写 4999", "B writes 4999, and so does A"),
            B.finishes(),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("zk-reentrant"),
        steps: &[
            say("A 有了用户锁，再要库存锁：等 B", "A has the lock of a user, and asks for that of the stock, which B has"),
            A.acting(TAKE_BOTH).will_stop_at(Point::Read),
            QueueHas(1),
            say("B 写 4999，释放锁", "B writes 4999, and releases"),
            B.finishes(),
            say("A 才进来", "A gets in after it"),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1),
    },
};

/// A's act in the flaw.
const TAKE_BOTH_AS_PRINTED: Act =
    Act::custom_selling(Store::MySql, "zk-two-locks-as-printed", &[Name::ZooKeeper(USER)], |ctx, job| {
        Box::pin(THREAD_LOCAL.scope(Cell::new(0), take_both_as_printed(ctx, job)))
    });
/// A's act on the cure.
const TAKE_BOTH: Act =
    Act::custom_selling(Store::MySql, "zk-two-locks", &[Name::ZooKeeper(USER)], |ctx, job| Box::pin(take_both(ctx, job)));

/// Takes the lock of the user and then that of the product, as printed, and sells a piece.
async fn take_both_as_printed(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let user = job.zk_path(USER) + "/lock-";
    run_locked_as_printed(ctx, job, &user, || Box::pin(reentrant_as_printed(ctx, job))).await
}

/// Takes the lock of the user and then that of the product, and sells a piece.
async fn take_both(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let stock = stock::find("zk-reentrant").ok_or_else(|| Error::NoStrategy("zk-reentrant".to_owned()))?;
    let user = ctx.zk.lock(&job.zk_path(USER));
    let guard = user.acquire(job.wait_left()).await?;
    let outcome = (stock.spec.deduct)(ctx, job).await;
    guard.release().await?;
    outcome
}
