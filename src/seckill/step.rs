//! What a step is: a value that says what it promises, and the function that places an order.

use super::{Order, OrderReceipt};
use crate::{
    ctx::Ctx,
    error::Error,
    registry::{Rank, RegistryEntry, Spec},
    stock::Promise,
};
use futures::future::BoxFuture;
use serde::Serialize;
use utoipa::ToSchema;

/// Places one order, or says why not.
pub type PlaceOrder = for<'a> fn(&'a Ctx, &'a Order) -> BoxFuture<'a, Result<OrderReceipt, Error>>;

/// One way to order a voucher.
pub type Step = RegistryEntry<StepSpec>;

/// What a step's file declares.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = OrderStepFacts)]
pub struct StepSpec {
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
    pub place: PlaceOrder,
}

impl Spec for StepSpec {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn chapter(&self) -> &'static str {
        self.course
    }
}
