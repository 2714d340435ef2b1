//! Why a request was refused, and the answer to it.

use crate::LockError;
use http::{HeaderValue, Response, StatusCode, header};

/// The value of `Retry-After`, in seconds, of every 503.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Why the layer answers instead of the service: because of a field or the body of the request, or of its lock.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request lacks a field of the key or has a bad one; or the lock that its fields name is [`LockError::Invalid`], by
    /// a name that is too long for example; or its body did not arrive. Nothing was acquired.
    #[error("{field}: {rule}")]
    Field {
        /// Its name: of a part of the path, of the query, of a header; `key`; `body`.
        field: String,
        /// The broken rule.
        rule: &'static str,
    },
    /// The extractor that the key is made of has rejected the request, with this answer. Nothing was acquired.
    #[error("{}", .0.body())]
    Rejected(Box<Response<String>>),
    /// The request's body is longer than the layer reads. The lock was not requested.
    #[error("the body must have at most {longest} bytes")]
    BodyTooLong {
        /// The most bytes that it may have.
        longest: usize,
    },
    /// The lock was not acquired, and the service was not called; or it was lost ([`LockError::Lost`]) while the service
    /// ran, whose future or response was dropped.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl Refusal {
    /// Returns 400 for a field; the extractor's own status for what it has rejected; 413 for a body that is too long; 409 for a lock that is taken, without a wait, and for
    /// one that was lost; 503 for a lock that is taken after a wait, and for a server that is unavailable or refuses; 500
    /// for an invalid lock that the request did not name (a lock for all whose name is too long, for example).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Field { .. } => StatusCode::BAD_REQUEST,
            Self::Rejected(answer) => answer.status(),
            Self::BodyTooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Lock(LockError::Taken { waited, .. } | LockError::Timeout { waited, .. }) if waited.is_zero() => {
                StatusCode::CONFLICT
            }
            Self::Lock(LockError::Lost { .. }) => StatusCode::CONFLICT,
            Self::Lock(
                LockError::Taken { .. } | LockError::Timeout { .. } | LockError::Unavailable { .. } | LockError::Refused { .. },
            ) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Lock(LockError::Invalid { .. }) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Answers with the status and one line of text; `Retry-After` with 503. The extractor's own answer is sent as it is. The name
    /// of the lock is not shown; the errors of a server or its client are logged and not shown.
    pub fn answer<B: From<String>>(self) -> Response<B> {
        let status = self.status();
        let text = match &self {
            Self::Rejected(answer) => return Response::clone(answer).map(B::from),
            Self::Lock(LockError::Taken { .. } | LockError::Timeout { .. }) => {
                "another request is under way here: try again".into()
            }
            Self::Lock(LockError::Lost { .. }) => {
                "the request lost its turn while it was under way: it may have been carried out".into()
            }
            Self::Lock(LockError::Unavailable { server, .. } | LockError::Refused { server, .. }) => {
                tracing::warn!(error = %self, "no lock");
                format!("{server} is not available")
            }
            Self::Lock(LockError::Invalid { .. }) => {
                tracing::error!(error = %self, "no lock");
                "an internal error".into()
            }
            other => other.to_string(),
        };
        let mut response = Response::new(B::from(text));
        *response.status_mut() = status;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, text);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_refusal_has_its_status_and_tells_nothing_of_the_inside() {
        let name = || "demo4#1_a".to_owned();
        let secret = || "redis://:hunter2@10.0.0.1".into();
        for (refusal, status, text) in [
            (Refusal::Field { field: "sku".into(), rule: "is missing" }, 400, "sku: is missing"),
            (Refusal::BodyTooLong { longest: 7 }, 413, "the body must have at most 7 bytes"),
            (LockError::taken(name(), Duration::ZERO).into(), 409, "another request is under way here: try again"),
            (LockError::taken(name(), Duration::from_secs(1)).into(), 503, "another request is under way here: try again"),
            (
                LockError::lost(name()).into(),
                409,
                "the request lost its turn while it was under way: it may have been carried out",
            ),
            (LockError::unavailable("redis", secret()).into(), 503, "redis is not available"),
            (LockError::Refused { server: "redis", reason: secret() }.into(), 503, "redis is not available"),
            (LockError::invalid(name(), "is too long").into(), 500, "an internal error"),
        ] {
            let answer: Response<String> = refusal.answer();
            assert_eq!((answer.status().as_u16(), answer.body().as_str()), (status, text));
            assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), status == 503);
        }
    }
}
