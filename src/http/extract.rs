//! What a client sends, field by field: a query, or a JSON object as body. What is not as it should be is named, with
//! the rule that it breaks.

use super::app::App;
use crate::error::Error;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use http::request::Parts;
use http_body_util::LengthLimitError;
use serde_json::{Map, Value};
use std::{ops::RangeInclusive, time::Duration};

/// The fields of a query or a body.
#[derive(Debug, Default)]
pub(super) struct Fields {
    values: Map<String, Value>,
    /// In a query every number is written as a text; in JSON it is not.
    query: bool,
}

/// The fields of the query.
#[derive(Debug)]
pub(super) struct FromQuery(pub(super) Fields);

/// The fields of the body, a JSON object.
#[derive(Debug)]
pub(super) struct FromBody(pub(super) Fields);

impl Fields {
    /// Refuses a field that is none of these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Error> {
        match self.values.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(bad(name, format!("is not known here; known are: {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// A whole number within `range`, where the field is there.
    pub(super) fn number(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, Error> {
        let Some(value) = self.values.get(name) else { return Ok(None) };
        let number = match value {
            Value::String(text) if self.query => text.parse().ok(),
            value => value.as_i64(),
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(bad(name, format!("must be a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// A whole number within `range`.
    pub(super) fn required(&self, name: &str, range: RangeInclusive<i64>) -> Result<i64, Error> {
        self.number(name, range)?.ok_or_else(|| bad(name, "is missing".into()))
    }

    /// A text, where the field is there.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad(name, "must be a text".into())),
        }
    }

    /// `true` or `false`, the latter where the field is not there.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.text(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(bad(name, "must be true or false".into())),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for FromQuery {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let mut values = Map::new();
        if parts.uri.query().is_some() {
            let Query(pairs) =
                Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|e| bad("query", e.body_text()))?;
            for (name, value) in pairs {
                if values.contains_key(&name) {
                    return Err(bad(&name, "is given twice".into()));
                }
                values.insert(name, Value::String(value));
            }
        }
        Ok(Self(Fields { values, query: true }))
    }
}

impl FromRequest<App> for FromBody {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let limit = app.ctx.config.server.body_limit;
        let patience = Duration::from_millis(app.ctx.config.server.header_timeout_ms);
        let read = tokio::time::timeout(patience, axum::body::to_bytes(request.into_body(), limit)).await;
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) if std::error::Error::source(&error).is_some_and(|e| e.is::<LengthLimitError>()) => {
                return Err(Error::TooLarge(limit));
            }
            Ok(Err(error)) => return Err(bad("body", error.to_string())),
            Err(_) => return Err(bad("body", format!("must be complete within {} ms", patience.as_millis()))),
        };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(values)) => Ok(Self(Fields { values, query: false })),
            Ok(_) => Err(bad("body", "must be a JSON object".into())),
            Err(error) => Err(bad("body", format!("must be a JSON object: {error}"))),
        }
    }
}

fn bad(field: &str, rule: String) -> Error {
    Error::BadInput { field: field.to_owned(), rule }
}
