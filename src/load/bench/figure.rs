//! A figure, the ceiling that it is held against, and what is wanted of it.

use crate::load::terminal::{ms, rate};
use comfy_table::{Cell, CellAlignment, Color, LineStyle, Table, presets::NOTHING};
use serde::Serialize;

/// What a figure must reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wanted {
    /// The ratio to the ceiling, at least.
    Ratio(f64),
    /// The value, at most.
    AtMost(f64),
    /// Nothing: it is there to be known.
    Nothing,
}

/// What a value is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "per s")]
    PerSecond,
    #[serde(rename = "errors")]
    Errors,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "times")]
    Times,
    #[serde(rename = "commands")]
    Commands,
    #[serde(rename = "requests")]
    Requests,
    #[serde(rename = "notifications")]
    Notifications,
}

/// One line of the bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) figure: String,
    pub(super) value: f64,
    pub(super) unit: Unit,
    /// What it is held against, in the same unit.
    pub(super) ceiling: Option<f64>,
    /// What the ceiling is.
    pub(super) against: &'static str,
    /// `value / ceiling`.
    pub(super) ratio: Option<f64>,
    pub(super) wanted: Wanted,
    /// `None` where nothing is wanted.
    pub(super) reached: Option<bool>,
}

impl Figure {
    /// A rate as a ratio to a ceiling: both are medians of interleaved measurements.
    pub(super) fn ratio(figure: &str, value: &[f64], against: &'static str, ceiling: &[f64], wanted: f64) -> Self {
        let (value, ceiling) = (median(value), median(ceiling));
        let ratio = if ceiling > 0.0 { value / ceiling } else { 0.0 };
        Self {
            figure: figure.into(),
            value,
            unit: Unit::PerSecond,
            ceiling: Some(ceiling),
            against,
            ratio: Some(ratio),
            wanted: Wanted::Ratio(wanted),
            reached: Some(ratio >= wanted),
        }
    }

    /// The same where nothing is wanted.
    pub(super) fn compared(figure: &str, value: &[f64], against: &'static str, with: &[f64]) -> Self {
        Self { wanted: Wanted::Nothing, reached: None, ..Self::ratio(figure, value, against, with, 0.0) }
    }

    /// A value that must not be exceeded.
    pub(super) fn at_most(figure: &str, value: f64, unit: Unit, most: f64) -> Self {
        let reached = Some(value <= most);
        Self { wanted: Wanted::AtMost(most), reached, ..Self::known(figure, value, unit) }
    }

    /// A value of which nothing is wanted.
    pub(super) fn known(figure: &str, value: f64, unit: Unit) -> Self {
        Self {
            figure: figure.into(),
            value,
            unit,
            ceiling: None,
            against: "",
            ratio: None,
            wanted: Wanted::Nothing,
            reached: None,
        }
    }

    fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond => format!("{}/s", rate(value)),
            Unit::Errors => format!("{} errors", rate(value)),
            Unit::Megabytes => format!("{value:.1} MB"),
            Unit::Milliseconds => format!("{} ms", ms(value)),
            Unit::Times => format!("{value:.1} ×"),
            Unit::Commands | Unit::Requests | Unit::Notifications => format!("{value:.2}"),
        }
    }

    fn cells(&self) -> [Cell; 7] {
        let wanted = match self.wanted {
            Wanted::Ratio(least) => format!("≥ {least:.2}"),
            Wanted::AtMost(most) => format!("≤ {}", self.shown(most)),
            Wanted::Nothing => String::new(),
        };
        let reached = match self.reached {
            Some(true) => Cell::new("yes"),
            Some(false) => Cell::new("NO").fg(Color::Red),
            None => Cell::new(""),
        };
        [
            Cell::new(&self.figure),
            Cell::new(self.shown(self.value)),
            Cell::new(self.ceiling.map_or(String::new(), |ceiling| self.shown(ceiling))),
            Cell::new(self.against),
            Cell::new(self.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))),
            Cell::new(wanted),
            reached,
        ]
    }
}

/// The figures as a table.
pub(super) fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(["figure", "value", "ceiling", "of", "ratio", "wanted", "reached"]);
    table.add_rows(figures.iter().map(Figure::cells));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if [1, 2, 4].contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The middle of some measurements, 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_no_outlier_moves_it() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[1.0, 900.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_ratio_below_what_is_wanted_is_missed() {
        let figure = |value| Figure::ratio("x", &[value], "y", &[100.0], 0.6);
        assert_eq!((figure(60.0).ratio, figure(60.0).reached), (Some(0.6), Some(true)));
        assert_eq!(figure(59.9).reached, Some(false));
    }

    #[test]
    fn a_ceiling_that_was_not_measured_is_not_reached() {
        assert_eq!(Figure::ratio("x", &[60.0], "y", &[], 0.6).reached, Some(false));
    }

    #[test]
    fn one_error_is_one_too_many_where_none_is_wanted() {
        assert_eq!(Figure::at_most("x", 0.0, Unit::Errors, 0.0).reached, Some(true));
        assert_eq!(Figure::at_most("x", 1.0, Unit::Errors, 0.0).reached, Some(false));
    }
}
