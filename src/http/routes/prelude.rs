//! All that a route is written in, under one name.

pub(super) use crate::{
    claims,
    config::require,
    http::{
        app::AppState,
        error::Error,
        extract::{Admin, BoundedInteger, InstanceState, Json, Path, Query},
        format::Format,
        problem::AnswerOutcome,
        terms::{HoldMs, LeaseMs, WaitMs, Who},
        visitor::Visitor,
    },
    permits::Permits,
};
pub(super) use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
pub(super) use garde::Validate;
pub(super) use http::{StatusCode, header};
pub(super) use serde::{Deserialize, Serialize};
pub(super) use std::{sync::Arc, time::Duration};
pub(super) use utoipa::{IntoParams, ToSchema};
pub(super) use uuid::Uuid;
