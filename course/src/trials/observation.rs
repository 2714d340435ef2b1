//! What an experiment observed: words for people, figures, and a verdict.

use oversell::{
    claims::{ClaimVerdict, RateSide, RatioClaim, Words, words},
    load::Row,
    replay::{ReplayEvent, ReplayResult},
};
use oversell_lab::{clients::http_client::HttpError, spread::Spread, terminal::failure::Failure};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What an experiment has observed of a claim: a verdict, words and figures.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Observation {
    pub verdict: ClaimVerdict,
    /// One or two sentences with the figures that count.
    #[serde(rename = "seen")]
    pub words: Words,
    pub figures: Figures,
    /// The systems on which the claim was tried: `oversell`, `redisson-3.11.2` …
    pub on: Vec<String>,
}

/// The figures of one experiment, in forms that the report draws: loads, ratios, races, and others by name.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Figures {
    /// The loads that were sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sales: Vec<Sale>,
    /// The rates that were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// The races that were played.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plays: Vec<PlayedRace>,
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
            gone: row.pieces_gone(),
            oversold: row.oversold,
            errors: row.counts.failed(),
            retries: row.contention.map(|all| all.retries),
            sold_per_sec: row.sold_per_sec,
            median_ms: row.stats.median,
            p99_ms: row.stats.p99_line,
        }
    }
}

/// The result of one played race, of its flaw or of its cure.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlayedRace {
    pub lesson: String,
    /// Whether the cure was played, not the flaw.
    pub cured: bool,
    #[serde(flatten)]
    pub ends: ReplayResult,
    /// The description of its end, in the words of the race.
    #[serde(skip)]
    pub said: Words,
    /// Only the report draws them.
    #[serde(skip)]
    pub events: Vec<ReplayEvent>,
}

/// How many times as fast the first of two sides sells as the second; each round measures both, one right after the other.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ratio {
    pub first: MeasuredRate,
    pub second: MeasuredRate,
    /// The rate of the first side divided by that of the second, in each round.
    pub ratio: Spread,
    /// The rounds that do not count, because requests failed or nothing was sold.
    pub failed: usize,
    /// The claim about the ratio.
    #[serde(skip)]
    pub says: RatioClaim,
}

/// One side of a [`Ratio`], and the rates at which it sold.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MeasuredRate {
    #[serde(flatten)]
    pub side: RateSide,
    /// Pieces per second.
    pub per_sec: Spread,
}

/// The verdict of a claim of two parts: if one is reproduced, that of the other; if both are noise, so is it; else not
/// reproduced.
fn join_verdicts(first: ClaimVerdict, second: ClaimVerdict) -> ClaimVerdict {
    match [first, second] {
        [ClaimVerdict::Reproduced, second] => second,
        [first, ClaimVerdict::Reproduced] => first,
        [ClaimVerdict::Noise, ClaimVerdict::Noise] => ClaimVerdict::Noise,
        _ => ClaimVerdict::NotReproduced,
    }
}

/// The verdict of a claim about a ratio: noise if the rounds do not agree.
fn verdict_on_ratio(says: RatioClaim, ratio: Spread) -> ClaimVerdict {
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

/// Describes a ratio: its spread, the rounds that do not count, and the bounds of the claim.
pub(super) fn explain_ratio(says: RatioClaim, ratio: Spread, failed: usize) -> Words {
    let (mut failed_zh, mut failed_en) = (String::new(), String::new());
    if failed > 0 {
        failed_zh = format!("，另有 {failed} 轮出错，不算");
        failed_en = format!(", {failed} with errors do not count");
    }
    let (said_zh, said_en) = match says.bounds() {
        (least, f64::INFINITY) => (format!("{least} 倍以上"), format!("{least} or more")),
        (least, most) => (format!("{least} 到 {most} 倍"), format!("{least} to {most}")),
    };
    let (noise_zh, noise_en) = match verdict_on_ratio(says, ratio) {
        ClaimVerdict::Noise => ("各轮并不一致，", "the rounds do not agree: "),
        _ => ("", ""),
    };
    let Spread { median, min, max, rounds } = ratio;
    words!(
        "{median:.2} 倍（{rounds} 轮，{min:.2} 到 {max:.2}{failed_zh}）；{noise_zh}说的是 {said_zh}。",
        "a ratio of {median:.2} ({rounds} rounds, {min:.2} to {max:.2}{failed_en}); {noise_en}{said_en} is claimed."
    )
}

impl Ratio {
    /// The sides' names: the strategy, and what else differs.
    pub(crate) fn names(&self) -> [Words; 2] {
        let [one, other] = [self.first.side, self.second.side];
        [one, other].map(|side| {
            let RateSide { strategy, target, threads } = side;
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
    /// An observation on our service, without figures.
    pub(super) fn of(verdict: ClaimVerdict, words: Words) -> Self {
        Self { verdict, words, figures: Figures::default(), on: vec![OURS.to_owned()] }
    }

    /// An observation on our service: reproduced if the claim holds.
    pub(super) fn holds(holds: bool, words: Words) -> Self {
        Self::of(ClaimVerdict::of(holds), words)
    }

    /// Joins two observations: the claim holds only if it holds in both. Equal names have `other`'s value; `on` is that of
    /// `self`.
    pub(super) fn and(self, other: Self) -> Self {
        let words = Words::new(self.words.zh + &other.words.zh, self.words.en + " " + &other.words.en);
        let mut figures = self.figures;
        figures.sales.extend(other.figures.sales);
        figures.ratios.extend(other.figures.ratios);
        figures.plays.extend(other.figures.plays);
        figures.values.extend(other.figures.values);
        Self { verdict: join_verdicts(self.verdict, other.verdict), words, figures, ..self }
    }

    /// Requires a ratio to be within its bounds, too; it is not added to the figures.
    pub(super) fn require_ratio(self, says: RatioClaim, ratio: Spread) -> Self {
        Self { verdict: join_verdicts(self.verdict, verdict_on_ratio(says, ratio)), ..self }
    }

    /// Adds these loads to the figures.
    pub(super) fn sales<'a>(mut self, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        self.figures.sales.extend(rows.into_iter().map(Sale::from));
        self
    }

    /// Adds these ratios to the figures; they decide nothing.
    pub(super) fn ratios(mut self, ratios: impl IntoIterator<Item = Ratio>) -> Self {
        self.figures.ratios.extend(ratios);
        self
    }

    /// Adds these races to the figures.
    pub(super) fn plays(mut self, plays: impl IntoIterator<Item = PlayedRace>) -> Self {
        self.figures.plays.extend(plays);
        self
    }

    /// Adds a figure of this name, or replaces it.
    pub(super) fn value(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.figures.values.insert(name, value.into());
        self
    }
}

/// Why an experiment came to no verdict: the cluster lacks something, or something went wrong.
#[derive(Debug)]
pub(crate) enum NoVerdict {
    /// The experiment needs something that this cluster does not have, such as a lab.
    Unavailable(Words),
    /// Something went wrong.
    Failed(Failure),
}

impl NoVerdict {
    /// It cannot be tried here, for this reason.
    pub(super) fn unavailable(zh: impl Into<String>, en: impl Into<String>) -> Self {
        Self::Unavailable(Words::new(zh, en))
    }

    #[expect(clippy::needless_pass_by_value, reason = "so that it can be named in map_err")]
    pub(super) fn failed(why: impl ToString) -> Self {
        Self::Failed(Failure::Unusable(why.to_string()))
    }
}

impl From<Failure> for NoVerdict {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Turns these errors into a failed experiment.
macro_rules! no_verdict_from {
    ($($error:ty),*) => {$(
        impl From<$error> for NoVerdict {
            fn from(error: $error) -> Self {
                Self::failed(error)
            }
        }
    )*};
}
no_verdict_from!(
    HttpError,
    serde_json::Error,
    tokio::task::JoinError,
    redis::RedisError,
    redis::ParsingError,
    zookeeper_client::Error
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_disagree_about_two_rates_are_noise() {
        use ClaimVerdict::{Noise, NotReproduced, Reproduced};
        for (rounds, says, verdict) in [
            ([2.0, 2.5, 3.9], RatioClaim::MuchFaster, Reproduced),
            ([1.2, 1.5, 1.9], RatioClaim::MuchFaster, NotReproduced),
            ([1.9, 2.5, 3.9], RatioClaim::MuchFaster, Noise),
            ([1.15, 1.5, 9.0], RatioClaim::Faster, Reproduced),
            ([1.0, 1.1, 1.14], RatioClaim::Faster, NotReproduced),
            ([1.1, 1.2, 1.3], RatioClaim::Faster, Noise),
            ([1.0, 1.4, 1.5], RatioClaim::ALittleFaster, Reproduced),
            ([1.6, 3.0, 5.6], RatioClaim::ALittleFaster, NotReproduced),
            ([0.9, 1.1, 1.2], RatioClaim::ALittleFaster, Noise),
            ([0.8, 1.0, 1.25], RatioClaim::AboutAsFast, Reproduced),
            ([1.3, 1.4, 1.5], RatioClaim::AboutAsFast, NotReproduced),
            ([0.5, 1.0, 2.0], RatioClaim::Near, Reproduced),
            ([0.31, 0.33, 0.34], RatioClaim::Near, NotReproduced),
            ([0.4, 0.9, 1.0], RatioClaim::Near, Noise),
            // Below and above the bounds: the rounds do not agree.
            ([0.3, 0.4, 2.5], RatioClaim::Near, Noise),
        ] {
            assert_eq!(verdict_on_ratio(says, Spread::from_values(rounds)), verdict, "{rounds:?} {says:?}");
        }
    }

    #[test]
    fn rates_and_all_else_decide_together() {
        use ClaimVerdict::{Noise, NotReproduced, Reproduced};
        let seen = |holds| Observation::holds(holds, Words::default());
        let with = |holds, rounds| seen(holds).require_ratio(RatioClaim::Faster, Spread::from_values(rounds));
        for (seen, verdict) in [
            (with(true, [1.2, 1.3]), Reproduced),
            (with(true, [1.1, 1.3]), Noise),
            (with(false, [1.2, 1.3]), NotReproduced),
            (seen(false).and(with(true, [1.2, 1.3])), NotReproduced),
            (with(true, [1.1, 1.3]).and(seen(true)), Noise),
        ] {
            assert_eq!(seen.verdict, verdict);
        }
    }
}
