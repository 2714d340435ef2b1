//! The module graph of `src/` stays as ARCHITECTURE.md draws it.

use crate::imports;
use oversell::stock;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

type Outcome = Result<(), String>;

/// The rooms of `src/`, and the rooms that each may name besides itself and the modules that belong to no room (ctx,
/// error, config …), which name no room at all. Who stands above may name who stands below.
const ROOMS: &[(&str, &[&str])] = &[
    ("section", &[]),
    ("stock", &["section"]),
    ("seckill", &["section", "stock"]),
    ("classroom", &["section", "stock"]),
    ("shelf", &["section", "stock", "classroom"]),
    ("instance", &["stock", "seckill", "classroom", "shelf"]),
    ("load", &["stock", "seckill"]),
    (
        "replay",
        &["section", "stock", "seckill", "classroom", "shelf"],
    ),
    (
        "http",
        &[
            "section",
            "stock",
            "seckill",
            "classroom",
            "shelf",
            "instance",
            "load",
            "replay",
            "course",
        ],
    ),
    ("lab", &[]),
    (
        "course",
        &["stock", "seckill", "classroom", "load", "replay"],
    ),
    ("cli", &["http", "load", "lab", "course"]),
    ("main", &["cli"]),
    ("lib", &[]),
];

pub(crate) fn no_room_knows_what_it_must_not() -> Outcome {
    let files = sources("src")?;
    for room in ["stock", "http", "load", "lab", "cli"] {
        if !files.iter().any(|file| file.room() == room) {
            return Err(format!(
                "src/ has no {room}: the test looks in the wrong place"
            ));
        }
    }
    let mut breaches: Vec<_> = files.iter().flat_map(Source::breaches).collect();
    let of_the_library = sources("lock/src")?;
    breaches.extend(
        of_the_library
            .iter()
            .filter(|file| file.text.contains("oversell::"))
            .map(|f| f.name.clone()),
    );
    none_of("what must not be known is named", &breaches)
}

/// The twins: what a room must not name, in each form that it can be named in.
pub(crate) fn a_wall_that_is_broken_is_seen() -> Outcome {
    let twins = [
        (
            "a use over several lines",
            "use crate::{\n    failure::Failure,\n    lab::{\n        Lab,\n    },\n};",
        ),
        ("a use of the room itself", "use crate::lab;"),
        ("a use of everything", "use crate::*;"),
        ("the root under another name", "use crate as all;"),
        ("a path upwards", "use super::super::http::app::App;"),
        (
            "a path upwards from an inner module",
            "mod inner { use super::super::super::http::app::App; }",
        ),
        ("a path in an expression", "fn f() { crate::load::run(); }"),
        ("a path in a type", "fn f(_: &crate::classroom::Visit) {}"),
        (
            "a path in a macro",
            "fn f() { println!(\"{}\", crate::http::NAME); }",
        ),
        ("a visibility", "pub(in crate::lab) fn f() {}"),
        ("the crate by its name", "use oversell::cli;"),
    ];
    let missed: Vec<_> = twins
        .iter()
        .filter(|(_, code)| breaches_of(code).is_empty())
        .map(|(what, _)| *what)
        .collect();
    none_of("broken walls were not seen", &missed)?;
    let sound = "//! As [`lab`](crate::lab) says.\nuse super::mysql;\nuse crate::{\n    error::Error,\n    section::Job,\n};\n\
                 pub(crate) fn f() { oversell_lock::load(); let lab = 1; }\nmod tests { use super::*; }";
    none_of("a sound wall was called broken", &breaches_of(sound))
}

/// A strategy is there to be read: what only one strategy does stands in that strategy's file, not in a module beside.
pub(crate) fn what_one_strategy_does_stands_in_its_own_file() -> Outcome {
    let strategies: BTreeSet<_> = stock::ALL
        .iter()
        .map(|s| s.slug.replace('-', "_"))
        .collect();
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources("src/stock")? {
        let own = file.module.get(1).cloned().unwrap_or_default();
        for path in &file.paths {
            let Some(used) = path
                .get(1)
                .filter(|used| path[0] == "stock" && **used != own)
            else {
                continue;
            };
            users.entry(used.clone()).or_default().push(own.clone());
        }
    }
    let hidden: Vec<_> = users
        .iter()
        .filter(|(module, _)| {
            Path::new("src/stock").join(format!("{module}.rs")).exists()
                && !strategies.contains(*module)
        })
        .filter_map(|(module, by)| match &by[..] {
            [one] if strategies.contains(one) => Some(format!("{module} serves {one} alone")),
            _ => None,
        })
        .collect();
    none_of("modules of one strategy", &hidden)
}

/// A file of the crate, and what it names of it.
struct Source {
    name: String,
    text: String,
    module: Vec<String>,
    paths: BTreeSet<Vec<String>>,
}

impl Source {
    fn read(name: &str, text: String) -> Result<Self, String> {
        let inside = name
            .strip_prefix("src/")
            .unwrap_or(name)
            .trim_end_matches(".rs")
            .trim_end_matches("/mod");
        let module: Vec<_> = inside.split('/').map(str::to_owned).collect();
        let paths = imports::of(&text, &module).map_err(|e| format!("{name}: {e}"))?;
        Ok(Self {
            name: name.to_owned(),
            text,
            module,
            paths,
        })
    }

    fn room(&self) -> &str {
        &self.module[0]
    }

    /// The rooms that it names and must not; `*` is all of them.
    fn breaches(&self) -> Vec<String> {
        let room = |name: &str| ROOMS.iter().find(|(room, _)| *room == name);
        let may = room(self.room()).map_or(&[][..], |(_, may)| may);
        let named = self.paths.iter().map(|path| path[0].as_str());
        named
            .filter(|name| {
                *name != self.room()
                    && (*name == "*" || room(name).is_some())
                    && !may.contains(name)
            })
            .map(|name| format!("{} names {name}", self.name))
            .collect()
    }
}

/// The breaches of a file of `stock` with this text.
fn breaches_of(code: &str) -> Vec<String> {
    Source::read("src/stock/twin.rs", code.to_owned())
        .expect("Rust")
        .breaches()
}

/// Every file of a room. The tests run in the package's folder.
fn sources(room: &str) -> Result<Vec<Source>, String> {
    let mut files = Vec::new();
    rust_files(Path::new(room), &mut files);
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Source::read(&file.display().to_string(), text)
    };
    files.into_iter().map(read).collect()
}

fn rust_files(path: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

fn none_of(what: &str, found: &[impl AsRef<str>]) -> Outcome {
    let found: Vec<_> = found.iter().map(AsRef::as_ref).collect();
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("{what}: {}", found.join("; ")))
    }
}
