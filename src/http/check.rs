//! `/check/lock`: checks the stock and takes a piece, by the strategy that is asked for.

use super::{
    answer::{Outcome, Problem},
    app::App,
    fields::{Fields, FromQuery},
    format::Format,
};
use crate::{
    error::Error,
    stock::{self, Job},
};
use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    response::{IntoResponse, Response},
};
use http::{header, request::Parts};
use serde::Serialize;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const SOLD: &str = "验库存并锁库存成功！";

/// The longest that a request may ask to stay inside or to wait, in milliseconds.
const LONGEST_MS: i64 = 60_000;

/// What may be asked of every strategy.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Terms {
    /// Which product.
    #[param(minimum = 1, default = 1, required = false)]
    pub(super) stock_id: i64,
    /// How long to stay inside the critical section, in milliseconds; without it the route's own time, or none.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 60_000, required = false)]
    pub(super) hold_ms: Option<Duration>,
    /// The longest wait for the lock, in milliseconds; without it the configured one.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 60_000, required = false)]
    pub(super) wait_ms: Option<Duration>,
}

/// A piece was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sold {
    outcome: Outcome,
    /// What the strategy believes is left, where it has seen a number.
    #[schema(example = 4999)]
    remaining: Option<i64>,
    #[schema(example = "version-cas")]
    strategy: &'static str,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// How long it took to get in.
    #[schema(example = 3)]
    waited_ms: u128,
    /// How long it was inside.
    #[schema(example = 1)]
    held_ms: u128,
    /// The fencing token that the write carried, where the lock has one.
    fence: Option<u64>,
    /// How often it was tried anew.
    #[schema(example = 0)]
    retries: u32,
}

/// Takes a piece by the configured strategy.
#[utoipa::path(method(get, post), path = "/check/lock", tag = "course", params(Terms), operation_id = "check_default",
    responses(
        (status = 200, description = "A piece was taken",
            content((String = "text/plain", example = "验库存并锁库存成功！"), (Sold = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such product", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Sold out, or the lock was lost before the write", body = Problem, content_type = "application/problem+json"),
        (status = 500, description = "An error of ours", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The lock was not had in time, a server is down, too many requests", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(super) async fn by_default(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    take(&app, app.default_strategy, &terms, format).await
}

/// Takes a piece by one strategy.
#[utoipa::path(method(get, post), path = "/check/lock/{strategy}", tag = "course", operation_id = "check_by_strategy",
    params(("strategy" = String, Path, description = "One of `GET /strategies`", example = "version-cas"), Terms),
    responses(
        (status = 200, description = "A piece was taken",
            content((String = "text/plain", example = "验库存并锁库存成功！"), (Sold = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such strategy or product", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Sold out, or the lock was lost before the write", body = Problem, content_type = "application/problem+json"),
        (status = 500, description = "An error of ours", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The lock was not had in time, a server is down, too many requests", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(super) async fn by_strategy(
    State(app): State<App>,
    Path(slug): Path<String>,
    terms: Terms,
    format: Format,
) -> Result<Response, Error> {
    let place = stock::ALL.iter().position(|s| s.slug == slug).ok_or(Error::NoStrategy(slug))?;
    take(&app, place, &terms, format).await
}

async fn take(app: &App, place: usize, terms: &Terms, format: Format) -> Result<Response, Error> {
    let strategy = &stock::ALL[place];
    let figure = app.figures.of(place);
    let wait = terms.wait_ms.unwrap_or_else(|| app.ctx.config.wait());
    let job = Job::new(terms.stock_id, terms.hold_ms.unwrap_or_default(), wait).counted(figure.waiters.clone());
    let result = strategy.take(&app.ctx, &job).await;
    figure.count(&job, &result);
    let deducted = result?;
    Ok(match format {
        Format::Text => ([(header::CONTENT_TYPE, Format::TEXT)], SOLD).into_response(),
        Format::Json => Json(Sold {
            outcome: Outcome::Sold,
            remaining: deducted.remaining,
            strategy: strategy.slug,
            instance: app.ctx.instance.clone(),
            waited_ms: job.waited().as_millis(),
            held_ms: job.held().as_millis(),
            fence: deducted.fence.map(|fence| fence.0),
            retries: deducted.retries,
        })
        .into_response(),
    })
}

impl<S: Sync> FromRequestParts<S> for Terms {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let FromQuery(fields) = FromQuery::from_request_parts(parts, state).await?;
        Self::among(&fields, &[])
    }
}

impl Terms {
    /// The terms, in a query that may also have `others`.
    ///
    /// # Errors
    ///
    /// [`Error::BadInput`] for what is not as it should be, and for a field that is none of these.
    pub(super) fn among(fields: &Fields, others: &[&str]) -> Result<Self, Error> {
        fields.only(&[&["stock_id", "hold_ms", "wait_ms"], others].concat())?;
        let ms = |name| {
            let ms = fields.number(name, 0..=LONGEST_MS)?;
            Ok::<_, Error>(ms.map(|ms| Duration::from_millis(ms.unsigned_abs())))
        };
        Ok(Self {
            stock_id: fields.number("stock_id", 1..=i64::MAX)?.unwrap_or(1),
            hold_ms: ms("hold_ms")?,
            wait_ms: ms("wait_ms")?,
        })
    }
}
