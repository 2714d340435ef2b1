//! All that a window is written in, under one name.

pub(super) use super::window::{Answer, Visit, Window, WindowLesson, keep};
pub(super) use crate::{
    ctx::Ctx,
    error::Error,
    section::{Job, Name},
};
pub(super) use oversell_lock::Lock;
pub(super) use std::time::Duration;
