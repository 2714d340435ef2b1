//! What every exclusive lock shows against its namesake.

use super::support::*;

/// Whichever side holds it, the other is refused and waits until the last hold is released.
#[apply(clause!)]
#[over(exclusive, Both)]
async fn a_waiter_comes_in_after_the_last_release_and_no_sooner(pair: Pair) -> Result<()> {
    let [mut holder, mut waiter] = [pair.first(), pair.second()];
    let mut bystander = pair.ours_in(1);
    // kazoo's lock and those of etcd are not re-entrant.
    let holds = if let Library::Kazoo | Library::Go = pair.peer.library { 1 } else { 2 };
    for _ in 0..holds {
        holder.take().await?;
    }
    pair.shows(&holder, holds).await?;
    refused([&mut waiter, &mut bystander]).await?;
    let mut waiting = waiter.waits().await?;
    for _ in 1..holds {
        waiting.ensure_sleeping().await?;
        holder.release().await?;
        refused([&mut bystander]).await?;
    }
    waiting.ensure_sleeping().await?;
    pair.lets_in(&mut holder, [waiting]).await?;

    pair.shows(&waiter, 1).await?;
    holder.ensure_sees(0).await?;
    pair.ensure_locked(true).await?;
    refused([&mut holder]).await?;
    waiter.release().await?;
    waiter.ensure_sees(0).await?;
    pair.ensure_locked(false).await?;
    holder.pass().await
}

/// Neither side can end the other's hold, as a stranger or after its own hold is gone.
#[apply(clause!)]
#[over(redissons_exclusive, Both)]
async fn a_foreign_release_is_refused(pair: Pair) -> Result<()> {
    let [mut holder, mut next] = [pair.first(), pair.second()];
    let mut stranger = pair.theirs();
    let redis = pair.redis();
    holder.take().await?;
    redis.free(pair.kind, &pair.name).await?;
    next.take().await?;
    let before = redis.holders(&pair.name).await?;
    stranger.release_is_refused().await?;
    holder.release_is_refused().await?;
    let after = redis.holders(&pair.name).await?;
    ensure!(before == after, "{before:?} became {after:?}");
    next.ensure_sees(1).await?;
    next.release().await
}

/// A contender whose wait ends leaves nothing behind, neither a hold nor a place.
#[apply(clause!)]
#[over(limited, Both)]
async fn a_wait_that_ends_takes_nothing(pair: Pair) -> Result<()> {
    let [mut holder, mut impatient] = [pair.first(), pair.second()];
    pair.set_permits().await?;
    holder.hold_up().await?;
    let queue = pair.queue().await?;
    ensure!(!impatient.try_within(SHORT).await?, "it got in beside the holder");
    if let Some(queue) = queue {
        pair.until_queue(queue).await?;
    }
    holder.release().await?;
    impatient.pass().await
}

#[apply(clause!)]
#[over(redissons_exclusive, Once)]
async fn what_a_java_thread_forgot_comes_free_with_its_lease(pair: Pair) -> Result<()> {
    let [forgetful, mut ours] = [pair.theirs(), pair.ours()];
    // Its lease begins before its answer, which on a busy machine takes seconds.
    forgetful.ask("acquire", 6000).await?;
    refused([&mut ours]).await?;
    ours.take_in_turn().await?;
    forgetful.ensure_says("held", false).await?;
    ours.release().await
}
