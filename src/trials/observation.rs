//! What an experiment observed: words for people, figures, and a verdict.

use crate::{
    claims::{ClaimVerdict, Says, Side, Words, words},
    clients::http_client::HttpError,
    load::{Row, spread::Spread},
    replay::{ReplayEvent, ReplayResult},
    terminal::failure::Failure,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Observation {
    pub verdict: ClaimVerdict,
    /// One or two sentences with the figures that count.
    #[serde(rename = "seen")]
    pub words: Words,
    pub figures: Figures,
    /// The systems it was tried on: `oversell`, `redisson-3.11.2` …
    pub on: Vec<String>,
}

/// The figures of an experiment, in forms that the report draws.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Figures {
    /// Loads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sales: Vec<Sale>,
    /// Pairs of rates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Races.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plays: Vec<Play>,
    /// Other figures, by name.
    #[serde(flatten)]
    pub values: BTreeMap<&'static str, Value>,
}

/// The pieces that a load sold, and those that left the stock.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sale {
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
    /// Pieces that left the stock.
    pub gone: i64,
    /// `sold` minus `gone`.
    pub oversold: i64,
    /// Requests that failed, or whose effect is unknown.
    pub errors: u64,
    /// Retries of the strategy, if the answers say.
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
            retries: row.contention.map(|all| all.retries),
            sold_per_sec: row.sold_per_sec,
            median_ms: row.stats.median,
            p99_ms: row.stats.p99_line,
        }
    }
}

/// One race, from its first event to its end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Play {
    pub lesson: String,
    /// Whether the cure was played, or the flaw.
    pub cured: bool,
    #[serde(flatten)]
    pub ends: ReplayResult,
    /// The race's own words.
    #[serde(skip)]
    pub said: Words,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ReplayEvent>,
}

/// How much faster the first of two sells than the second: each round measures both, one right after the other.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ratio {
    pub first: Rated,
    pub second: Rated,
    /// Each round's rate of the first, divided by that of the second.
    pub ratio: Spread,
    /// Further rounds, with failed requests or no sale; they do not count.
    pub failed: usize,
    /// The claim about it.
    #[serde(skip)]
    pub says: Says,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Rated {
    #[serde(flatten)]
    pub side: Side,
    /// Pieces per second.
    pub per_sec: Spread,
}

/// Whether the claim holds in these rounds.
pub(super) fn verdict_of(says: Says, ratio: Spread) -> ClaimVerdict {
    let (least, most) = says.bounds();
    let Spread { min, max, .. } = ratio;
    if min >= least && max <= most {
        ClaimVerdict::Reproduced
    } else if max < least || min > most {
        ClaimVerdict::NotReproduced
    } else {
        ClaimVerdict::Noise
    }
}

/// The ratio in words: its spread, the rounds that do not count, and the bounds of the claim.
pub(super) fn explain(says: Says, ratio: Spread, failed: usize) -> Words {
    let (mut failed_zh, mut failed_en) = (String::new(), String::new());
    if failed > 0 {
        failed_zh = format!("，另有 {failed} 轮出错，不算");
        failed_en = format!(", {failed} with errors do not count");
    }
    let (said_zh, said_en) = match says.bounds() {
        (least, f64::INFINITY) => (format!("{least} 倍以上"), format!("{least} or more")),
        (least, most) => (
            format!("{least} 到 {most} 倍"),
            format!("{least} to {most}"),
        ),
    };
    let (noise_zh, noise_en) = match verdict_of(says, ratio) {
        ClaimVerdict::Noise => ("各轮并不一致，", "the rounds do not agree: "),
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

impl Ratio {
    /// Whether the claim holds; noise if rounds lie on both sides of a bound.
    pub(crate) fn verdict(&self) -> ClaimVerdict {
        verdict_of(self.says, self.ratio)
    }

    /// The sides' names: the strategy, and what else differs.
    pub(crate) fn names(&self) -> [Words; 2] {
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

/// The name of our own service in a verdict's `on`.
pub(super) const OURS: &str = "oversell";

impl Observation {
    /// Of our service, without figures.
    pub(super) fn of(verdict: ClaimVerdict, words: Words) -> Self {
        Self {
            verdict,
            words,
            figures: Figures::default(),
            on: vec![OURS.to_owned()],
        }
    }

    /// Reproduced if the claim holds.
    pub(super) fn holds(holds: bool, words: Words) -> Self {
        Self::of(ClaimVerdict::of(holds), words)
    }

    /// Joins two: the claim holds only if it holds in both.
    pub(super) fn and(self, other: Self) -> Self {
        let verdict = match [self.verdict, other.verdict] {
            [ClaimVerdict::Reproduced, second] => second,
            [first, ClaimVerdict::Reproduced] => first,
            [ClaimVerdict::Noise, ClaimVerdict::Noise] => ClaimVerdict::Noise,
            _ => ClaimVerdict::NotReproduced,
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

    pub(super) fn sales<'a>(mut self, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        self.figures.sales.extend(rows.into_iter().map(Sale::from));
        self
    }

    pub(super) fn ratios(mut self, ratios: impl IntoIterator<Item = Ratio>) -> Self {
        self.figures.ratios.extend(ratios);
        self
    }

    pub(super) fn plays(mut self, plays: impl IntoIterator<Item = Play>) -> Self {
        self.figures.plays.extend(plays);
        self
    }

    pub(super) fn value(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.values.insert(name, value.into());
        self
    }
}

/// Why an experiment came to no verdict.
#[derive(Debug)]
pub(crate) enum NoVerdict {
    /// It needs something that this cluster does not have, such as a lab.
    Unavailable(Words),
    /// Something went wrong.
    Failed(Failure),
}

impl NoVerdict {
    pub(super) fn unavailable(zh: impl Into<String>, en: impl Into<String>) -> Self {
        Self::Unavailable(Words::new(zh, en))
    }

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
        use ClaimVerdict::{Noise, NotReproduced, Reproduced};
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
            // Below and above the bounds: the rounds do not agree.
            ([0.3, 0.4, 2.5], Says::Near, Noise),
        ] {
            assert_eq!(
                verdict_of(says, Spread::of(rounds)),
                verdict,
                "{rounds:?} {says:?}"
            );
        }
    }

    #[test]
    fn the_bounds_stand_beside_the_figure() {
        let said = explain(Says::Faster, Spread::of([0.9, 1.2, 1.3]), 0);
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
        let said = explain(Says::AboutAsFast, Spread::of([0.9, 1.0, 1.2]), 0);
        assert!(
            said.en.ends_with("; 0.8 to 1.25 is claimed."),
            "{}",
            said.en
        );
    }
}
