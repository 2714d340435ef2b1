//! The lines for Java processes, which try a claim about Redisson, Curator, Spring, the JVM or the code that the texts print.

use super::{line::TypedLine, runner::Line};
use oversell_lab::{clients::peer::Java, terminal::bilingual::Bilingual};
use serde::Deserialize;
use std::time::Duration;

/// How long a line may take beyond its own duration: enough for the slowest answer of a busy machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The library that a claim is about: Redisson, Curator, Spring, or the printed classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Library {
    Redisson,
    Curator,
    /// Spring, Tomcat and the JVM's own classes.
    Spring,
    /// The classes that the texts print.
    Printed,
}

impl Library {
    pub const ALL: [Self; 4] = [Self::Redisson, Self::Curator, Self::Spring, Self::Printed];

    /// The name of the library for people.
    pub const fn name(self) -> Bilingual {
        match self {
            Self::Redisson => Bilingual::of("Redisson", "Redisson"),
            Self::Curator => Bilingual::of("Curator", "Curator"),
            Self::Spring => Bilingual::of("Spring", "Spring"),
            Self::Printed => Bilingual::of("原文的类，Spring Boot", "The printed classes, Spring Boot"),
        }
    }

    /// The versions of the library, as in the Makefile. The first that can be started decides the verdict. It is the text's own,
    /// except of Spring, where the classes of the text's version are those of [`Self::Printed`].
    pub fn versions(self) -> Vec<Java> {
        let (library, versions): (_, &[_]) = match self {
            Self::Redisson => ("redisson", &["3.11.2", "3.13.6", "4.7.0"]),
            Self::Curator => ("curator", &["4.3.0", "5.9.0"]),
            Self::Spring => ("spring", &["7.0.10"]),
            Self::Printed => ("printed", &["2.2.11.RELEASE"]),
        };
        let of = |version: &&'static str| Java { library, version };
        versions.iter().map(of).collect()
    }
}

/// The lines for the Java processes; the claim holds if each prints what it should.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub on: Library,
    pub lines: Vec<ScriptLine>,
    /// The change that makes the claim false.
    pub twin: TwinChange,
    /// A note for the reader.
    pub note: Option<Bilingual>,
}

/// A line for a Java process: a command of the project's `Commands.java`, or one of these:
///
/// - `kill`, `stop` and `go-on`: the process ends by `kill -9`, stands still, goes on;
/// - `sleep S` waits for S seconds;
/// - `redis-cli {redis} …`, `mysql {mysql} …` and `{fault} …`;
/// - `wait`, until the lines of this thread that ended in ` &` are answered.
///
/// `{key}` is a name that only this run uses, also for the database of the printed classes; `{port}` and `{port-2}` are free
/// ports; `{2}` is what the second line has printed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptLine {
    /// The process; default 1.
    #[serde(default = "default_process")]
    pub process: u8,
    /// Its thread; default A.
    #[serde(default = "default_thread")]
    pub thread: String,
    pub run: String,
    /// What it must print; `…` stands for anything. A failed command prints `failed` and its exception.
    pub prints: Option<String>,
    /// The line is repeated until it prints this.
    pub until: Option<String>,
    /// Bounds of the number that it prints.
    pub between: Option<[i64; 2]>,
    /// Bounds of its duration, in milliseconds.
    pub takes_ms: Option<[u64; 2]>,
}

/// The change of one line, or of one text in all lines, that makes the claim false.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum TwinChange {
    /// Replaces the line of this number, from 1; an empty text removes it.
    Line(usize, String),
    /// Replaces the first text by the second, in all lines.
    Word(String, String),
}

impl ScriptLine {
    /// The time limit of the line, and of its repetitions.
    pub fn time_limit(&self) -> Duration {
        let own = self.takes_ms.map(|[_, most]| Duration::from_millis(most));
        ANSWER_TIMEOUT + own.unwrap_or_default()
    }
}

impl Line for ScriptLine {
    fn run(&self) -> &str {
        &self.run
    }

    fn shares_terminal(&self, other: &Self) -> bool {
        (self.process, &self.thread) == (other.process, &other.thread)
    }

    fn repeat_limit(&self) -> Option<Duration> {
        self.until.is_some().then(|| self.time_limit())
    }

    /// Whether this is its text (`prints`, else `until`) and a number within its bounds, as far as it has these.
    fn is_printed(&self, text: &str) -> bool {
        let expected = self.prints.as_ref().or(self.until.as_ref());
        let number = || text.parse::<i64>().ok();
        expected.is_none_or(|expected| TypedLine::new("", expected).is_printed(text))
            && (self.between).is_none_or(|[least, most]| number().is_some_and(|n| (least..=most).contains(&n)))
    }
}

/// The Java process that runs a line which names none.
fn default_process() -> u8 {
    1
}

/// The thread of a Java process that runs a line which names none.
fn default_thread() -> String {
    "A".to_owned()
}

impl Script {
    /// A copy of the lines with the twin's change.
    pub fn twin_lines(&self) -> Vec<ScriptLine> {
        let mut lines = self.lines.clone();
        match &self.twin {
            TwinChange::Line(n, run) if run.is_empty() => drop(lines.remove(n - 1)),
            TwinChange::Line(n, run) => run.clone_into(&mut lines[n - 1].run),
            TwinChange::Word(word, other) => {
                for line in &mut lines {
                    line.run = line.run.replace(word, other);
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::lessons;

    #[test]
    fn every_script_has_a_twin_that_differs() {
        for lesson in lessons() {
            let Some(script) = &lesson.theirs else {
                continue;
            };
            let runs = |lines: &[ScriptLine]| -> Vec<_> { lines.iter().map(|line| line.run.clone()).collect() };
            let twin = script.twin_lines();
            assert_ne!(runs(&script.lines), runs(&twin), "{}", lesson.id);
        }
    }

    #[test]
    fn the_makefile_builds_every_version() {
        let makefile = include_str!("../../Makefile");
        for library in Library::ALL {
            let versions = library.versions();
            let (name, all) = (versions[0].library, versions.iter().map(|java| java.version));
            let line = format!("{} := {}\n", name.to_uppercase(), all.collect::<Vec<_>>().join(" "));
            assert!(makefile.contains(&line), "{line}");
        }
    }
}
