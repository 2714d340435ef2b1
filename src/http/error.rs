//! The errors of a request: those of the stock and the lessons, and those that only HTTP knows. The table below has a row for
//! each, with its status and its words.

use super::problem::{AnswerOutcome, Problem};
use crate::{
    error::Error as Domain,
    seckill::{self, SeckillError},
    stock,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::StatusCode as S;
use std::sync::Arc;

/// Why a request did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// An error of the stock, the seckill or the lessons.
    #[error(transparent)]
    Domain(#[from] Domain),
    #[error("there is nothing at this address; /docs lists what there is")]
    NoRoute,
    /// The address is right, the method is not.
    #[error("this address does not take this method; header Allow lists those that it takes")]
    NoMethod,
    /// An address that only nginx has.
    #[error("only nginx has these limits, an instance alone does not: {}", .0.join(", "))]
    OnlyAtNginx(&'static [&'static str]),
    /// Something that only an administrator may do, without the token that the configuration asks for.
    #[error("this needs the header Authorization: Bearer with the admin token")]
    Unauthorized,
    /// A page of another host asked for something that changes something.
    #[error(
        "header {header} names another host; only a page of this service and a client without a browser may do this{}",
        hint_for(header)
    )]
    Forbidden {
        /// The header that says so.
        header: &'static str,
    },
    #[error("the body must be JSON, with header Content-Type: application/json")]
    NotJson,
    #[error("the body must be a form or a JSON object, with header Content-Type; or put the fields into the query")]
    NotAForm,
    #[error("the body must be at most {0} bytes")]
    TooLarge(usize),
    /// As many of these are under way as the configuration, or the route itself, allows.
    #[error("too many {0} are in progress; try again later")]
    Overloaded(&'static str),
    #[error("there is no strategy {0} of the voucher order")]
    NoOrderStrategy(String),
    #[error("there is no lesson {0}; GET /course lists all, GET /test/deadlock those on deadlocks")]
    NoLesson(String),
    /// As many visits as may be are under way. Nothing was changed.
    #[error("{under_way} visits are in progress, and at most {most} are allowed: wait until some have ended")]
    ClassFull {
        /// How many were sent and are not over.
        under_way: usize,
        /// How many may be.
        most: usize,
    },
    #[error("there is no run {0}")]
    NoRun(String),
    #[error("there is no replay of lesson {0}; GET /replays lists those that there are")]
    NoReplay(String),
    #[error("replays are not enabled here (setting replays.enabled): a lab and the compose file enable them")]
    NoReplays,
    /// The same replay of this visitor is unfinished, or there is one, of anybody, that excludes what was asked.
    #[error("the replay of lesson {0} is running: wait for its end, or cancel it")]
    ReplayInProgress(&'static str),
    #[error("there is no actor {0}")]
    NoActor(uuid::Uuid),
    /// A line of a lesson that starts a lab of its own.
    #[error(
        "this lesson starts a lab of its own, and a page starts none, since nobody would stop it: type its lines in a terminal, \
         beginning with: {0}"
    )]
    OwnLab(String),
    /// No lab has started this instance.
    #[error("no lab has started the servers here, so nothing can break them: start them with `oversell lab`")]
    NoLab,
    /// The lab does not inject a fault: there is no such member, or it is not in a state for this. Nothing was changed.
    #[error("{0}")]
    LabRefuses(String),
}

/// What helps, where the header names a host that is this service's after all.
fn hint_for(header: &str) -> &'static str {
    match header {
        "Host" => "; a further name of this service goes into the setting server.hosts",
        "Origin" | "Referer" => {
            "; if that is this service's own page behind a proxy, have the proxy pass on the Host that the browser calls (nginx: \
             proxy_set_header Host $http_host), or put its name into the setting server.hosts"
        }
        _ => "",
    }
}

/// The error of a handler, in the extensions of an empty response that the middleware replaces.
#[derive(Clone)]
pub(super) struct HandlerError(pub(super) Arc<Error>);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(HandlerError(Arc::new(self)));
        response
    }
}

impl Error {
    /// The error of a field of the request that breaks this rule.
    pub(super) fn bad_input(field: &str, rule: impl Into<String>) -> Self {
        Self::Domain(Domain::BadInput { field: field.to_owned(), rule: rule.into() })
    }

    /// The error of a bound that is reached.
    pub(super) fn too_many(what: &'static str, most: usize) -> Self {
        Self::Domain(Domain::too_many(what, most))
    }

    /// The error of a strategy of the stock that does not exist.
    pub(super) fn no_strategy(slug: String) -> Self {
        Self::Domain(Domain::NoStrategy(slug))
    }
}

/// The table: status, kind, Chinese title, and other fields of the problem. The English detail is the error's own text,
/// unless a row has another.
impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        use Problem as P;
        let problem = match error {
            Error::Domain(error) => return Self::from(error),
            Error::NoRoute => P::missing("no-route", "没有这个地址"),
            Error::NoMethod => P::refused(S::METHOD_NOT_ALLOWED, "no-method", "不支持这个方法"),
            Error::OnlyAtNginx(_) => P::missing("only-at-nginx", "这个限流只在 nginx 那里"),
            Error::Unauthorized => P::refused(S::UNAUTHORIZED, "unauthorized", "需要管理口令"),
            Error::Forbidden { .. } => P::refused(S::FORBIDDEN, "forbidden", "不允许来自别的网站的请求"),
            Error::NotJson => P::refused(S::UNSUPPORTED_MEDIA_TYPE, "not-json", "请求体必须是 JSON"),
            Error::NotAForm => P::refused(S::UNSUPPORTED_MEDIA_TYPE, "not-a-form", "请求体必须是表单或 JSON"),
            Error::TooLarge(_) => P::refused(S::PAYLOAD_TOO_LARGE, "too-large", "请求体太大"),
            Error::Overloaded(_) => P::unavailable("overloaded", "太忙了，请稍后再试"),
            Error::NoOrderStrategy(slug) => P::missing("no-order-strategy", format!("没有这个下单策略：{slug}"))
                .with_known_strategies(seckill::ALL.iter().map(|step| step.slug)),
            Error::NoLesson(slug) => P::missing("no-lesson", format!("没有这一课：{slug}")),
            Error::ClassFull { .. } => P::unavailable("class-full", "教室满了，请等一些人走了再来"),
            Error::NoRun(_) => P::missing("no-run", "没有这次压测"),
            Error::NoReplay(id) => P::missing("no-replay", format!("没有这一课的重演：{id}")),
            Error::NoReplays => P::refused(S::FORBIDDEN, "no-replays", "这里没有开启重演"),
            Error::ReplayInProgress(lesson) => {
                P::conflict("replay-in-progress", format!("第 {lesson} 课正在重演：等它演完，或先取消"))
            }
            Error::NoActor(id) => P::missing("no-actor", format!("没有这个角色：{id}")),
            Error::OwnLab(_) => P::refused(S::CONFLICT, "own-lab", "这一课要自己启动一个实验环境，请在终端里输入"),
            Error::NoLab => P::refused(S::FORBIDDEN, "no-lab", "这里的服务器不是 oversell lab 启动的"),
            Error::LabRefuses(_) => P::conflict("lab-refuses", "lab 没有照做"),
        };
        detailed(problem, error)
    }
}

/// The same for the domain. The words of a server's client and of a bug are for the log only.
impl From<&Domain> for Problem {
    fn from(error: &Domain) -> Self {
        use Problem as P;
        let problem = match error {
            Domain::SoldOut => P { outcome: AnswerOutcome::SoldOut, ..P::in_course_words("sold-out", "库存不足！") },
            Domain::Taken(_) => P::in_course_words("lock-taken", "获取锁失败，有并发"),
            Domain::Lost(_) => P::in_course_words("lock-lost", "锁已失效"),
            Domain::Limited => P { status: S::TOO_MANY_REQUESTS, ..P::in_course_words("limited", "很遗憾，没抢到") },
            Domain::Fenced { fence, seen, .. } => {
                P { fence: Some(*fence), seen: Some(*seen), ..P::conflict("fenced", "锁已失效") }
            }
            Domain::TooMany { most, again, .. } => {
                let when =
                    again.map_or("等一个结束了再来".into(), |again| format!("{} 秒后会空出一个", again.as_secs() + 1));
                let title = format!("同时最多 {most} 个：{when}");
                P { retry_after: *again, ..P::refused(S::TOO_MANY_REQUESTS, "too-many", title) }
            }
            Domain::BadInput { field, .. } => {
                P { field: Some(field.clone()), ..P::refused(S::BAD_REQUEST, "bad-input", format!("参数不对：{field}")) }
            }
            Domain::NoStrategy(slug) => P::missing("no-strategy", format!("没有这个策略：{slug}"))
                .with_known_strategies(stock::ALL.iter().map(|strategy| strategy.slug)),
            Domain::NoProduct(id) => P::missing("no-product", format!("没有这个商品：{id}")),
            Domain::NoStock(id) => P::unavailable("no-stock", format!("redis 里没有商品 {id} 的库存，请重置库存")),
            Domain::WrongType => P::unavailable("wrong-type", "redis 里锁的键是别的类型，不是这种锁写的"),
            Domain::NoId(_) => P::unavailable("no-id", "发不出全局 id"),
            Domain::Timeout { what, .. } => P::unavailable("not-had", format!("没有等到：{what}")),
            Domain::RowChanged => P::unavailable("row-changed", "读过的行被别的事务改了，MariaDB 回滚了这个事务"),
            Domain::Unavailable { server, .. } => {
                P { detail: format!("{server} is not available"), ..P::unavailable("unavailable", format!("{server} 不可用")) }
            }
            Domain::NoEtcd => P::unavailable(
                "no-etcd",
                "这里没有 etcd：装上它（Debian 软件包 etcd-server），用 oversell lab --etcd 1 启动，或者设置 etcd.endpoints",
            ),
            Domain::Refuses { server, why, .. } => {
                P { detail: format!("{server} refuses this: {why}"), ..P::unavailable("refuses", format!("{server} 拒绝了")) }
            }
            // Not "failed": that says that nothing was changed.
            Domain::PieceGone(_) => P {
                detail: "a piece was taken, and its order was not written: nobody has it".to_owned(),
                ..P::unavailable("piece-gone", "扣了库存，没写成订单").with_unknown_outcome()
            },
            Domain::NoActor { .. } => P::unavailable("no-actor-there", "另一个实例没有应答"),
            Domain::Replay(_) => P::unavailable("replay", "重演没有按剧本走"),
            Domain::Unknown { server, .. } => P {
                detail: format!("{server} did not answer a write; its outcome is unknown"),
                ..P::unavailable("unknown", format!("结果未知：{server} 没有应答")).with_unknown_outcome()
            },
            Domain::RequestTimeout(_) => P::unavailable("timed-out", "超时，结果未知").with_unknown_outcome(),
            Domain::Seckill(error) => Self::from(error),
            Domain::Panicked(_) => P::internal("内部错误，结果未知").with_unknown_outcome(),
            Domain::Internal(_) => P::internal("内部错误"),
        };
        detailed(problem, error)
    }
}

/// The same for the seckill, in the words of \[002\].
impl From<&SeckillError> for Problem {
    fn from(error: &SeckillError) -> Self {
        use {Problem as P, SeckillError as E};
        match error {
            E::NotStarted => P::in_course_words("not-started", "秒杀尚未开始!"),
            E::Over => P::in_course_words("over", "秒杀已经结束!"),
            E::AlreadyOrdered => P::in_course_words("already-ordered", "用户已经购买过一次!"),
            E::OrderUnderWay => P::in_course_words("order-under-way", "不允许重复下单"),
            E::NoVoucher(id) => P::missing("no-voucher", format!("没有这张优惠券：{id}")),
            E::NoOrder(id) => P::missing("no-order", format!("没有这个订单：{id}")),
            E::NoVoucherStock(id) => {
                P::unavailable("no-voucher-stock", format!("redis 里没有优惠券 {id} 的库存，请用 POST /voucher 新建一张"))
            }
        }
    }
}

/// Gives a problem without a detail the error's own text.
fn detailed(mut problem: Problem, error: &impl ToString) -> Problem {
    if problem.detail.is_empty() {
        problem.detail = error.to_string();
    }
    problem
}
