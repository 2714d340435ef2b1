//! Every route: the table of contents.

use super::{
    app::App,
    middleware, openapi, page,
    routes::{
        check, health,
        lessons::{self, redis, zk_barriers, zk_counts, zk_herd, zk_locks},
        runs, stock, strategies,
    },
};
use axum::{
    Router,
    middleware::{from_fn_with_state, map_response},
    routing::{delete, get, post},
};

/// The whole service.
pub(super) fn router(app: App) -> Router {
    let routes = Router::new()
        // the course
        .route("/check/lock", get(check::by_default).post(check::by_default))
        .route("/check/lock/{strategy}", get(check::by_strategy).post(check::by_strategy))
        .route("/strategies", get(strategies::list))
        .route("/strategies/{slug}/source", get(strategies::source))
        .route("/stock", get(stock::read).put(stock::put))
        .route("/test/semaphore", get(lessons::semaphore))
        .route("/test/latch", get(lessons::latch))
        .route("/test/countdown", get(lessons::countdown))
        .route("/test/read", get(redis::read))
        .route("/test/write", get(redis::write))
        .route("/test/fair", get(redis::fair))
        .route("/test/multi", get(redis::multi))
        .route("/test/red", get(redis::red))
        .route("/test/reentrant", get(redis::reentrant))
        .route("/test/zk/read", get(zk_locks::read))
        .route("/test/zk/write", get(zk_locks::write))
        .route("/test/zk/semaphore", get(zk_locks::semaphore))
        .route("/test/zk/multi", get(zk_locks::multi))
        .route("/test/zk/reentrant", get(zk_locks::reentrant))
        .route("/test/zk/share/count", get(zk_counts::share))
        .route("/test/zk/atomic/{change}", get(zk_counts::atomic))
        .route("/test/zk/barrier/set", get(zk_barriers::set))
        .route("/test/zk/barrier/wait", get(zk_barriers::wait))
        .route("/test/zk/barrier/remove", get(zk_barriers::remove))
        .route("/test/zk/double-barrier/enter", get(zk_barriers::enter))
        .route("/test/zk/double-barrier/leave", get(zk_barriers::leave))
        .route("/test/zk/herd", get(zk_herd::herd))
        // load from the page
        .route("/runs", post(runs::start))
        .route("/runs/current", get(runs::current))
        .route("/runs/{id}", delete(runs::cancel))
        .route("/runs/{id}/events", get(runs::events))
        // operating
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/metrics", get(health::metrics))
        .with_state(app.clone())
        // /openapi.json and /docs
        .merge(Router::from(openapi::ui()).layer(map_response(page::docs_policy)))
        // / and the files of the page
        .fallback(page::file);
    surrounded(routes, app)
}

/// Routes with what surrounds every request.
pub(super) fn surrounded(routes: Router, app: App) -> Router {
    routes.layer(from_fn_with_state(app, middleware::around))
}
