//! `/voucher`: a voucher of a seckill, and whether its orders are as they must be.

use crate::http::routes::prelude::*;
use crate::seckill::{
    check::{self, OrdersReport, VoucherRecords},
    voucher::{self, Voucher},
};
use chrono::{DateTime, Datelike, Utc};
use serde::{Deserializer, de::Error as _};

/// The rule for a time, as the answer that refuses one says it.
const TIME_RULE: &str = "must be a time with its offset from UTC, of the years 1970 to 9998, such as 2026-11-11T00:00:00+08:00 or \
                    2026-11-10T16:00:00Z";

/// A voucher to add.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = VoucherRequest)]
pub(in crate::http) struct NewVoucher {
    #[garde(length(chars, min = 1, max = 100))]
    #[schema(min_length = 1, max_length = 100, example = "100元代金券")]
    title: String,
    /// How many pieces there are.
    #[garde(dive)]
    #[schema(inline, example = 100)]
    stock: BoundedInteger<0, 1_000_000_000>,
    /// From when on it is sold.
    #[garde(skip)]
    #[serde(deserialize_with = "time")]
    begin: DateTime<Utc>,
    /// Until when it is sold; later than `begin`.
    #[garde(custom(later_than(&self.begin)))]
    #[serde(deserialize_with = "time")]
    end: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct NewVoucherId {
    #[schema(example = 1)]
    id: i64,
}

/// Adds a voucher.
#[utoipa::path(post, path = "/voucher", tag = "seckill", request_body = NewVoucher, security((), ("admin" = [])),
    responses((status = 201, description = "It is there; `Location` has its address", body = NewVoucherId)))]
pub(in crate::http) async fn add(_: Admin, State(app): State<AppState>, Json(new): Json<NewVoucher>) -> Result<Response, Error> {
    let id = voucher::add(&app.ctx, &new.title, new.stock.get(), new.begin, new.end).await?;
    let location = [(header::LOCATION, format!("/voucher/{id}"))];
    Ok((StatusCode::CREATED, location, axum::Json(NewVoucherId { id })).into_response())
}

/// A voucher, as it is now.
#[utoipa::path(get, path = "/voucher/{id}", tag = "seckill",
    params(("id" = i64, Path, description = "Its number", example = 1)),
    responses(
        (status = 200, description = "The voucher", body = Voucher),
        (status = 404, description = "There is no such voucher"),
    ))]
pub(in crate::http) async fn read(State(app): State<AppState>, Path(id): Path<i64>) -> Result<axum::Json<Voucher>, Error> {
    Ok(axum::Json(voucher::read(&app.ctx, id).await?))
}

/// Takes a voucher away, with its orders.
#[utoipa::path(delete, path = "/voucher/{id}", tag = "seckill", security((), ("admin" = [])),
    params(("id" = i64, Path, description = "Its number", example = 1)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, description = "There is no such voucher"),
    ))]
pub(in crate::http) async fn remove(_: Admin, State(app): State<AppState>, Path(id): Path<i64>) -> Result<StatusCode, Error> {
    voucher::remove(&app.ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The orders of a voucher, and its stock at the same moment.
#[utoipa::path(get, path = "/voucher/{id}/orders", tag = "seckill",
    params(("id" = i64, Path, description = "Its number", example = 1)),
    responses(
        (status = 200, description = "What the database has of it", body = VoucherRecords),
        (status = 404, description = "There is no such voucher"),
    ))]
pub(in crate::http) async fn orders(
    State(app): State<AppState>,
    Path(id): Path<i64>,
) -> Result<axum::Json<VoucherRecords>, Error> {
    Ok(axum::Json(voucher::read_records(&app.ctx, id).await?))
}

/// Whether the orders of a voucher are as they must be, by what the database has.
///
/// Orders = stock taken, no more than there were pieces, one per user, each number once.
#[utoipa::path(get, path = "/voucher/{id}/check", tag = "seckill",
    params(("id" = i64, Path, description = "Its number", example = 1)),
    responses(
        (status = 200, description = "The verdict, and the numbers that it rests on", body = OrdersReport),
        (status = 404, description = "There is no such voucher"),
    ))]
pub(in crate::http) async fn check(State(app): State<AppState>, Path(id): Path<i64>) -> Result<axum::Json<OrdersReport>, Error> {
    Ok(axum::Json(check::check_orders(&voucher::read_records(&app.ctx, id).await?, None)))
}

/// Reads a time that keeps [`TIME_RULE`], cut to microseconds as the database has it.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    let time = String::deserialize(deserializer).ok().and_then(|text| DateTime::parse_from_rfc3339(&text).ok());
    let time = time.and_then(|time| DateTime::from_timestamp_micros(time.timestamp_micros()));
    time.filter(|time| (1970..=9998).contains(&time.year())).ok_or_else(|| D::Error::custom(TIME_RULE))
}

/// Requires a time later than `begin`.
fn later_than(begin: &DateTime<Utc>) -> impl FnOnce(&DateTime<Utc>, &()) -> garde::Result + '_ {
    move |end, ()| require(end > begin, "must be later than begin")
}
