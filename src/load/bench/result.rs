//! A result of the bench: a value, its ceiling, and the goal that it must reach.

use crate::load::terminal::{Column, ms, rate, table};
use comfy_table::{Cell, Color};
use oversell_lab::{
    spread::Spread,
    terminal::{bilingual::Bilingual, chinese::localized},
};
use serde::{Serialize, Serializer};

/// A name in both languages, as `format!` writes it: Chinese, then English. It is kept for as long as the program runs.
macro_rules! named {
    ($zh:literal, $en:literal) => {
        oversell_lab::terminal::bilingual::Bilingual::of(
            oversell_lab::terminal::bilingual::leak(format!($zh)),
            oversell_lab::terminal::bilingual::leak(format!($en)),
        )
    };
}
pub(super) use named;

/// What a result must reach: a least ratio to its ceiling, a greatest value, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    /// The least ratio to the ceiling.
    Ratio(f64),
    /// The greatest value.
    AtMost(f64),
    /// None: the result is there for comparison.
    Nothing,
}

/// The unit of a value and of its ceiling: per second, megabytes, milliseconds, or times (a ratio).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "per s")]
    PerSecond,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "times")]
    Times,
}

/// A row of the bench: a value with its ceiling and its goal, over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct BenchResult {
    #[serde(rename = "figure", serialize_with = "english")]
    pub(super) name: Bilingual,
    /// The median of the rounds.
    #[serde(rename = "seen")]
    pub(super) value: f64,
    pub(super) unit: Unit,
    /// The median of the ceiling, in the same unit; `None` for a value without one.
    pub(super) ceiling: Option<f64>,
    #[serde(rename = "against", serialize_with = "english")]
    pub(super) ceiling_name: Bilingual,
    /// `value / ceiling`, round by round.
    pub(super) ratio: Option<Spread>,
    #[serde(rename = "wanted")]
    pub(super) goal: Goal,
    #[serde(rename = "reached")]
    pub(super) is_reached: bool,
    /// The bottleneck that keeps the value from being better.
    #[serde(serialize_with = "english")]
    pub(super) bounded_by: Bilingual,
    /// Why the result does not count: requests failed, or pieces were oversold.
    #[serde(rename = "void")]
    pub(super) void_reason: Option<String>,
}

impl BenchResult {
    /// A rate, judged by the median of its ratios to a ceiling, round by round.
    pub(super) fn ratio(
        name: Bilingual,
        rates: &[f64],
        ceiling_name: Bilingual,
        ceiling: &[f64],
        goal: Goal,
        bounded_by: Bilingual,
    ) -> Self {
        let ratio = Spread::from_ratios(rates, ceiling);
        Self {
            ceiling: Some(median(ceiling)),
            ceiling_name,
            ratio: Some(ratio),
            goal,
            is_reached: !matches!(goal, Goal::Ratio(least) if ratio.median < least),
            ..Self::at_most(name, rates, Unit::PerSecond, 0.0, bounded_by)
        }
    }

    /// The median of `values`, which must be at most `most`.
    pub(super) fn at_most(name: Bilingual, values: &[f64], unit: Unit, most: f64, bounded_by: Bilingual) -> Self {
        let value = median(values);
        Self {
            name,
            value,
            unit,
            ceiling: None,
            ceiling_name: Bilingual::of("", ""),
            ratio: None,
            goal: Goal::AtMost(most),
            is_reached: value <= most,
            bounded_by,
            void_reason: None,
        }
    }

    /// Makes the result void if there is a reason; a void result does not reach its goal.
    pub(super) fn void_if(self, void_reason: Option<String>) -> Self {
        Self { is_reached: self.is_reached && void_reason.is_none(), void_reason, ..self }
    }

    /// A value with the unit of this result.
    fn with_unit(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond => localized!("{}/秒", "{}/s", rate(value)),
            Unit::Megabytes => format!("{value:.0} MB"),
            Unit::Milliseconds => format!("{} ms", ms(value)),
            Unit::Times => localized!("{value:.1} 倍", "{value:.1} ×"),
        }
    }
}

/// The columns of the table of results.
const COLUMNS: [Column<BenchResult>; 8] = [
    (Bilingual::of("数字", "figure"), |f| f.name.localized().into()),
    (Bilingual::of("测得", "seen"), |f| f.with_unit(f.value).into()),
    (Bilingual::of("上限", "ceiling"), |f| f.ceiling.map(|c| f.with_unit(c)).unwrap_or_default().into()),
    (Bilingual::of("上限是", "of"), |f| f.ceiling_name.localized().into()),
    (Bilingual::of("比值", "ratio"), |f| {
        let ratio = |r: Spread| format!("{:.2} ({:.2}–{:.2})", r.median, r.min, r.max);
        f.ratio.map(ratio).unwrap_or_default().into()
    }),
    (Bilingual::of("要求", "wanted"), |f| match f.goal {
        Goal::Ratio(least) => format!("≥ {least:.2}").into(),
        Goal::AtMost(most) => format!("≤ {}", f.with_unit(most)).into(),
        Goal::Nothing => "".into(),
    }),
    (Bilingual::of("达到", "reached"), |f| match f.is_reached {
        true => localized!("是", "yes").into(),
        false => Cell::new(localized!("否", "NO")).fg(Color::Red),
    }),
    (Bilingual::of("受限于", "bounded by"), |f| {
        let reason = f.void_reason.as_deref();
        reason.unwrap_or_else(|| f.bounded_by.localized()).into()
    }),
];

pub(super) fn results_table(results: &[BenchResult], markdown: bool) -> String {
    table(&COLUMNS, &[0, 3, 5, 6, 7], results, markdown)
}

/// Files have the English words.
fn english<S: Serializer>(words: &Bilingual, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(words.en)
}

/// The median; 0 without values.
fn median(values: &[f64]) -> f64 {
    Spread::from_values(values.iter().copied()).median
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(seen: f64, ceiling: &[f64]) -> BenchResult {
        let (name, of, bounded_by) = (Bilingual::of("", "x"), Bilingual::of("", "y"), Bilingual::of("", "z"));
        BenchResult::ratio(name, &[seen], of, ceiling, Goal::Ratio(0.6), bounded_by)
    }

    #[test]
    fn a_ratio_without_a_ceiling_is_never_reached() {
        assert_eq!(ratio(60.0, &[100.0]).ratio.unwrap().median, 0.6);
        for (seen, ceiling, reached) in
            [(60.0, &[100.0][..], true), (59.9, &[100.0], false), (60.0, &[], false), (60.0, &[0.0], false)]
        {
            let result = ratio(seen, ceiling);
            assert_eq!(result.is_reached, reached, "{seen} {ceiling:?}");
        }
    }

    #[test]
    fn a_result_whose_requests_failed_is_not_reached() {
        let result = ratio(99.0, &[100.0]);
        assert!(!result.void_if(Some("3 errors".into())).is_reached);
    }
}
