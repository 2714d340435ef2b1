//! The page and its files. nginx serves what stands in `static/` as it is, and asks an instance for the rest.

use super::{cache, format::Format};
use crate::{
    classroom::limits::NGINX_ONLY_ROUTES,
    http::error::Error,
    static_files::{BundledFiles, StaticFiles},
};
use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use headers::{HeaderMapExt, LastModified};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use tower_http::set_header::SetResponseHeaderLayer;

const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

/// The Content-Security-Policy of the page, which loads nothing from another host, and nothing inline.
const PAGE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The Content-Security-Policy of Swagger UI, which writes styles into its page and draws with embedded images.
const DOCS_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                           img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";

/// Serves `/`, every page and its bundles, every file in `static/`, and the readmes, to GET and HEAD; any other path is
/// [`Error::NoRoute`], or [`Error::OnlyAtNginx`] below `nginx/`.
pub(super) async fn serve_file(method: Method, uri: Uri, headers: HeaderMap) -> Result<Response, Error> {
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    if let Some(readme) = readme_at(path).filter(|_| method == Method::GET || method == Method::HEAD) {
        return Ok(([(header::CONTENT_TYPE, Format::TEXT), (header::CONTENT_SECURITY_POLICY, PAGE_CSP)], readme).into_response());
    }
    if path.starts_with("nginx/") {
        return Err(Error::OnlyAtNginx(NGINX_ONLY_ROUTES));
    }
    let bundles = BundledFiles::current();
    // With `?modules` the scripts are served one by one instead of a bundle.
    let asks_for_modules = uri.query().unwrap_or_default().split('&').any(|word| word == "modules");
    let bundled = bundles.get(path).filter(|_| !asks_for_modules);
    let file = match bundled {
        Some(content) => cache::File::bundled(path, content, bundles.modified),
        None => StaticFiles::get(path).map(|file| cache::File::embedded(path, file)).ok_or(Error::NoRoute)?,
    };
    if method != Method::GET && method != Method::HEAD {
        let allow = [(header::ALLOW, "GET, HEAD")];
        return Ok((StatusCode::METHOD_NOT_ALLOWED, allow).into_response());
    }
    let mut answer = match cache::is_unchanged(&headers, file.etag.as_ref(), file.modified) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let kind = [(header::CONTENT_TYPE, content_type(path))];
            (kind, Body::from(file.content)).into_response()
        }
    };
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(file.control));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_CSP));
    headers.insert(header::REFERRER_POLICY, NO_REFERRER);
    if let Some(etag) = file.etag {
        headers.typed_insert(etag);
    }
    if let Some(modified) = file.modified {
        headers.typed_insert(LastModified::from(modified));
    }
    Ok(answer)
}

/// The readme, or other document, at this path, to which the page links; `None` at any other path.
fn readme_at(path: &str) -> Option<&'static str> {
    match path {
        "README.md" => Some(include_str!("../../README.md")),
        "README.zh-CN.md" => Some(include_str!("../../README.zh-CN.md")),
        "frameworks.md" => Some(include_str!("../../docs/frameworks.md")),
        "frameworks.zh-CN.md" => Some(include_str!("../../docs/frameworks.zh-CN.md")),
        _ => None,
    }
}

/// Swagger UI's page with a Content-Security-Policy of its own, and without a referrer.
pub(super) fn with_docs_policy(ui: Router) -> Router {
    let policy = HeaderValue::from_static(DOCS_CSP);
    ui.layer(SetResponseHeaderLayer::overriding(header::CONTENT_SECURITY_POLICY, policy))
        .layer(SetResponseHeaderLayer::overriding(header::REFERRER_POLICY, NO_REFERRER))
}

/// The content type by the ending of the file's name.
fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
