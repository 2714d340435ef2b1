//! The house rules on who names whom that packages cannot keep, checked on the sources themselves:
//!
//! 1. Between rooms nothing climbs: a room of `src/` names only those that [`ROOMS`] lets it, as ARCHITECTURE.md draws them.
//! 2. In a package, the lock library too, no two files need each other, not even by way of others. A file needs the files
//!    that define what its code names, by whatever import of a parent it reaches them. A parent that only declares (`mod`) or
//!    re-exports (`pub use`) its children does not need them; one that uses an item of a child does. Tests may name anything.
//! 3. What only one strategy does stands in that strategy's file.

mod imports;

use imports::{Imports, Path};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    sync::LazyLock,
};

/// The rooms of `src/`, and the rooms that each may name besides itself and the modules that belong to no room (ctx, error,
/// config …), which name no room at all. A room stands below those that it may name.
const ROOMS: &[(&str, &[&str])] = &[
    ("section", &[]),
    ("own_lock", &["section"]),
    ("stock", &["section", "own_lock"]),
    ("seckill", &["section", "stock"]),
    ("classroom", &["section", "stock"]),
    ("stock_admin", &["section", "stock", "classroom"]),
    ("instance", &["section", "stock", "classroom", "stock_admin"]),
    ("load", &["stock", "seckill"]),
    ("replay", &["section", "stock", "seckill", "classroom", "stock_admin"]),
    ("claims", &["stock", "seckill"]),
    ("http", &["section", "own_lock", "stock", "seckill", "classroom", "stock_admin", "instance", "load", "replay", "claims"]),
];

/// The empty list that a check must return.
const NOTHING: [&str; 0] = [];

static SRC: LazyLock<Vec<Source>> = LazyLock::new(|| sources("src", "src", "oversell"));

#[test]
fn no_room_names_one_that_it_must_not_know() {
    for room in ["stock", "http", "load"] {
        let is_there = SRC.iter().any(|file| file.room() == room);
        assert!(is_there, "src/ has no {room}: the test looks in the wrong place");
    }
    let forbidden_rooms: Vec<_> = SRC.iter().flat_map(Source::forbidden_rooms).collect();
    assert_eq!(forbidden_rooms, NOTHING);
}

/// The twins: what a room must not name, in each form that it can be named in.
#[test]
fn a_wall_that_is_broken_is_seen() {
    let twin = |code| Source::new("src", "oversell", "src/stock/twin.rs", code);
    let forbidden_rooms = |code| twin(code).forbidden_rooms();
    for (what, code) in [
        ("a use over several lines", "use crate::{\n    error::Error,\n    http::{\n        App,\n    },\n};"),
        ("a use of the room itself", "use crate::http;"),
        ("a use of everything", "use crate::*;"),
        ("the root under another name", "use crate as all;"),
        ("a path upwards", "use super::super::http::app::App;"),
        ("a path upwards from an inner module", "mod inner { use super::super::super::http::app::App; }"),
        ("a path in an expression", "fn f() { crate::load::run(); }"),
        ("a path in a type", "fn f(_: &crate::classroom::Visit) {}"),
        ("a path in a macro", "fn f() { println!(\"{}\", crate::http::NAME); }"),
        ("a visibility", "pub(in crate::http) fn f() {}"),
        ("the crate by its name", "use oversell::http;"),
        ("a test", "#[cfg(test)] mod tests { use crate::http::App; }"),
    ] {
        assert_ne!(forbidden_rooms(code), NOTHING, "{what} was not seen");
    }
    let sound = "//! As [`http`](crate::http) says.\nuse super::mysql;\nuse crate::{\n    error::Error,\n    section::Job,\n};\n\
                 pub(crate) fn f() { oversell_lock::load(); let http = 1; }\nmod tests { use super::*; }";
    assert_eq!(forbidden_rooms(sound), NOTHING, "a sound wall was called broken");
}

#[test]
fn no_files_of_a_package_need_each_other() {
    let packages = packages();
    let is_there = packages.iter().any(|folder| folder == "./lock");
    assert!(is_there, "no lock in {packages:?}");
    let cycles = packages.iter().flat_map(|folder| {
        let manifest = fs::read_to_string(format!("{folder}/Cargo.toml")).expect("a manifest");
        let mut lines = manifest.lines();
        let name = lines.find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let crate_name = name.expect("a package's name").replace('-', "_");
        let folder = format!("{folder}/src");
        import_cycles(&sources(&folder, &folder, &crate_name))
    });
    let none = Vec::<Vec<String>>::new();
    assert_eq!(cycles.collect::<Vec<_>>(), none, "files that need each other");
}

/// The number of circles among these files of `lock/src/redis/`; `lib` is the crate's root.
fn count_cycles(files: &[(&str, &str)]) -> usize {
    let files = files.iter().map(|(file, code)| {
        let name = match *file {
            "lib" => "lock/src/lib.rs".to_owned(),
            file => format!("lock/src/redis/{file}.rs"),
        };
        Source::new("lock/src", "oversell_lock", &name, code)
    });
    import_cycles(&files.collect::<Vec<_>>()).len()
}

/// The twins: circles in each form that they can have.
#[test]
fn a_circle_is_seen() {
    for (what, files) in [
        ("two files", &[("a", "use super::b::B;"), ("b", "fn f(_: super::a::A) {}")][..]),
        ("three files", &[("a", "use crate::redis::b::B;"), ("b", "use super::c::C;"), ("c", "use super::a::A;")]),
        ("a file that names the crate", &[("a", "use oversell_lock::redis::b::B;"), ("b", "use super::a::A;")]),
        ("the root and a file that it uses", &[("lib", "mod redis; pub use redis::a::A; fn f(_: A) {}"), ("a", "use crate::f;")]),
        (
            "files by way of the root",
            &[("lib", "mod redis; pub use redis::{a::A, b::B};"), ("a", "use crate::B;"), ("b", "use crate::A;")],
        ),
        ("a parent that uses its child", &[("mod", "mod a; const ALL: &[Row] = &[a::ROW];"), ("a", "use super::Row;")]),
        (
            "a parent that uses what it re-exports",
            &[("mod", "mod a; pub use a::A; pub struct B(A);"), ("a", "use super::B; pub struct A;")],
        ),
        (
            "siblings by way of their parent",
            &[("mod", "mod a; mod b; pub use {a::A, b::B as C};"), ("a", "use super::C;"), ("b", "use super::A;")],
        ),
        ("a parent that uses a child in a macro", &[("mod", "mod a; fn f() { call!(a::g()); }"), ("a", "use super::f;")]),
    ] {
        assert_ne!(count_cycles(files), 0, "{what} were not seen");
    }
}

#[test]
fn what_is_no_circle_is_not_called_one() {
    for (what, files) in [
        (
            "a parent that only declares and re-exports its children",
            &[
                ("mod", "mod a; mod b; pub use b::B; pub struct A;"),
                ("a", "use super::{A, B};"),
                ("b", "use super::A; pub(in crate::redis) struct B;"),
            ][..],
        ),
        ("a variable with a child's name", &[("mod", "mod a; fn f(a: fn()) { a(); call!(a); }"), ("a", "use super::f;")]),
        (
            "a child that reaches another folder by what its parent imports",
            &[("mod", "mod a; use crate::keeper::Job; const ALL: &[Row] = &[a::ROW];"), ("a", "use super::Job;")],
        ),
        ("a test", &[("tests/a", "use super::super::b::B;"), ("b", "fn f() { super::tests::a(); }")]),
        ("a test inside a file", &[("a", "use super::b::B;"), ("b", "#[cfg(test)] mod tests { use super::super::a::A; }")]),
    ] {
        assert_eq!(count_cycles(files), 0, "{what} was called a circle");
    }
}

/// A strategy is there to be read: what only one strategy does stands in that strategy's file, not in a module beside.
#[test]
fn helpers_in_stock_serve_more_than_one_strategy() {
    let files = || SRC.iter().filter(|file| file.room() == "stock");
    let modules: BTreeSet<_> = files().filter_map(|file| file.module.get(1)).collect();
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files() {
        let own = file.module.get(1).map_or("", String::as_str);
        let others = (file.imports.named.iter()).filter_map(|path| path.get(1).filter(|used| path[0] == "stock" && *used != own));
        for used in others.filter(|used| modules.contains(used) && *used != "strategies") {
            users.entry(used).or_default().insert(&file.name);
        }
    }
    assert!(users.contains_key("merged"), "the test looks in the wrong place");
    let alone = |by: &BTreeSet<&str>| by.len() == 1 && by.iter().all(|by| by.starts_with("src/stock/strategies/"));
    let hidden = users.iter().filter(|(_, by)| alone(by));
    let hidden = hidden.map(|(module, by)| format!("{module} serves {by:?} alone"));
    assert_eq!(hidden.collect::<Vec<_>>(), NOTHING);
}

/// A source file, with what it names.
struct Source {
    name: String,
    module: Path,
    imports: Imports,
}

impl Source {
    /// Reads a file of the crate `crate_name`, whose sources are in `root`.
    fn new(root: &str, crate_name: &str, name: &str, text: &str) -> Self {
        let inside = name.strip_prefix(root).expect("a file of the crate");
        let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let parts = inside.split('/').skip(1);
        let parts = parts.filter(|part| *part != "lib");
        let module: Vec<_> = parts.map(str::to_owned).collect();
        let imports = imports::of(text, crate_name, &module).unwrap_or_else(|e| panic!("{name}: {e}"));
        Self { name: name.to_owned(), module, imports }
    }

    /// The first part of its module; empty for the root of the crate.
    fn room(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }

    /// One text for each room that the file names and must not; `*` is all rooms.
    fn forbidden_rooms(&self) -> Vec<String> {
        let room = |name: &str| ROOMS.iter().find(|(room, _)| *room == name);
        let may = room(self.room()).map_or(&[][..], |(_, may)| may);
        let named = self.imports.named.iter().map(|path| path[0].as_str());
        named
            .filter(|name| *name != self.room() && (*name == "*" || room(name).is_some()) && !may.contains(name))
            .map(|name| format!("{} names {name}", self.name))
            .collect()
    }
}

/// Circles of files, each in the order in which they need each other; every file that is in one is in one of these.
fn import_cycles(files: &[Source]) -> Vec<Vec<String>> {
    let modules: BTreeMap<_, _> = files.iter().map(|file| (&file.module[..], file)).collect();
    let needs: BTreeMap<_, BTreeSet<_>> = (files.iter())
        .filter(|file| !file.module.iter().any(|part| part == "tests"))
        .map(|file| {
            let needed =
                (file.imports.needed.iter()).filter_map(|path| defining_file(&modules, path)).filter(|name| *name != file.name);
            (file.name.as_str(), needed.collect())
        })
        .collect();
    let mut import_cycles: Vec<Vec<String>> = Vec::new();
    for file in files {
        if !import_cycles.iter().any(|circle| circle.contains(&file.name)) {
            import_cycles.extend(shortest_cycle_through(&needs, &file.name));
        }
    }
    import_cycles
}

/// The file that defines what is named so, by whatever imports lead there.
fn defining_file<'a>(modules: &BTreeMap<&[String], &'a Source>, path: &[String]) -> Option<&'a str> {
    let deepest = (0..=path.len()).rev().find_map(|depth| {
        let file = modules.get(&path[..depth])?;
        Some((*file, &path[depth..]))
    });
    let (file, rest) = deepest?;
    let imported = (file.imports.imported.iter()).find(|(name, _)| rest.first() == Some(name));
    match imported {
        Some((_, behind)) => defining_file(modules, &[&behind[..], &rest[1..]].concat()),
        None => Some(&file.name),
    }
}

/// The shortest way from a file back to itself.
fn shortest_cycle_through(needs: &BTreeMap<&str, BTreeSet<&str>>, start: &str) -> Option<Vec<String>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for &next in needs.get(way.last()?).into_iter().flatten() {
            if next == start {
                return Some(way.into_iter().map(str::to_owned).collect());
            }
            if seen.insert(next) {
                ways.push_back([&way[..], &[next]].concat());
            }
        }
    }
    None
}

/// The folders of the workspace's packages, from that of this one, in which the tests run.
fn packages() -> Vec<String> {
    let entries = fs::read_dir(".").expect("the workspace");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let packages = folders.filter(|path| path.join("Cargo.toml").exists() && path.join("src").exists());
    let packages = packages.map(|path| path.to_str().expect("a name in UTF-8").to_owned());
    packages.chain([".".to_owned()]).collect()
}

/// Every Rust file below a folder of the crate `crate_name`, whose sources are in `root`.
fn sources(folder: &str, root: &str, crate_name: &str) -> Vec<Source> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.to_str().expect("a name in UTF-8");
        if path.is_dir() {
            files.extend(sources(name, root, crate_name));
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("a text");
            files.push(Source::new(root, crate_name, name, &text));
        }
    }
    files
}
