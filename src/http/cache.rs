//! [003] What a browser may do with a file that it has: the binary's half of what
//! `nginx/templates/oversell.conf.template` says, header by header.
//!
//! 1. Has it expired? Until `max-age` is over, the browser asks nothing.
//! 2. Else it asks with the ETag that it has; the same one is answered 304, without a body.
//! 3. Or, without one, with the time of Last-Modified; the same one is answered 304.
//!
//! Each of the four files in `static/cache/` shows one of these alone, and one that is never stored;
//! `static/cache.html` explains them. The page's own files have no version in their names: a browser asks each time,
//! with both.
//!
//! What it survives: a change from nginx to a lone instance and back: both give the same ETag. **What breaks it**: a
//! file that is changed while it is fresh: nobody asks, so nobody hears of it.

use http::{HeaderMap, header};
use rust_embed::EmbeddedFile;
use std::time::{Duration, UNIX_EPOCH};

/// What a file is sent with.
pub(super) struct Rule {
    pub(super) control: &'static str,
    pub(super) etag: bool,
    pub(super) last_modified: bool,
}

/// The rule of the file at this path.
pub(super) fn rule(path: &str) -> Rule {
    let (control, etag, last_modified) = match path {
        "cache/fresh.svg" => ("max-age=60", false, false),
        "cache/etag.svg" => ("no-cache", true, false),
        "cache/last-modified.svg" => ("no-cache", false, true),
        "cache/never.svg" => ("no-store", false, false),
        _ => ("no-cache", true, true),
    };
    Rule {
        control,
        etag,
        last_modified,
    }
}

/// As nginx makes it: time and size, in hexadecimal digits.
pub(super) fn etag(file: &EmbeddedFile) -> String {
    format!("\"{:x}-{:x}\"", seconds(file), file.data.len())
}

/// When it was last changed, as HTTP writes times.
pub(super) fn modified(file: &EmbeddedFile) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds(file)))
}

fn seconds(file: &EmbeddedFile) -> u64 {
    file.metadata.last_modified().unwrap_or_default()
}

/// Whether the browser has this very one. RFC 9110: the time counts only where it names no ETag.
pub(super) fn is_known(headers: &HeaderMap, etag: Option<&str>, modified: Option<&str>) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return etag.is_some_and(|etag| is_listed(headers, etag));
    }
    let since = headers
        .get(header::IF_MODIFIED_SINCE)
        .and_then(|value| value.to_str().ok());
    since.is_some() && since == modified
}

/// Any of the list, compared weakly, or `*`.
fn is_listed(headers: &HeaderMap, etag: &str) -> bool {
    let lists = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}
