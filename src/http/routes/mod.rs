//! Every route: the table of contents. Each is declared once, address and documentation at its handler: a handler extracts
//! what it is given, calls one function of the domain, and returns what that says.

mod check;
mod classroom;
mod course;
mod deadlocks;
mod health;
mod ids;
mod lab;
mod lessons;
mod limits;
mod mine;
mod prelude;
mod replays;
mod runs;
mod stock;
mod strategies;
mod voucher_orders;
mod vouchers;

use super::{
    app::AppState,
    error::Error,
    form, guard, middleware,
    openapi::{self, Api},
    page,
};
use crate::config::Config;
use axum::{Router, handler::Handler, middleware::from_fn_with_state};
use http::header;
use std::future::ready;
use tower_http::compression::CompressionLayer;
use utoipa::{OpenApi, openapi::OpenApi as Document};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

/// The whole service: every route, with its middleware.
pub(super) fn router(app: &AppState) -> Router {
    let (routes, operating, api) = documented(app);
    let routes = routes
        .with_state(app.clone())
        // /openapi.json and /docs
        .merge(page::with_docs_policy(openapi::ui(openapi::with_defaults(&api)).into()))
        // / and the files of the page
        .fallback(page::serve_file.layer(CompressionLayer::new()));
    let service = middleware::with_middleware(app, routes, operating.with_state(app.clone()));
    middleware::called_by_name(app, service)
}

/// The routes, those for operators apart, and the document that describes both.
pub(super) fn documented(app: &AppState) -> (Router<AppState>, Router<AppState>, Document) {
    let config = &app.ctx.config;
    // the lessons for several windows, each as it says of itself; a lock in the code, as an object, as a layer; the lessons with
    // parameters of their own
    let lessons = lessons::windows::window_routes()
        .chain(lessons::demos::demo_routes(app))
        .chain([
            routes!(lessons::zk_atomic::atomic),
            routes!(lessons::zk_double_barrier::enter),
            routes!(lessons::zk_double_barrier::leave),
            routes!(lessons::zk_herd::herd),
        ])
        .map(|route| refusing_head_and_embedding(config, route))
        .fold(OpenApiRouter::with_openapi(Api::openapi()), OpenApiRouter::routes);
    let form = |(schemas, mut paths, methods): UtoipaMethodRouter<AppState>| -> UtoipaMethodRouter<AppState> {
        let mut posts = paths.paths.values_mut().filter_map(|item| item.post.as_ref());
        let state = (app.clone(), posts.any(openapi::takes_query));
        (schemas, paths, methods.layer(from_fn_with_state(state, form::join_body_to_query)))
    };
    let (routes, mut api) = lessons
        // the course
        .routes(form(refusing_head_and_embedding(config, routes!(check::by_default))))
        .routes(form(refusing_head_and_embedding(config, routes!(check::by_strategy))))
        .routes(routes!(strategies::list))
        .routes(routes!(strategies::text))
        .routes(routes!(strategies::source))
        .routes(routes!(stock::read, stock::reset, stock::remove))
        // deadlocks, limits
        .routes(routes!(deadlocks::list))
        .routes(form(routes!(deadlocks::play)))
        .routes(refusing_head_and_embedding(config, routes!(limits::limited)))
        .routes(refusing_head_and_embedding(config, routes!(limits::shared)))
        .routes(routes!(limits::unlimited))
        // the seckill
        .routes(routes!(vouchers::add))
        .routes(routes!(vouchers::read, vouchers::remove))
        .routes(routes!(vouchers::orders))
        .routes(routes!(vouchers::check))
        .routes(form(routes!(voucher_orders::place)))
        .routes(routes!(voucher_orders::list))
        .routes(routes!(voucher_orders::text))
        .routes(routes!(voucher_orders::source))
        .routes(routes!(voucher_orders::state))
        .routes(refusing_head_and_embedding(config, routes!(ids::next)))
        // the races of the lessons
        .routes(routes!(replays::list))
        .routes(form(routes!(replays::start, replays::cancel)))
        .routes(form(routes!(replays::step)))
        .routes(form(routes!(replays::next)))
        .routes(routes!(replays::events))
        .routes(routes!(replays::start_actor))
        .routes(routes!(replays::direct_actor))
        // a lock of one's own
        .routes(routes!(mine::read, mine::store_scripts))
        .routes(form(routes!(mine::grade)))
        // a class that looks on
        .routes(routes!(classroom::events::events))
        .routes(routes!(classroom::objects::objects))
        .routes(routes!(classroom::visits::send_visits))
        .routes(routes!(classroom::lesson::show))
        .routes(routes!(classroom::lesson::guess))
        .routes(routes!(classroom::desk::mark_present))
        .routes(routes!(classroom::desk::desk, classroom::desk::call))
        .routes(routes!(classroom::desk::clear_queue))
        .routes(routes!(classroom::burst::send_burst))
        .routes(form(routes!(classroom::lines::type_line)))
        .routes(routes!(classroom::qr::qr))
        // every claim, and its verdict
        .routes(routes!(course::list))
        .routes(routes!(course::get_verdicts, course::store_verdicts))
        .routes(routes!(course::get_last_run))
        .routes(routes!(course::get_lesson))
        .routes(routes!(course::rates))
        // breaking servers and instances by hand
        .routes(routes!(lab::get_lab))
        .routes(routes!(lab::inject))
        // load from the page
        .routes(routes!(runs::start))
        .routes(routes!(runs::current))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::events))
        .split_for_parts();
    let (operating, rest) = OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::under_way))
        .routes(routes!(health::books))
        .routes(routes!(health::metrics))
        .split_for_parts();
    api.merge(rest);
    openapi::complete(&mut api);
    let refuse_unread = form::refuse_unread(&mut api);
    (routes.layer(refuse_unread.clone()), operating.layer(refuse_unread), api)
}

/// A route of the course, which takes a piece or a lock with GET: HEAD, which must have no effect, is refused like every
/// method that is not documented, and so is what a page of another host embeds.
fn refusing_head_and_embedding(
    config: &Config,
    (schemas, mut paths, methods): UtoipaMethodRouter<AppState>,
) -> UtoipaMethodRouter<AppState> {
    let mut allow = Vec::new();
    for (method, operation) in paths.paths.values_mut().flat_map(openapi::operations) {
        openapi::document_embedding_refusal(operation);
        allow.push(method.to_string());
    }
    let allow = allow.join(", ");
    let refuse = move || ready(([(header::ALLOW, allow.clone())], Error::NoMethod));
    (schemas, paths, methods.head(refuse.clone()).fallback(refuse).layer(guard::refuse_embedding(config)))
}
