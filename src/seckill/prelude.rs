//! All that a step is written in, under one name.

pub(super) use super::{
    error::SeckillError,
    id_worker,
    order::{Order, OrderReceipt},
    rows,
    step::StepSpec,
};
pub(super) use crate::{
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Point, mysql},
    stock::Promise,
};
