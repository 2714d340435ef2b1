//! What an error looks like to a client: its status, its words in two languages, and whether anything was changed.
//!
//! A row of the table in `error.rs` makes one; `middleware.rs` renders it, because only there is known what the client reads.

use super::format::Format;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer};
use std::fmt::Display;
use utoipa::ToSchema;

/// A client that was told that something is missing, or that too many came, may try again after this many seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

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
    #[serde(serialize_with = "number")]
    #[schema(value_type = u16, example = 409)]
    status: StatusCode,
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
    /// Whether the title stands alone in a text: the course has these very words.
    #[serde(skip)]
    title_says_all: bool,
}

/// A run of load that is in progress.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct RunInProgress {
    #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
    pub(super) id: String,
    /// The instance that sends it, and knows how it stands.
    #[schema(example = "8000")]
    pub(super) instance: String,
    /// Who started it.
    #[schema(example = "127.0.0.1")]
    pub(super) by: String,
    #[schema(example = "none")]
    pub(super) strategy: String,
    /// How long it will still take, once that can be told.
    #[schema(example = 1200)]
    pub(super) left_ms: Option<u64>,
}

impl RunInProgress {
    /// The rest of its time, in words.
    pub(super) fn left(&self) -> String {
        self.left_ms
            .map_or("not known yet".into(), |ms| format!("about {ms} ms"))
    }
}

fn urn<S: Serializer>(kind: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("urn:oversell:{kind}"))
}

fn number<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// The rows of the table in `error.rs`.
impl Problem {
    fn new(
        status: StatusCode,
        kind: &'static str,
        outcome: Outcome,
        title: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            title: title.into(),
            detail: String::new(),
            status,
            outcome,
            field: None,
            request_id: String::new(),
            strategies: None,
            run: None,
            fence: None,
            seen: None,
            title_says_all: false,
        }
    }

    /// The request is at fault, or came too late.
    pub(super) fn refused(
        status: StatusCode,
        kind: &'static str,
        title: impl Into<String>,
    ) -> Self {
        Self::new(status, kind, Outcome::Refused, title)
    }

    /// A refusal for which the course has a text: it stands alone where the client reads text.
    pub(super) fn in_the_words(kind: &'static str, title: &'static str) -> Self {
        Self {
            title_says_all: true,
            ..Self::refused(StatusCode::CONFLICT, kind, title)
        }
    }

    /// Nothing is left.
    pub(super) fn sold_out(kind: &'static str, title: &'static str) -> Self {
        Self {
            outcome: Outcome::SoldOut,
            ..Self::in_the_words(kind, title)
        }
    }

    /// It could not be done now.
    pub(super) fn unavailable(kind: &'static str, title: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            kind,
            Outcome::Failed,
            title,
        )
    }

    /// A bug.
    pub(super) fn internal(title: &'static str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            Outcome::Failed,
            title,
        )
    }

    /// It may have been done all the same.
    pub(super) fn unknown(self) -> Self {
        Self {
            outcome: Outcome::Unknown,
            ..self
        }
    }

    /// With another status than its like.
    pub(super) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// What it says in English, unless that was said already.
    pub(super) fn detailed(mut self, detail: impl Display) -> Self {
        if self.detail.is_empty() {
            self.detail = detail.to_string();
        }
        self
    }

    /// The field that is not as it should be.
    pub(super) fn field(self, field: &str) -> Self {
        Self {
            field: Some(field.to_owned()),
            ..self
        }
    }

    /// The names that there are.
    pub(super) fn one_of(self, names: impl Iterator<Item = &'static str>) -> Self {
        Self {
            strategies: Some(names.collect()),
            ..self
        }
    }

    /// The run that is in progress.
    pub(super) fn run(self, run: &RunInProgress) -> Self {
        Self {
            run: Some(run.clone()),
            ..self
        }
    }

    /// The token that was shown, and the newer one that the row has seen.
    pub(super) fn fences(self, fence: u64, seen: u64) -> Self {
        Self {
            fence: Some(fence),
            seen: Some(seen),
            ..self
        }
    }
}

impl Problem {
    /// Its kind: a name that does not change.
    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    /// The status.
    pub(super) fn code(&self) -> StatusCode {
        self.status
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
        let mut response = (self.status, [(header::CONTENT_TYPE, form)], body).into_response();
        if [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&self.status)
        {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    /// The words of the course alone where it has some; else both languages, a line each.
    pub(super) fn text(&self) -> String {
        if self.title_says_all {
            return self.title.clone();
        }
        let listed = self
            .strategies
            .as_ref()
            .map(|all| format!("; there are: {}", all.join(", ")));
        format!(
            "{}\n{}{}\n",
            self.title,
            self.detail,
            listed.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::time::Duration;

    fn of(error: &Error) -> (u16, Outcome) {
        let problem = Problem::from(error);
        (problem.status.as_u16(), problem.outcome)
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
