//! All that a strategy is written in, under one name.

pub(super) use super::{
    strategy::{Promise, Store, StrategySpec},
    under,
};
pub(super) use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deduction, Job, Name, Point, mysql, poll},
    server::Server,
};
pub(super) use std::time::Duration;
