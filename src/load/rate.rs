//! What a strategy sells in a second: several rounds, their median, and how far they lie apart.

use super::{Row, verdict::Verdict};
use serde::Serialize;
use std::time::Duration;

/// The longest that one round may take, warm-up or measurement.
const LONGEST: Duration = Duration::from_secs(600);

/// How long a round is to take, as a command line says it.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|e| e.to_string())?;
    if time > LONGEST {
        Err("at most 10m".into())
    } else {
        Ok(time)
    }
}

/// Several measurements of one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many there are.
    pub rounds: usize,
}

/// The rounds of one strategy on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Pieces sold per second; refusals and errors are none.
    #[serde(flatten)]
    pub sold_per_sec: Spread,
    /// Answers per second, whatever they said: what the generator had to do.
    pub answers_per_sec: f64,
    /// The median latency, ms: the median of the rounds.
    pub median_ms: f64,
    /// The 99 % line, ms: the median of the rounds.
    pub p99_ms: f64,
    /// How often a piece was tried anew; absent where the answers do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries_per_sold: Option<f64>,
    /// Requests of all rounds that failed, or whose effect is unknown.
    pub errors: u64,
    /// Requests of all rounds that were due and not sent, where the loop is open.
    pub behind: u64,
    /// The worst verdict of the rounds.
    pub verdict: Verdict,
}

impl Spread {
    /// Of these measurements; zeros of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or_default();
        let last = sorted.len().saturating_sub(1);
        Self {
            median: f64::midpoint(at(last / 2), at(sorted.len() / 2)),
            min: at(0),
            max: at(last),
            rounds: sorted.len(),
        }
    }

    /// Whether the two share a value, so that which is greater may be chance.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

impl Rate {
    /// Of the rows of all rounds.
    pub(super) fn of(rounds: &[Row]) -> Self {
        let median = |value: fn(&Row) -> f64| Spread::of(rounds.iter().map(value)).median;
        let retries: Option<Vec<_>> = rounds.iter().map(|row| row.retries_per_sold).collect();
        Self {
            sold_per_sec: Spread::of(rounds.iter().map(|row| row.sold_per_sec)),
            answers_per_sec: median(|row| row.stats.throughput),
            median_ms: median(|row| row.stats.median),
            p99_ms: median(|row| row.stats.p99_line),
            retries_per_sold: retries.map(|each| Spread::of(each).median),
            errors: rounds.iter().map(|row| row.errors + row.unknown).sum(),
            behind: rounds.iter().map(|row| row.behind).sum(),
            verdict: rounds
                .iter()
                .map(|row| row.verdict)
                .max()
                .unwrap_or(Verdict::Errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_no_outlier_moves_it() {
        let spread = |values: &[f64]| {
            let spread = Spread::of(values.iter().copied());
            (spread.median, spread.min, spread.max, spread.rounds)
        };
        assert_eq!(spread(&[]), (0.0, 0.0, 0.0, 0));
        assert_eq!(spread(&[3.0]), (3.0, 3.0, 3.0, 1));
        assert_eq!(spread(&[1.0, 900.0, 2.0]), (2.0, 1.0, 900.0, 3));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0, 4.0, 4));
    }

    #[test]
    fn spreads_that_touch_overlap() {
        let spread = |values: [f64; 2]| Spread::of(values);
        assert!(spread([1.0, 3.0]).overlaps(&spread([3.0, 5.0])));
        assert!(!spread([1.0, 3.0]).overlaps(&spread([3.1, 5.0])));
        assert!(!spread([3.1, 5.0]).overlaps(&spread([1.0, 3.0])));
    }
}
