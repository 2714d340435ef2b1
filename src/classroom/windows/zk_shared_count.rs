//! §3.7.7 A number that all instances see: Curator's `SharedCount`.
//!
//! Read `/curator/count` (0 at first) and set it to a number at random, whatever it is by then.
//!
//! What it survives: every instance dying; the number stays. A write whose answer is lost is neither repeated nor called
//! failed: it may have been made, and the answer says so.
//!
//! Next: `oversell_lock::zk::ZkSharedCount`, then `zk_atomic.rs`.

use crate::classroom::*;
use crate::classroom::{window::LessonDetails, zk_atomic::classify_write};

/// The path of the shared count.
const COUNT: &str = "/curator/count";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::ZooKeeper(COUNT)],
    windows: &[WindowAddress {
        path: "/test/zk/share/count",
        object: COUNT,
        summary: "Reads the shared count and sets it to a number at random.",
        done: "It was read and set",
        example: "hello shareData",
        may_be_lost: false,
        wait: None,
        stay: None,
        visit: |ctx, job| Box::pin(set_random_count(ctx, job)),
    }],
};

/// Numbers are drawn from 0 up to this one, which is left out.
const NUMBER_LIMIT: i32 = 1000;

/// Reads the shared count, and sets it to a random number whatever it is by then.
/// Cancel safety: dropped, it may have been set or not.
async fn set_random_count(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let count = ctx.zk.shared_count(&job.zk_path(COUNT), 0);
    job.enter();
    let before = count.get().await?.value;
    ctx.zk.session()?;
    let after = classify_write(count.set(fastrand::i32(0..NUMBER_LIMIT)).await)?.value;
    job.say(format_args!("我获取了共享计数的初始值：{before}，并把计数器的值改为：{after}"));
    Ok(Answer::new("hello shareData", LessonDetails::Shared { before, after }))
}
