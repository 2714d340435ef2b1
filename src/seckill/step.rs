//! What a step is: a value that says what it promises, and the function that places an order.

use super::{Order, Ordered};
use crate::{
    ctx::Ctx,
    error::Error,
    registry::{Declared, Rank, Registered},
    stock::Promise,
};
use futures::future::BoxFuture;
use serde::Serialize;
use utoipa::ToSchema;

/// Places one order, or says why not.
pub type Place = for<'a> fn(&'a Ctx, &'a Order) -> BoxFuture<'a, Result<Ordered, Error>>;

/// One way to order a voucher.
pub type Step = Registered<Facts>;

/// What a step's file declares.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = OrderStepFacts)]
pub struct Facts {
    /// The section of \[002\] that it is from, or that it goes on from.
    pub course: &'static str,
    /// What it promises: of the stock, and of one order per user.
    pub promise: Promise,
    /// Whether it is what the text leads to, and not in it.
    #[serde(rename = "beyond")]
    #[schema(value_type = bool)]
    pub rank: Rank,
    /// Places one order.
    #[serde(skip)]
    pub order: Place,
}

impl Declared for Facts {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn chapter(&self) -> &'static str {
        self.course
    }
}
