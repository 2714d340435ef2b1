#![doc = include_str!("version_cas_retried.md")]

use super::version_cas;
use crate::stock::{retried, *};

pub(super) const STRATEGY: StrategySpec = StrategySpec {
    rank: Rank::Beyond("version-cas-paced"),
    deduct: |ctx, job| Box::pin(retried::deduct(ctx, job, version_cas::STRATEGY.deduct)),
    ..version_cas::STRATEGY
};
