//! `/openapi.json` from the handlers' own descriptions, and `/docs`, which shows it without any other host.

use super::routes::{
    check, health,
    lessons::{self, redis, zk_barriers, zk_counts, zk_herd, zk_locks},
    runs, stock, strategies,
};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_swagger_ui::SwaggerUi;

#[derive(OpenApi)]
#[openapi(
    info(title = "oversell", description = "A stock that oversells, and every cure for it. \
        Answers are text as in the course, or JSON with `Accept: application/json`; errors then follow RFC 9457. \
        Every answer has `x-instance` and `x-request-id`."),
    paths(
        check::by_default, check::by_strategy, strategies::list, strategies::source, stock::read, stock::put,
        lessons::semaphore, lessons::latch, lessons::countdown, redis::read, redis::write, redis::fair, redis::multi, redis::red, redis::reentrant,
        zk_locks::read, zk_locks::write, zk_locks::semaphore, zk_locks::multi, zk_locks::reentrant,
        zk_counts::share, zk_counts::atomic, zk_barriers::set, zk_barriers::wait, zk_barriers::remove,
        zk_barriers::enter, zk_barriers::leave,
        zk_herd::herd,
        runs::start, runs::current, runs::cancel, runs::events, health::live, health::ready, health::metrics,
    ),
    tags(
        (name = "course", description = "The stock and the strategies"),
        (name = "load", description = "Runs of load, one at a time"),
        (name = "operating", description = "For those who run it"),
    ),
    modifiers(&Admin),
)]
pub(super) struct Api;

struct Admin;

impl Modify for Admin {
    fn modify(&self, api: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("`admin.token`")).build();
        api.components.get_or_insert_default().add_security_scheme("admin", SecurityScheme::Http(bearer));
    }
}

/// Swagger UI and the document that it shows.
pub(super) fn ui() -> SwaggerUi {
    SwaggerUi::new("/docs").url("/openapi.json", Api::openapi())
}
