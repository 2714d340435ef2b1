//! The lines that a student types in a terminal, and what each prints.

use super::runner::Line;
use oversell_lab::programs::LINE_TIMEOUT;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};
use utoipa::ToSchema;

/// One line that a student types in a terminal, and what it prints.
///
/// In `run`, `{http}` is the address of nginx, `{8000}`, `{8100}` and `{8200}` those of the instances; `{mysql}`,
/// `{redis}`, `{redis-2}` … and `{zookeeper}` are the options that lead `mysql`, `redis-cli` and `zkCli.sh` there, `{zk}`
/// is ZooKeeper's address; `{fault}` is `oversell lab fault`. Behind a key `{:id}`, and in a query `{?id}` or `{&id}`, say the
/// product: nothing for product 1, which a student has; so does `{-id}` in a path of ZooKeeper, and `{id}` is its bare number.
/// `{user}` and `{user-2}` are two users who order vouchers. In `expect`, `…` stands for anything.
/// Lines are typed one after the other; one that ends in ` &` runs while the next ones do, until `wait` is typed in its
/// terminal. One that needs what another does first is typed until it prints that; a `sleep` stands only where nothing but time is to
/// pass, or where nothing shows from outside that another has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(from = "LineForm")]
pub struct TypedLine {
    /// The terminal: 2 is the second window of a student.
    #[schema(example = 1)]
    pub terminal: u8,
    /// The line that is typed.
    #[schema(example = "curl -s http://127.0.0.1:8080/check/lock/none")]
    pub run: String,
    /// What the line prints; `…` stands for anything.
    #[schema(example = "验库存并锁库存成功！")]
    pub expect: String,
    /// Whether the line is typed again until it prints this.
    pub again: bool,
    /// What the line would print if the claim were true, where it prints something else.
    #[serde(skip_serializing)]
    pub claimed: Option<String>,
}

impl TypedLine {
    /// Returns whether the line runs `oversell lab` itself, and not `oversell lab fault`.
    pub fn starts_lab(&self) -> bool {
        let mut labs = self.run.split("oversell lab").skip(1);
        labs.any(|options| !options.starts_with(" fault"))
    }
}

/// A line in the file of a chapter: the name of a shared line, or a line of the lesson's own.
#[derive(Deserialize)]
#[serde(untagged)]
enum LineForm {
    Shared(SharedLine),
    Own(OwnLine),
}

/// A line that many lessons have: it sets the stock, or makes a voucher.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SharedLine {
    /// Sets the stock to 5000 pieces, as before each run of the course.
    Restock,
    /// Makes a voucher that is on sale.
    NewVoucher,
}

/// A line of one lesson as its file has it; it is typed in terminal 1 if it names none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnLine {
    terminal: Option<u8>,
    run: String,
    prints: Option<String>,
    /// The line is typed again until it prints this, instead of `prints`.
    until: Option<String>,
    /// The claim is false, and were it true, the line would print this.
    claimed: Option<String>,
}

impl TypedLine {
    /// A line in the first terminal, typed once.
    pub fn new(run: &str, expect: &str) -> Self {
        Self { terminal: 1, run: run.to_owned(), expect: expect.to_owned(), again: false, claimed: None }
    }

    /// Returns whether `text` matches `expect`, in which `…` stands for anything; space at the ends of lines does not count.
    pub fn is_printed(&self, text: &str) -> bool {
        Self::matches(&self.expect, text)
    }

    /// Returns whether `text` is what the line prints if the claim is true.
    pub fn shows_claim(&self, text: &str) -> bool {
        Self::matches(self.claimed.as_ref().unwrap_or(&self.expect), text)
    }

    fn matches(expected: &str, text: &str) -> bool {
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned();
        let (expected, text) = (trimmed(expected), trimmed(text));
        let Some((first, rest)) = expected.split_once('…') else {
            return text == expected;
        };
        let Some(mut left) = text.strip_prefix(first) else {
            return false;
        };
        let mut parts: Vec<_> = rest.split('…').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            match left.split_once(part) {
                Some((_, after)) => left = after,
                None => return false,
            }
        }
        left.ends_with(last)
    }
}

impl Line for TypedLine {
    fn run(&self) -> &str {
        &self.run
    }

    fn shares_terminal(&self, other: &Self) -> bool {
        self.terminal == other.terminal
    }

    fn repeat_limit(&self) -> Option<Duration> {
        self.again.then_some(LINE_TIMEOUT)
    }

    fn is_printed(&self, text: &str) -> bool {
        Self::is_printed(self, text)
    }
}

/// The lines, and at their end a `wait` in each terminal in which a line that ends in ` &` is to be awaited.
pub fn with_waits(mut lines: Vec<TypedLine>, is_awaited: impl Fn(&TypedLine) -> bool) -> Vec<TypedLine> {
    let awaited = lines.iter().filter(|line| line.run.ends_with(" &") && is_awaited(line));
    let terminals: BTreeSet<_> = awaited.map(|line| line.terminal).collect();
    lines.extend(terminals.into_iter().map(|terminal| TypedLine { terminal, ..TypedLine::new("wait", "") }));
    lines
}

impl From<LineForm> for TypedLine {
    fn from(written: LineForm) -> Self {
        match written {
            LineForm::Shared(SharedLine::Restock) => Self::new(
                r#"curl -s -X PUT -H 'content-type: application/json' -d '{"count":5000}' {http}/stock{?id}"#,
                r#"{"mysql":{"id":…,"count":5000,…"#,
            ),
            LineForm::Shared(SharedLine::NewVoucher) => Self::new(
                r#"curl -s -X POST -H 'content-type: application/json' -d '{"title":"100元代金券","stock":10,"begin":"2020-01-01T00:00:00Z","end":"2090-01-01T00:00:00Z"}' {http}/voucher"#,
                r#"{"id":…}"#,
            ),
            LineForm::Own(OwnLine { terminal, run, prints, until, claimed }) => Self {
                terminal: terminal.unwrap_or(1),
                run,
                again: until.is_some(),
                expect: until.or(prints).unwrap_or_default(),
                claimed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
        for (expected, text, good) in [
            ("4998", "4998\n", true),
            ("…1…", "21 1", true),
            ("a…c", "abc", true),
            ("a…", "a", true),
            ("…\t1", "4932\t1", true),
            ("", "\n", true),
            ("4998", "4999", false),
            ("a…c", "abcd", false),
            ("…b…", "ac", false),
            ("", "x", false),
            ("a…a", "a", false),
        ] {
            let line = TypedLine::new("", expected);
            assert_eq!(line.is_printed(text), good, "{expected}: {text}");
        }
    }
}
