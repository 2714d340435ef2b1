//! [003] How a browser may reuse a file that it has: the binary's half of what
//! `nginx/templates/oversell.conf.template` says, header by header.
//!
//! 1. Has it expired? Until `max-age` is over, the browser asks nothing.
//! 2. Else it asks with the ETag that it has; the same one is answered 304, without a body.
//! 3. Or, without one, with the time of Last-Modified; a file that is not newer is answered 304.
//!
//! Each of the four files in `static/cache/` shows one of these alone, and one that is never stored;
//! `static/cache.html` explains them. A bundle's name changes with its content, so a browser never asks again unless somebody reloads; a
//! browser asks for a page each time, as for the files of `static/`. All have both: a page and a bundle have their content's hash as ETag.
//!
//! What it survives: a change from nginx to a lone instance and back: both give the same ETag. **What breaks it**: a
//! file that is changed while it is fresh: the browser does not ask, so it does not see the change.

use crate::static_files::{FOLDER, hash};
use headers::{ETag, HeaderMapExt, IfModifiedSince, IfNoneMatch};
use http::HeaderMap;
use rust_embed::EmbeddedFile;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A static file as it is served: its content, and the headers that say how a browser may reuse it.
pub(super) struct File {
    pub(super) content: Vec<u8>,
    pub(super) control: &'static str,
    pub(super) etag: Option<ETag>,
    pub(super) modified: Option<SystemTime>,
}

impl File {
    /// A bundled page, script or style sheet: a bundle may be reused for a year, a page only if it is unchanged.
    pub(super) fn bundled(path: &str, content: &str, modified: Option<SystemTime>) -> Self {
        let control = if path.starts_with(FOLDER) { "max-age=31536000, immutable" } else { "no-cache" };
        Self { content: content.into(), control, etag: Some(etag_of(format!("{:x}", hash(content)))), modified }
    }

    /// A file of `static/`: reused only if it is unchanged, except for those in `cache/` that show something else.
    pub(super) fn embedded(path: &str, file: EmbeddedFile) -> Self {
        let (control, has_etag, has_time) = match path {
            "cache/fresh.svg" => ("max-age=60", false, false),
            "cache/etag.svg" => ("no-cache", true, false),
            "cache/last-modified.svg" => ("no-cache", false, true),
            "cache/never.svg" => ("no-store", false, false),
            _ => ("no-cache", true, true),
        };
        let seconds = file.metadata.last_modified().unwrap_or_default();
        // As nginx makes it: time and size, in hexadecimal digits.
        let etag = has_etag.then(|| etag_of(format!("{seconds:x}-{:x}", file.data.len())));
        let modified = has_time.then(|| UNIX_EPOCH + Duration::from_secs(seconds));
        Self { content: file.data.into_owned(), control, etag, modified }
    }
}

/// These digits as a strong ETag.
fn etag_of(digits: String) -> ETag {
    let tag = format!("\"{digits}\"");
    tag.parse().expect("digits between quotation marks")
}

/// Whether the browser has this version, by the headers that it sent. RFC 9110: the time counts only if it sent no ETag.
pub(super) fn is_unchanged(asked: &HeaderMap, etag: Option<&ETag>, modified: Option<SystemTime>) -> bool {
    if let Some(known) = asked.typed_get::<IfNoneMatch>() {
        return etag.is_some_and(|etag| !known.precondition_passes(etag));
    }
    let since = asked.typed_get::<IfModifiedSince>().zip(modified);
    since.is_some_and(|(since, modified)| !since.is_modified(modified))
}
