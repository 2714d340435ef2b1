//! `/check/lock`: checks the stock and takes a piece, by the strategy that is asked for.
//!
//! From request to effect, for `redis-lock`: `routes/mod.rs` lists it, and refuses HEAD; `form.rs` reads a POST's fields as a
//! query; [`by_strategy`] here; `Strategy::deduct` in `stock/mod.rs`; `deduct` in `stock/strategies/redis_lock.rs`.
//!
//! The library takes the lock: `Lock::acquire` in `lock/src/redis/lock.rs`; `AcquireRequest::acquire_guard` in `acquire.rs`
//! calls back `take_first_hold`, which is at the head of its line at once unless another request of this process holds or waits;
//! `try_until` in `engine.rs` calls back `attempt`, which sends `lua/acquire.lua` by EVALSHA (`RedisClient::run_script` in
//! `client.rs`); `hold.rs` makes the guard, and renews it every third of the lease (`LeaseShare::renew_until_lost`).
//!
//! Then `stock::run_then_release` runs `none::read_then_write`, whose SELECT and UPDATE each have a connection and the rest of the
//! wait (`section/mysql.rs`), and releases: `Guard::release` asks `keeper.rs`, whose `LeaseShare::finish` calls
//! `LockClaim::release_or_hand_off` in `lock.rs`, not the default in `hold.rs`; it sends `lua/release.lua`, which publishes to those
//! who wait, or `lua/hand_off.lua` if another waits in this process.
//!
//! The answer is the text `SOLD_TEXT`, or [`DeductionBody`] where `Accept` names JSON, or the problem of
//! `http/error.rs`: a lock that is not had in time is `not-had`, 503, since `LockError::Taken` becomes `Error::Timeout`.

use super::replays;
use crate::http::routes::prelude::*;
use crate::{
    http::{job_summary::JobSummary, terms::Terms},
    own_lock,
    section::Deduction,
    server::Server,
    stock::{self, Strategy},
};

const SOLD_TEXT: &str = "验库存并锁库存成功！";

/// A piece was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeductionBody {
    #[serde(flatten)]
    took: JobSummary,
    #[serde(flatten)]
    deducted: Deduction,
    /// When it got in, in microseconds of Unix time by this machine's clock; absent if the strategy has no critical
    /// section.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 1_790_000_000_000_000_u64)]
    entered_us: Option<u64>,
    /// When it had written, and was about to give the lock back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 1_790_000_000_001_000_u64)]
    left_us: Option<u64>,
    /// Where the strategy has no critical section: from when to when each of its tries was under way, by the same clock; all
    /// but the last were in vain. The last 20 of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!([[1_790_000_000_000_000_u64, 1_790_000_000_001_000_u64]]))]
    tries_us: Vec<(u64, u64)>,
}

/// Takes a piece by the configured strategy.
#[utoipa::path(method(get, post), path = "/check/lock", tag = "course", params(Terms, Visitor),
    responses(
        (status = 200, description = "A piece was taken",
            content((String = "text/plain", example = "验库存并锁库存成功！"), (DeductionBody = "application/json"))),
        (status = 404, description = "There is no such product"),
        (status = 409, description = "Sold out, or the lock was lost before the write"),
    ))]
pub(in crate::http) async fn by_default(
    visitor: Visitor,
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    deduct(&app, &visitor, app.strategy, &terms, format).await
}

/// Takes a piece by one strategy; by `mine`, from the visitor's own product, unless another is named.
#[utoipa::path(method(get, post), path = "/check/lock/{strategy}", tag = "course",
    params(("strategy" = String, Path, description = "One of `GET /strategies`", example = "version-cas"), Terms, Visitor),
    responses(
        (status = 200, description = "A piece was taken",
            content((String = "text/plain", example = "验库存并锁库存成功！"), (DeductionBody = "application/json"))),
        (status = 404, description = "There is no such strategy or product"),
        (status = 409, description = "Sold out, or the lock was lost before the write"),
    ))]
pub(in crate::http) async fn by_strategy(
    visitor: Visitor,
    State(app): State<AppState>,
    Path(slug): Path<String>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let strategy = stock::find(&slug).ok_or(Error::no_strategy(slug))?;
    deduct(&app, &visitor, strategy, &terms, format).await
}

/// Takes a piece by the strategy and records the result in the metrics. A request with a person's name is shown as a visit on
/// the class page. A student's own lock sells the visitor's own product, unless the request names one.
async fn deduct(
    app: &AppState,
    visitor: &Visitor,
    strategy: &'static Strategy,
    terms: &Terms,
    format: Format,
) -> Result<Response, Error> {
    let metrics = app.metrics.of_strategy(strategy);
    let mut job = terms.job(app.ctx.config.default_wait(), Duration::ZERO).with_waiters(metrics.waiters.clone());
    if strategy.is_own_lock() {
        replays::check_replays_and_own_locks_enabled(app)?;
        let own_product = visitor.has_id() && !terms.names_product();
        job = own_lock::prepare(&app.ctx, job, visitor.id(), own_product).await?;
    }
    // A load gives no name, and is not looked at.
    if job.request.who.is_some() {
        job = app.with_visit(job, "/check/lock", strategy.slug);
    }
    let _under_way = app.requests_by_product.count(job.request.stock_id);
    let entry = app.books.enter(job.request.stock_id, strategy.slug);
    let deducted = async {
        if strategy.spec.needs.contains(&Server::ZooKeeper) {
            stock::check_product_was_there(&app.ctx, job.request.stock_id).await?;
        }
        strategy.deduct(&app.ctx, &job).await
    };
    let result = deducted.await;
    if let Some(entry) = entry {
        entry.close(&result);
    }
    metrics.record_job(&job, &result);
    let deducted = result?;
    let (entered_us, left_us) = job.observation.inside_us().unzip();
    let sold = DeductionBody {
        took: JobSummary::new(app, AnswerOutcome::Sold, strategy.slug, &job),
        deducted,
        entered_us,
        left_us,
        tries_us: job.observation.tries_us(),
    };
    Ok(format.answer(SOLD_TEXT, sold))
}
