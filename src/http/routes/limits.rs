//! `/seckill/limited`: a limit in each instance, one in all, and none at all, for what nginx limits.

use crate::classroom::limits;
use crate::http::routes::prelude::*;
use chrono::Utc;

const LET_THROUGH_TEXT: &str = "拿到令牌，进入秒杀";

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct StayQuery {
    /// How long to stay once let through, in milliseconds: for limits on requests at once.
    #[garde(dive)]
    #[param(inline, default = 0)]
    hold_ms: Option<HoldMs>,
    /// The name of the person. Requests of different people also differ for a browser, which holds back a second GET of the
    /// same address.
    #[garde(dive)]
    #[param(inline)]
    who: Option<Who>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct LetThrough {
    outcome: AnswerOutcome,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// The name of the person who asked, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "小明")]
    who: Option<String>,
    /// When it came in, in milliseconds since 1970, by the instance's clock.
    #[schema(example = 1_795_478_400_000_i64)]
    came_ms: i64,
    /// When it left, by the same clock.
    #[schema(example = 1_795_478_401_000_i64)]
    left_ms: i64,
}

/// Ten a second in each instance: a token bucket.
#[utoipa::path(get, path = "/seckill/limited", tag = "course", params(StayQuery),
    responses(
        (status = 200, description = "It was let through",
            content((String = "text/plain", example = "拿到令牌，进入秒杀"), (LetThrough = "application/json"))),
        (status = 429, description = "很遗憾，没抢到: the bucket is empty"),
    ))]
pub(in crate::http) async fn limited(
    State(app): State<AppState>,
    Query(stay): Query<StayQuery>,
    format: Format,
) -> Result<Response, Error> {
    limits::pass(&app.ctx)?;
    Ok(let_through(&app, stay, format).await)
}

/// Ten a second in all instances together: a window that slides, in Redis.
#[utoipa::path(get, path = "/seckill/limited/shared", tag = "course", params(StayQuery),
    responses(
        (status = 200, description = "It was let through",
            content((String = "text/plain", example = "拿到令牌，进入秒杀"), (LetThrough = "application/json"))),
        (status = 429, description = "很遗憾，没抢到: ten were let through within the last second"),
    ))]
pub(in crate::http) async fn shared(
    State(app): State<AppState>,
    Query(stay): Query<StayQuery>,
    format: Format,
) -> Result<Response, Error> {
    limits::pass_shared(&app.ctx).await?;
    Ok(let_through(&app, stay, format).await)
}

/// No limit: what nginx's own limits lead to.
#[utoipa::path(get, path = "/seckill/unlimited", tag = "course", params(StayQuery),
    responses((status = 200, description = "Everybody is let through",
        content((String = "text/plain", example = "拿到令牌，进入秒杀"), (LetThrough = "application/json")))))]
pub(in crate::http) async fn unlimited(State(app): State<AppState>, Query(stay): Query<StayQuery>, format: Format) -> Response {
    let_through(&app, stay, format).await
}

/// Stays as long as the query says, and answers when the request came and left.
async fn let_through(app: &AppState, stay: StayQuery, format: Format) -> Response {
    let came_ms = Utc::now().timestamp_millis();
    tokio::time::sleep(stay.hold_ms.map(BoundedInteger::millis).unwrap_or_default()).await;
    let passed = LetThrough {
        outcome: AnswerOutcome::Done,
        instance: app.ctx.instance.clone(),
        who: stay.who.map(Who::into_inner),
        came_ms,
        left_ms: Utc::now().timestamp_millis(),
    };
    format.answer(LET_THROUGH_TEXT, passed)
}
