//! Several measurements of one thing: their median, and how far they lie apart.

use serde::Serialize;

/// The median and the extremes of several measurements of one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The middle value; of an even number, the mean of the middle two.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// How many measurements there are.
    pub rounds: usize,
}

impl Spread {
    /// The spread of these measurements; zeros without any.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or_default();
        let last = sorted.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(sorted.len() / 2)), min: at(0), max: at(last), rounds: sorted.len() }
    }

    /// The ratios round by round, because a slow round slows both. A ratio to 0 is 0; the longer list is cut.
    pub fn from_ratios(ones: &[f64], others: &[f64]) -> Self {
        let pairs = ones.iter().zip(others);
        Self::from_values(pairs.map(|(one, other)| if *other > 0.0 { one / other } else { 0.0 }))
    }
}

/// Rounds to three decimals; further digits differ from run to run.
pub fn rounded(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_no_outlier_moves_it() {
        let spread = |values: &[f64]| {
            let spread = Spread::from_values(values.iter().copied());
            (spread.median, spread.min, spread.max, spread.rounds)
        };
        assert_eq!(spread(&[]), (0.0, 0.0, 0.0, 0));
        assert_eq!(spread(&[3.0]), (3.0, 3.0, 3.0, 1));
        assert_eq!(spread(&[1.0, 900.0, 2.0]), (2.0, 1.0, 900.0, 3));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0, 4.0, 4));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let ratio = Spread::from_ratios(&[50.0, 10.0, 60.0], &[100.0, 20.0, 100.0]);
        assert_eq!((ratio.min, ratio.median, ratio.max), (0.5, 0.5, 0.6));
    }
}
