//! The stages of §2.1 to §2.7 beyond their races: a client that hangs up. It is played like the races.

use crate::{replay::races::ends_so, support::*};
use oversell::{
    replay::{A, Act, B, ExpectedResult, RaceScript, Step},
    section::Point,
};

/// A client that hangs up leaves no key at any stage: inside, while waiting, and before it knows that it has the lock.
#[apply(test!)]
async fn a_stage_that_is_given_up_leaves_no_key(servers: &Servers) -> Result<()> {
    const WAITS_IN_VAIN: &[Step] = &[B.stops_at(Point::Refused), B.continues(), B.hangs_up()];
    const GIVEN_UP: &[Step] = &[
        A.stops_at(Point::Read),
        Step::All(WAITS_IN_VAIN),
        Step::All(WAITS_IN_VAIN),
        Step::All(WAITS_IN_VAIN),
        Step::All(WAITS_IN_VAIN),
        Step::All(WAITS_IN_VAIN),
        A.hangs_up(),
        Step::LockIsFree,
        A.stops_at(Point::Taken),
        A.hangs_up(),
        B.stops_at(Point::Refused),
        Step::CancelledRequestsGoOn,
        B.finishes_and_unlocks(),
        Step::LockIsFree,
    ];
    for stage in ["redis-setnx", "redis-setnx-ttl", "redis-setnx-owner", "redis-setnx-lua", "redis-reentrant", "redis-watchdog"] {
        let ends = ExpectedResult::sold(1, 1).inside(1);
        let script = RaceScript::of(Act::Strategy(stage), GIVEN_UP, ends);
        ends_so(&servers.site().await.ctxs, script).await?;
    }
    Ok(())
}
