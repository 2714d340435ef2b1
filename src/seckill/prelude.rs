//! All that a step is written in, under one name.

pub(super) use super::{
    id_worker,
    order::{Order, OrderReceipt},
    rows,
    step::StepSpec,
};
pub(super) use crate::{
    ctx::Ctx,
    error::{Error, SeckillError},
    registry::Rank,
    section::{Point, mysql},
    stock::Promise,
};
