//! What a lesson is: a claim of the documents, where it stands, and the experiment that tries it. Lessons are data: one file per
//! chapter in `lessons/`, read once.
//!
//! A lesson's experiment is one of the kinds of [`Run`]; what fits none of them is a function of `experiments/`.

use super::Script;
use crate::{
    bilingual::{Bilingual, leak},
    registry::{Declared, Rank, Registered},
    seckill::{self, check::Verdict as Orders},
    stock,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::LazyLock;
use utoipa::ToSchema;

/// The files, in the documents' order; what goes beyond them is the last.
const FILES: [(&str, &str); 9] = [
    ("chapter_1.toml", include_str!("lessons/chapter_1.toml")),
    ("chapter_2.toml", include_str!("lessons/chapter_2.toml")),
    ("chapter_3.toml", include_str!("lessons/chapter_3.toml")),
    ("chapter_4.toml", include_str!("lessons/chapter_4.toml")),
    ("text_002.toml", include_str!("lessons/text_002.toml")),
    ("text_003.toml", include_str!("lessons/text_003.toml")),
    ("text_004.toml", include_str!("lessons/text_004.toml")),
    ("errata.toml", include_str!("lessons/errata.toml")),
    ("beyond.toml", include_str!("lessons/beyond.toml")),
];

/// Every chapter, in the documents' order. A strategy or a step that no lesson names stands in a lesson all the same.
///
/// # Panics
///
/// Where a file is not as it must be, which a unit test sees.
pub static ALL: LazyLock<Vec<Chapter>> = LazyLock::new(|| {
    let mut chapters: Vec<Chapter> = FILES
        .iter()
        .map(|(file, text)| toml::from_str(text).unwrap_or_else(|e| panic!("{file}: {e}")))
        .collect();
    for lesson in chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons) {
        lesson.loads = lesson.run.parts().iter().any(Run::loads);
    }
    for entry in stock::ALL.iter() {
        join(&mut chapters, entry, |lesson| &mut lesson.strategies);
    }
    for entry in seckill::ALL.iter() {
        join(&mut chapters, entry, |lesson| &mut lesson.steps);
    }
    chapters
});

/// An entry that no lesson names joins the first lesson of the one that it stands behind, or the lesson of its chapter.
fn join<F: Declared>(
    chapters: &mut [Chapter],
    entry: &Registered<F>,
    list: impl Fn(&mut Lesson) -> &mut Vec<&'static str>,
) {
    let lessons = chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons);
    let mut lists: Vec<_> = lessons.map(|lesson| (lesson.id, list(lesson))).collect();
    if lists.iter().any(|(_, named)| named.contains(&entry.slug)) {
        return;
    }
    let home = lists
        .iter_mut()
        .find(|(id, named)| match entry.facts.rank() {
            Rank::Course => *id == entry.facts.chapter(),
            Rank::After(before) | Rank::AsPrinted(before) | Rank::Beyond(before) => {
                named.contains(&before)
            }
        });
    if let Some((_, named)) = home {
        named.push(entry.slug);
    }
}

/// A chapter of the main text, or a companion text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CourseChapter)]
pub struct Chapter {
    /// `2` of the main text, `003` of a companion text.
    #[serde(deserialize_with = "text")]
    #[schema(example = "2")]
    pub id: &'static str,
    /// What it is about.
    pub title: Bilingual,
    /// In the order of the text.
    pub lessons: Vec<Lesson>,
}

/// One claim, and what is done to try it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CourseLesson)]
pub struct Lesson {
    /// The section.
    #[serde(deserialize_with = "text")]
    #[schema(example = "2.3")]
    pub id: &'static str,
    /// What it is about, in a few words.
    #[schema(inline)]
    pub title: Bilingual,
    /// What is claimed, in our own words.
    #[schema(inline)]
    pub claim: Bilingual,
    /// The document and its heading, word for word; where there are several, `; ` stands between them. Of a claim that goes beyond
    /// the documents, what it goes on from.
    #[serde(deserialize_with = "text")]
    #[schema(example = "000 2.3. 防误删")]
    pub place: &'static str,
    /// Of `GET /strategies`.
    #[serde(default, deserialize_with = "texts")]
    pub strategies: Vec<&'static str>,
    /// Of `GET /voucher-order/strategies`.
    #[serde(default, deserialize_with = "texts")]
    pub steps: Vec<&'static str>,
    /// Of `GET /test/deadlock`.
    #[serde(default, deserialize_with = "texts")]
    pub deadlocks: Vec<&'static str>,
    /// Paths for a browser; `{who}` is a person's name.
    #[serde(default, deserialize_with = "texts")]
    pub r#try: Vec<&'static str>,
    /// Whether the verdict rests on timing, so that two runs may differ in it.
    #[serde(default)]
    pub timing: bool,
    /// Whether the quick form of `oversell course` has it.
    #[serde(default)]
    pub quick: bool,
    /// Whether many requests at once show what it claims, of its first strategy or of several beside each other.
    #[serde(default, deserialize_with = "follows")]
    pub loads: bool,
    /// The experiment; a client is told why it is not run, where it is not.
    #[serde(rename(serialize = "why_not"), serialize_with = "why_not")]
    #[schema(rename = "why_not", inline, value_type = Option<Bilingual>)]
    pub run: Run,
    /// What stands in its place in a system in which the claim is false, where the kind of the experiment does not say.
    #[serde(default, skip_serializing)]
    pub twin: Option<Twin>,
    /// What a student types, in this order.
    #[serde(default)]
    pub by_hand: Vec<Line>,
    /// How it is tried on the library that the text speaks of.
    #[serde(default, skip_serializing)]
    pub theirs: Option<Script>,
}

fn why_not<S: Serializer>(run: &Run, to: S) -> Result<S::Ok, S::Error> {
    run.why_not().serialize(to)
}

impl Lesson {
    /// Why it is not run on our service, where it is not.
    #[must_use]
    pub const fn why_not(&self) -> Option<Bilingual> {
        self.run.why_not()
    }

    /// Whether rates are compared.
    #[must_use]
    pub fn compares_rates(&self) -> bool {
        self.run.parts().iter().any(Run::compares_rates)
    }

    /// The rates that its claim compares.
    #[must_use]
    pub fn rates(&self) -> Vec<Rates> {
        let compared = self.run.parts().iter().filter_map(|run| match run {
            Run::Compared {
                first,
                second,
                says,
                ..
            } => Some(Rates::of(*first, *second, *says)),
            _ => None,
        });
        compared.collect()
    }

    /// Whether it is tried at all, on ours or on theirs.
    #[must_use]
    pub const fn is_tried(&self) -> bool {
        self.why_not().is_none() || self.theirs.is_some()
    }
}

impl Run {
    /// The experiments of a list; else itself.
    #[must_use]
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::All(runs) => runs,
            run => std::slice::from_ref(run),
        }
    }

    /// Whether it is a load.
    const fn loads(&self) -> bool {
        matches!(
            self,
            Self::Exact { .. } | Self::Oversells { .. } | Self::FewThenMostFail(_)
        ) || self.compares_rates()
    }

    const fn compares_rates(&self) -> bool {
        matches!(self, Self::Compared { .. } | Self::RetriesGrow(_))
    }

    const fn why_not(&self) -> Option<Bilingual> {
        match self {
            Self::NotRun(why) => Some(*why),
            _ => None,
        }
    }
}

/// How a claim is tried.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Run {
    /// All of these, one after the other: the claim holds where each does.
    All(Vec<Run>),
    /// The race of this lesson ends as the registry of replays says, and so does its cure.
    Replay,
    /// A load sells not one piece too many on any of these targets.
    #[serde(rename_all = "kebab-case")]
    Exact {
        /// The strategy.
        #[serde(deserialize_with = "text")]
        strategy: &'static str,
        /// Where.
        on: Vec<Target>,
        /// Connections; 100 where it is not said.
        threads: Option<usize>,
        /// Requests of each; 50 where it is not said, 10 in the quick form.
        loops: Option<usize>,
    },
    /// The course's load, 100 × 50, oversells.
    Oversells {
        /// The strategy.
        #[serde(deserialize_with = "text")]
        strategy: &'static str,
        /// Where.
        on: Target,
    },
    /// Two rates, measured in pairs.
    Compared {
        /// The strategy that the claim is about.
        first: Side,
        /// The one beside it.
        second: Side,
        /// What is said of their ratio.
        says: Says,
        /// Why it does not hold here, where it does not.
        otherwise: Option<Bilingual>,
    },
    /// From 100 connections this strategy retries at least 1.5 times as often for each piece as from 10.
    #[serde(deserialize_with = "text")]
    RetriesGrow(&'static str),
    /// From 2 connections fewer than half of this strategy's attempts are in vain, from 100 more than half.
    #[serde(deserialize_with = "text")]
    FewThenMostFail(&'static str),
    /// A crowd orders a voucher: the checker's verdict is this one.
    #[serde(rename_all = "kebab-case")]
    Crowd {
        /// The step of the seckill.
        #[serde(deserialize_with = "text")]
        step: &'static str,
        /// Where.
        on: Target,
        /// How often each user orders.
        orders_each: u64,
        /// The checker's verdict.
        comes_to: Orders,
    },
    /// Each user has one order, and an order beside it is refused: by this step of the seckill.
    #[serde(deserialize_with = "text")]
    RefusedBeside(&'static str),
    /// This deadlock ends with its error, and its cure without one.
    #[serde(deserialize_with = "text")]
    Deadlock(&'static str),
    /// Of many requests at once so many come through, and the others are refused.
    Burst(Burst),
    /// Two requests to this route, on two instances, are served one after the other.
    #[serde(deserialize_with = "text")]
    ExclusiveRoute(&'static str),
    /// The lines that are typed by hand print what they say: `redis-cli`, `mysql`, `curl` and faults of the lab.
    Typed,
    /// By the function that `experiments` has for this lesson.
    Custom,
    /// It is not, and why.
    NotRun(Bilingual),
}

/// What stands in the place of what a lesson tries.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    deny_unknown_fields,
    bound(deserialize = "'de: 'static")
)]
pub enum Twin {
    /// What the lesson's own function takes instead, in words.
    Is(Bilingual),
    /// The line of this number, from 1, is this one; where it is empty, it is left out.
    Typed(usize, String),
    /// This is tried.
    Run(Run),
}

/// Many requests at once to a route that limits them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Burst {
    /// The route.
    #[serde(deserialize_with = "text")]
    pub route: &'static str,
    /// Where.
    pub on: Target,
    /// How many requests.
    pub requests: usize,
    /// The fewest and the most that come through.
    pub through: [usize; 2],
    /// So many more come through in each second that all of it takes.
    #[serde(default)]
    pub more_per_second: f64,
    /// The least and the most that the slowest of these takes, in seconds; any time where it is not said.
    pub slowest_s: Option<[f64; 2]>,
    /// The most that the slowest of those takes that are refused, in seconds; any time where it is not said.
    pub refused_s: Option<f64>,
    /// As many again, later; not sent where it is not said.
    pub again: Option<Again>,
    /// So long before there is no request, in seconds: until buckets and windows are as at first.
    #[serde(default)]
    pub quiet_s: f64,
}

/// A burst after a burst: how much of the limit is free again.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Again {
    /// So long after the first was answered, in seconds.
    pub after_s: f64,
    /// The fewest and the most that come through.
    pub through: [usize; 2],
}

/// Where a load goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// One instance.
    #[default]
    One,
    /// Three behind nginx.
    Three,
}

/// One side of a comparison of rates: `Side::of("mutex")`, or `Side { threads: 8, ..Side::of("mutex") }`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The strategy.
    #[serde(deserialize_with = "text")]
    pub strategy: &'static str,
    /// Where.
    #[serde(default)]
    pub target: Target,
    /// From how many connections.
    #[serde(default = "hundred")]
    pub threads: usize,
}

const fn hundred() -> usize {
    100
}

impl Target {
    /// Its name for people.
    #[must_use]
    pub const fn words(self) -> Bilingual {
        match self {
            Self::One => Bilingual::of("一个实例", "one instance"),
            Self::Three => Bilingual::of("三个实例", "three instances"),
        }
    }
}

impl Side {
    /// 100 connections to one instance.
    #[must_use]
    pub const fn of(strategy: &'static str) -> Self {
        Self {
            strategy,
            target: Target::One,
            threads: 100,
        }
    }
}

/// What is said of two rates: of the first by the second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// Much faster: at least twice as fast.
    MuchFaster,
    /// Faster: at least 1.15 times as fast.
    Faster,
    /// A little faster: at most 1.5 times as fast.
    ALittleFaster,
    /// About as fast: 0.8 to 1.25 times as fast.
    AboutAsFast,
    /// Near: half as fast to twice as fast.
    Near,
    /// The first is so many times as fast, from the one to the other.
    Between(f64, f64),
}

impl Says {
    /// The least and the most of the ratio.
    #[must_use]
    pub const fn bounds(self) -> (f64, f64) {
        match self {
            Self::MuchFaster => (2.0, f64::INFINITY),
            Self::Faster => (1.15, f64::INFINITY),
            Self::ALittleFaster => (1.0, 1.5),
            Self::AboutAsFast => (0.8, 1.25),
            Self::Near => (0.5, 2.0),
            Self::Between(least, most) => (least, most),
        }
    }
}

/// Two rates that a claim compares, and what its word means.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Rates {
    /// The one that the claim is about: a strategy, where, and from how many connections.
    #[schema(value_type = Object)]
    pub first: Side,
    /// The one beside it.
    #[schema(value_type = Object)]
    pub second: Side,
    /// The first is at least so many times as fast.
    #[schema(example = 1.15)]
    pub least: f64,
    /// And at most so many times; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

impl Rates {
    fn of(first: Side, second: Side, says: Says) -> Self {
        let (least, most) = says.bounds();
        let most = most.is_finite().then_some(most);
        Self {
            first,
            second,
            least,
            most,
        }
    }
}

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = LessonVerdict)]
pub enum Verdict {
    /// It is so here.
    #[default]
    Reproduced,
    /// It is not so here.
    NotReproduced,
    /// The rounds do not agree whether it is so.
    Noise,
    /// It could not be tried here.
    Unavailable,
}

impl Verdict {
    /// `Reproduced` where it holds.
    #[must_use]
    pub const fn of(holds: bool) -> Self {
        if holds {
            Self::Reproduced
        } else {
            Self::NotReproduced
        }
    }

    /// Its sign.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Reproduced => "✓",
            Self::NotReproduced => "✗",
            Self::Noise => "≈",
            Self::Unavailable => "–",
        }
    }

    /// The word for people.
    #[must_use]
    pub const fn words(self) -> Bilingual {
        match self {
            Self::Reproduced => Bilingual::of("重现了", "reproduced"),
            Self::NotReproduced => Bilingual::of("没有重现", "not reproduced"),
            Self::Noise => Bilingual::of("在误差之内", "noise"),
            Self::Unavailable => Bilingual::of("未验证", "unavailable"),
        }
    }
}

/// One line that a student types in a terminal, and what it prints.
///
/// In `run`, `{http}` is the address of nginx, `{8000}`, `{8100}` and `{8200}` those of the instances; `{mysql}`,
/// `{redis}`, `{redis-2}` … and `{zookeeper}` are the options that lead `mysql`, `redis-cli` and `zkCli.sh` there, `{zk}`
/// is ZooKeeper's address; `{fault}` is `oversell lab fault`. Behind a key `{:id}`, and in a query `{?id}` or `{&id}`, say the
/// product: nothing for product 1, which a student has. In `expect`, `…` stands for anything.
/// Lines are typed one after the other; one that ends in ` &` runs while the next ones do, until `wait` is typed in its
/// terminal. One that needs what another does first is typed until it prints that; a `sleep` stands only where nothing but time is to
/// pass, or where nothing shows from outside that another has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(from = "Written")]
#[schema(as = Typed)]
pub struct Line {
    /// Which terminal: each student's second window is 2.
    #[schema(example = 1)]
    pub terminal: u8,
    /// What is typed.
    #[schema(example = "curl -s http://127.0.0.1:8080/check/lock/none")]
    pub run: String,
    /// What it prints; `…` stands for anything.
    #[schema(example = "验库存并锁库存成功！")]
    pub expect: String,
    /// Whether it is typed again and again until it prints this.
    pub again: bool,
}

/// A line as a file has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Shared(Shared),
    Own(Own),
}

/// Lines that many lessons share.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shared {
    /// 5000 pieces again, as before each run of the course.
    Restock,
    /// A voucher that is on sale.
    NewVoucher,
}

/// A line of one lesson.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    terminal: Option<u8>,
    run: String,
    /// What it prints.
    prints: Option<String>,
    /// What it prints at last, typed again and again until then.
    until: Option<String>,
}

impl Line {
    /// A line in the first terminal, typed once.
    #[must_use]
    pub fn new(run: &str, expect: &str) -> Self {
        Self {
            terminal: 1,
            run: run.to_owned(),
            expect: expect.to_owned(),
            again: false,
        }
    }

    /// Whether this is what it prints; space at the end of a line does not count.
    #[must_use]
    pub fn is_printed(&self, text: &str) -> bool {
        let trimmed = |text: &str| {
            text.lines()
                .map(str::trim_end)
                .collect::<Vec<_>>()
                .join("\n")
                .trim()
                .to_owned()
        };
        let (expected, text) = (trimmed(&self.expect), trimmed(text));
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

impl From<Written> for Line {
    fn from(written: Written) -> Self {
        match written {
            Written::Shared(Shared::Restock) => Self::new(
                r#"curl -s -X PUT -H 'content-type: application/json' -d '{"count":5000}' {http}/stock{?id}"#,
                r#"{"mysql":{"id":…,"count":5000,…"#,
            ),
            Written::Shared(Shared::NewVoucher) => Self::new(
                r#"curl -s -X POST -H 'content-type: application/json' -d '{"title":"100元代金券","stock":10,"begin":"2020-01-01T00:00:00Z","end":"2090-01-01T00:00:00Z"}' {http}/voucher"#,
                r#"{"id":…}"#,
            ),
            Written::Own(Own {
                terminal,
                run,
                prints,
                until,
            }) => Self {
                terminal: terminal.unwrap_or(1),
                run,
                again: until.is_some(),
                expect: until.or(prints).unwrap_or_default(),
            },
        }
    }
}

/// A text that is kept for as long as the program runs.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    String::deserialize(from).map(leak)
}

/// What no file says, for it follows from the rest.
fn follows<'de, D: Deserializer<'de>>(_: D) -> Result<bool, D::Error> {
    Err(serde::de::Error::custom(
        "it follows from the experiment, and is not written",
    ))
}

fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<&'static str>, D::Error> {
    Vec::<String>::deserialize(from).map(|texts| texts.into_iter().map(leak).collect())
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
            let line = Line::new("", expected);
            assert_eq!(line.is_printed(text), good, "{expected}: {text}");
        }
    }
}
