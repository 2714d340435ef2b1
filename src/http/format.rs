//! The form of an answer: text as in the course, or JSON if the client prefers it.

use axum::{
    Json,
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header, request::Parts};
use serde::Serialize;
use std::convert::Infallible;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
}

impl Format {
    /// The content type of a text answer.
    pub(super) const TEXT: &str = "text/plain; charset=utf-8";

    /// Text, unless `Accept` names JSON with a weight that no text type exceeds; `*/*` names neither.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let (mut json, mut text) = (0.0_f32, 0.0_f32);
        for range in accepted.flat_map(|value| value.split(',')) {
            let (kind, weight) = split_weight(range);
            let is = |names: [&str; 3]| names.iter().any(|name| kind.eq_ignore_ascii_case(name));
            if is(["application/json", "application/problem+json", "application/*"]) {
                json = weight.max(json);
            } else if is(["text/plain", "text/html", "text/*"]) {
                text = weight.max(text);
            }
        }
        if json > 0.0 && json >= text { Self::Json } else { Self::Text }
    }

    pub(super) fn answer(self, text: impl Into<String>, json: impl Serialize) -> Response {
        match self {
            Self::Text => text_answer(text.into()),
            Self::Json => Json(json).into_response(),
        }
    }
}

/// An answer that is text for every client.
pub(super) fn text_answer(text: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, Format::TEXT)], text).into_response()
}

/// A media range and its weight: 1 where it has none, 0 where it is unreadable.
fn split_weight(range: &str) -> (&str, f32) {
    let mut parts = range.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
    (kind, weight.unwrap_or(0.0))
}

impl<S: Sync> FromRequestParts<S> for Format {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_for_those_who_name_it() {
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("application/json", Format::Json),
            ("Application/JSON;charset=utf-8", Format::Json),
            ("application/problem+json", Format::Json),
            ("application/json, text/plain, */*", Format::Json),
            ("text/plain, application/json;q=0.5", Format::Text),
            ("application/json;q=0", Format::Text),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Format::Text),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().expect("a header"));
            assert_eq!(Format::from_headers(&headers), format, "{accept}");
        }
        assert_eq!(Format::from_headers(&HeaderMap::new()), Format::Text);
    }
}
