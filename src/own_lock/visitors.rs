//! The visitors who have a lock of their own, and its scripts: kept in the Redis of students' scripts, because a client can make
//! up any number of visitors.
//!
//! 1. Whoever stores scripts, or sells a product of its own, is noted with the time: [`note`].
//! 2. There are at most [`MAX_VISITORS`]. One more takes the place of the visitor who has not come for the longest time, if that
//!    is longer than [`IDLE_TIME`]; else it is refused, and told when.
//! 3. Of a visitor who has lost its place, the product and the lock are removed.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{lua, names, redis_key},
};
use redis::{AsyncTypedCommands, Script};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
    time::Duration,
};

/// The lowest number of a visitor's product: beyond the products of the course, of replays and of runs; a whole number in
/// JavaScript too.
const FIRST_PRODUCT: u64 = 1 << 48;

/// The most visitors with a lock of their own, as many as the teacher's desk lists.
const MAX_VISITORS: usize = 400;
/// Who has not come for this long gives its place to another.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// Who has not come for this long is forgotten.
pub(super) const LIFETIME: Duration = Duration::from_secs(86_400);

/// The names in that Redis. The braces keep both in one slot of a cluster.
const VISITORS: &str = "{mine}:visitors";
const SCRIPTS: &str = "{mine}:scripts";

static NOTE: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("visitor.lua")));

/// The number of the visitor's product, the same in all instances.
pub fn product_of(visitor: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    visitor.hash(&mut hasher);
    (FIRST_PRODUCT + hasher.finish() % FIRST_PRODUCT).cast_signed()
}

/// Notes that the visitor uses its lock, and keeps its scripts, if there are any; cancelled, it may have done so or not.
/// Errors: [`Error::TooMany`] if all places are taken.
pub(super) async fn note(ctx: &Ctx, visitor: &str, scripts: Option<String>) -> Result<(), Error> {
    let mut note = NOTE.key(ctx.redis_key(VISITORS));
    note.key(ctx.redis_key(SCRIPTS)).arg(visitor).arg(MAX_VISITORS);
    note.arg(millis(IDLE_TIME)).arg(millis(LIFETIME));
    note.arg(scripts);
    let ctx = ctx.clone();
    // In a task of its own: whoever is forgotten leaves nothing, even if the client hangs up.
    let noted = ctx.tasks.clone().spawn(async move {
        let (wait, forgotten): (u64, Vec<String>) = note.invoke_async(&mut ctx.mine.connection()).await?;
        if wait > 0 {
            let again = Some(Duration::from_millis(wait));
            return Err(Error::TooMany { what: "visitors with a lock of their own", most: MAX_VISITORS, again });
        }
        for product in forgotten.iter().map(|visitor| product_of(visitor)) {
            ctx.redis.connection().del(redis_key::stock_key(&ctx, product)).await?;
            ctx.mine.connection().del(ctx.redis_key(&names::in_redis("lock:mine", product))).await?;
        }
        Ok(())
    });
    noted.await.map_err(|error| Error::Internal(error.to_string()))?
}

/// The scripts that this visitor keeps, as [`note`] was given them; `None` if there are none.
pub(super) async fn scripts_of(ctx: &Ctx, visitor: &str) -> Result<Option<String>, Error> {
    Ok(ctx.mine.connection().hget(ctx.redis_key(SCRIPTS), visitor).await?)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_visitor_has_a_product_of_its_own() {
        let products: BTreeSet<_> = (0..1000).map(|n| product_of(&n.to_string())).collect();
        assert_eq!(products.len(), 1000);
        assert!(products.iter().all(|id| (1 << 48..1 << 53).contains(id)));
        assert_eq!(product_of("7"), product_of("7"));
    }
}
