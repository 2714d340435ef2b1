//! The module graph of `src/` stays as ARCHITECTURE.md draws it, and the documents keep up with the registry.

use oversell::stock;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Who may not know whom: the room, and the rooms that it must not name.
const WALLS: &[(&str, &[&str])] = &[
    ("src/stock", &["classroom", "http", "load", "lab", "cli"]),
    ("src/classroom", &["http", "load", "lab", "cli"]),
    ("src/load", &["classroom", "http", "lab", "cli"]),
    ("src/http", &["lab", "cli"]),
    ("src/lab", &["classroom", "http", "load", "cli", "stock"]),
    ("lock/src", &["oversell"]),
];

pub(crate) fn no_room_knows_what_it_must_not() -> Result<(), String> {
    let breaches: Vec<_> = WALLS.iter().flat_map(|(room, others)| breaches(room, others)).collect();
    if breaches.is_empty() { Ok(()) } else { Err(breaches.join("\n")) }
}

/// The twin: a wall through which `cli` surely goes must be reported.
pub(crate) fn a_wall_that_is_broken_is_seen() -> Result<(), String> {
    if breaches("src/cli.rs", &["load"]).is_empty() {
        Err("cli uses load, and the test did not see it".into())
    } else {
        Ok(())
    }
}

pub(crate) fn a_strategy_is_at_most_80_lines() -> Result<(), String> {
    let long: Vec<_> = stock::ALL.iter().filter(|s| s.source.lines().count() > 80).map(|s| s.slug).collect();
    if long.is_empty() { Ok(()) } else { Err(format!("longer than 80 lines: {}", long.join(", "))) }
}

pub(crate) fn no_source_file_is_over_400_lines() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for room in ["src", "lock/src", "tests", "lock/tests"] {
        rust_files(&root.join(room), &mut files);
    }
    let long: Vec<_> = files
        .iter()
        .filter(|f| fs::read_to_string(f).is_ok_and(|text| text.lines().count() > 400))
        .map(|f| f.display().to_string())
        .collect();
    if long.is_empty() { Ok(()) } else { Err(format!("longer than 400 lines: {}", long.join(", "))) }
}

pub(crate) fn both_readmes_list_every_strategy_as_the_registry_does() -> Result<(), String> {
    for readme in ["README.md", "README.zh-CN.md"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(readme)).map_err(|e| e.to_string())?;
        for strategy in stock::ALL {
            let promise = serde_json::to_value(strategy.promise).map_err(|e| e.to_string())?;
            let row = format!("| {} | {} |", strategy.chapter, promise.as_str().unwrap_or_default());
            let listed = text.lines().any(|l| l.starts_with(&format!("| [`{}`]", strategy.slug)) && l.contains(&row));
            if !listed {
                return Err(format!("{readme} has no row for {} with chapter and promise {row}", strategy.slug));
            }
        }
    }
    Ok(())
}

fn breaches(room: &str, others: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(room);
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    assert!(!files.is_empty(), "{room} has no files: the test looks in the wrong place");
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable source file");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if others.iter().any(|other| names(code, other)) {
                found.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    found
}

/// Whether a line of code names a module of the crate, alone or in a group: `crate::load::`, `use crate::{http, load}`.
fn names(code: &str, module: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = code.contains("crate::") || code.contains("oversell::");
    starts && code.split(|c| !is_word(c)).any(|word| word == module)
}

fn rust_files(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_file() {
        into.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() || path.extension().is_some_and(|e| e == "rs") {
            rust_files(&path, into);
        }
    }
}
