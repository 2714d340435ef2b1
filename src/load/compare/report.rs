//! The report: one HTML page that needs no script and no other host. Here are its numbers and the lengths of its bars;
//! how it looks stands in `templates/report.html`.

use crate::{
    failure::{Failure, unusable},
    load::{
        filters, measure::Measurement, plan::ONE, row::Row, table::instances, terminal::ms,
        verdict::Verdict,
    },
    stock::{self, Strategy},
};
use askama::Template;

/// Fills the template.
///
/// # Errors
///
/// [`Failure::Unusable`] where the template cannot be filled.
pub(super) fn html(found: &Measurement) -> Result<String, Failure> {
    Report::of(found)
        .render()
        .map_err(|e| unusable!("report: {e}"))
}

#[derive(Template)]
#[template(path = "report.html")]
struct Report<'a> {
    found: &'a Measurement,
    groups: Vec<Group<'a>>,
    /// The row that oversold most.
    worst: Option<Bars<'a>>,
    broken: Vec<String>,
    ticks: Vec<Tick>,
}

/// One strategy's rows.
struct Group<'a> {
    strategy: &'static Strategy,
    lanes: Vec<Bars<'a>>,
}

/// One row as bars: lengths are in percent of the chart's width.
struct Bars<'a> {
    row: &'a Row,
    gone: f64,
    over: f64,
    rate: f64,
    /// The least and the greatest rate of the rounds; the same where there was one.
    spread: [f64; 2],
    /// Median, 90, 95 and 99 % line.
    dots: [f64; 4],
}

/// A line of the latency axis.
struct Tick {
    at: f64,
    label: String,
}

/// The largest values of all rows, to which the bars are drawn.
struct Scale {
    pieces: f64,
    rate: f64,
    latency: Decades,
}

/// A logarithmic axis of whole decades.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Decades {
    first: i32,
    last: i32,
}

impl<'a> Report<'a> {
    fn of(found: &'a Measurement) -> Self {
        let scale = Scale::of(&found.rows);
        let groups = found.rows.chunk_by(|a, b| a.strategy == b.strategy);
        let groups = groups.filter_map(|rows| Group::of(rows, &scale)).collect();
        let worst = found
            .rows
            .iter()
            .filter(|row| row.verdict == Verdict::Oversold)
            .max_by_key(|row| row.oversold);
        let broken = found.rows.iter().filter_map(Row::complaint).collect();
        Self {
            found,
            groups,
            worst: worst.map(|row| Bars::of(row, &scale)),
            broken,
            ticks: scale.latency.ticks(),
        }
    }

    const fn command(&self) -> &'static str {
        "compare"
    }

    fn count(&self, verdict: Verdict) -> usize {
        let rows = self.found.rows.iter();
        rows.filter(|row| row.verdict == verdict).count()
    }
}

impl<'a> Group<'a> {
    fn of(rows: &'a [Row], scale: &Scale) -> Option<Self> {
        let strategy = stock::find(rows.first()?.strategy)?;
        Some(Self {
            strategy,
            lanes: rows.iter().map(|row| Bars::of(row, scale)).collect(),
        })
    }

    /// `§1.3`, or `[002]` for a companion text.
    fn chapter(&self) -> String {
        let chapter = self.strategy.chapter;
        if chapter.starts_with('[') {
            chapter.to_owned()
        } else {
            format!("§{chapter}")
        }
    }
}

impl<'a> Bars<'a> {
    fn of(row: &'a Row, scale: &Scale) -> Self {
        let stats = &row.stats;
        let gone = row.gone().max(0) as f64;
        let sold = row.sales();
        Self {
            row,
            gone: percent(gone / scale.pieces),
            over: percent(row.oversold.max(0) as f64 / scale.pieces),
            rate: percent(sold.median / scale.rate),
            spread: [sold.min, sold.max].map(|rate| percent(rate / scale.rate)),
            dots: [stats.median, stats.p90_line, stats.p95_line, stats.p99_line]
                .map(|line| scale.latency.at(line)),
        }
    }

    fn one(&self) -> bool {
        self.row.target == ONE
    }

    fn is_oversold(&self) -> bool {
        self.row.verdict == Verdict::Oversold
    }

    /// Retries for each piece, the mean and the longest wait for the lock, and how many locks were lost.
    fn contention(&self) -> [String; 4] {
        self.row.told.map_or([(); 4].map(|()| "–".into()), |told| {
            [
                format!("{:.2}", told.retries_per_sold),
                ms(told.waited_mean_ms),
                ms(told.waited_max_ms as f64),
                told.lock_lost.to_string(),
            ]
        })
    }

    fn instances(&self) -> String {
        instances(self.row)
    }
}

impl Scale {
    fn of(rows: &[Row]) -> Self {
        let most = |value: fn(&Row) -> f64| rows.iter().map(value).fold(1.0, f64::max);
        Self {
            pieces: most(|row| row.gone().max(row.counts.sold as i64) as f64),
            rate: most(|row| row.sales().max),
            latency: Decades::around(
                rows.iter()
                    .flat_map(|row| [row.stats.median, row.stats.p99_line]),
            ),
        }
    }
}

impl Decades {
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|v| *v > 0.0)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (v.min(low), v.max(high))
            });
        if low > high {
            return Self { first: 0, last: 1 };
        }
        let first = low.log10().floor() as i32;
        Self {
            first,
            last: (high.log10().ceil() as i32).max(first + 1),
        }
    }

    fn at(self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        percent((value.log10() - f64::from(self.first)) / f64::from(self.last - self.first))
    }

    fn ticks(self) -> Vec<Tick> {
        let label = |decade: i32| match decade {
            ..0 => format!("{} ms", 10f64.powi(decade)),
            0..3 => format!("{} ms", 10i64.pow(decade.unsigned_abs())),
            _ => format!("{} s", 10i64.pow((decade - 3).unsigned_abs())),
        };
        (self.first..=self.last)
            .map(|decade| Tick {
                at: self.at(10f64.powi(decade)),
                label: label(decade),
            })
            .collect()
    }
}

/// A share as a percentage with two decimals, which is finer than a pixel.
fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{
        compare::tests::{found, rate, row},
        row::Rate,
        spread::Spread,
    };

    #[test]
    fn the_report_is_one_file_without_script_or_other_hosts() {
        let page = html(&found(vec![
            row("none", "three", 5000, 130),
            row("single-update", "one", 5000, 5000),
        ]))
        .unwrap();
        for foreign in [
            "<script", "<link", "<img", "src=", "@import", "http:", "https:",
        ] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn what_is_oversold_is_red_and_hatched_and_nothing_else_is() {
        let rects = |rows| {
            html(&found(rows))
                .unwrap()
                .matches(r#"<rect class="over" x="#)
                .count()
        };
        assert_eq!(rects(vec![row("single-update", "one", 5000, 5000)]), 0);
        // Once in the two numbers at the top, once in its lane.
        assert_eq!(
            rects(vec![
                row("none", "one", 5000, 130),
                row("none", "three", 5000, 5000)
            ]),
            2
        );
    }

    #[test]
    fn a_command_line_cannot_write_into_the_page() {
        let mut found = found(vec![row("none", "one", 5000, 130)]);
        found.conditions.command = "oversell compare --report <b>x</b>".into();
        assert!(
            html(&found).unwrap().contains("&#60;b&#62;x"),
            "{}",
            html(&found).unwrap()
        );
    }

    #[test]
    fn a_rate_stands_in_the_report_with_its_spread_and_who_bounds_it() {
        let rate = Rate {
            sold_per_sec: Spread::of([900.0, 1000.0, 1200.0]),
            ..rate()
        };
        let rated = Row {
            rate: Some(rate),
            bounded_by_generator: true,
            ..row("redis-lock", "one", 5000, 5000)
        };
        let page = html(&found(vec![rated])).unwrap();
        for words in ["1,000/s", "900–1,200", "bounded by the generator", "closed"] {
            assert!(page.contains(words), "{words}");
        }
    }

    #[test]
    fn bars_share_one_scale() {
        let found = found(vec![
            row("none", "one", 5000, 1250),
            row("single-update", "one", 5000, 5000),
        ]);
        let report = Report::of(&found);
        let lanes: Vec<_> = report
            .groups
            .iter()
            .map(|g| (g.lanes[0].gone, g.lanes[0].over))
            .collect();
        assert_eq!(lanes, [(25.0, 75.0), (100.0, 0.0)]);
        assert_eq!(report.worst.unwrap().row.verdict, Verdict::Oversold);
    }

    #[test]
    fn the_axis_is_whole_decades_round_all_latencies_and_has_a_width_at_least() {
        let axis = Decades::around([0.8, 37.0, 3512.0].into_iter());
        assert_eq!(axis, Decades { first: -1, last: 4 });
        assert_eq!(
            [0.1, 10_000.0, 0.0].map(|value| axis.at(value)),
            [0.0, 100.0, 0.0]
        );
        let labels: Vec<_> = axis.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0.1 ms", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
        for (values, first, last) in [(&[10.0][..], 1, 2), (&[], 0, 1)] {
            let axis = Decades::around(values.iter().copied());
            assert_eq!(axis, Decades { first, last });
        }
    }
}
