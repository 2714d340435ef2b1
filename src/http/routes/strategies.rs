//! `/strategies`: the registry, and each strategy's source for the page to show.

use crate::{
    error::Error,
    http::{extract::Path, format::Format},
    stock::{self, Strategy},
};
use axum::{Json, response::IntoResponse};
use http::header;

/// Every strategy, in the course's order.
#[utoipa::path(get, path = "/strategies", tag = "course",
    responses((status = 200, description = "The registry", body = [Strategy])))]
pub(in crate::http) async fn list() -> Json<&'static [Strategy]> {
    Json(stock::ALL)
}

/// A strategy's source file.
#[utoipa::path(get, path = "/strategies/{slug}/source", tag = "course",
    params(("slug" = String, Path, description = "One of `GET /strategies`", example = "none")),
    responses(
        (status = 200, description = "A Rust file", body = String, content_type = "text/plain"),
        (status = 404, description = "There is no such strategy"),
    ))]
pub(in crate::http) async fn source(Path(slug): Path<String>) -> Result<impl IntoResponse, Error> {
    let strategy = stock::find(&slug).ok_or(Error::NoStrategy(slug))?;
    Ok(([(header::CONTENT_TYPE, Format::TEXT)], strategy.source))
}
