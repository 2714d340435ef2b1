//! `/strategies`: the registry, and each strategy's source for the page to show.

use crate::{
    http::{app::AppState, error::Error, extract::Path, format::Format},
    stock::{self, Strategy},
};
use axum::{Json, extract::State, response::IntoResponse};
use http::header;
use serde::Serialize;
use utoipa::ToSchema;

/// A strategy, and what this instance's settings make of it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Listed {
    #[serde(flatten)]
    strategy: Strategy,
    /// The lease after which a holder that stays longer is not alone any more; null where it is renewed, or there is none.
    #[schema(example = 3000)]
    lease_ms: Option<u64>,
}

/// Every strategy, in the course's order.
#[utoipa::path(get, path = "/strategies", tag = "course",
    responses((status = 200, description = "The registry", body = [Listed])))]
pub(in crate::http) async fn list(State(app): State<AppState>) -> Json<Vec<Listed>> {
    let lease_ms =
        |strategy: &Strategy| u64::try_from(strategy.unrenewed(&app.ctx.config)?.as_millis()).ok();
    Json(
        stock::ALL
            .iter()
            .map(|strategy| Listed {
                strategy: *strategy,
                lease_ms: lease_ms(strategy),
            })
            .collect(),
    )
}

/// A strategy's source file.
#[utoipa::path(get, path = "/strategies/{slug}/source", tag = "course",
    params(("slug" = String, Path, description = "One of `GET /strategies`", example = "none")),
    responses(
        (status = 200, description = "A Rust file", body = String, content_type = "text/plain"),
        (status = 404, description = "There is no such strategy"),
    ))]
pub(in crate::http) async fn source(Path(slug): Path<String>) -> Result<impl IntoResponse, Error> {
    let strategy = stock::find(&slug).ok_or(Error::no_strategy(slug))?;
    Ok(([(header::CONTENT_TYPE, Format::TEXT)], strategy.source))
}
