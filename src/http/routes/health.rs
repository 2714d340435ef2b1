//! `/health`, `/health/live`, `/health/ready`, `/metrics`.

use crate::http::routes::prelude::*;
use crate::{
    http::{
        neighbours::{self, InstanceTrouble, LatestAnswer, Neighbour},
        terms::ProductQuery,
        under_way::UnderWayBody,
    },
    instance::States,
    load::books::BooksBody,
    seckill::stream,
    stock_admin,
};
use axum::{Json, response::Redirect};
use futures::future::OptionFuture;
use std::time::Instant;

/// How long one answer of all instances serves everybody who asks.
const CLUSTER_AGE: Duration = Duration::from_millis(300);
/// Time limit of each read for a scrape, which must not wait for a server that is down.
const METRICS_TIMEOUT: Duration = Duration::from_millis(500);

type Cluster = LatestAnswer<Arc<Vec<Neighbour>>>;

/// This instance runs.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Live {
    #[schema(example = "8000")]
    instance: String,
    #[schema(example = "live")]
    status: &'static str,
}

/// Whether this instance can work.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Ready {
    #[schema(example = "8000")]
    instance: String,
    /// Whether every strategy can work.
    ready: bool,
    #[schema(value_type = States)]
    servers: Arc<States>,
    /// The strategies that cannot work now.
    #[schema(example = json!([]))]
    waiting: Vec<&'static str>,
    /// The cluster, if requested. `servers` and `waiting` are then the view of all instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Neighbour>>)]
    instances: Option<Arc<Vec<Neighbour>>>,
    /// Each trouble of the cluster in words, and whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<InstanceTrouble>>,
}

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ReadyQuery {
    /// Whether to ask all instances: a server is then up if one of them reaches it.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false, required = false)]
    instances: bool,
}

/// Leads to `/health/ready`, whose answer is what most ask for here.
#[utoipa::path(get, path = "/health", tag = "operating",
    responses((status = 307, description = "`location` is `/health/ready`, of the same instance")))]
pub(in crate::http) async fn health() -> Redirect {
    Redirect::temporary("health/ready")
}

/// This instance runs.
#[utoipa::path(get, path = "/health/live", tag = "operating",
    responses((status = 200, description = "It runs", body = Live)))]
pub(in crate::http) async fn live(State(app): State<AppState>) -> Json<Live> {
    Json(Live { instance: app.ctx.instance.clone(), status: "live" })
}

/// Which servers are there, and which strategies wait for one that is not, or for a table with transactions.
#[utoipa::path(get, path = "/health/ready", tag = "operating", params(ReadyQuery),
    responses(
        (status = 200, description = "Every server is there", body = Ready),
        (status = 503, description = "A server that a strategy needs is missing, or a table has no transactions", body = Ready),
    ))]
pub(in crate::http) async fn ready(
    State(app): State<AppState>,
    InstanceState(cluster): InstanceState<Cluster>,
    Query(scope): Query<ReadyQuery>,
) -> Result<Response, Error> {
    let now = Instant::now();
    let asked = scope.instances.then(|| {
        let ask = async { Arc::new(neighbours::ask_instances(&app.ctx.config.cluster.instances).await) };
        cluster.asked_since(now.checked_sub(CLUSTER_AGE).unwrap_or(now), ask)
    });
    let (own, instances) = tokio::join!(app.server_watch.states(), OptionFuture::from(asked));
    let servers = match &instances {
        Some(all) => Arc::new(neighbours::merge_states(&own, all)),
        None => own,
    };
    let notes = instances.as_ref().map(|all| neighbours::troubles(&servers, all));
    let waiting = servers.blocked_strategies();
    let ready = waiting.is_empty();
    let status = match ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let instance = app.ctx.instance.clone();
    Ok((status, Json(Ready { instance, ready, servers, waiting, instances, notes })).into_response())
}

/// How many requests for a product are under way in this instance: those that wait for its lock, and those inside.
#[utoipa::path(get, path = "/health/under-way", tag = "operating", params(ProductQuery),
    responses((status = 200, description = "How many", body = UnderWayBody)))]
pub(in crate::http) async fn under_way(State(app): State<AppState>, Query(product): Query<ProductQuery>) -> Json<UnderWayBody> {
    let under_way = app.requests_by_product.get(product.id());
    Json(UnderWayBody { instance: app.ctx.instance.clone(), under_way })
}

/// What product 1 was asked for in this instance since it started, by strategy.
#[utoipa::path(get, path = "/health/books", tag = "operating",
    responses((status = 200, description = "Its books", body = BooksBody)))]
pub(in crate::http) async fn books(State(app): State<AppState>) -> Json<BooksBody> {
    Json(app.books.read())
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operating",
    responses((status = 200, description = "Prometheus' text format", body = String, content_type = "text/plain")))]
pub(in crate::http) async fn metrics(State(app): State<AppState>) -> impl IntoResponse {
    let backlog = tokio::time::timeout(METRICS_TIMEOUT, stream::count_backlog(&app.ctx));
    let levels = tokio::time::timeout(METRICS_TIMEOUT, stock_admin::read(&app.ctx, 1));
    let (backlog, levels) = tokio::join!(backlog, levels);
    let (backlog, levels) = (backlog.ok().and_then(Result::ok), levels.ok().and_then(Result::ok));
    app.metrics.set_gauges(backlog, levels, stock_admin::put_pieces(&app.ctx));
    app.metrics.product_sold.absolute(app.books.sold());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render())
}
