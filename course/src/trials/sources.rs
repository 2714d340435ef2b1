//! The program that a verdict is of: a digest of what its lesson rests on, as it was when the program was built.
//!
//! 1. A lesson rests on what is run and typed, on the file of its experiment or race, on the strategies and steps that are named
//!    there with what these name, on the Java classes that it is tried on, and on the lock library: what all locks share, and the
//!    folder of each server that is named.
//! 2. Of a file its code counts: no comment, no blank line, no unit test.
//!
//! **What breaks it**: what nearly all lessons share does not count (`kinds.rs`, loads, actors, the lab, HTTP, the classroom's
//! windows), for a change of that would ask for a full run each time. So a full run comes before a release.
//!
//! Next: `last_run.rs`, which compares the digests with those of the stored run.

use super::experiments;
use oversell::claims::{Lesson, Run};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::LazyLock,
};

// `FILES`: the path and the text of each.
include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// A verdict rests on this folder of the lock library if its lesson's files or lines contain the word.
const LOCKS_BY_WORD: [(&str, &str); 5] = [
    ("/demo", "lock/src/tower/"),
    ("redis", "lock/src/redis/"),
    ("zk", "lock/src/zk/"),
    ("zookeeper", "lock/src/zk/"),
    ("mysql", "lock/src/mysql/"),
];

/// The files that lessons rest on, by path.
pub(super) struct Sources(BTreeMap<&'static str, Source>);

/// What a verdict rests on in one file of this program or of `interop/`.
struct Source {
    /// Without comments and tests, in small letters.
    code: String,
    digest: u64,
    /// The paths of the strategies, steps, helpers and scripts that it names.
    names: Vec<&'static str>,
}

/// The files of this program.
pub(super) static SOURCES: LazyLock<Sources> = LazyLock::new(|| Sources::new(FILES));

impl Sources {
    fn new(files: &[(&'static str, &str)]) -> Self {
        let paths: Vec<_> = files.iter().map(|(path, _)| *path).collect();
        let source = |path: &'static str, text| {
            let code = code_only(path, text);
            let names = match path.starts_with("src/") {
                true => named_in(&code, path, &paths),
                false => Vec::new(),
            };
            let source = Source {
                digest: fnv_hash(&code),
                names,
                code: code.to_lowercase(),
            };
            (path, source)
        };
        Self(
            files
                .iter()
                .map(|(path, text)| source(path, text))
                .collect(),
        )
    }

    /// The digest of what this lesson rests on.
    pub(super) fn digest(&self, lesson: &Lesson) -> String {
        let mut all = what_is_run(lesson);
        for path in self.files_of(lesson) {
            // Writing to a String cannot fail.
            write!(all, "\n{path} {}", self.0[path].digest).ok();
        }
        format!("{:016x}", fnv_hash(&all))
    }

    /// The files that this lesson rests on.
    fn files_of(&self, lesson: &Lesson) -> BTreeSet<&'static str> {
        let run = what_is_run(lesson).to_lowercase();
        let paths: Vec<_> = self.0.keys().copied().collect();
        let mut files = BTreeSet::new();
        let mut open = named_in(&run, "", &paths);
        open.extend(self.experiments(lesson).chain(self.race(lesson)));
        while let Some(path) = open.pop() {
            if files.insert(path) {
                open.extend(&self.0[path].names);
            }
        }
        let mut folders = Vec::new();
        if !files.is_empty() || run.contains("curl ") {
            let is_named = |word: &str| {
                run.contains(word) || files.iter().any(|path| self.0[path].code.contains(word))
            };
            let named = LOCKS_BY_WORD.iter().filter(|(word, _)| is_named(word));
            folders.extend(named.map(|(_, folder)| (*folder).to_owned()));
            folders.push("lock/src/local/".to_owned());
            let is_shared = |path: &&str| {
                let file = path.strip_prefix("lock/src/");
                file.is_some_and(|file| !file.contains('/'))
            };
            files.extend(paths.iter().copied().filter(is_shared));
        }
        if let Some(script) = &lesson.theirs {
            let java = script.on.versions()[0];
            folders.extend(["java", java.library].map(|folder| format!("interop/{folder}/")));
        }
        let is_below = |path: &&str| folders.iter().any(|folder| path.starts_with(folder));
        files.extend(paths.iter().copied().filter(is_below));
        files
    }

    /// The files with the lesson's experiments, without those that are in `kinds.rs`.
    fn experiments(&self, lesson: &Lesson) -> impl Iterator<Item = &'static str> {
        let custom = experiments::all().find(|experiment| experiment.lesson == lesson.id);
        let custom = custom.and_then(|experiment| experiment.module.rsplit("::").next());
        let parts = lesson.run.parts().iter();
        parts.filter_map(move |run| {
            let name = match run {
                Run::Custom => custom?,
                Run::Crowd { .. } => "orders",
                Run::RefusedBeside(_) => "order_locks",
                Run::Deadlock(_) => "deadlocks",
                Run::Burst(_) => "limits",
                Run::ExclusiveRoute(_) => "demos",
                _ => return None,
            };
            let path = format!("src/trials/experiments/{name}.rs");
            self.0.keys().copied().find(|known| *known == path)
        })
    }

    /// The file with the lesson's race; `None` if the lesson plays none.
    fn race(&self, lesson: &Lesson) -> Option<&'static str> {
        let is_replay = |run: &Run| matches!(run, Run::Replay);
        if !lesson.run.parts().iter().any(is_replay) {
            return None;
        }
        let id = format!("\"{}\"", lesson.id);
        let is_its = |source: &Source| {
            let ids = source.code.split_once("lessons: &[");
            let ids = ids.and_then(|(_, rest)| rest.split_once(']'));
            ids.is_some_and(|(ids, _)| ids.contains(&id))
        };
        let mut races = self
            .0
            .iter()
            .filter(|(path, _)| path.starts_with("src/replay/races/"));
        races
            .find(|(_, source)| is_its(source))
            .map(|(path, _)| *path)
    }
}

/// What is run, and what is typed where that tries the claim.
fn what_is_run(lesson: &Lesson) -> String {
    let typed = lesson
        .run
        .parts()
        .iter()
        .any(|run| matches!(run, Run::Typed));
    let typed = typed.then_some(&lesson.by_hand);
    let theirs = lesson
        .theirs
        .as_ref()
        .map(|script| (script.on, &script.lines));
    match lesson.why_not() {
        Some(_) => format!("{theirs:?}"),
        None => format!(
            "{:?} {typed:?} {theirs:?} {:?} {:?}",
            lesson.run, lesson.strategies, lesson.steps
        ),
    }
}

/// Those of the paths `all` whose code the text of `path` names: a strategy or step as `"redis-lock"`; a file of the same room also as
/// `none::`, `retried(` or `table_lock as`; a script as `lua/enter.lua`.
fn named_in(text: &str, path: &str, all: &[&'static str]) -> Vec<&'static str> {
    let rooms = ["src/stock/", "src/seckill/"];
    let named = all.iter().filter(|other| {
        let Some(room) = rooms.iter().find(|room| other.starts_with(**room)) else {
            return other.starts_with("src/replay/lua/") && is_script_in(text, other);
        };
        let file = other.rsplit('/').next().unwrap_or_default();
        let name = file.trim_end_matches(".rs");
        let is_neighbour = || {
            let mut forms = ["::", "(", " as "].into_iter();
            path.starts_with(room) && forms.any(|next| text.contains(&format!("{name}{next}")))
        };
        is_script_in(text, other)
            || text.contains(&format!("\"{}\"", name.replace('_', "-")))
            || is_neighbour()
    });
    named.copied().collect()
}

/// Whether the text names this Lua script.
fn is_script_in(text: &str, path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.ends_with(".lua") && text.contains(&format!("lua/{file}"))
}

/// A file without lines of comment, blank lines, margins and unit tests.
fn code_only(path: &str, text: &str) -> String {
    let comments: &[_] = match path.rsplit('.').next() {
        Some("rs") => &["//"],
        Some("java") => &["//", "/*", "*"],
        _ => &["--"],
    };
    let tests = "\n#[cfg(test)]\nmod tests {";
    let text = text.split(tests).next().unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !comments.iter().any(|comment| line.starts_with(comment))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// FNV-1a: the hasher of std may be another one in the next Rust.
fn fnv_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use oversell::claims::{find, lessons};

    /// The sources of this program, with another text in one of them.
    pub(in crate::trials) fn changed(file: &str, change: fn(&str) -> String) -> Sources {
        let texts = FILES.iter().map(|(path, text)| match *path == file {
            true => (*path, change(text)),
            false => (*path, (*text).to_owned()),
        });
        let texts: Vec<_> = texts.collect();
        let files: Vec<_> = texts
            .iter()
            .map(|(path, text)| (*path, &text[..]))
            .collect();
        assert!(files.iter().any(|(path, _)| *path == file), "{file}");
        Sources::new(&files)
    }

    /// The lessons whose digest another text changes.
    fn concerned(file: &str, change: fn(&str) -> String) -> Vec<&'static str> {
        let other = changed(file, change);
        let is_concerned = |lesson: &&Lesson| other.digest(lesson) != SOURCES.digest(lesson);
        lessons()
            .filter(is_concerned)
            .map(|lesson| lesson.id)
            .collect()
    }

    fn with_a_line(text: &str) -> String {
        format!("const CHANGED: bool = true;\n{text}")
    }

    #[test]
    fn a_change_concerns_the_lessons_that_rest_on_it() {
        for (file, concerned_id, other) in [
            ("src/stock/strategies/redis_lock.rs", "2.10.1.rate", "1.7.4"),
            // Its neighbours call it.
            ("src/stock/strategies/none.rs", "2.10.1.rate", "2.4.1"),
            ("src/stock/strategies/lua/delete_if_mine.lua", "2.5", "1.4"),
            ("src/seckill/steps/user_mutex.rs", "002.cluster", "1.4"),
            ("src/replay/races/exec_nil.rs", "1.8", "2.2"),
            ("src/trials/experiments/scripts.rs", "2.4.1", "1.4"),
            (
                "src/trials/experiments/deadlocks.rs",
                "003.deadlock.gap",
                "1.4",
            ),
            ("lock/src/redis/engine.rs", "2.10.1.rate", "3.4.1"),
            ("lock/src/redis/lua/renew.lua", "2.10.1.rate", "3.4.1"),
            ("lock/src/zk/mutex.rs", "3.4.1", "2.10.1.rate"),
            ("lock/src/tower/service.rs", "004.demo3", "1.4"),
            ("lock/src/guard.rs", "2.10.1.rate", "2.4.4.1"),
            (
                "interop/printed/src/main/java/oversell/Stock.java",
                "1.2",
                "1.1",
            ),
        ] {
            let concerned = concerned(file, with_a_line);
            assert!(concerned.contains(&concerned_id), "{file}: {concerned:?}");
            assert!(!concerned.contains(&other), "{file}: {concerned:?}");
        }
    }

    #[test]
    fn comments_blank_lines_and_unit_tests_do_not_count() {
        let file = "lock/src/redis/engine.rs";
        let comment = |text: &str| format!("// Another word.\n\n{text}");
        let test = |text: &str| text.replacen("mod tests {", "mod tests {\n    use std::env;", 1);
        assert!(concerned(file, comment).is_empty());
        assert!(concerned(file, test).is_empty());
    }

    #[test]
    fn each_experiment_and_race_has_its_file() {
        let custom = |lesson: &Lesson| {
            lesson
                .run
                .parts()
                .iter()
                .any(|run| matches!(run, Run::Custom))
        };
        for lesson in lessons() {
            if custom(lesson) {
                assert!(SOURCES.experiments(lesson).count() > 0, "{}", lesson.id);
            }
        }
        for (id, _) in oversell::replay::lessons() {
            let lesson = find(id).expect("a lesson");
            let plays = lesson
                .run
                .parts()
                .iter()
                .any(|run| matches!(run, Run::Replay));
            assert_eq!(SOURCES.race(lesson).is_some(), plays, "{id}");
        }
    }
}
