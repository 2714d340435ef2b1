//! What an error looks like to a client: its status, its words in two languages, and whether anything was changed.
//!
//! A handler returns an [`Error`]; `middleware.rs` renders it, because only there is known what the client reads.

use super::format::Format;
use crate::{error::Error, seckill, stock};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer};
use std::sync::Arc;
use utoipa::ToSchema;

/// A client that was told that something is missing, or that too many came, may try again after this many seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// The error of a handler, on its way to the middleware.
#[derive(Clone)]
pub(super) struct Failed(pub(super) Arc<Error>);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(Failed(Arc::new(self)));
        response
    }
}

/// What a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// A piece was taken.
    Sold,
    /// A lesson that sells nothing went as asked.
    Done,
    /// None was left. Nothing was changed.
    SoldOut,
    /// The request itself is at fault, or came too late. Nothing was changed.
    Refused,
    /// It could not be done. Nothing was changed.
    Failed,
    /// It may have been done or not.
    Unknown,
}

/// An error as RFC 9457 writes it (`application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Its kind: `urn:oversell:` and a name that does not change.
    #[serde(rename = "type", serialize_with = "urn")]
    #[schema(value_type = String, example = "urn:oversell:sold-out")]
    kind: &'static str,
    /// In Chinese, as the course words it.
    #[schema(example = "库存不足！")]
    title: String,
    /// In English.
    #[schema(example = "sold out")]
    detail: String,
    /// The status, once more.
    #[schema(example = 409)]
    status: u16,
    /// What the request came to.
    outcome: Outcome,
    /// The field that is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "hold_ms")]
    field: Option<String>,
    /// To be named in a report: the log has the same.
    #[schema(example = "4f1c9a0be3d27756")]
    request_id: String,
    /// Where the strategy does not exist: those that do.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategies: Option<Vec<&'static str>>,
    /// Where a run is in progress: which, whose, and how long it will still take.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunInProgress>,
    /// Where the row refused a write: the token that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 33)]
    fence: Option<u64>,
    /// Where the row refused a write: the token of a newer holder that the row has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 34)]
    seen: Option<u64>,
    #[serde(skip)]
    code: StatusCode,
}

/// A run of load that is in progress.
#[derive(Debug, Serialize, ToSchema)]
struct RunInProgress {
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    id: String,
    /// The instance that sends it, and knows how it stands.
    #[schema(example = "8000")]
    instance: String,
    /// Who started it.
    #[schema(example = "127.0.0.1")]
    by: String,
    #[schema(example = "none")]
    strategy: String,
    /// How long it will still take, once that can be told.
    #[schema(example = 1200)]
    left_ms: Option<u64>,
}

fn urn<S: Serializer>(kind: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("urn:oversell:{kind}"))
}

/// The one place where an error becomes a status.
impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        use Outcome::{Failed, Refused, SoldOut, Unknown};
        use StatusCode as S;
        let (code, kind, outcome, title): (_, _, _, String) = match error {
            Error::SoldOut => (S::CONFLICT, "sold-out", SoldOut, "库存不足！".into()),
            Error::NoProduct(id) => (
                S::NOT_FOUND,
                "no-product",
                Refused,
                format!("没有这个商品：{id}"),
            ),
            Error::NoStock(id) => (
                S::SERVICE_UNAVAILABLE,
                "no-stock",
                Failed,
                format!("redis 里没有商品 {id} 的库存，请重置库存"),
            ),
            Error::WrongType => (
                S::SERVICE_UNAVAILABLE,
                "wrong-type",
                Failed,
                "redis 里锁的键是别的类型，不是这种锁写的".into(),
            ),
            Error::NoVoucherStock(id) => (
                S::SERVICE_UNAVAILABLE,
                "no-voucher-stock",
                Failed,
                format!("redis 里没有优惠券 {id} 的库存"),
            ),
            Error::NoReplay(lesson) => (
                S::NOT_FOUND,
                "no-replay",
                Refused,
                format!("没有这一课的重演：{lesson}"),
            ),
            Error::NoReplays => (
                S::FORBIDDEN,
                "no-replays",
                Refused,
                "这里没有开启重演".into(),
            ),
            Error::ReplayInProgress(lesson) => (
                S::CONFLICT,
                "replay-in-progress",
                Refused,
                format!("第 {lesson} 课正在重演"),
            ),
            Error::NoSuchActor(id) => (
                S::NOT_FOUND,
                "no-actor",
                Refused,
                format!("没有这个角色：{id}"),
            ),
            Error::NoActor { .. } => (
                S::SERVICE_UNAVAILABLE,
                "no-actor-there",
                Failed,
                "另一个实例没有应答".into(),
            ),
            Error::NoLab => (
                S::FORBIDDEN,
                "no-lab",
                Refused,
                "这里的服务器不是 oversell lab 启动的".into(),
            ),
            Error::LabRefuses(_) => (S::CONFLICT, "lab-refuses", Refused, "lab 没有照做".into()),
            Error::Replay(_) => (
                S::SERVICE_UNAVAILABLE,
                "replay",
                Failed,
                "重演没有按剧本走".into(),
            ),
            Error::NoOrder(id) => (
                S::NOT_FOUND,
                "no-order",
                Refused,
                format!("没有这个订单：{id}"),
            ),
            Error::NoId(_) => (
                S::SERVICE_UNAVAILABLE,
                "no-id",
                Failed,
                "发不出全局 id".into(),
            ),
            Error::NotHad { what, .. } => (
                S::SERVICE_UNAVAILABLE,
                "not-had",
                Failed,
                format!("没有等到：{what}"),
            ),
            Error::Taken(_) => (
                S::CONFLICT,
                "lock-taken",
                Refused,
                "获取锁失败，有并发".into(),
            ),
            Error::Lost(_) => (S::CONFLICT, "lock-lost", Refused, "锁已失效".into()),
            Error::Fenced { .. } => (S::CONFLICT, "fenced", Refused, "锁已失效".into()),
            Error::Unavailable { server, .. } => (
                S::SERVICE_UNAVAILABLE,
                "unavailable",
                Failed,
                format!("{server} 不可用"),
            ),
            Error::Unknown { server, .. } => (
                S::SERVICE_UNAVAILABLE,
                "unknown",
                Unknown,
                format!("结果未知：{server} 没有回答"),
            ),
            Error::BadInput { field, .. } => (
                S::BAD_REQUEST,
                "bad-input",
                Refused,
                format!("参数不对：{field}"),
            ),
            Error::NoStrategy(slug) => (
                S::NOT_FOUND,
                "no-strategy",
                Refused,
                format!("没有这个策略：{slug}"),
            ),
            Error::NoLesson(slug) => (
                S::NOT_FOUND,
                "no-lesson",
                Refused,
                format!("没有这一课：{slug}"),
            ),
            Error::Limited => (
                S::TOO_MANY_REQUESTS,
                "limited",
                Refused,
                "很遗憾，没抢到".into(),
            ),
            Error::OnlyAtNginx(_) => (
                S::NOT_FOUND,
                "only-at-nginx",
                Refused,
                "这个限流只在 nginx 那里".into(),
            ),
            Error::Unauthorized => (
                S::UNAUTHORIZED,
                "unauthorized",
                Refused,
                "需要管理令牌".into(),
            ),
            Error::Forbidden { .. } => (
                S::FORBIDDEN,
                "forbidden",
                Refused,
                "不允许来自别的网站的请求".into(),
            ),
            Error::NotJson => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "not-json",
                Refused,
                "请求体必须是 JSON".into(),
            ),
            Error::NoRoute => (S::NOT_FOUND, "no-route", Refused, "没有这个地址".into()),
            Error::NoMethod => (
                S::METHOD_NOT_ALLOWED,
                "no-method",
                Refused,
                "不支持这个方法".into(),
            ),
            Error::TooLarge(_) => (
                S::PAYLOAD_TOO_LARGE,
                "too-large",
                Refused,
                "请求体太大".into(),
            ),
            Error::Overloaded => (
                S::SERVICE_UNAVAILABLE,
                "overloaded",
                Failed,
                "太忙了，请稍后再试".into(),
            ),
            Error::TimedOut(_) => (
                S::SERVICE_UNAVAILABLE,
                "timed-out",
                Unknown,
                "超时，结果未知".into(),
            ),
            Error::Panicked(_) => (
                S::INTERNAL_SERVER_ERROR,
                "internal",
                Unknown,
                "内部错误，结果未知".into(),
            ),
            Error::Internal(_) => (
                S::INTERNAL_SERVER_ERROR,
                "internal",
                Failed,
                "内部错误".into(),
            ),
            Error::RunInProgress { .. } => (
                S::CONFLICT,
                "run-in-progress",
                Refused,
                "另一次压测正在进行".into(),
            ),
            Error::ClassFull { .. } => (
                S::SERVICE_UNAVAILABLE,
                "class-full",
                Failed,
                "教室满了，请等一些人走了再来".into(),
            ),
            Error::NoVoucher(id) => (
                S::NOT_FOUND,
                "no-voucher",
                Refused,
                format!("没有这张优惠券：{id}"),
            ),
            Error::NotStarted => (S::CONFLICT, "not-started", Refused, "秒杀尚未开始!".into()),
            Error::Over => (S::CONFLICT, "over", Refused, "秒杀已经结束!".into()),
            Error::AlreadyOrdered => (
                S::CONFLICT,
                "already-ordered",
                Refused,
                "用户已经购买过一次!".into(),
            ),
            Error::OrderUnderWay => (
                S::CONFLICT,
                "order-under-way",
                Refused,
                "不允许重复下单".into(),
            ),
            Error::NoOrderStrategy(slug) => (
                S::NOT_FOUND,
                "no-order-strategy",
                Refused,
                format!("没有这个下单策略：{slug}"),
            ),
            Error::NoRun(_) => (S::NOT_FOUND, "no-run", Refused, "没有这次压测".into()),
        };
        let fences = match error {
            Error::Fenced { fence, seen, .. } => Some((*fence, *seen)),
            _ => None,
        };
        Self {
            kind,
            title,
            detail: detail(error),
            status: code.as_u16(),
            outcome,
            field: match error {
                Error::BadInput { field, .. } => Some(field.clone()),
                _ => None,
            },
            request_id: String::new(),
            strategies: match error {
                Error::NoStrategy(_) => Some(stock::ALL.iter().map(|s| s.slug).collect()),
                Error::NoOrderStrategy(_) => Some(seckill::ALL.iter().map(|s| s.slug).collect()),
                _ => None,
            },
            run: match error {
                Error::RunInProgress {
                    id,
                    instance,
                    by,
                    strategy,
                    left,
                } => {
                    let left_ms =
                        left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
                    let [id, instance, by, strategy] =
                        [id, instance, by, strategy].map(String::clone);
                    Some(RunInProgress {
                        id,
                        instance,
                        by,
                        strategy,
                        left_ms,
                    })
                }
                _ => None,
            },
            fence: fences.map(|(fence, _)| fence),
            seen: fences.map(|(_, seen)| seen),
            code,
        }
    }
}

/// What a client may know: not what a server's client said, and nothing of a bug.
fn detail(error: &Error) -> String {
    match error {
        Error::Unavailable { server, .. } => format!("{server} is not available"),
        Error::Unknown { server, .. } => {
            format!("{server} did not answer a write; whether it was done is unknown")
        }
        Error::Internal(_) | Error::Panicked(_) => {
            "an internal error; the log has it under the request id".into()
        }
        other => other.to_string(),
    }
}

impl Problem {
    /// Its kind: a name that does not change.
    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    /// The status.
    pub(super) fn code(&self) -> StatusCode {
        self.code
    }

    /// The answer in the form that the client reads.
    pub(super) fn render(mut self, format: Format, request_id: &str) -> Response {
        let (form, body) = match format {
            Format::Json => {
                self.request_id = request_id.to_owned();
                (
                    "application/problem+json",
                    serde_json::to_string(&self).unwrap_or_default(),
                )
            }
            Format::Text => (Format::TEXT, self.text()),
        };
        let mut response = (self.code, [(header::CONTENT_TYPE, form)], body).into_response();
        if [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&self.code)
        {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if self.code == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    /// The words of the course alone where it has some; else both languages, a line each.
    pub(super) fn text(&self) -> String {
        let listed = self
            .strategies
            .as_ref()
            .map(|all| format!("; there are: {}", all.join(", ")));
        match self.kind {
            "sold-out" | "lock-taken" | "lock-lost" | "limited" => self.title.clone(),
            "not-started" | "over" | "already-ordered" | "order-under-way" => self.title.clone(),
            _ => format!(
                "{}\n{}{}\n",
                self.title,
                self.detail,
                listed.unwrap_or_default()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn of(error: &Error) -> (u16, Outcome) {
        let problem = Problem::from(error);
        (problem.status, problem.outcome)
    }

    #[test]
    fn what_may_have_been_done_is_unknown_and_the_rest_changed_nothing() {
        let unavailable = Error::Unavailable {
            server: "mysql",
            reason: String::new(),
        };
        let unanswered = Error::Unknown {
            server: "mysql",
            reason: String::new(),
        };
        assert_eq!(of(&unavailable), (503, Outcome::Failed));
        assert_eq!(of(&unanswered), (503, Outcome::Unknown));
        assert_eq!(
            of(&Error::TimedOut(Duration::ZERO)),
            (503, Outcome::Unknown)
        );
        assert_eq!(of(&Error::Panicked(String::new())), (500, Outcome::Unknown));
        assert_eq!(of(&Error::Internal(String::new())), (500, Outcome::Failed));
        assert_eq!(of(&Error::Lost("lock".into())), (409, Outcome::Refused));
        assert_eq!(
            of(&Error::Fenced {
                name: "fencedLock".into(),
                fence: 33,
                seen: 34
            }),
            (409, Outcome::Refused)
        );
        assert_eq!(of(&Error::SoldOut), (409, Outcome::SoldOut));
    }

    #[test]
    fn a_fenced_write_names_both_tokens() {
        let problem = Problem::from(&Error::Fenced {
            name: "fencedLock".into(),
            fence: 33,
            seen: 34,
        });
        assert_eq!((problem.fence, problem.seen), (Some(33), Some(34)));
        let text = problem.text();
        assert!(
            ["锁已失效", " 33 ", " 34 "]
                .iter()
                .all(|word| text.contains(word)),
            "{text}"
        );
    }

    #[test]
    fn inner_detail_stays_inside() {
        let secret = || "password=hunter2".to_owned();
        for error in [
            Error::Internal(secret()),
            Error::Panicked(secret()),
            Error::Unavailable {
                server: "redis",
                reason: secret(),
            },
            Error::Unknown {
                server: "redis",
                reason: secret(),
            },
        ] {
            let problem = serde_json::to_string(&Problem::from(&error)).expect("json");
            assert!(!problem.contains("hunter2"), "{problem}");
            assert!(!Problem::from(&error).text().contains("hunter2"));
        }
    }
}
