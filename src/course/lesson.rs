//! What a lesson is: a claim of the documents, where it stands, and the experiment that tries it.

use super::{Cluster, NoVerdict, Seen};
use crate::bilingual::Bilingual;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A chapter of the main text, or a text beside it.
#[derive(Debug)]
pub struct Chapter {
    /// `2` of the main text, `003` of a text beside it.
    pub id: &'static str,
    /// What it is about.
    pub title: Bilingual,
    /// In the order of the text.
    pub lessons: &'static [Lesson],
}

/// One claim, and what is done to try it.
#[derive(Debug)]
pub struct Lesson {
    /// The section: `2.3`, `003.redlock.clock`.
    pub id: &'static str,
    /// What it is about, in a few words.
    pub title: Bilingual,
    /// What is claimed, in our own words.
    pub claim: Bilingual,
    /// Where it stands: `000 §2.3`.
    pub place: &'static str,
    /// The strategies that it is about, of [`stock::ALL`](crate::stock::ALL).
    pub strategies: &'static [&'static str],
    /// The steps of the seckill that it is about, of [`seckill::ALL`](crate::seckill::ALL).
    pub steps: &'static [&'static str],
    /// The deadlocks that it is about, of [`deadlocks::ALL`](crate::classroom::deadlocks::ALL).
    pub deadlocks: &'static [&'static str],
    /// The replay that shows it: the `lesson` of `POST /replays/{lesson}`.
    pub replay: Option<&'static str>,
    /// Routes for a browser, by their paths; `{who}` is the name of a person.
    pub tries: &'static [&'static str],
    /// Whether the verdict rests on timing, so that two runs may differ in it.
    pub timing: bool,
    /// Whether it belongs to the quick form.
    pub quick: bool,
    /// What it comes to here. Where that is not [`Verdict::Reproduced`], the experiment's words say why.
    pub expected: Verdict,
    /// What a student types, in this order.
    pub by_hand: &'static [Line],
    /// The experiment.
    pub run: Run,
}

impl Lesson {
    /// What most lessons have in common: `Lesson { id: "1.3", …, ..Lesson::PLAIN }`.
    pub(super) const PLAIN: Self = Self {
        id: "",
        title: Bilingual { zh: "", en: "" },
        claim: Bilingual { zh: "", en: "" },
        place: "",
        strategies: &[],
        steps: &[],
        deadlocks: &[],
        replay: None,
        tries: &[],
        timing: false,
        quick: false,
        expected: Verdict::Reproduced,
        by_hand: &[],
        run: Run::NotRun(Bilingual { zh: "", en: "" }),
    };

    /// Why it is not run, where it is not.
    #[must_use]
    pub fn why_not(&self) -> Option<Bilingual> {
        match self.run {
            Run::Experiment(_) => None,
            Run::NotRun(why) => Some(why),
        }
    }
}

/// An experiment: it does what anybody outside can do, and says what it has seen.
pub type Experiment = for<'a> fn(&'a Cluster) -> BoxFuture<'a, Result<Seen, NoVerdict>>;

/// How a claim is tried.
#[derive(Debug)]
pub enum Run {
    /// By this: `Run::Experiment(|on| Box::pin(experiment(on)))`.
    Experiment(Experiment),
    /// It is not, and why.
    NotRun(Bilingual),
}

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = LessonVerdict)]
pub enum Verdict {
    /// It is so here.
    Reproduced,
    /// It is not so here.
    NotReproduced,
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

    /// The word for people.
    #[must_use]
    pub const fn words(self) -> Bilingual {
        match self {
            Self::Reproduced => Bilingual {
                zh: "重现了",
                en: "reproduced",
            },
            Self::NotReproduced => Bilingual {
                zh: "没有重现",
                en: "not reproduced",
            },
            Self::Unavailable => Bilingual {
                zh: "此处没有做",
                en: "unavailable",
            },
        }
    }
}

/// One line that a student types in a terminal, and what it prints.
///
/// In `run`, `{http}` is the address of nginx, `{8000}`, `{8100}` and `{8200}` those of the instances; `{mysql}`,
/// `{redis}`, `{redis-2}` … and `{zookeeper}` are the options that lead `mysql`, `redis-cli` and `zkCli.sh` there, `{zk}`
/// is ZooKeeper's address; `{fault}` is `oversell lab fault`. In `expect`, `…` stands for anything.
/// Lines are typed one after the other; one that ends in ` &` runs while the next ones do, until `wait` is typed in its
/// terminal. One that needs what another does first is [`until`]'s; a `sleep` stands only where nothing but time is to
/// pass, or where nothing shows from outside that another has begun.
///
/// [`until`]: Line::until
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// Which terminal: each student's second window is 2.
    pub terminal: u8,
    /// What is typed.
    pub run: &'static str,
    /// What it prints.
    pub expect: &'static str,
    /// Whether it is typed again and again until it prints this.
    pub again: bool,
}

impl Line {
    /// 5000 pieces again, as before each run of the course.
    pub(super) const RESTOCK: Self = Self::new(
        r#"curl -s -X PUT -H 'content-type: application/json' -d '{"count":5000}' {http}/stock"#,
        r#"{"mysql":{"id":1,…,"count":5000,…"#,
    );

    /// A line in the first terminal.
    #[must_use]
    pub const fn new(run: &'static str, expect: &'static str) -> Self {
        Self::at(1, run, expect)
    }

    /// A line in another terminal.
    #[must_use]
    pub const fn at(terminal: u8, run: &'static str, expect: &'static str) -> Self {
        Self {
            terminal,
            run,
            expect,
            again: false,
        }
    }

    /// A line that is typed again and again until it prints this.
    #[must_use]
    pub const fn until(terminal: u8, run: &'static str, expect: &'static str) -> Self {
        Self {
            terminal,
            run,
            expect,
            again: true,
        }
    }
}
