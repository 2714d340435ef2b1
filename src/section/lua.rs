//! Scripts for Redis, whose text can be found by their digest: EVALSHA names a script by its digest alone.

use parking_lot::Mutex;
use redis::Script;
use std::collections::BTreeMap;

/// The texts of our scripts, by their digests.
static TEXTS: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());

/// Makes a script and keeps its text for [`text_of`].
pub(crate) fn script(text: &'static str) -> Script {
    let script = Script::new(text);
    TEXTS.lock().insert(script.get_hash().to_owned(), text);
    script
}

/// The text of the script with this digest, ours or the lock library's.
pub(crate) fn text_of(digest: &str) -> Option<&'static str> {
    let ours = TEXTS.lock().get(digest).copied();
    ours.or_else(|| oversell_lock::redis::script_text(digest))
}

/// The script without its comments and blank lines, as it is shown to people.
pub(crate) fn without_comments(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("--") && !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
