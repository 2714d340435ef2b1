//! What product 1 was asked for in this instance, by strategy, since it started: the books from which `oversell judge` says what a
//! load tool has bought.
//!
//! A request is entered when it is received, and closed by its result. One that is dropped before has lost its client: whether it
//! took a piece is unknown.

use super::history::OutcomeCounts;
use crate::error::Error;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    ops::{Add, Sub},
    sync::Arc,
};
use utoipa::ToSchema;
use uuid::Uuid;

/// The product whose books are kept: a tool that knows nothing of products buys of it.
pub const PRODUCT: i64 = 1;

/// The requests of one strategy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Received {
    /// All of them: those below, and those that are under way.
    pub received: u64,
    pub sold: u64,
    pub sold_out: u64,
    /// Failed, and took no piece.
    pub refused: u64,
    /// Nobody knows whether they took a piece.
    pub unknown: u64,
}

/// The books of an instance. A clone is the same books.
#[derive(Debug, Clone)]
pub struct Books {
    id: Uuid,
    by_strategy: Arc<Mutex<BTreeMap<&'static str, Received>>>,
}

/// The books as they are now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BooksBody {
    /// Another one once the instance has been started again, with new books.
    pub id: Uuid,
    /// The strategies that were asked.
    pub strategies: BTreeMap<String, Received>,
}

/// A request that has no result yet.
#[derive(Debug)]
pub struct OpenEntry {
    books: Books,
    strategy: &'static str,
    outcome: fn(&mut Received) -> &mut u64,
}

impl Received {
    /// How many are under way.
    pub fn under_way(&self) -> u64 {
        self.received - self.sold - self.sold_out - self.refused - self.unknown
    }

    /// Of two instances together.
    pub fn plus(self, other: Self) -> Self {
        self.with_each(other, u64::add)
    }

    /// What came since `before`, which the same books had then.
    pub fn since(self, before: Self) -> Self {
        self.with_each(before, u64::sub)
    }

    fn with_each(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            received: join(self.received, other.received),
            sold: join(self.sold, other.sold),
            sold_out: join(self.sold_out, other.sold_out),
            refused: join(self.refused, other.refused),
            unknown: join(self.unknown, other.unknown),
        }
    }

    /// As a run of load counts its outcomes.
    pub fn outcomes(self) -> OutcomeCounts {
        let Self { sold, sold_out, refused, unknown, .. } = self;
        OutcomeCounts { sold, sold_out, errors: refused, unknown }
    }
}

impl Default for Books {
    fn default() -> Self {
        Self { id: Uuid::new_v4(), by_strategy: Arc::default() }
    }
}

impl Books {
    /// Enters a request, if it is for [`PRODUCT`].
    pub fn enter(&self, product: i64, strategy: &'static str) -> Option<OpenEntry> {
        (product == PRODUCT).then(|| {
            self.by_strategy.lock().entry(strategy).or_default().received += 1;
            OpenEntry { books: self.clone(), strategy, outcome: |of| &mut of.unknown }
        })
    }

    /// The pieces sold, by whatever strategy.
    pub fn sold(&self) -> u64 {
        self.by_strategy.lock().values().map(|of| of.sold).sum()
    }

    pub fn read(&self) -> BooksBody {
        let strategies = self.by_strategy.lock().iter().map(|(strategy, of)| ((*strategy).to_owned(), *of)).collect();
        BooksBody { id: self.id, strategies }
    }
}

impl OpenEntry {
    /// Closes it by the result.
    pub fn close<T>(mut self, result: &Result<T, Error>) {
        self.outcome = match result {
            Ok(_) => |of| &mut of.sold,
            Err(Error::SoldOut) => |of| &mut of.sold_out,
            Err(Error::Unknown { .. } | Error::Internal(_)) => |of| &mut of.unknown,
            Err(_) => |of| &mut of.refused,
        };
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        let mut books = self.books.by_strategy.lock();
        *(self.outcome)(books.entry(self.strategy).or_default()) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_entered_once_and_closed_once() {
        let books = Books::default();
        let of_none = || books.read().strategies["none"];
        let (first, second) = (books.enter(1, "none"), books.enter(1, "none"));
        assert!(books.enter(7, "none").is_none(), "another product");
        assert_eq!((of_none().received, of_none().under_way()), (2, 2));
        first.expect("of product 1").close::<()>(&Err(Error::SoldOut));
        drop(second);
        assert_eq!(of_none(), Received { received: 2, sold_out: 1, unknown: 1, ..Received::default() });
    }
}
