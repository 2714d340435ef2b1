//! What a step is: a value that says what it promises, and the function that places an order.

use super::{Order, Ordered};
use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::{Entry, Rank},
    stock::Promise,
};
use futures::future::BoxFuture;
use serde::Serialize;
use utoipa::ToSchema;

/// Places one order, or says why not.
pub type Place = for<'a> fn(&'a Ctx, &'a Order) -> BoxFuture<'a, Result<Ordered, Error>>;

/// One way to order a voucher.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = OrderStep)]
pub struct Step {
    /// Its name in routes, commands and figures.
    pub slug: &'static str,
    /// The section of \[002\] that it is from, or that it goes on from.
    pub course: &'static str,
    /// What it promises: of the stock, and of one order per user.
    pub promise: Promise,
    /// Whether it is what the text leads to, and not in it.
    #[serde(rename = "beyond")]
    #[schema(value_type = bool)]
    pub rank: Rank,
    /// What it is, in one line.
    #[schema(inline)]
    pub title: Bilingual,
    /// Where it breaks, in one line.
    #[schema(inline)]
    pub breaks: Bilingual,
    /// Its source file.
    #[serde(skip)]
    pub source: &'static str,
    /// Places one order.
    #[serde(skip)]
    pub order: Place,
}

impl Entry for Step {
    fn slug(&self) -> &'static str {
        self.slug
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn chapter(&self) -> &'static str {
        self.course
    }
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step")
            .field("slug", &self.slug)
            .finish_non_exhaustive()
    }
}
