#![doc = include_str!("select_for_update_retried.md")]

use super::select_for_update;
use crate::stock::{retried, *};

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    rank: Rank::Beyond("select-for-update"),
    deduct: |ctx, job| Box::pin(retried::deduct(ctx, job, select_for_update::STRATEGY.deduct)),
    ..select_for_update::STRATEGY
};
