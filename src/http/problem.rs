//! An error as a client sees it: its status, its words in two languages, and whether anything was changed.
//!
//! A row of the table in `error.rs` makes one; `middleware.rs` renders it, because only there the form of the answer is known.

use super::format::Format;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::{Serialize, Serializer};
use std::time::Duration;
use utoipa::ToSchema;

/// The seconds that a client is told to wait if a server is missing or requests are too many, and nothing else is known.
const RETRY_AFTER_S: u64 = 1;

const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerOutcome {
    /// A piece was taken.
    Sold,
    /// A lesson that sells nothing went as asked.
    Done,
    /// None was left. Nothing was changed.
    SoldOut,
    /// The request itself is at fault, or came too late. Nothing was changed.
    #[default]
    Refused,
    /// It could not be done. Nothing was changed.
    Failed,
    /// It may have been done or not.
    Unknown,
}

/// An error as RFC 9457 writes it (`application/problem+json`).
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Its kind: `urn:oversell:` and a name that does not change.
    #[serde(rename = "type", serialize_with = "serialize_kind")]
    #[schema(value_type = String, example = "urn:oversell:sold-out")]
    pub(super) kind: &'static str,
    /// In Chinese, as the course words it.
    #[schema(example = "库存不足！")]
    pub(super) title: String,
    /// In English.
    #[schema(example = "sold out")]
    pub(super) detail: String,
    /// The HTTP status.
    #[serde(serialize_with = "serialize_status")]
    #[schema(value_type = u16, example = 409)]
    pub(super) status: StatusCode,
    pub(super) outcome: AnswerOutcome,
    /// The field that is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "hold_ms")]
    pub(super) field: Option<String>,
    /// For reports; the log has the same id.
    #[schema(example = "4f1c9a0be3d27756")]
    pub(super) request_id: String,
    /// The known strategies, if this one is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strategies: Option<Vec<&'static str>>,
    /// The token of a refused write.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 33)]
    pub(super) fence: Option<u64>,
    /// The newer token that the row has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 34)]
    pub(super) seen: Option<u64>,
    /// When it may be tried again, if that is known.
    #[serde(skip)]
    pub(super) retry_after: Option<Duration>,
    /// Whether a text answer is the title alone: the words of the course.
    #[serde(skip)]
    pub(super) title_says_all: bool,
}

/// Writes the kind as `urn:oversell:…`.
fn serialize_kind<S: Serializer>(kind: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("urn:oversell:{kind}"))
}

fn serialize_status<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// The rows of the table in `error.rs`.
impl Problem {
    /// A problem of which nothing was changed: its outcome is `Failed` for a status of 500 or more, else `Refused`.
    pub(super) fn refused(status: StatusCode, kind: &'static str, title: impl Into<String>) -> Self {
        Self {
            kind,
            title: title.into(),
            outcome: match status.is_server_error() {
                true => AnswerOutcome::Failed,
                false => AnswerOutcome::Refused,
            },
            status,
            ..Self::default()
        }
    }

    /// A 404.
    pub(super) fn missing(kind: &'static str, title: impl Into<String>) -> Self {
        Self::refused(StatusCode::NOT_FOUND, kind, title)
    }

    /// A 409.
    pub(super) fn conflict(kind: &'static str, title: impl Into<String>) -> Self {
        Self::refused(StatusCode::CONFLICT, kind, title)
    }

    /// A 409 with a text of the course, which is the whole text answer.
    pub(super) fn in_course_words(kind: &'static str, title: &'static str) -> Self {
        Self { title_says_all: true, ..Self::conflict(kind, title) }
    }

    /// A 503.
    pub(super) fn unavailable(kind: &'static str, title: impl Into<String>) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, kind, title)
    }

    /// A 500, of which only the log has the cause.
    pub(super) fn internal(title: &'static str) -> Self {
        Self {
            detail: "an internal error; the log has it under the request id".to_owned(),
            ..Self::refused(StatusCode::INTERNAL_SERVER_ERROR, "internal", title)
        }
    }

    /// The same problem with the outcome `Unknown`: what was asked may have been done.
    pub(super) fn with_unknown_outcome(self) -> Self {
        Self { outcome: AnswerOutcome::Unknown, ..self }
    }

    /// The same problem, with the slugs that would have been right: `strategies` in JSON, `; there are: …` in text.
    pub(super) fn with_known_strategies(self, names: impl Iterator<Item = &'static str>) -> Self {
        Self { strategies: Some(names.collect()), ..self }
    }

    /// The answer in this form, with `retry-after` if its status is 503 or 429. Only JSON has the request id in its body.
    pub(super) fn render(mut self, format: Format, request_id: &str) -> Response {
        let retry_after = self.retry_after;
        let (form, body) = match format {
            Format::Text => (Format::TEXT, self.text()),
            Format::Json => {
                self.request_id = request_id.to_owned();
                let json = serde_json::to_string(&self).unwrap_or_default();
                ("application/problem+json", json)
            }
        };
        let mut response = (self.status, [(header::CONTENT_TYPE, form)], body).into_response();
        let besides = match self.status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                let seconds = retry_after.map_or(RETRY_AFTER_S, |again| again.as_secs() + 1);
                Some((header::RETRY_AFTER, seconds.into()))
            }
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, BEARER)),
            _ => None,
        };
        response.headers_mut().extend(besides);
        response
    }

    /// The text answer: the words of the course alone, else a line in Chinese and one in English.
    pub(super) fn text(&self) -> String {
        if self.title_says_all {
            return self.title.clone();
        }
        let listed = self.strategies.as_ref().map(|all| format!("; there are: {}", all.join(", ")));
        format!("{}\n{}{}\n", self.title, self.detail, listed.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    /// Every error that has inner detail, which is a password here.
    fn secretive() -> [Error; 5] {
        let (server, reason) = ("redis", || "password=hunter2".to_owned());
        [
            Error::Unavailable { server, reason: reason() },
            Error::Refuses { server, why: "it is read-only".into(), reason: reason() },
            Error::Unknown { server, reason: reason() },
            Error::Panicked(reason()),
            Error::Internal(reason()),
        ]
    }

    #[test]
    fn each_error_has_its_status_and_outcome() {
        let [unavailable, refuses, unknown, panicked, internal] = secretive();
        for (error, status, outcome) in [
            (unavailable, 503, AnswerOutcome::Failed),
            (refuses, 503, AnswerOutcome::Failed),
            (unknown, 503, AnswerOutcome::Unknown),
            (Error::RequestTimeout(Duration::ZERO), 503, AnswerOutcome::Unknown),
            (panicked, 500, AnswerOutcome::Unknown),
            (internal, 500, AnswerOutcome::Failed),
            (Error::Lost("lock".into()), 409, AnswerOutcome::Refused),
            (Error::SoldOut, 409, AnswerOutcome::SoldOut),
        ] {
            let problem = Problem::from(&error);
            assert_eq!((problem.status.as_u16(), problem.outcome), (status, outcome), "{error}");
        }
    }

    #[test]
    fn a_fenced_write_is_refused_and_names_both_tokens() {
        let problem = Problem::from(&Error::Fenced { name: "fencedLock".into(), fence: 33, seen: 34 });
        assert_eq!((problem.fence, problem.seen), (Some(33), Some(34)));
        assert_eq!((problem.status.as_u16(), problem.outcome), (409, AnswerOutcome::Refused));
        let text = problem.text();
        let named = ["锁已失效", " 33 ", " 34 "];
        assert!(named.iter().all(|word| text.contains(word)), "{text}");
    }

    #[test]
    fn inner_detail_stays_inside() {
        for error in secretive() {
            let problem = Problem::from(&error);
            let said = serde_json::to_string(&problem).expect("json") + &problem.text();
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
