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

use super::*;
use crate::{
    section::{Points, redis_polling},
    stock::ReentrantScripts,
};
use tokio_util::task::AbortOnDropHandle;

/// The name of the lock, that of the strategy `redis-watchdog`.
const LOCK: &str = "lock:redis-watchdog";
/// A's lease, by the clock and forced: short, so that its timer comes soon.
const SHORT_LEASE_MS: [u64; 2] = [3000, 600];

pub(super) const RACE: Race = Race {
    lessons: &["001.renewal"],
    title: Bilingual::of("迟到的续期续了别人的锁", "A late renewal is for another's lock"),
    breaks: Bilingual::of("EXPIRE 不看锁是谁的", "EXPIRE does not look whose lock it is"),
    cure: Bilingual::of("脚本先看是谁的，再续期", "a script looks whose it is, and then renews"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 拿到锁，写完，然后整个停住", "A has the lock, writes, and then stands still"),
        A.self_ending_lease(SHORT_LEASE_MS[0], SHORT_LEASE_MS[1]).stops_at_both(Point::Written, Point::Renew),
        say("A 的租约到期", "A's lease ends"),
        LeaseEnds,
        say("B 拿到锁，租约很长；C 等待", "B takes the lock with a long lease; C waits"),
        B.lease(60_000).stops_at(Point::Read),
        C.stops_at(Point::Refused),
        say("A 的定时器到点，去续期", "A's timer goes off, and renews"),
        A.stops_at_both(Point::Written, Point::Renewed),
        Custom(|play| Box::pin(note_lease(play))),
    ],
    flaw: Variant {
        act: Act::custom_selling(Store::Redis, "redis-watchdog-blind", &[Name::Redis(LOCK)], |ctx, job| {
            Box::pin(hold_with_blind_timer(ctx, job))
        }),
        steps: &[
            say("B 的租约被改短了：这时到期", "B's lease was cut to A's, and ends now"),
            LeaseEnds,
            say("C 进来了，和 B 同时在临界区", "C gets in beside B"),
            C.finishes(),
            say("B 写完：把 C 卖的盖掉了", "B writes over what C has sold"),
            B.finishes(),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(3, 2).inside(2).noting("B's lease is cut", "B 的租约被改短了", "B's lease is cut short"),
    },
    cured: Variant {
        act: Act::Strategy("redis-watchdog"),
        steps: &[
            say("脚本没有续：锁不是 A 的；B 写完", "the script has renewed nothing, for the lock is not A's; B writes"),
            B.finishes(),
            say("B 释放锁以后，C 才进来", "C gets in after B"),
            C.finishes(),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(3, 3).inside(1).noting("B's lease is kept", "B 的租约没有动", "B's lease stays as it was"),
    },
};

/// Takes a piece under the lock of §2.7 with the text's timer, which does not check the owner.
async fn hold_with_blind_timer(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let lock = ReentrantScripts::lock(ctx, job, LOCK);
    let (key, lease) = (lock.key.clone(), lock.lease);
    let held = redis_polling::lock(ctx, job, lock).await?;
    let timer = AbortOnDropHandle::new(tokio::spawn(renew_blindly(ctx.clone(), key, lease, job.observation.points().clone())));
    let section = async {
        let outcome = redis_polling::read_then_write(ctx, job).await;
        drop(timer);
        outcome
    };
    redis_polling::run_then_release(held, section).await
}

/// The text's timer: every third of the lease (in milliseconds) it sends PEXPIRE, whoever holds the key, until it is aborted.
async fn renew_blindly(ctx: Ctx, key: String, lease: u64, points: Points) {
    loop {
        tokio::time::sleep(Duration::from_millis(lease / 3)).await;
        points.reach(Point::Renew).await;
        let renewed = redis::cmd("PEXPIRE").arg(&key).arg(lease).exec_async(&mut ctx.redis.connection()).await;
        points.reach(Point::Renewed).await;
        if let Err(error) = renewed {
            tracing::warn!(%error, key, "not renewed");
        }
    }
}

/// Notes whether B's lease was cut to A's, or has ended (both `cut`), or was kept.
async fn note_lease(play: &mut Play) -> Result<(), Error> {
    let short = play.options.pace.pick(SHORT_LEASE_MS).cast_signed();
    let is_cut = play.lease_left().await?.is_none_or(|left| left <= short);
    let what = if is_cut { "cut" } else { "kept" };
    play.add_note(format!("B's lease is {what}"));
    Ok(())
}
