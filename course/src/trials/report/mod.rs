//! The report: one HTML page that works without the service and without other files. This module prepares its words and the
//! lengths of its bars; `templates/course.html` lays them out, and the modules of the page draw its races.

mod modules;
#[cfg(test)]
mod tests;

use super::{
    MeasuredRate, PlayedRace, Ratio, Sale,
    results::{CourseResults, TrialResult},
};
use askama::Template;
use modules::{script, timeline_style};
use oversell::{
    claims::{ALL, Chapter, ClaimVerdict, Lesson, Words, find},
    load::filters,
};
use oversell_lab::terminal::{
    bilingual::Bilingual,
    failure::{Failure, unusable},
};
use serde_json::json;

/// Renders the report of a run.
pub(super) fn html(results: &CourseResults) -> Result<String, Failure> {
    CourseReport::of(results).render().map_err(|e| unusable!("report: {e}"))
}

/// The report, as its template takes it.
#[derive(Template)]
#[template(path = "course.html")]
struct CourseReport<'a> {
    /// The number of claims that are reproduced, not reproduced, noise, and unavailable.
    counts: [usize; 4],
    chapters: Vec<ChapterReport<'a>>,
    conditions: String,
    /// The races' events, for the page's script.
    races: String,
    script: String,
    timeline_style: String,
}

/// A chapter of the report, with those of its lessons that were tried.
struct ChapterReport<'a> {
    chapter: &'static Chapter,
    lessons: Vec<LessonReport<'a>>,
}

/// A lesson of the report, with its figures ready to draw.
struct LessonReport<'a> {
    lesson: &'static Lesson,
    tried: &'a TrialResult,
    sales: Vec<LoadBar<'a>>,
    ratios: Vec<RatioScale<'a>>,
    races: Vec<RaceDrawing<'a>>,
}

/// A race of a lesson, which the script of the page draws.
struct RaceDrawing<'a> {
    /// Its index among all races of the page.
    number: usize,
    play: &'a PlayedRace,
}

/// The bar of a load: its pieces in percent of the longest bar of the lesson.
struct LoadBar<'a> {
    sale: &'a Sale,
    gone: f64,
    over: f64,
}

/// A ratio on a logarithmic axis with 1 in the middle: positions in percent of the width.
struct RatioScale<'a> {
    ratio: &'a Ratio,
    median: f64,
    min: f64,
    max: f64,
}

impl<'a> CourseReport<'a> {
    fn of(results: &'a CourseResults) -> Self {
        let mut plays = Vec::new();
        let part = |chapter: &'static Chapter| {
            let lessons = results.lessons.iter().filter(|tried| tried.chapter == chapter.id);
            ChapterReport { chapter, lessons: lessons.filter_map(|tried| LessonReport::of(tried, &mut plays)).collect() }
        };
        let chapters = ALL.iter().map(part).filter(|part| !part.lessons.is_empty()).collect();
        let with_events = |play: &&PlayedRace| {
            let mut race = json!(play);
            race["events"] = json!(play.events);
            race
        };
        let races: Vec<_> = plays.iter().map(with_events).collect();
        // An event must not end the script element.
        let races = json!(races).to_string().replace('<', r"\u003c");
        Self {
            counts: results.counts(),
            chapters,
            conditions: results.conditions.to_string(),
            races,
            script: script("js/course-report/course-report.js"),
            timeline_style: timeline_style(),
        }
    }
}

impl<'a> LessonReport<'a> {
    /// The figures of a tried lesson for the page; adds its races to `plays`. `None` if the course has no such lesson.
    fn of(tried: &'a TrialResult, plays: &mut Vec<&'a PlayedRace>) -> Option<Self> {
        let figures = &tried.seen.figures;
        let longest = figures.sales.iter().map(|sale| sale.sold.max(sale.gone)).max().unwrap_or(1).max(1) as f64;
        let percent = |pieces: i64| 100.0 * pieces.max(0) as f64 / longest;
        let bar = |sale: &'a Sale| LoadBar { sale, gone: percent(sale.gone), over: percent(sale.oversold) };
        let happened = figures.plays.iter().filter(|play| !play.events.is_empty());
        let race = |play: &'a PlayedRace| {
            plays.push(play);
            RaceDrawing { number: plays.len() - 1, play }
        };
        let races = happened.map(race).collect();
        Some(Self {
            lesson: find(tried.id)?,
            tried,
            sales: figures.sales.iter().map(bar).collect(),
            ratios: figures.ratios.iter().map(RatioScale::of).collect(),
            races,
        })
    }

    fn mark(&self) -> &'static str {
        self.tried.verdict().mark()
    }

    /// The CSS class of the verdict.
    fn class(&self) -> &'static str {
        match self.tried.verdict() {
            ClaimVerdict::Reproduced => "so",
            ClaimVerdict::NotReproduced => "not",
            ClaimVerdict::Noise => "noise",
            ClaimVerdict::Unavailable => "none",
        }
    }

    fn words(&self) -> Bilingual {
        self.tried.verdict().words()
    }
}

impl<'a> RatioScale<'a> {
    /// Places a ratio on an axis from 1/16 to 16; a ratio beyond it is drawn at its end.
    fn of(ratio: &'a Ratio) -> Self {
        let at = |times: f64| (50.0 + 50.0 * times.log2() / 4.0).clamp(0.0, 100.0);
        Self { ratio, median: at(ratio.ratio.median), min: at(ratio.ratio.min), max: at(ratio.ratio.max) }
    }

    fn sides(&self) -> [(Words, &MeasuredRate); 2] {
        let [first, second] = self.ratio.names();
        [(first, &self.ratio.first), (second, &self.ratio.second)]
    }

    /// Where the bar begins, in percent of the width.
    fn left(&self) -> f64 {
        self.median.min(50.0)
    }

    /// How long the bar is, in percent of the width.
    fn width(&self) -> f64 {
        (self.median - 50.0).abs()
    }
}
