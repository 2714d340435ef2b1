//! A figure, its ceiling, and the threshold that it must reach.

use super::words::here;
use crate::{
    load::{
        spread::Spread,
        terminal::{Column, ms, rate, table},
    },
    terminal::{bilingual::Bilingual, chinese::told},
};
use comfy_table::{Cell, Color};
use serde::Serialize;

/// A threshold: what a figure must reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    /// The ratio to the ceiling, at least.
    Ratio(f64),
    /// The value, at most.
    AtMost(f64),
    /// Nothing: it is there for comparison.
    Nothing,
}

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

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) figure: String,
    /// The median of the rounds.
    pub(super) seen: f64,
    pub(super) unit: Unit,
    /// Its ceiling, in the same unit: the median of the rounds.
    pub(super) ceiling: Option<f64>,
    /// The name of the ceiling.
    pub(super) against: String,
    /// `seen / ceiling`, round by round.
    pub(super) ratio: Option<Spread>,
    pub(super) wanted: Goal,
    pub(super) reached: bool,
    /// The bottleneck that keeps the figure from being better.
    pub(super) bounded_by: &'static str,
    /// Why it does not count: requests failed, or pieces were oversold.
    pub(super) void: Option<String>,
}

impl Figure {
    /// Rates as ratios to a ceiling, round by round.
    pub(super) fn ratio(
        figure: &str,
        seen: &[f64],
        against: &str,
        ceiling: &[f64],
        wanted: Goal,
    ) -> Self {
        let ratio = Spread::of_ratios(seen, ceiling);
        Self {
            ceiling: Some(median(ceiling)),
            against: against.into(),
            ratio: Some(ratio),
            wanted,
            reached: match wanted {
                Goal::Ratio(least) => ratio.median >= least,
                Goal::AtMost(most) => ratio.median <= most,
                Goal::Nothing => true,
            },
            ..Self::at_most(figure, seen, Unit::PerSecond, 0.0)
        }
    }

    /// A value that must not be exceeded.
    pub(super) fn at_most(figure: &str, seen: &[f64], unit: Unit, most: f64) -> Self {
        let seen = median(seen);
        Self {
            figure: figure.into(),
            seen,
            unit,
            ceiling: None,
            against: String::new(),
            ratio: None,
            wanted: Goal::AtMost(most),
            reached: seen <= most,
            bounded_by: "",
            void: None,
        }
    }

    pub(super) fn bounded_by(self, bounded_by: &'static str) -> Self {
        Self { bounded_by, ..self }
    }

    /// Not reached where something else was wrong.
    pub(super) fn unless(self, void: Option<String>) -> Self {
        Self {
            reached: self.reached && void.is_none(),
            void,
            ..self
        }
    }

    fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond => told!("{}/秒", "{}/s", rate(value)),
            Unit::Megabytes => format!("{value:.0} MB"),
            Unit::Milliseconds => format!("{} ms", ms(value)),
            Unit::Times => told!("{value:.1} 倍", "{value:.1} ×"),
        }
    }
}

const COLUMNS: [Column<Figure>; 8] = [
    (Bilingual::of("数字", "figure"), |f| {
        here(&f.figure).into()
    }),
    (Bilingual::of("测得", "seen"), |f| f.shown(f.seen).into()),
    (Bilingual::of("上限", "ceiling"), |f| {
        f.ceiling.map(|c| f.shown(c)).unwrap_or_default().into()
    }),
    (Bilingual::of("上限是", "of"), |f| {
        here(&f.against).into()
    }),
    (Bilingual::of("比值", "ratio"), |f| {
        let ratio = |r: Spread| format!("{:.2} ({:.2}–{:.2})", r.median, r.min, r.max);
        f.ratio.map(ratio).unwrap_or_default().into()
    }),
    (Bilingual::of("要求", "wanted"), |f| match f.wanted {
        Goal::Ratio(least) => format!("≥ {least:.2}").into(),
        Goal::AtMost(most) => format!("≤ {}", f.shown(most)).into(),
        Goal::Nothing => "".into(),
    }),
    (Bilingual::of("达到", "reached"), |f| match f.reached {
        true => told!("是", "yes").into(),
        false => Cell::new(told!("否", "NO")).fg(Color::Red),
    }),
    (Bilingual::of("受限于", "bounded by"), |f| {
        here(f.void.as_deref().unwrap_or(f.bounded_by)).into()
    }),
];

pub(super) fn shown(figures: &[Figure], markdown: bool) -> String {
    table(&COLUMNS, &[0, 3, 5, 6, 7], figures, markdown)
}

fn median(values: &[f64]) -> f64 {
    Spread::of(values.iter().copied()).median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_without_a_ceiling_is_never_reached() {
        let figure =
            |seen, ceiling: &[f64]| Figure::ratio("x", &[seen], "y", ceiling, Goal::Ratio(0.6));
        assert_eq!(figure(60.0, &[100.0]).ratio.unwrap().median, 0.6);
        for (seen, ceiling, reached) in [
            (60.0, &[100.0][..], true),
            (59.9, &[100.0], false),
            (60.0, &[], false),
            (60.0, &[0.0], false),
        ] {
            assert_eq!(figure(seen, ceiling).reached, reached, "{seen} {ceiling:?}");
        }
    }

    #[test]
    fn a_figure_whose_requests_failed_is_not_reached() {
        let figure = Figure::ratio("x", &[99.0], "y", &[100.0], Goal::Ratio(0.6));
        assert!(!figure.unless(Some("3 errors".into())).reached);
    }
}
