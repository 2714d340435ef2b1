//! `/demo1` to `/demo4`: a lock in the work's own code, as an object, and as a layer around the route.

use super::{LessonBody, respond};
use crate::http::routes::prelude::*;
use crate::{
    classroom::{
        demo_layer,
        demo1::{self, WORK_TIME},
        demo2::{self, LockValue},
        window::Answer,
    },
    error::Error as Domain,
    http::terms::terms,
    section::{Job, LockState},
};
use axum::{
    body::Body,
    extract::{FromRequestParts, Request},
    middleware::{Next, from_fn_with_state},
};
use http::request::Parts;
use oversell_lock::tower::{LockKey, LockLayer, Refusal};
use utoipa_axum::{router::UtoipaMethodRouter, routes};

/// Converts a demo's terms to a job; `now` means not to wait.
trait IntoJob {
    /// A job with `wait` as its default wait, and the demos' time of work as its default stay.
    fn into_job(self, wait: Duration) -> Job;
}

/// As [`terms!`], with `now`.
macro_rules! demo_terms {
    ($(#[$meta:meta])* $name:ident { $($fields:tt)* }) => {
        terms!($(#[$meta])* $name {
            /// Not to wait: 409 where another has the lock.
            #[garde(skip)]
            #[param(inline)]
            now: Option<bool>,
            $($fields)*
        });

        impl IntoJob for $name {
            fn into_job(self, wait: Duration) -> Job {
                let mut job = self.job(wait, WORK_TIME);
                if self.now == Some(true) {
                    job.request.wait = Duration::ZERO;
                }
                job
            }
        }
    };
}

demo_terms!(
    /// The parameters of `/demo1` and `/demo3`.
    DemoTerms {
    }
);

demo_terms!(
    /// The parameters of `/demo2`.
    Demo2Terms {
        /// The value in the key: `thread` without it.
        #[garde(skip)]
        #[param(inline)]
        id: Option<LockValue>,
    }
);

demo_terms!(
    /// The parameters of `/demo4`.
    #[expect(non_snake_case, reason = "the text's own name of a parameter")]
    Demo4Terms {
        #[garde(dive)]
        #[param(inline)]
        whId: BoundedInteger<0, { i32::MAX as i64 }>,
        /// The goods: 1 to 32 characters, which the key of a lock has room for.
        #[garde(custom(check_sku))]
        #[param(min_length = 1, max_length = 32, example = "a")]
        sku: String,
    }
);

fn check_sku(sku: &str, (): &()) -> garde::Result {
    require((1..=32).contains(&sku.chars().count()), "must have 1 to 32 characters")
}

/// Takes the lock in its own code, works for five seconds, deletes the lock.
#[utoipa::path(get, path = "/demo1", tag = "course", params(DemoTerms),
    responses((status = 200, description = "The work is done",
        content((String = "text/plain", example = "demo1"), (LessonBody = "application/json"))),
        (status = 409, description = "Another has the lock, and this request does not wait")))]
async fn demo1(State(app): State<AppState>, Query(terms): Query<DemoTerms>, format: Format) -> Result<Response, Error> {
    let job = terms.into_job(app.ctx.config.default_wait());
    let found = demo1::visit(&app.ctx, &job).await.map_err(no_wait_error)?;
    Ok(answer(&app, &job, format, "demo1", found))
}

/// Takes the lock as an object that forces it after five leases, works for five seconds, gives it back.
#[utoipa::path(get, path = "/demo2", tag = "course", params(Demo2Terms),
    responses((status = 200, description = "The work is done",
        content((String = "text/plain", example = "demo2"), (LessonBody = "application/json"))),
        (status = 409, description = "Another has the lock, and this request does not wait")))]
async fn demo2(State(app): State<AppState>, Query(terms): Query<Demo2Terms>, format: Format) -> Result<Response, Error> {
    let id = terms.id.unwrap_or_default();
    let job = terms.into_job(demo2::DEFAULT_WAIT);
    let found = demo2::visit(&app.ctx, &job, id).await.map_err(no_wait_error)?;
    Ok(answer(&app, &job, format, "demo2", found))
}

/// Works for five seconds, under the lock of its route.
#[utoipa::path(get, path = "/demo3", tag = "course", params(DemoTerms),
    responses((status = 200, description = "The work is done",
        content((String = "text/plain", example = "demo3"), (LessonBody = "application/json"))),
        (status = 409, description = "The lock is taken and the request does not wait, or the lock was lost during the work")))]
async fn demo3(State(app): State<AppState>, Extension(job): Extension<Arc<Job>>, format: Format) -> Response {
    job.enter_and_stay().await;
    answer(&app, &job, format, "demo3", None)
}

/// Works for five seconds, under a lock for each warehouse and goods.
#[utoipa::path(get, path = "/demo4", tag = "course", params(Demo4Terms),
    responses((status = 200, description = "The work is done",
        content((String = "text/plain", example = "demo4"), (LessonBody = "application/json"))),
        (status = 409, description = "The lock is taken and the request does not wait, or the lock was lost during the work")))]
async fn demo4(State(app): State<AppState>, Extension(job): Extension<Arc<Job>>, format: Format) -> Response {
    job.enter_and_stay().await;
    answer(&app, &job, format, "demo4", None)
}

/// The routes of the four demos, the last two with their locks around them.
pub(in crate::http) fn demo_routes(app: &AppState) -> [UtoipaMethodRouter<AppState>; 4] {
    let by_parameters = |Query(terms): Query<Demo4Terms>| demo_layer::key_by_parameters(terms.whId.get(), &terms.sku);
    let by_parameters = LockLayer::by_extractor_with_state(app.clone(), by_parameters);
    [
        routes!(demo1),
        routes!(demo2),
        with_lock::<DemoTerms>(app, LockLayer::by_route("/demo3"), routes!(demo3)),
        with_lock::<Demo4Terms>(app, by_parameters, routes!(demo4)),
    ]
}

/// Puts the lock of this key around a route, with the query's wait. The query is read before, so that no lock is acquired for
/// an invalid one.
fn with_lock<T>(
    app: &AppState,
    key: LockKey,
    (schemas, paths, methods): UtoipaMethodRouter<AppState>,
) -> UtoipaMethodRouter<AppState>
where
    T: IntoJob + Send + 'static,
    Query<T>: FromRequestParts<AppState, Rejection = Error>,
{
    let ctx = app.ctx.clone();
    let layer: LockLayer<Body> = key
        .wait_by(|head| job(head).wait_left())
        .locks_by(move |name, head| demo_layer::lock(&ctx, job(head), name))
        .expect("the route is a good one");
    let layer = layer.answer(|refusal| refusal_error(refusal).into_response());
    (schemas, paths, methods.layer(layer).layer(from_fn_with_state(app.clone(), read_job::<T>)))
}

/// Reads the query into a job, for the layer and the handler behind it.
async fn read_job<T: IntoJob>(State(app): State<AppState>, Query(terms): Query<T>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Arc::new(terms.into_job(app.ctx.config.default_wait())));
    next.run(request).await
}

/// The job that [`read_job`] has read from the query. Panics without one.
fn job(head: &Parts) -> &Job {
    head.extensions.get::<Arc<Job>>().expect("read_job stands outside of the lock")
}

/// The error of a refusal by the layer: 400 for the request, else the lock's own.
fn refusal_error(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Field { field, rule } => Error::bad_input(&field, rule),
        Refusal::BodyTooLong { .. } => Error::bad_input("body", "is too long"),
        Refusal::Lock(error) => no_wait_error(error.into()),
        other => Domain::Internal(other.to_string()).into(),
    }
}

/// Makes [`Domain::Taken`], a 409, of the timeout of a request that has waited for 0 ms; other errors stay.
fn no_wait_error(error: Domain) -> Error {
    match error {
        Domain::Timeout { what, waited } if waited.is_zero() => Domain::Taken(what),
        other => other,
    }
    .into()
}

/// The answer of a demo, with the lock's state at its unlock.
fn answer(app: &AppState, job: &Job, format: Format, demo: &'static str, lock: Option<LockState>) -> Response {
    respond(app, job, format, demo, Answer::with_details(demo, None, lock))
}
