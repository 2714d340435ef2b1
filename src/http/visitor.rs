//! A visitor: whoever opens the page, known by the random id that the page sends as header `x-visitor`.
//!
//! Races, schedules, own locks, runs and typed lines belong to a visitor. A request without the header belongs to the visitor
//! of its address: all that come from there are one.
//!
//! **What it is not**: a login. Whoever knows another's id is that visitor; so no answer shows one.

use super::{app::AppState, error::Error};
use axum::extract::{ConnectInfo, FromRequestParts};
use http::{HeaderMap, request::Parts};
use serde_json::json;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use utoipa::{
    IntoParams,
    openapi::{
        ObjectBuilder, Required, Type,
        path::{Parameter, ParameterBuilder, ParameterIn},
    },
};

const VISITOR_HEADER: &str = "x-visitor";

/// The beginning of the id of a visitor who is known by address only; no id of a browser begins like this.
const ADDRESS_ID_PREFIX: &str = "at:";

/// The fewest characters of an id that a browser sends; [`MAX_ID_LEN`] is the most.
const MIN_ID_LEN: usize = 16;
const MAX_ID_LEN: usize = 64;

/// The id of a visitor, which is never shown to others.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Visitor(Arc<str>);

impl Visitor {
    #[cfg(test)]
    pub(super) fn named(id: &str) -> Self {
        Self(id.into())
    }

    /// Whether the visitor has sent an id, and is not just whoever asks from an address.
    pub(super) fn has_id(&self) -> bool {
        !self.0.starts_with(ADDRESS_ID_PREFIX)
    }

    /// The text that stands for the visitor in names of the servers: the id, else `at:` and the address.
    pub(super) fn id(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visitor")
    }
}

impl FromRequestParts<AppState> for Visitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Error> {
        let Some(given) = parts.headers.get(VISITOR_HEADER) else {
            let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
            let address = sender(&parts.headers, peer.map(|peer| peer.0));
            let address = address.map_or_else(|| "somebody".into(), |address| address.to_string());
            return Ok(Self(format!("{ADDRESS_ID_PREFIX}{address}").into()));
        };
        let is_plain = |id: &&str| {
            (MIN_ID_LEN..=MAX_ID_LEN).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let id = given.to_str().ok().filter(is_plain);
        let rule = || format!("must be {MIN_ID_LEN} to {MAX_ID_LEN} letters, digits and hyphens of ASCII");
        id.map(|id| Self(id.into())).ok_or_else(|| Error::bad_input(VISITOR_HEADER, rule()))
    }
}

impl IntoParams for Visitor {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let id = ObjectBuilder::new().schema_type(Type::String).examples([json!("6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]);
        let id = id.pattern(Some(format!("^[A-Za-z0-9-]{{{MIN_ID_LEN},{MAX_ID_LEN}}}$")));
        let header = ParameterBuilder::new().name(VISITOR_HEADER).parameter_in(ParameterIn::Header);
        let header = header.description(Some("The visitor; without it, the one of the address"));
        vec![header.required(Required::False).schema(Some(id)).build()]
    }
}

/// The address that has sent a request: the last that a proxy names, since a client writes those before it; else that of the
/// connection; `None` without either.
pub(super) fn sender(headers: &HeaderMap, peer: Option<SocketAddr>) -> Option<IpAddr> {
    let named = headers.get_all("x-forwarded-for").iter().next_back();
    let named = named.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    named.or(peer.map(|peer| peer.ip()))
}

/// A label for others to read, which a client can forge: the first address that a proxy names, else that of the connection,
/// else `somebody`.
pub(super) fn origin(headers: &HeaderMap, peer: Option<SocketAddr>) -> String {
    let named = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok()).and_then(|v| v.split(',').next());
    let named = named.and_then(|address| address.trim().parse().ok());
    named.or(peer.map(|peer| peer.ip())).map_or_else(|| "somebody".into(), |address| address.to_string())
}
