//! A step: a value with its promise and the function that places an order.

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
pub type SeckillStep = RegistryEntry<StepSpec>;

/// The specification of a step.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = OrderStepFacts)]
pub struct StepSpec {
    /// The section of \[002\] that it is from, or that it goes on from.
    pub course: &'static str,
    /// Its promise about the stock and about one order per user.
    pub promise: Promise,
    /// Whether it is what the text leads to, and not in it.
    #[serde(rename = "beyond")]
    #[schema(value_type = bool)]
    pub rank: Rank,
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
