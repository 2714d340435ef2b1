//! The parts of the page that a report contains: the modules that draw races, as one script, and their style rules.

use oversell::static_files::{link, text};
use std::collections::BTreeSet;

/// This module and all that it imports. Nothing in it ends a script element.
pub(super) fn script(module: &str) -> String {
    let script = link(&[module.to_owned()], &BTreeSet::new(), |path, _| unreachable!("a report needs no other file, as {path}"));
    script.replace("</", r"<\/")
}

/// The style rules for timelines; each is one line.
pub(super) fn timeline_style() -> String {
    let style = text("style.css");
    let rules = style.lines().filter(|line| line.starts_with(".timeline") || line.starts_with(".still "));
    rules.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_timelines_is_the_pages_own() {
        let style = timeline_style();
        for class in [".overlap", ".waits", ".wedge", ".red.dot-full"] {
            assert!(style.contains(&format!(".timeline {class} {{")), "{class}");
        }
    }
}
