//! What an experiment has seen: words for people, figures, and the verdict that they come to.

use crate::{
    claims::{Says, Side, Verdict, Words, words},
    failure::Failure,
    http_client::HttpError,
    load::{Row, spread::Spread},
    replay::{ReplayEvent, ReplayResult},
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What came of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Observation {
    /// What it comes to.
    pub verdict: Verdict,
    /// What was seen, in one or two sentences with the figures that count.
    #[serde(rename = "seen")]
    pub words: Words,
    /// All figures.
    pub figures: Figures,
    /// What it was tried on: `oversell`, `redisson-3.11.2` …
    pub on: Vec<String>,
}

/// The figures of an experiment, in forms that the report draws.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// Loads: what was sold and what left the shelf.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sales: Vec<Sale>,
    /// Rates of two, compared in pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Races.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plays: Vec<Play>,
    /// Whatever else there is, by name.
    #[serde(flatten)]
    pub values: BTreeMap<&'static str, Value>,
}

/// A load: what was sold and what left the shelf.
#[derive(Debug, Clone, Serialize)]
pub struct Sale {
    /// The strategy or the step.
    pub strategy: String,
    /// `one` instance or `three` behind nginx.
    pub target: String,
    /// Connections.
    pub threads: usize,
    /// Requests of each.
    pub loops: usize,
    /// Answers that said success.
    pub sold: i64,
    /// Pieces that left the shelf.
    pub gone: i64,
    /// The difference.
    pub oversold: i64,
    /// Requests that failed, or whose effect is unknown.
    pub errors: u64,
    /// How often the strategy tried again, where the answers say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Pieces sold per second.
    pub sold_per_sec: f64,
    /// The median latency, ms.
    pub median_ms: f64,
    /// The 99 % line, ms.
    pub p99_ms: f64,
}

impl From<&Row> for Sale {
    fn from(row: &Row) -> Self {
        Self {
            strategy: row.strategy.into(),
            target: row.target.clone(),
            threads: row.threads,
            loops: row.loops,
            sold: i64::try_from(row.counts.sold).unwrap_or(i64::MAX),
            gone: row.gone(),
            oversold: row.oversold,
            errors: row.counts.failed(),
            retries: row.told.map(|told| told.retries),
            sold_per_sec: row.sold_per_sec,
            median_ms: row.stats.median,
            p99_ms: row.stats.p99_line,
        }
    }
}

/// One race, from its first event to its end.
#[derive(Debug, Clone, Serialize)]
pub struct Play {
    /// Which.
    pub lesson: String,
    /// Whether the cure was played, or the flaw.
    pub cured: bool,
    /// What it came to.
    #[serde(flatten)]
    pub ends: ReplayResult,
    /// What the race noted, for people.
    #[serde(skip)]
    pub said: Words,
    /// What happened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ReplayEvent>,
}

/// How much faster the first of two sells than the second: each round measures both, one right after the other.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    /// The first.
    pub first: Rated,
    /// The second.
    pub second: Rated,
    /// What the first sells in a second, by what the second sells: of each round.
    pub ratio: Spread,
    /// Rounds besides in which a request failed, or nothing was sold: they do not count.
    pub failed: usize,
    /// What is said of it.
    #[serde(skip)]
    pub says: Says,
}

/// One side of a ratio, and what it sells.
#[derive(Debug, Clone, Serialize)]
pub struct Rated {
    /// The strategy, where it was loaded and from how many connections.
    #[serde(flatten)]
    pub side: Side,
    /// Pieces per second.
    pub per_sec: Spread,
}

impl Says {
    /// Whether it holds of these rounds.
    #[must_use]
    pub fn verdict(self, ratio: Spread) -> Verdict {
        let (least, most) = self.bounds();
        let Spread { min, max, .. } = ratio;
        if min >= least && max <= most {
            Verdict::Reproduced
        } else if max < least || min > most {
            Verdict::NotReproduced
        } else {
            Verdict::Noise
        }
    }

    /// The ratio, how far the rounds lie apart, how many do not count, and the bounds of what is said.
    pub(super) fn explain(self, ratio: Spread, failed: usize) -> Words {
        let (mut failed_zh, mut failed_en) = (String::new(), String::new());
        if failed > 0 {
            failed_zh = format!("，另有 {failed} 轮出错，不算");
            failed_en = format!(", {failed} with errors do not count");
        }
        let (said_zh, said_en) = match self.bounds() {
            (least, f64::INFINITY) => (format!("{least} 倍以上"), format!("{least} or more")),
            (least, most) => (
                format!("{least} 到 {most} 倍"),
                format!("{least} to {most}"),
            ),
        };
        let (noise_zh, noise_en) = match self.verdict(ratio) {
            Verdict::Noise => ("各轮并不一致，", "the rounds do not agree: "),
            _ => ("", ""),
        };
        let Spread {
            median,
            min,
            max,
            rounds,
        } = ratio;
        words!(
            "{median:.2} 倍（{rounds} 轮，{min:.2} 到 {max:.2}{failed_zh}）；{noise_zh}说的是 {said_zh}。",
            "a ratio of {median:.2} ({rounds} rounds, {min:.2} to {max:.2}{failed_en}); {noise_en}{said_en} is claimed."
        )
    }
}

impl Ratio {
    /// Whether what is said of it holds: noise where the rounds do not all lie within its bounds, below or above them.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.says.verdict(self.ratio)
    }

    /// The two sides by the name of the strategy, and by what else differs.
    #[must_use]
    pub fn names(&self) -> [Words; 2] {
        let [one, other] = [self.first.side, self.second.side];
        [one, other].map(|side| {
            let Side {
                strategy,
                target,
                threads,
            } = side;
            let (mut zh, mut en) = (strategy.to_owned(), strategy.to_owned());
            if one.target != other.target {
                zh = format!("{zh}（{}）", target.words().zh);
                en = format!("{en} on {}", target.words().en);
            }
            if one.threads != other.threads {
                zh += &format!(" {threads} 个线程");
                en += &format!(" from {threads} threads");
            }
            Words::new(zh, en)
        })
    }
}

/// What stands in a verdict's `on` for our own service.
pub(super) const OURS: &str = "oversell";

impl Observation {
    /// This, tried on our service, without figures.
    pub(super) fn of(verdict: Verdict, words: Words) -> Self {
        Self {
            verdict,
            words,
            figures: Figures::default(),
            on: vec![OURS.to_owned()],
        }
    }

    /// The claim holds, or it does not.
    pub(super) fn holds(holds: bool, words: Words) -> Self {
        Self::of(Verdict::of(holds), words)
    }

    /// Both were seen: the claim holds where both do, and fails where one does.
    pub(super) fn and(self, other: Self) -> Self {
        let verdict = match [self.verdict, other.verdict] {
            [Verdict::Reproduced, second] => second,
            [first, Verdict::Reproduced] => first,
            [Verdict::Noise, Verdict::Noise] => Verdict::Noise,
            _ => Verdict::NotReproduced,
        };
        let words = Words::new(
            self.words.zh + &other.words.zh,
            self.words.en + " " + &other.words.en,
        );
        let mut figures = self.figures;
        figures.sales.extend(other.figures.sales);
        figures.ratios.extend(other.figures.ratios);
        figures.plays.extend(other.figures.plays);
        figures.values.extend(other.figures.values);
        Self {
            verdict,
            words,
            figures,
            ..self
        }
    }

    /// With loads.
    pub(super) fn sales<'a>(mut self, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        self.figures.sales.extend(rows.into_iter().map(Sale::from));
        self
    }

    /// With pairs of rates.
    pub(super) fn ratios(mut self, ratios: impl IntoIterator<Item = Ratio>) -> Self {
        self.figures.ratios.extend(ratios);
        self
    }

    /// With races.
    pub(super) fn plays(mut self, plays: impl IntoIterator<Item = Play>) -> Self {
        self.figures.plays.extend(plays);
        self
    }

    /// With another figure.
    pub(super) fn value(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.values.insert(name, value.into());
        self
    }
}

/// Why an experiment came to no verdict.
#[derive(Debug)]
pub enum NoVerdict {
    /// What it needs is not here, and need not be: a lab that takes orders, say.
    Unavailable(Words),
    /// Something went wrong.
    Failed(Failure),
}

impl NoVerdict {
    /// What the experiment needs and has not.
    pub(super) fn unavailable(zh: impl Into<String>, en: impl Into<String>) -> Self {
        Self::Unavailable(Words::new(zh, en))
    }

    /// What went wrong.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "so that it can be named in map_err"
    )]
    pub(super) fn failed(why: impl ToString) -> Self {
        Self::Failed(Failure::Unusable(why.to_string()))
    }
}

impl From<Failure> for NoVerdict {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

macro_rules! fails_by {
    ($($error:ty),*) => {$(
        impl From<$error> for NoVerdict {
            fn from(error: $error) -> Self {
                Self::failed(error)
            }
        }
    )*};
}
fails_by!(
    HttpError,
    serde_json::Error,
    tokio::task::JoinError,
    redis::RedisError,
    redis::ParsingError,
    sqlx::Error,
    zookeeper_client::Error
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_disagree_about_two_rates_are_noise() {
        use Verdict::{Noise, NotReproduced, Reproduced};
        for (rounds, says, verdict) in [
            ([2.0, 2.5, 3.9], Says::MuchFaster, Reproduced),
            ([1.2, 1.5, 1.9], Says::MuchFaster, NotReproduced),
            ([1.9, 2.5, 3.9], Says::MuchFaster, Noise),
            ([1.15, 1.5, 9.0], Says::Faster, Reproduced),
            ([1.0, 1.1, 1.14], Says::Faster, NotReproduced),
            ([1.1, 1.2, 1.3], Says::Faster, Noise),
            ([1.0, 1.4, 1.5], Says::ALittleFaster, Reproduced),
            ([1.6, 3.0, 5.6], Says::ALittleFaster, NotReproduced),
            ([0.9, 1.1, 1.2], Says::ALittleFaster, Noise),
            ([0.8, 1.0, 1.25], Says::AboutAsFast, Reproduced),
            ([1.3, 1.4, 1.5], Says::AboutAsFast, NotReproduced),
            ([0.5, 1.0, 2.0], Says::Near, Reproduced),
            ([0.31, 0.33, 0.34], Says::Near, NotReproduced),
            ([0.4, 0.9, 1.0], Says::Near, Noise),
            // Below and above: no round is within, and yet they do not agree.
            ([0.3, 0.4, 2.5], Says::Near, Noise),
        ] {
            assert_eq!(
                says.verdict(Spread::of(rounds)),
                verdict,
                "{rounds:?} {says:?}"
            );
        }
    }

    #[test]
    fn the_bounds_stand_beside_the_figure() {
        let said = Says::Faster.explain(Spread::of([0.9, 1.2, 1.3]), 0);
        assert!(
            said.en.contains("do not agree: 1.15 or more is claimed"),
            "{}",
            said.en
        );
        assert!(
            said.zh.contains("各轮并不一致，说的是 1.15 倍以上"),
            "{}",
            said.zh
        );
        let said = Says::AboutAsFast.explain(Spread::of([0.9, 1.0, 1.2]), 0);
        assert!(
            said.en.ends_with("; 0.8 to 1.25 is claimed."),
            "{}",
            said.en
        );
    }
}
