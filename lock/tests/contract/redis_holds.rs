//! Holds in Redis that are taken again, or handed off without an answer. That what is not answered is undone, and what comes
//! late as well, `programs.rs` finds out.

use super::{family::Capability::Reentrant, support::*};
use redis::AsyncTypedCommands;

/// So long that only an undo can help.
const LONG: Lease = Lease::Fixed(Duration::from_secs(200));

/// However often an owner has taken it, the server sees one hold, of every kind that has owners.
#[apply(test!)]
async fn a_lock_that_is_taken_again_is_one_hold_on_the_server(redis: &'static Redis) -> Result {
    let reentrant = |family: &Family<Redis>| family.kind.can.contains(&Reentrant);
    for family in redis.families().filter(reentrant) {
        let (name, process) = (name(), family.process().await);
        let lock = process.owned(&name, process.owner());
        let (outer, inner) = (take(&lock).await?, take(&lock).await?);
        for guard in [outer, inner] {
            let mut counts = redis.outsider().await.hvals(&name).await?;
            // The mode of a read-write lock.
            counts.retain(|count| count.parse::<u64>().is_ok());
            is("holds", counts, ["1"]).context(family.kind.name)?;
            guard.release().await?;
        }
        family.nothing_left(&name).await.context(family.kind.name)?;
    }
    Ok(())
}

/// It ran, and its answer is lost: neither the one who handed it off keeps the lock, nor the one who would have it.
#[apply(test!)]
async fn an_unanswered_hand_off_leaves_nothing(redis: &Redis) -> Result {
    let (name, mute) = (name(), Mute::to(redis.host())?);
    let process = redis.client_at(&mute.address()).await;
    let lock = process.lock(&name).lease(LONG);
    let hand_off = async || {
        let holder = take(&lock).await?;
        let mut next = pin!(lock.acquire(SOON));
        ensure!(futures::poll!(&mut next).is_pending(), "it did not wait");
        anyhow::Ok(tokio::join!(holder.release(), next))
    };
    let (released, next) = hand_off().await?;
    released?;
    next?.release().await?;
    let script = redis::Script::new(include_str!("../../src/redis/lua/hand_off.lua"));
    mute.mute_at(script.get_hash().to_owned().leak());
    let (released, next) = loop {
        let answers = hand_off().await?;
        if mute.is_mute() {
            break answers;
        }
        // The machine was so slow that the lock was freed instead: `BATCH_TIME` was over.
        answers.0?;
        answers.1?.release().await?;
    };
    unavailable("the release", released)?;
    unavailable("the next one", next)?;
    mute.heal();
    redis.no_key_left(&name).await
}
