//! What Redis sees of a re-entered hold. Undone, late and handed-off commands are checked by `programs.rs`.

use crate::{family::Capability::Reentrant, support::*};
use redis::AsyncTypedCommands;

/// However often an owner takes it, the server sees one hold, for every re-entrant kind.
#[apply(test!)]
async fn a_lock_that_is_taken_again_is_one_hold_on_the_server(redis: &'static Redis) -> Result {
    let reentrant = |family: &Family<Redis>| family.kind.can.contains(&Reentrant);
    for family in redis.families().filter(reentrant) {
        let (name, process) = (name(), family.process().await);
        let lock = process.owned(&name, process.owner());
        let (outer, inner) = (take(&lock).await?, take(&lock).await?);
        for guard in [outer, inner] {
            let mut counts = redis.outsider().await.hvals(&name).await?;
            // A read-write lock also has a mode.
            counts.retain(|count| count.parse::<u64>().is_ok());
            ensure_equal("holds", counts, ["1"]).context(family.kind.name)?;
            guard.release().await?;
        }
        family.nothing_left(&name).await.context(family.kind.name)?;
    }
    Ok(())
}
