//! The lessons that register themselves: each address of [`classroom::windows`] is a route, served by one handler.

use super::{LessonBody, respond};
use crate::http::routes::prelude::*;
use crate::{
    classroom::{self, window::WindowAddress},
    http::terms::Terms,
    stock::check_product,
};
use utoipa::openapi::{RefOr, path::Operation};
use utoipa_axum::{router::UtoipaMethodRouter, routes};

/// A route for each address, with its documentation.
pub(in crate::http) fn window_routes() -> impl Iterator<Item = UtoipaMethodRouter<AppState>> {
    classroom::windows().map(|window| {
        let (schemas, mut paths, methods) = routes!(visit);
        let mut items = std::mem::take(&mut paths.paths).into_values();
        paths.paths = items
            .by_ref()
            .map(|mut item| {
                item.get.iter_mut().for_each(|get| document(window, get));
                (window.path.to_owned(), item)
            })
            .collect();
        (schemas, paths, methods.layer(Extension(window)))
    })
}

/// Documents an operation by its lesson; one that cannot lose its lock answers no 409.
fn document(window: &WindowAddress, operation: &mut Operation) {
    operation.summary = Some(window.summary.to_owned());
    let responses = &mut operation.responses.responses;
    if !window.may_be_lost {
        responses.remove("409");
    }
    if let Some(RefOr::T(done)) = responses.get_mut("200") {
        done.description = window.done.to_owned();
        if let Some(RefOr::T(text)) = done.content.get_mut("text/plain") {
            text.example = Some(window.example.into());
        }
    }
}

/// Visits a lesson.
#[utoipa::path(get, path = "/", tag = "course", params(Terms),
    responses(
        (status = 200, content((String = "text/plain"), (LessonBody = "application/json"))),
        (status = 404, description = "There is no such product"),
        (status = 409, description = "The lock was lost inside"),
    ))]
async fn visit(
    Extension(window): Extension<&'static WindowAddress>,
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    check_product(&app.ctx, terms.stock_id()).await?;
    let wait = window.wait.unwrap_or(app.ctx.config.default_wait());
    let job = app.with_visit(terms.job(wait, window.stay.map_or(Duration::ZERO, |stay| stay())), window.path, window.object);
    let answer = (window.visit)(&app.ctx, &job).await?;
    Ok(respond(&app, &job, format, window.object, answer))
}
