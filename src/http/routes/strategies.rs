//! `/strategies`: the registry, and each strategy's text and source for the page to show.

use crate::http::routes::prelude::*;
use crate::{
    http::format::text_answer,
    registry::{RegistryEntry, Text},
    server::Server,
    stock::{self, Strategy, StrategySpec},
};
use axum::Json;

/// A strategy, and the lease that this instance's settings give it.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ListedStrategy {
    #[serde(flatten)]
    strategy: &'static RegistryEntry<StrategySpec>,
    /// The lease after which a holder that stays longer is not alone any more; null if it is renewed, or there is none.
    #[schema(example = 3000)]
    lease_ms: Option<u64>,
    /// The server that it needs and this instance does not have; null if it has all. All requests are then answered 503.
    #[schema(example = "etcd")]
    absent: Option<Server>,
}

/// Every strategy, in the course's order.
#[utoipa::path(get, path = "/strategies", tag = "course",
    responses((status = 200, description = "The registry", body = [ListedStrategy])))]
pub(in crate::http) async fn list(State(app): State<AppState>) -> Json<Vec<ListedStrategy>> {
    let lease_ms = |strategy: &Strategy| u64::try_from(strategy.fixed_lease(&app.ctx.config)?.as_millis()).ok();
    let has_etcd = !app.ctx.config.etcd.endpoints.is_empty();
    let absent = |strategy: &Strategy| Some(Server::Etcd).filter(|etcd| !has_etcd && strategy.spec.needs.contains(etcd));
    let listed =
        stock::ALL.iter().map(|strategy| ListedStrategy { strategy, lease_ms: lease_ms(strategy), absent: absent(strategy) });
    Json(listed.collect())
}

/// How a strategy does it.
#[utoipa::path(get, path = "/strategies/{slug}/text", tag = "course",
    params(("slug" = String, Path, description = "One of `GET /strategies`", example = "none")),
    responses(
        (status = 200, description = "Its steps, what it survives and what breaks it", body = Text),
        (status = 404, description = "There is no such strategy"),
    ))]
pub(in crate::http) async fn text(Path(slug): Path<String>) -> Result<Json<&'static Text>, Error> {
    Ok(Json(&find(slug)?.text))
}

/// A strategy's source file.
#[utoipa::path(get, path = "/strategies/{slug}/source", tag = "course",
    params(("slug" = String, Path, description = "One of `GET /strategies`", example = "none")),
    responses(
        (status = 200, description = "A Rust file", body = String, content_type = "text/plain"),
        (status = 404, description = "There is no such strategy"),
    ))]
pub(in crate::http) async fn source(Path(slug): Path<String>) -> Result<Response, Error> {
    Ok(text_answer(find(slug)?.source))
}

/// The strategy of this slug, or the refusal that names those that there are.
fn find(slug: String) -> Result<&'static Strategy, Error> {
    stock::find(&slug).ok_or(Error::no_strategy(slug))
}
