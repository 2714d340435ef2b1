//! `/voucher-order`: orders a voucher, by the step of [002] that is asked for.

use crate::http::routes::prelude::*;
use crate::{
    http::{extract::User, format::text_answer, job_summary::JobSummary},
    registry::{RegistryEntry, Text},
    seckill::{
        self, Order, SeckillStep, StepSpec,
        stream::{self, OrderState},
    },
    section::LockState,
};
use axum::Json;

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct OrderQuery {
    /// One of `GET /voucher-order/strategies`; `redis-rlock` without it.
    #[garde(skip)]
    #[param(example = "redis-rlock")]
    strategy: Option<String>,
    /// How long to stay inside, in milliseconds: in most strategies after the checks, before the deduction.
    #[garde(dive)]
    #[param(inline, default = 0)]
    hold_ms: Option<HoldMs>,
    /// The longest wait for a lock of the process, a row or a connection, in milliseconds; `lock.wait_ms` without it. The
    /// locks in Redis do not wait.
    #[garde(dive)]
    #[param(inline)]
    wait_ms: Option<WaitMs>,
    /// The lease of a lock that has one, in milliseconds, instead of its own.
    #[garde(dive)]
    #[param(inline)]
    lease_ms: Option<LeaseMs>,
}

/// An order was placed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct OrderBody {
    #[serde(flatten)]
    took: JobSummary,
    /// The order's number. It is a string, since it exceeds 2^53, and a browser reads larger numbers of JSON without their
    /// last digits.
    #[schema(example = "656262738411028481")]
    order_id: String,
    /// The state of the lock at the unlock, if there is a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    lock: Option<LockState>,
}

/// Orders a voucher for a user.
///
/// Refused in the words of the text: 秒杀尚未开始! 秒杀已经结束! 库存不足！ 用户已经购买过一次! 不允许重复下单.
#[utoipa::path(post, path = "/voucher-order/seckill/{id}", tag = "seckill",
    params(
        ("id" = i64, Path, description = "The voucher", example = 1),
        ("x-user-id" = i64, Header, description = "For whom", minimum = 1, example = 1010),
        OrderQuery,
    ),
    responses(
        (status = 200, description = "The order was placed", body = OrderBody),
        (status = 404, description = "There is no such voucher or strategy"),
        (status = 409, description = "Not begun, over, sold out, ordered already, or an order of this user is under way"),
    ))]
pub(in crate::http) async fn place(
    State(app): State<AppState>,
    Path(id): Path<i64>,
    User(user_id): User,
    Query(how): Query<OrderQuery>,
) -> Result<Json<OrderBody>, Error> {
    let step = find(how.strategy.as_deref().unwrap_or(seckill::DEFAULT))?;
    let wait = how.wait_ms.map_or(app.ctx.config.default_wait(), BoundedInteger::millis);
    let hold = how.hold_ms.map_or(Duration::ZERO, BoundedInteger::millis);
    let order = Order::new(id, user_id, hold, wait).with_lease(how.lease_ms.map(BoundedInteger::millis));
    let ordered = (step.spec.place)(&app.ctx, &order).await?;
    Ok(Json(OrderBody {
        took: JobSummary::new(&app, AnswerOutcome::Sold, step.slug, &order.job),
        order_id: ordered.order_id.to_string(),
        lock: ordered.lock,
    }))
}

/// Whether an order has been written, for one of `script-stream`, which is answered before.
#[utoipa::path(get, path = "/voucher-order/{order_id}", tag = "seckill",
    params(("order_id" = i64, Path, description = "Its number", minimum = 1, example = 656262738411028481_i64)),
    responses(
        (status = 200, description = "`pending`, `stored`, or `failed` with the reason", body = OrderState),
        (status = 404, description = "There is no such order"),
    ))]
pub(in crate::http) async fn state(State(app): State<AppState>, Path(order_id): Path<String>) -> Result<Json<OrderState>, Error> {
    let number = order_id.parse().ok().filter(|number| *number > 0);
    let order_id = number.ok_or_else(|| Error::bad_input("order_id", "must be a positive whole number"))?;
    Ok(Json(stream::read_order_state(&app.ctx, order_id).await?))
}

/// Every step, in the text's order.
#[utoipa::path(get, path = "/voucher-order/strategies", tag = "seckill",
    responses((status = 200, description = "The registry", body = [RegistryEntry<StepSpec>])))]
pub(in crate::http) async fn list() -> Json<&'static [SeckillStep]> {
    Json(&seckill::ALL)
}

/// How a step does it.
#[utoipa::path(get, path = "/voucher-order/strategies/{slug}/text", tag = "seckill",
    params(("slug" = String, Path, description = "One of `GET /voucher-order/strategies`", example = "check-then-deduct")),
    responses(
        (status = 200, description = "What it does in order, what it survives and what breaks it", body = Text),
        (status = 404, description = "There is no such strategy"),
    ))]
pub(in crate::http) async fn text(Path(slug): Path<String>) -> Result<Json<&'static Text>, Error> {
    Ok(Json(&find(&slug)?.text))
}

/// A step's source file.
#[utoipa::path(get, path = "/voucher-order/strategies/{slug}/source", tag = "seckill",
    params(("slug" = String, Path, description = "One of `GET /voucher-order/strategies`", example = "check-then-deduct")),
    responses(
        (status = 200, description = "A Rust file", body = String, content_type = "text/plain"),
        (status = 404, description = "There is no such strategy"),
    ))]
pub(in crate::http) async fn source(Path(slug): Path<String>) -> Result<Response, Error> {
    Ok(text_answer(find(&slug)?.source))
}

/// The step of this slug, or the refusal.
fn find(slug: &str) -> Result<&'static SeckillStep, Error> {
    seckill::find(slug).ok_or_else(|| Error::NoOrderStrategy(slug.to_owned()))
}
