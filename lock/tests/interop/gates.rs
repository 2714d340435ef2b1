//! Latches and barriers: `RedisLatch` and Redisson's `RCountDownLatch`, `ZkBarrier`, `ZkDoubleBarrier` and Curator's
//! `DistributedBarrier`, `DistributedDoubleBarrier`.

use super::support::*;

/// One side closes it and the other opens it; the latch's last count-down is the other side's.
#[apply(clause!)]
#[over(gates, Both)]
async fn both_are_held_up_until_it_is_open(pair: Pair) -> Result<()> {
    let [mut first, mut second] = [pair.first(), pair.second()];
    first.pass().await?;
    second.pass().await?;
    first.hold_up().await?;
    for again in [&first, &second] {
        // Curator accepts a present barrier as its own.
        let is_closed = again.set().await?;
        ensure!(!is_closed || pair.kind == Kind::Barrier && again.is_theirs(), "{again} closed it twice");
    }
    let [mut one, mut other] = [pair.first(), pair.second()];
    let mut one_waits = one.waits().await?;
    let mut other_waits = other.waits().await?;
    if let Kind::Latch(count) = pair.kind {
        pair.until_listening(2).await?;
        pair.both_see(count).await?;
        first.release().await?;
        pair.both_see(count - 1).await?;
    }
    one_waits.ensure_sleeping().await?;
    other_waits.ensure_sleeping().await?;
    second.release().await?;
    one_waits.comes().await?;
    other_waits.comes().await?;
    match pair.kind {
        Kind::Latch(_) => pair.both_see(0).await,
        _ => pair.ours().begin_release().gives_up().await,
    }
}

/// Two of each side enter together and leave together; the last is of the second side.
#[apply(clause!)]
#[over(curators_double, Both)]
async fn both_enter_and_leave_a_double_barrier_together(pair: Pair) -> Result<()> {
    let [mut one, mut other] = [pair.first(), pair.second()];
    let [mut early, mut late] = [pair.first(), pair.second()];
    let mut one_enters = one.waits().await?;
    let mut other_enters = other.waits().await?;
    let early_enters = early.waits().await?;
    pair.until_queue(3).await?;
    one_enters.ensure_sleeping().await?;
    other_enters.ensure_sleeping().await?;
    for entering in [late.begin(SOON), one_enters, other_enters, early_enters] {
        entering.comes().await?;
    }
    // The four, and `ready`.
    pair.until_queue(5).await?;

    let mut one_leaves = one.begin_release();
    let mut other_leaves = other.begin_release();
    let early_leaves = early.begin_release();
    // The late one; the first by name, if that is another; and `ready`.
    until("those who left are gone", async || Ok(pair.queue().await? <= Some(3))).await?;
    one_leaves.ensure_sleeping().await?;
    other_leaves.ensure_sleeping().await?;
    for leaving in [late.begin_release(), one_leaves, other_leaves, early_leaves] {
        leaving.comes().await?;
    }
    Ok(())
}

/// Ours removes its member when its wait ends. Curator's would leave it to be counted.
#[apply(clause!)]
#[over(curators_double, Once)]
async fn a_member_that_gives_up_is_not_counted_by_curator(pair: Pair) -> Result<()> {
    let [mut ours, mut a, mut b, mut c] = [pair.ours(), pair.theirs(), pair.theirs(), pair.theirs()];
    ensure!(!ours.try_within(SHORT).await?, "it entered alone");
    pair.until_queue(0).await?;
    let mut entering = [a.waits().await?, b.waits().await?, c.waits().await?];
    pair.until_queue(3).await?;
    for waiting in &mut entering {
        waiting.ensure_sleeping().await?;
    }
    ours.take_in_turn().await?;
    for waiting in entering {
        waiting.comes().await?;
    }
    for leaving in [a.begin_release(), b.begin_release(), c.begin_release(), ours.begin_release()] {
        leaving.comes().await?;
    }
    Ok(())
}
