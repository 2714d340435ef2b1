//! The stages of §2.1 to §2.7 beyond their races: an unlock without a key, a client that hangs up, and the length of
//! leases. They are played like the races.

use crate::{replay::races::ends_so, support::*};
use oversell::{
    error::Error,
    replay::{A, Act, B, ExpectedResult, Play, RaceScript, Step},
    section::{Name, Point},
    stock,
};

/// An unlock without an owner in the key cannot tell that it deleted another's (races 2.3 and 2.5), only that there was
/// no key.
#[apply(test!)]
async fn an_unlock_that_finds_no_key_says_lost(servers: &Servers) -> Result<()> {
    const LATE_UNLOCK: &[Step] = &[A.stops_at(Point::Read), Step::LeaseEnds, A.finishes_with_lock_lost()];
    let act = Act::Strategy("redis-setnx-ttl");
    let ends = ExpectedResult::sold(1, 1).inside(1);
    ends_so(&servers.site().await.ctxs, RaceScript::of(act, LATE_UNLOCK, ends)).await
}

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
    for stage in
        ["redis-setnx", "redis-setnx-ttl", "redis-setnx-owner", "redis-setnx-lua", "redis-reentrant", "redis-watchdog"]
    {
        let ends = ExpectedResult::sold(1, 1).inside(1);
        let script = RaceScript::of(Act::Strategy(stage), GIVEN_UP, ends);
        ends_so(&servers.site().await.ctxs, script).await?;
    }
    Ok(())
}

/// `lease_ms`: every Redis lock with a lease uses the requested one, and otherwise its own shorter one. A student's
/// lock starts as the first stage, which has none.
#[apply(test!)]
async fn a_requested_lease_replaces_the_strategys_own(servers: &Servers) -> Result<()> {
    const ASKED_LEASE: &[Step] =
        &[A.self_ending_lease(60_000, 60_000).stops_at(Point::Read), Step::Custom(|play| Box::pin(note_lease(play)))];
    const OWN_LEASE: &[Step] =
        &[A.default_lease().stops_at(Point::Read), Step::Custom(|play| Box::pin(note_lease(play)))];
    for strategy in stock::ALL.iter().filter(|strategy| !["redis-setnx", "mine"].contains(&strategy.slug)) {
        let Some(Name::Redis(_) | Name::RedisFor(..) | Name::RedisNodes(_)) = strategy.spec.names.first() else {
            continue;
        };
        for (steps, seen) in [(ASKED_LEASE, "as asked"), (OWN_LEASE, "its own")] {
            let ends = ExpectedResult::NOTHING.inside(1).noting(seen, "", "");
            let script = RaceScript::of(Act::Strategy(strategy.slug), steps, ends);
            ends_so(&servers.site().await.ctxs, script).await?;
        }
    }
    Ok(())
}

/// Records which lease the lock has, by its length.
async fn note_lease(play: &mut Play) -> Result<(), Error> {
    /// No strategy's own lease is longer.
    const MAX_OWN_LEASE_MS: i64 = 30_000;
    play.add_note(match play.lease_left().await? {
        Some(left) if left > MAX_OWN_LEASE_MS => "as asked",
        Some(1..) => "its own",
        _ => "no lease",
    });
    Ok(())
}
