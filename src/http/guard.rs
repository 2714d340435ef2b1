//! Requests that change something are accepted from this service's own page and from clients that are no browser, and are
//! refused from a page of another host, in whatever way it reaches this one. Nothing is read through a foreign name either.
//!
//! 1. A page of another origin sends its requests with `Origin` and `Sec-Fetch-Site`: tower-http's [`CsrfLayer`] refuses
//!    those that change something. JMeter and curl send neither header, and pass.
//! 2. A page whose host name was made to point here after it was loaded (DNS rebinding) is of the same origin for the
//!    browser. It is known by its name, which is none of ours: [`refuse_unknown_host`]. An address in digits cannot be
//!    rebound, so a phone that calls the machine by its address passes.
//! 3. The course's routes take with GET, which a page may embed as an image or a frame: [`refuse_embedding`]. To follow a link
//!    or to type an address is no embedding.
//!
//! **What breaks it**: a browser says by Sec-Fetch-* what it embeds only to addresses that it trusts, loopback or https. To
//! another plain one, as a phone uses, it sends `Referer` with an image; a page that holds that back, or embeds a frame, is not
//! told from a link.

use super::error::Error;
use crate::config::Config;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, header, uri::Authority};
use std::{collections::HashSet, net::IpAddr, sync::Arc};
use tower_http::{
    csrf::{CsrfLayer, ProtectionError},
    validate_request::{ValidateRequest, ValidateRequestHeaderLayer},
};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The file in which Linux tells the name of the machine.
const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";

/// The host names under which browsers may call this instance, besides `localhost`, names below it, and addresses in
/// digits; in lower case, without a port.
#[derive(Debug)]
pub(super) struct Hosts(HashSet<String>);

impl Hosts {
    /// The names in `server.hosts`, `server.host` and the cluster's addresses, and those of this machine.
    pub(super) fn from_config(config: &Config) -> Self {
        let cluster = config.cluster.instances.iter().chain([&config.cluster.http]);
        let cluster = cluster.filter_map(|url| Some(url.parse::<Uri>().ok()?.host()?.to_owned()));
        let machine = std::fs::read_to_string(HOSTNAME_FILE).map(|name| name.trim().to_owned()).unwrap_or_default();
        let local = format!("{machine}.local");
        let names = config.server.hosts.iter().cloned().chain(cluster).chain([config.server.host.clone(), machine, local]);
        Self(names.map(|name| name.to_ascii_lowercase()).filter(|name| !name.is_empty()).collect())
    }

    /// Whether a browser that calls this host means this instance.
    fn contains(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        host.parse::<IpAddr>().is_ok() || host == "localhost" || host.ends_with(".localhost") || self.0.contains(&host)
    }
}

/// The origins of the names in `server.hosts`: a proxy may send another Host than the browser calls.
fn own_origins(config: &Config) -> impl Iterator<Item = String> + '_ {
    let schemes = ["http", "https"].into_iter();
    schemes.flat_map(|scheme| config.server.hosts.iter().map(move |host| format!("{scheme}://{}", host.to_ascii_lowercase())))
}

/// A layer that refuses requests that change something and come from a page of another origin (403).
pub(super) fn refuse_other_origins(config: &Config) -> CsrfLayer<impl FnMut(ProtectionError) -> Response + Clone + use<>> {
    // A name that makes no origin is none of a page.
    let trust = |layer: CsrfLayer, origin: String| layer.clone().add_trusted_origin(origin).unwrap_or(layer);
    let layer = own_origins(config).fold(CsrfLayer::new(), trust);
    layer.with_rejection_response(|_| Error::Forbidden { header: "Origin" }.into_response())
}

/// A layer that refuses requests that name a host that is none of ours (403). A request that names no host passes.
#[expect(clippy::result_large_err, reason = "the refusal is an answer, as tower-http has it")]
pub(super) fn refuse_unknown_host<B>(
    hosts: Hosts,
) -> ValidateRequestHeaderLayer<impl ValidateRequest<B, ResponseBody = Body> + Clone> {
    let hosts = Arc::new(hosts);
    ValidateRequestHeaderLayer::custom(move |request: &mut Request<B>| {
        match called_host(request).is_none_or(|host| hosts.contains(&host)) {
            true => Ok(()),
            false => Err(Error::Forbidden { header: "Host" }.into_response()),
        }
    })
}

/// A layer that refuses what a page of another host embeds or fetches (403).
#[expect(clippy::result_large_err, reason = "the refusal is an answer, as tower-http has it")]
pub(super) fn refuse_embedding<B>(
    config: &Config,
) -> ValidateRequestHeaderLayer<impl ValidateRequest<B, ResponseBody = Body> + Clone + use<B>> {
    let own: Arc<HashSet<_>> = Arc::new(own_origins(config).collect());
    ValidateRequestHeaderLayer::custom(move |request: &mut Request<B>| match embedding_header(request.headers(), &own) {
        None => Ok(()),
        Some(header) => Err(Error::Forbidden { header }.into_response()),
    })
}

/// The name of the header that shows that a page of another host embeds the answer; `None` if no header does.
fn embedding_header(headers: &HeaderMap, own: &HashSet<String>) -> Option<&'static str> {
    let is = |name: HeaderName, value: &str| headers.get(name).is_some_and(|it| it == value);
    if headers.contains_key(FETCH_SITE) {
        let other = is(FETCH_SITE, "cross-site") || is(FETCH_SITE, "same-site");
        return (other && !is(FETCH_DEST, "document")).then_some("Sec-Fetch-Site");
    }
    let is_link = || {
        let accept = headers.get(header::ACCEPT).map(HeaderValue::as_bytes);
        accept.is_some_and(|accept| accept.starts_with(b"text/html"))
    };
    if names_other_host(headers, header::ORIGIN, own) {
        return Some("Origin");
    }
    (names_other_host(headers, header::REFERER, own) && !is_link()).then_some("Referer")
}

/// Whether the address in this header has another host or port than the client calls, and is none of our `own` origins; true if
/// it is unreadable, false without the header.
fn names_other_host(headers: &HeaderMap, name: HeaderName, own: &HashSet<String>) -> bool {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let Some(named) = headers.get(name).map(text) else {
        return false;
    };
    let named = named.parse::<Uri>().ok();
    let is_own = |named: &Uri| Some(own.contains(&format!("{}://{}", named.scheme_str()?, named.authority()?)));
    if named.as_ref().and_then(is_own) == Some(true) {
        return false;
    }
    let named = named.as_ref().and_then(Uri::authority).map(Authority::as_str);
    named != headers.get(header::HOST).map(text).as_deref()
}

/// The host that the client calls, without its port; `None` if the request names none. An unreadable name is none of ours, and
/// stays as it is.
fn called_host<B>(request: &Request<B>) -> Option<String> {
    let named = |headers: &HeaderMap| Some(String::from_utf8_lossy(headers.get(header::HOST)?.as_bytes()).into_owned());
    let host = request.uri().authority().map(ToString::to_string).or_else(|| named(request.headers()))?;
    Some(host.parse::<Authority>().map_or(host, |authority| authority.host().to_owned()))
}
