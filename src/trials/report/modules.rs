//! The page's own modules within one file: an import map of `data:` addresses, which needs no service and no other host.
//!
//! A module that stands in its own address has no neighbours, so what it imports by a path is renamed to the path from `static/`,
//! which the map knows.

use crate::static_files::StaticFiles;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::json;
use std::collections::BTreeMap;

/// Characters that would end an address, the map or the script element.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%').add(b'#').add(b'"').add(b'\\').add(b'<');
/// What precedes an imported path, on the same line.
const FROM: &str = " from '";

/// An import map with this module and all that it imports.
pub(super) fn import_map(module: &str) -> String {
    let (mut known, mut wanted) = (BTreeMap::new(), vec![module.to_owned()]);
    while let Some(path) = wanted.pop() {
        if known.contains_key(&path) {
            continue;
        }
        let (text, imports) = renamed(&path, &text(&path));
        let address = format!(
            "data:text/javascript;charset=utf-8,{}",
            utf8_percent_encode(&text, ESCAPED)
        );
        known.insert(path, address);
        wanted.extend(imports);
    }
    json!({"imports": known}).to_string()
}

/// The style rules for timelines; each is one line.
pub(super) fn timeline_style() -> String {
    let style = text("style.css");
    let rules = style
        .lines()
        .filter(|line| line.starts_with(".timeline") || line.starts_with(".still "));
    rules.collect::<Vec<_>>().join("\n")
}

fn text(path: &str) -> String {
    let file = StaticFiles::get(path).unwrap_or_else(|| panic!("static/{path} is embedded"));
    String::from_utf8_lossy(&file.data).into_owned()
}

/// The module with its imports named from `static/`, and those names.
fn renamed(path: &str, text: &str) -> (String, Vec<String>) {
    let mut parts = text.split(FROM);
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    let mut imports = Vec::new();
    for part in parts {
        let (import, rest) = part.split_once('\'').unwrap_or((part, ""));
        let import = beside(path, import);
        renamed += &format!("{FROM}{import}'{rest}");
        imports.push(import);
    }
    (renamed, imports)
}

/// `../shared/dom.js` beside `js/timeline/drawing.js` is `js/shared/dom.js`.
fn beside(path: &str, import: &str) -> String {
    let mut folders: Vec<_> = path.split('/').collect();
    folders.pop();
    for part in import.split('/') {
        match part {
            "." => {}
            ".." => drop(folders.pop()),
            name => folders.push(name),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_named_from_the_folder_of_all() {
        let text = "import { a } from './layout.js';\nimport * as b from '../shared/dom.js';\nlet from = 'x';";
        let (text, imports) = renamed("js/timeline/drawing.js", text);
        assert_eq!(imports, ["js/timeline/layout.js", "js/shared/dom.js"]);
        assert!(
            text.starts_with("import { a } from 'js/timeline/layout.js';"),
            "{text}"
        );
        assert!(text.ends_with("let from = 'x';"), "{text}");
    }

    #[test]
    fn the_style_of_timelines_is_the_pages_own() {
        let style = timeline_style();
        for class in [".overlap", ".waits", ".wedge", ".red.dot-full"] {
            assert!(style.contains(&format!(".timeline {class} {{")), "{class}");
        }
    }
}
