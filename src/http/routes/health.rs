//! `/health/live`, `/health/ready`, `/metrics`.

use crate::{
    error::Error,
    http::{app::AppState, extract::Query},
    http_client::HttpClient,
    instance::States,
    seckill::stream,
};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::future::join_all;
use garde::Validate;
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use utoipa::{IntoParams, ToSchema};

/// How long another instance may take to say that it lives, and Redis to say how many orders wait in it.
const PATIENCE: Duration = Duration::from_millis(500);

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
    /// Whether every server is there.
    ready: bool,
    #[schema(value_type = States)]
    servers: Arc<States>,
    /// The strategies that cannot work now.
    #[schema(example = json!([]))]
    waiting: Vec<&'static str>,
    /// The cluster, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<Vec<Neighbour>>,
}

/// Another instance of the cluster, or this one.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Neighbour {
    /// Its name; its address where it does not answer.
    #[schema(example = "8100")]
    name: String,
    #[schema(example = "http://127.0.0.1:8100")]
    url: String,
    up: bool,
}

/// What `/health/ready` may be asked.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Scope {
    /// Whether to ask the other instances too.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false, required = false)]
    instances: bool,
}

/// This instance runs.
#[utoipa::path(get, path = "/health/live", tag = "operating",
    responses((status = 200, description = "It runs", body = Live)))]
pub(in crate::http) async fn live(State(app): State<AppState>) -> Json<Live> {
    Json(Live { instance: app.ctx.instance.clone(), status: "live" })
}

/// Which servers are there, and which strategies wait for one that is not.
#[utoipa::path(get, path = "/health/ready", tag = "operating", params(Scope),
    responses(
        (status = 200, description = "Every server is there", body = Ready),
        (status = 503, description = "A server that a strategy needs is missing", body = Ready),
    ))]
pub(in crate::http) async fn ready(State(app): State<AppState>, Query(scope): Query<Scope>) -> Result<Response, Error> {
    let instances = match scope.instances {
        true => {
            let client = HttpClient::new(PATIENCE);
            Some(join_all(app.ctx.config.cluster.instances.iter().map(|url| neighbour(&client, url))).await)
        }
        false => None,
    };
    let servers = app.instance.states().await;
    let waiting = servers.waiting();
    let ready = waiting.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(Ready { instance: app.ctx.instance.clone(), ready, servers, waiting, instances })).into_response())
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operating",
    responses((status = 200, description = "Prometheus' text format", body = String, content_type = "text/plain")))]
pub(in crate::http) async fn metrics(State(app): State<AppState>) -> impl IntoResponse {
    let backlog = tokio::time::timeout(PATIENCE, stream::backlog(&app.ctx)).await;
    app.metrics.note(backlog.ok().and_then(Result::ok));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render())
}

async fn neighbour(client: &HttpClient, url: &str) -> Neighbour {
    let answer = client.get(&format!("{}/health/live", url.trim_end_matches('/'))).await.ok();
    let name = answer.filter(|answer| answer.status == StatusCode::OK);
    let name = name.and_then(|answer| answer.instance().map(str::to_owned));
    Neighbour { up: name.is_some(), name: name.unwrap_or_else(|| url.to_owned()), url: url.to_owned() }
}
