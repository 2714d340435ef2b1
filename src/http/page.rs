//! The page and its files, so that a lone instance serves them without nginx.

use super::{cache, format::Format};
use crate::{classroom::limits::AT_NGINX, http::error::Error, static_files::StaticFiles};
use axum::{
    body::Body,
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use rust_embed::EmbeddedFile;

/// Nothing from another host, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Swagger UI writes styles of its own into its page, and draws with embedded images.
const DOCS_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                           img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";

/// `/` and every file in `static/`.
pub(super) async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Result<Response, Error> {
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    if let Some(readme) = readme(path).filter(|_| method == Method::GET || method == Method::HEAD) {
        return Ok((
            [
                (header::CONTENT_TYPE, Format::TEXT),
                (header::CONTENT_SECURITY_POLICY, POLICY),
            ],
            readme,
        )
            .into_response());
    }
    if path.starts_with("nginx/") {
        return Err(Error::OnlyAtNginx(AT_NGINX));
    }
    let file = StaticFiles::get(path).ok_or(Error::NoRoute)?;
    if method != Method::GET && method != Method::HEAD {
        let allow = [(header::ALLOW, "GET, HEAD")];
        return Ok((StatusCode::METHOD_NOT_ALLOWED, allow).into_response());
    }
    let keep = cache::rule(path);
    let (etag, modified) = (
        keep.etag.then(|| cache::etag(&file)),
        keep.last_modified.then(|| cache::modified(&file)),
    );
    let shown = [
        (header::ETAG, etag.as_deref()),
        (header::LAST_MODIFIED, modified.as_deref()),
        (header::CACHE_CONTROL, Some(keep.control)),
        (header::CONTENT_SECURITY_POLICY, Some(POLICY)),
        (header::REFERRER_POLICY, Some("no-referrer")),
    ];
    let shown = AppendHeaders(
        shown
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect::<Vec<_>>(),
    );
    if cache::is_known(&headers, etag.as_deref(), modified.as_deref()) {
        return Ok((StatusCode::NOT_MODIFIED, shown).into_response());
    }
    Ok((
        shown,
        [(header::CONTENT_TYPE, content_type(&file))],
        Body::from(file.data.into_owned()),
    )
        .into_response())
}

/// The readmes, which the page leads to.
fn readme(path: &str) -> Option<&'static str> {
    match path {
        "README.md" => Some(include_str!("../../README.md")),
        "README.zh-CN.md" => Some(include_str!("../../README.zh-CN.md")),
        _ => None,
    }
}

/// Swagger UI's page with a policy of its own.
pub(super) async fn docs_policy(mut response: Response) -> Response {
    let set: [(HeaderName, &'static str); 2] = [
        (header::CONTENT_SECURITY_POLICY, DOCS_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in set {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn content_type(file: &EmbeddedFile) -> String {
    let kind = file.metadata.mimetype();
    let is_text =
        kind.starts_with("text/") || kind.ends_with("javascript") || kind.ends_with("json");
    if is_text {
        format!("{kind}; charset=utf-8")
    } else {
        kind.to_owned()
    }
}
