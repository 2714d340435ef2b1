//! The state that all handlers of an instance share. The state of handlers of one kind is theirs:
//! [`InstanceState`](super::extract::InstanceState).

use super::{metrics::Metrics, under_way::RequestCounts};
use crate::{
    config::ConfigError,
    ctx::Ctx,
    instance::ServerWatch,
    load::books::Books,
    permits::Permits,
    section::Job,
    stock::{self, Strategy},
    visits::Visits,
};
use http::HeaderValue;
use std::{net::IpAddr, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The most streams of events of an instance: of watchers, of replays, runs and actors. Each is a connection.
pub(super) const MAX_STREAMS: usize = 3_000;

/// The state that all handlers of one instance share. Cloning it is cheap.
pub(super) type AppState = Arc<AppResources>;

pub(super) struct AppResources {
    pub(super) ctx: Ctx,
    pub(super) metrics: Metrics,
    pub(super) server_watch: Arc<ServerWatch>,
    pub(super) visits: Arc<Visits>,
    pub(super) books: Books,
    pub(super) requests_by_product: RequestCounts<i64>,
    pub(super) requests_by_address: RequestCounts<IpAddr>,
    /// The permits of the streams of events.
    pub(super) streams: Permits<Self, MAX_STREAMS>,
    /// Cancelled when the instance is told to stop: ends event streams and runs.
    pub(super) stopping: CancellationToken,
    /// The value of header `x-instance`.
    pub(super) name: HeaderValue,
    /// The strategy of `/check/lock`.
    pub(super) strategy: &'static Strategy,
}

impl AppResources {
    /// The state of an instance with these clients; `stopping` ends what would go on for ever.
    /// Errors: `stock.strategy` is no strategy, or the name does not fit a header.
    pub(super) fn new(ctx: Ctx, stopping: CancellationToken) -> Result<AppState, ConfigError> {
        let default = &ctx.config.stock.strategy;
        let strategy = stock::find(default).ok_or_else(|| {
            let all: Vec<_> = stock::ALL.iter().map(|s| s.slug).collect();
            ConfigError::new(format!("stock.strategy must be one of {}", all.join(", ")))
        })?;
        let name = HeaderValue::from_str(&ctx.instance)
            .map_err(|_| ConfigError::new("server.name must be a text that fits a header".into()))?;
        Ok(Arc::new(Self {
            metrics: Metrics::new(),
            server_watch: Arc::new(ServerWatch::new(ctx.clone())),
            visits: Visits::new(&ctx.instance),
            books: Books::default(),
            requests_by_product: RequestCounts::default(),
            requests_by_address: RequestCounts::default(),
            streams: Permits::default(),
            stopping,
            name,
            strategy,
            ctx,
        }))
    }

    /// Opens a visit to this object through `route`, which the class page shows, and returns the job with it.
    pub(super) fn with_visit(&self, job: Job, route: &str, object: &str) -> Job {
        let who = job.request.who.clone();
        let visit = self.visits.open(who, job.redis_name(object), route);
        job.with_visit(visit)
    }

    /// The URL of this instance, as seen from this machine.
    pub(super) fn own_address(&self) -> String {
        let server = &self.ctx.config.server;
        match server.host.as_str() {
            "0.0.0.0" | "::" => format!("http://127.0.0.1:{}", server.port),
            host if host.contains(':') => format!("http://[{host}]:{}", server.port),
            host => format!("http://{host}:{}", server.port),
        }
    }
}
