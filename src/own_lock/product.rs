//! The product that a visitor's own lock sells.

use crate::{ctx::Ctx, error::Error, section::redis_key};
use std::hash::{DefaultHasher, Hash, Hasher};

const INITIAL_PIECES: i64 = 5000;
/// What a visitor's lock sold is forgotten after a day.
const LIFETIME_S: u64 = 86_400;
/// Beyond the products of the course, of replays and of runs; a whole number in JavaScript too.
const FIRST_PRODUCT: u64 = 1 << 48;

/// The number of the visitor's product, the same in all instances.
#[must_use]
pub fn product_of(visitor: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    visitor.hash(&mut hasher);
    (FIRST_PRODUCT + hasher.finish() % FIRST_PRODUCT).cast_signed()
}

/// Puts the course's pieces in stock, unless the product has some already.
///
/// # Errors
///
/// [`Error::Unavailable`] if Redis is down.
pub async fn put_pieces(ctx: &Ctx, product: i64) -> Result<(), Error> {
    let mut put = redis::cmd("SET");
    put.arg(redis_key::of(ctx, product)).arg(INITIAL_PIECES);
    put.arg("NX").arg("EX").arg(LIFETIME_S);
    put.exec_async(&mut ctx.redis.connection()).await?;
    Ok(())
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
