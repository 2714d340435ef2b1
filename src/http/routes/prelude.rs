//! All that a route is written in, under one name.

pub(super) use crate::http::{
    app::AppState,
    error::Error,
    extract::{BoundedInteger, InstanceState, Json, Path, Query},
    format::Format,
    problem::AnswerOutcome,
};
pub(super) use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
pub(super) use garde::Validate;
pub(super) use http::StatusCode;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use std::{sync::Arc, time::Duration};
pub(super) use utoipa::{IntoParams, ToSchema};
