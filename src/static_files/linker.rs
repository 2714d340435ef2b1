//! Modules as one script: each a block, in the order in which they run, without comments and white space.
//!
//! A module puts what it exports into `globalThis.modules` under its path from `static/`, and takes what it imports from there. So a
//! name of one module is none of another, and a script that comes later imports from an earlier one.
//! It knows the forms that the modules of `static/js` have, each on one line; a test refuses others.

use super::text;
use std::collections::BTreeSet;

/// The text before the path of a module that is imported when the script runs.
const DYNAMIC_IMPORT: &str = "await import('";

/// Links these modules and all that they import, except the modules that an earlier script has. `later` returns the name of
/// the script for a module that is imported when the script runs; it gets the modules that are loaded by then.
pub fn link(entries: &[String], earlier: &BTreeSet<String>, mut later: impl FnMut(&str, &BTreeSet<String>) -> String) -> String {
    let mut order = Vec::new();
    let mut modules = earlier.clone();
    for entry in entries {
        visit(entry, &mut modules, &mut order);
    }
    let mut script = "globalThis.modules??={};".to_owned();
    for Module { path, text } in order {
        let mut parts = text.split(DYNAMIC_IMPORT);
        let mut block = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (import, rest) = part.split_once('\'').unwrap_or((part, ""));
            let found = later(&beside(&path, import), &modules);
            block += &format!("(await import('{found}')).default{}", rest.strip_prefix(')').unwrap_or(rest));
        }
        // What cannot be read is left as it is: the browser says what is wrong with it.
        let small = minifier::js::minify(&block).map_or_else(|_| block.clone(), |s| s.to_string());
        script += &format!("\n{{{small}}}");
    }
    script
}

/// One module in the order in which they run.
struct Module {
    path: String,
    /// With its imports and exports replaced.
    text: String,
}

/// Adds a module to `order`, behind all that it imports; does nothing if it is `known` already.
fn visit(path: &str, known: &mut BTreeSet<String>, order: &mut Vec<Module>) {
    if !known.insert(path.to_owned()) {
        return;
    }
    let (text, imports) = replace_imports(path, &text(path));
    for import in &imports {
        visit(import, known, order);
    }
    let path = path.to_owned();
    order.push(Module { path, text });
}

/// The text of a module with its imports and exports replaced, and the paths of the modules that it imports.
fn replace_imports(path: &str, text: &str) -> (String, Vec<String>) {
    let (mut body, mut imports, mut exports) = (String::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let from = line.strip_suffix("';").and_then(|l| l.rsplit_once(" from '"));
        if let Some((head, import)) = from.filter(|_| line.starts_with("import ")) {
            let import = beside(path, import);
            let names = &head["import ".len()..];
            let names = names.strip_prefix("* as ").unwrap_or(names);
            body += &format!("const {} = {};", names.replace(" as ", ": "), exports_of(&import));
            imports.push(import);
        } else if let Some((head, import)) = from.filter(|_| line.starts_with("export {")) {
            let import = beside(path, import);
            let names = head["export {".len()..].trim_end_matches('}').split(',');
            exports.extend(names.map(|name| {
                let name = name.trim();
                format!("{name}: {}.{name}", exports_of(&import))
            }));
            imports.push(import);
        } else if let Some(declared) = line.strip_prefix("export ") {
            let name = declared.split([' ', '(', '=', '{']).find(|word| !["async", "class", "const", "function"].contains(word));
            exports.extend(name.map(str::to_owned));
            body += declared;
        } else {
            body += line;
        }
        body.push('\n');
    }
    body += &format!("{} = {{ {} }};", exports_of(path), exports.join(", "));
    (body, imports)
}

/// The JavaScript expression for the exports of the module at this path.
pub(super) fn exports_of(path: &str) -> String {
    format!("globalThis.modules['{path}']")
}

/// The path of an import: `../shared/dom.js` beside `js/timeline/drawing.js` is `js/shared/dom.js`.
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
    use crate::static_files::StaticFiles;

    /// The first line that imports or exports in a form that is not replaced.
    fn unknown_form(text: &str) -> Option<String> {
        let declares = ["async function ", "class ", "const ", "function "];
        let is_known = |line: &&str| {
            declares.iter().any(|d| line.strip_prefix("export ").is_some_and(|l| l.starts_with(d)))
                || line.ends_with(".js';") && ["import {", "import * as ", "export {"].iter().any(|form| line.starts_with(form))
        };
        let mut lines = text.lines().filter(|line| line.starts_with("import") || line.starts_with("export"));
        lines.find(|line| !is_known(line)).map(str::to_owned)
    }

    #[test]
    fn every_module_has_the_forms_that_are_linked() {
        for path in StaticFiles::iter().filter(|path| path.ends_with(".js")) {
            assert_eq!(unknown_form(&text(&path)), None, "static/{path}");
        }
        for other in ["export default 1;", "export let a = 1;", "import './dom.js';", "import {", "export { a };"] {
            assert_eq!(unknown_form(other).as_deref(), Some(other));
        }
    }
}
