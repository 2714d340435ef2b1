//! The input of a request as typed values: the query, a JSON body, a part of the path, the admin token. Invalid input is
//! refused with the field and the rule that it breaks.

use super::app::AppState;
use crate::http::error::Error;
use axum::extract::{FromRequest, FromRequestParts, Request, path::ErrorKind as PathError, rejection::PathRejection};
use garde::Validate;
use headers::{Authorization, HeaderMapExt, authorization::Bearer};
use http::{StatusCode, request::Parts};
use secrecy::ExposeSecret;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value};
use std::{any::Any, convert::Infallible, fmt::Display, sync::Arc, time::Duration};
use subtle::ConstantTimeEq;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type, schema::KnownFormat, schema::SchemaFormat},
};

/// The header that names the user of an order.
const USER_HEADER: &str = "x-user-id";

/// The query of a request, read into this type and checked by the type's rules; else the request is refused (400).
#[derive(Debug)]
pub(super) struct Query<T>(pub(super) T);

/// The body of a request, a JSON object read into this type and checked by the type's rules; else the request is refused: 413 if
/// it is too large, 415 if it is not declared as JSON, else 400.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

/// The variable parts of the path, read into this type.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Error))]
pub(super) struct Path<T>(pub(super) T);

/// Proof that a request has the admin token, or that the configuration has none; else it is refused (401).
#[derive(Debug)]
pub(super) struct Admin;

/// The user of header `x-user-id`; a request without a whole number of 1 or more there is refused.
#[derive(Debug)]
pub(super) struct User(pub(super) i64);

/// The one value of this type in this instance, shared by handlers of one kind; its default is made at its first use.
#[derive(Debug)]
pub(super) struct InstanceState<T>(pub(super) Arc<T>);

impl<T: DeserializeOwned + Validate<Context = ()>, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let query = parts.uri.query().unwrap_or_default();
        let fields = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
        validate(serde_path_to_error::deserialize(fields), "query").map(Self)
    }
}

impl<T: DeserializeOwned + Validate<Context = ()>> FromRequest<AppState> for Json<T> {
    type Rejection = Error;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Error> {
        let fields = axum::Json::<Map<String, Value>>::from_request(request, app).await;
        let axum::Json(fields) = fields.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Error::TooLarge(app.ctx.config.server.body_limit),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Error::NotJson,
            _ => Error::bad_input("body", format!("must be a JSON object: {}", rejection.body_text())),
        })?;
        let mut body = Value::Object(fields);
        drop_zero_fraction(&mut body);
        validate(serde_path_to_error::deserialize(body), "body").map(Self)
    }
}

impl FromRequestParts<AppState> for Admin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Error> {
        let token = app.ctx.config.admin.token.expose_secret();
        let given = parts.headers.typed_get::<Authorization<Bearer>>();
        let given = given.as_ref().map_or("", |given| given.token());
        // Constant time: how long the comparison takes tells nothing about the token.
        if token.is_empty() || bool::from(token.as_bytes().ct_eq(given.as_bytes())) {
            return Ok(Self);
        }
        Err(Error::Unauthorized)
    }
}

impl<T: Any + Default + Send + Sync> FromRequestParts<AppState> for InstanceState<T> {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        Ok(Self(app.ctx.local.of()))
    }
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let given = parts.headers.get(USER_HEADER).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
        let user = given.filter(|user| *user >= 1).map(Self);
        user.ok_or_else(|| Error::bad_input(USER_HEADER, format!("must be a whole number from 1 to {}", i64::MAX)))
    }
}

impl From<PathRejection> for Error {
    fn from(rejection: PathRejection) -> Self {
        let PathRejection::FailedToDeserializePathParams(error) = rejection else {
            return Self::bad_input("path", rejection.body_text());
        };
        match error.into_kind() {
            PathError::ParseErrorAtKey { value, .. }
            | PathError::ParseErrorAtIndex { value, .. }
            | PathError::ParseError { value, .. } => {
                Self::bad_input("path", format!("{value:?} stands where a whole number must be"))
            }
            other => Self::bad_input("path", other.to_string()),
        }
    }
}

/// A whole number from `MIN` to `MAX`: the limits are part of the type, and so of `/openapi.json`.
#[derive(Debug, Clone, Copy, Serialize, Validate)]
#[serde(transparent)]
#[garde(transparent)]
pub(super) struct BoundedInteger<const MIN: i64, const MAX: i64>(#[garde(custom(Self::check_range))] i64);

impl<const MIN: i64, const MAX: i64> BoundedInteger<MIN, MAX> {
    pub(super) fn get(self) -> i64 {
        self.0
    }

    pub(super) fn millis(self) -> Duration {
        Duration::from_millis(self.0.unsigned_abs())
    }

    /// The rule in the words of a refusal.
    fn range_rule() -> String {
        format!("must be a whole number from {MIN} to {MAX}")
    }

    fn check_range(number: &i64, (): &()) -> garde::Result {
        if (MIN..=MAX).contains(number) { Ok(()) } else { Err(garde::Error::new(Self::range_rule())) }
    }
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    /// Reads any whole number: [`validate`] checks the range.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self).map_err(|error| match error.to_string().starts_with("missing field") {
            true => error,
            false => D::Error::custom(Self::range_rule()),
        })
    }
}

/// Makes each number such as `746.0` whole for serde, at any depth: JSON has one kind of number, and JSON Schema calls this one
/// whole.
pub(super) fn drop_zero_fraction(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // Beyond 2^53 floats skip whole numbers.
            let is_whole = |it: &f64| it.fract() == 0.0 && it.abs() <= (1_u64 << 53) as f64;
            if number.is_f64()
                && let Some(float) = number.as_f64().filter(is_whole)
            {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_zero_fraction),
        Value::Object(fields) => fields.values_mut().for_each(drop_zero_fraction),
        _ => {}
    }
}

impl<const MIN: i64, const MAX: i64> PartialSchema for BoundedInteger<MIN, MAX> {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
        let number = ObjectBuilder::new().schema_type(Type::Integer).format(Some(format));
        number.minimum(Some(MIN)).maximum(Some(MAX)).into()
    }
}

impl<const MIN: i64, const MAX: i64> ToSchema for BoundedInteger<MIN, MAX> {}

/// Checks the rules of a value that was read. The error, of the reading or of the first broken rule, names the field, or `whole`
/// if no field is known.
fn validate<T: Validate<Context = ()>, E: Display>(
    read: Result<T, serde_path_to_error::Error<E>>,
    whole: &str,
) -> Result<T, Error> {
    let value = read.map_err(|error| {
        let (path, rule) = (error.path().to_string(), error.inner().to_string());
        let field = if path == "." { field_named_in(&rule).unwrap_or(whole).to_owned() } else { path };
        Error::bad_input(&field, rule)
    })?;
    match value.validate() {
        Ok(()) => Ok(value),
        Err(report) => Err(report.iter().next().map_or_else(
            || Error::bad_input(whole, "is refused"),
            |(path, error)| Error::bad_input(&path.to_string(), error.to_string()),
        )),
    }
}

/// The field in an error of serde without a path: it is missing, unknown or given twice.
fn field_named_in(rule: &str) -> Option<&str> {
    let (_, rest) = rule.split_once(" field `")?;
    rest.split_once('`').map(|(field, _)| field)
}
