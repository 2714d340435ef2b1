//! `/course`: every claim of the documents, what a student types to see it, and the verdicts of the last run.

use crate::http::routes::prelude::*;
use crate::{
    course::{
        self, Chapter,
        kept::{self, Kept, Verdicts},
        places::Places,
    },
    ctx::Ctx,
    http::extract::Admin,
};
use secrecy::ExposeSecret;

/// The chapters.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Course {
    chapters: Vec<Chapter>,
}

/// Every claim of the documents, chapter by chapter.
#[utoipa::path(get, path = "/course", tag = "course",
    responses((status = 200, description = "The chapters and their lessons", body = Course)))]
pub(in crate::http) async fn list(State(app): State<AppState>) -> axum::Json<Course> {
    let places = places(&app.ctx);
    let chapters = course::ALL.iter().map(|chapter| places.fill(chapter));
    axum::Json(Course {
        chapters: chapters.collect(),
    })
}

/// The verdicts of the last run, the same on each instance.
#[utoipa::path(get, path = "/course/verdicts", tag = "course",
    responses(
        (status = 200, description = "What the last run has found of each lesson", body = Kept),
        (status = 204, description = "There was no run yet"),
    ))]
pub(in crate::http) async fn last(State(app): State<AppState>) -> Result<Response, Error> {
    Ok(match kept::last(&app.ctx).await? {
        Some(kept) => axum::Json(kept).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Keeps the verdicts of a run; those of other lessons stay.
#[utoipa::path(put, path = "/course/verdicts", tag = "course", request_body = Verdicts, security((), ("admin" = [])),
    responses((status = 204, description = "They are kept")))]
pub(in crate::http) async fn keep(
    _: Admin,
    State(app): State<AppState>,
    Json(verdicts): Json<Verdicts>,
) -> Result<StatusCode, Error> {
    kept::keep(&app.ctx, &verdicts).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where this cluster's servers are, as its configuration has them.
fn places(ctx: &Ctx) -> Places {
    let config = &ctx.config;
    let redis: Vec<_> = match &config.redis.nodes[..] {
        [] => vec![config.redis.url.expose_secret()],
        nodes => nodes.iter().map(ExposeSecret::expose_secret).collect(),
    };
    let (cluster, mysql) = (&config.cluster, config.mysql.url.expose_secret());
    Places::new(
        &cluster.http,
        &cluster.instances,
        mysql,
        &redis,
        &config.zookeeper.connect,
    )
}
