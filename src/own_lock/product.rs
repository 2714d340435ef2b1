//! The product that a visitor's own lock sells.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Job, redis_key},
};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The lowest number of a visitor's product: beyond the products of the course, of replays and of runs; a whole number in
/// JavaScript too.
const FIRST_PRODUCT: u64 = 1 << 48;

/// The pieces of a visitor's product, as many as the course's.
const PIECES: i64 = 5000;
/// How long a visitor's product stays in Redis, in seconds.
const LIFETIME_S: u64 = 86_400;

/// The number of the visitor's product, the same in all instances.
pub fn product_of(visitor: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    visitor.hash(&mut hasher);
    (FIRST_PRODUCT + hasher.finish() % FIRST_PRODUCT).cast_signed()
}

/// Makes the job sell by the lock of this visitor; with `own_product`, from the visitor's product, whose pieces are put into
/// Redis for a day. If its key exists, it stays as it is, and its day is not renewed.
pub async fn prepare(ctx: &Ctx, job: Job, visitor: &str, own_product: bool) -> Result<Job, Error> {
    let mut job = job.with_visitor(visitor);
    if own_product {
        job.request.stock_id = product_of(visitor);
        let mut put = redis::cmd("SET");
        put.arg(redis_key::stock_key(ctx, job.request.stock_id)).arg(PIECES);
        put.arg("NX").arg("EX").arg(LIFETIME_S);
        put.exec_async(&mut ctx.redis.connection()).await?;
    }
    Ok(job)
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
