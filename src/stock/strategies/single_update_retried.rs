#![doc = include_str!("single_update_retried.md")]

use super::single_update;
use crate::stock::{retried, *};

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    rank: Rank::Beyond("single-update-buckets"),
    deduct: |ctx, job| Box::pin(retried::deduct(ctx, job, single_update::STRATEGY.deduct)),
    ..single_update::STRATEGY
};
