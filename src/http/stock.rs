//! `/stock`: what is on the shelf, and putting it back there.

use super::{
    answer::Problem,
    app::App,
    fields::{FromBody, FromQuery},
};
use crate::{
    error::Error,
    shelf::{self, Shelf},
};
use axum::{Json, extract::State};
use http::HeaderMap;
use utoipa::{IntoParams, ToSchema};

const LARGEST: i64 = 1_000_000_000;

/// Which product.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "read field by field; here for the documentation")]
pub(super) struct Which {
    /// Which product.
    #[param(minimum = 1, default = 1, required = false)]
    stock_id: i64,
}

/// How many pieces to put there.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "read field by field; here for the documentation")]
pub(super) struct Put {
    #[schema(minimum = 0, maximum = 1_000_000_000, example = 5000)]
    count: i64,
}

/// What both stores hold.
#[utoipa::path(get, path = "/stock", tag = "course", params(Which), operation_id = "read_stock",
    responses(
        (status = 200, description = "The row and the key; a store that is down is null and named under `missing`", body = Shelf),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such product", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Neither store answers", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn read(State(app): State<App>, FromQuery(query): FromQuery) -> Result<Json<Shelf>, Error> {
    Ok(Json(shelf::read(&app.ctx, stock_id(&query)?).await?))
}

/// Sets both stores and clears every lock of the product, whoever holds it.
#[utoipa::path(put, path = "/stock", tag = "course", params(Which), request_body = Put, operation_id = "put_stock",
    security((), ("admin" = [])),
    responses(
        (status = 200, description = "It is done", body = Shelf),
        (status = 400, description = "Query or body are not as they should be", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The admin token is asked for", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "A server is down: nothing was changed", body = Problem, content_type = "application/problem+json"),
    ))]
pub(super) async fn put(
    State(app): State<App>,
    headers: HeaderMap,
    FromQuery(query): FromQuery,
    FromBody(body): FromBody,
) -> Result<Json<Shelf>, Error> {
    app.admit_admin(&headers)?;
    let stock_id = stock_id(&query)?;
    body.only(&["count"])?;
    shelf::reset(&app.ctx, stock_id, body.required("count", 0..=LARGEST)?, None).await?;
    Ok(Json(shelf::read(&app.ctx, stock_id).await?))
}

fn stock_id(query: &super::fields::Fields) -> Result<i64, Error> {
    query.only(&["stock_id"])?;
    Ok(query.number("stock_id", 1..=i64::MAX)?.unwrap_or(1))
}
