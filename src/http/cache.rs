//! [003] How a browser may reuse a file that it has: the binary's half of what
//! `nginx/templates/oversell.conf.template` says, header by header.
//!
//! 1. Has it expired? Until `max-age` is over, the browser asks nothing.
//! 2. Else it asks with the ETag that it has; the same one is answered 304, without a body.
//! 3. Or, without one, with the time of Last-Modified; a file that is not newer is answered 304.
//!
//! Each of the four files in `static/cache/` shows one of these alone, and one that is never stored;
//! `static/cache.html` explains them. The page's own files have no version in their names: a browser asks each time,
//! with both.
//!
//! What it survives: a change from nginx to a lone instance and back: both give the same ETag. **What breaks it**: a
//! file that is changed while it is fresh: the browser does not ask, so it does not see the change.

use headers::{ETag, HeaderMapExt, IfModifiedSince, IfNoneMatch};
use http::HeaderMap;
use rust_embed::EmbeddedFile;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The headers that a file is sent with.
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
pub(super) fn etag(file: &EmbeddedFile) -> ETag {
    let tag = format!("\"{:x}-{:x}\"", seconds(file), file.data.len());
    tag.parse().expect("digits between quotation marks")
}

/// When it was last changed.
pub(super) fn modified(file: &EmbeddedFile) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds(file))
}

fn seconds(file: &EmbeddedFile) -> u64 {
    file.metadata.last_modified().unwrap_or_default()
}

/// Whether the browser has this version. RFC 9110: the time counts only without an ETag.
pub(super) fn is_known(
    asked: &HeaderMap,
    etag: Option<&ETag>,
    modified: Option<SystemTime>,
) -> bool {
    if let Some(known) = asked.typed_get::<IfNoneMatch>() {
        return etag.is_some_and(|etag| !known.precondition_passes(etag));
    }
    let since = asked.typed_get::<IfModifiedSince>().zip(modified);
    since.is_some_and(|(since, modified)| !since.is_modified(modified))
}
