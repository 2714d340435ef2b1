//! The product that a visitor's own lock sells.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Beyond the products of the course, of replays and of runs; a whole number in JavaScript too.
const FIRST_PRODUCT: u64 = 1 << 48;

/// The number of the visitor's product, the same in all instances.
#[must_use]
pub fn product_of(visitor: &str) -> i64 {
    let mut hasher = DefaultHasher::new();
    visitor.hash(&mut hasher);
    (FIRST_PRODUCT + hasher.finish() % FIRST_PRODUCT).cast_signed()
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
