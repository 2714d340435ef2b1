//! The report: one HTML page that works without the service and without other files. This module prepares its words and the
//! lengths of its bars; `templates/course.html` lays them out, and the modules of the page draw its races.

mod modules;
#[cfg(test)]
mod tests;

use super::{
    Play, Rated, Ratio, Sale,
    results::{CourseResults, TrialResult},
};
use crate::{
    claims::{ALL, Chapter, ClaimVerdict, Lesson, Words, find},
    load::filters,
    terminal::{
        bilingual::Bilingual,
        failure::{Failure, unusable},
    },
};
use askama::Template;
use modules::{script, timeline_style};
use serde_json::json;

pub(super) fn html(found: &CourseResults) -> Result<String, Failure> {
    Report::of(found)
        .render()
        .map_err(|e| unusable!("report: {e}"))
}

#[derive(Template)]
#[template(path = "course.html")]
struct Report<'a> {
    found: &'a CourseResults,
    chapters: Vec<ChapterPart<'a>>,
    conditions: String,
    /// The races' events, for the page's script.
    races: String,
    script: String,
    timeline_style: String,
}

struct ChapterPart<'a> {
    chapter: &'static Chapter,
    lessons: Vec<LessonFigures<'a>>,
}

/// A lesson's figures, ready to draw.
struct LessonFigures<'a> {
    lesson: &'static Lesson,
    tried: &'a TrialResult,
    sales: Vec<Bar<'a>>,
    ratios: Vec<Scale<'a>>,
    races: Vec<RaceFigure<'a>>,
}

/// A race that is drawn.
struct RaceFigure<'a> {
    /// Its index among all races of the page.
    number: usize,
    play: &'a Play,
}

/// A load as a bar, in percent of its lesson's longest.
struct Bar<'a> {
    sale: &'a Sale,
    gone: f64,
    over: f64,
}

/// A ratio on a logarithmic axis with 1 in the middle; positions in percent.
struct Scale<'a> {
    ratio: &'a Ratio,
    median: f64,
    min: f64,
    max: f64,
}

impl<'a> Report<'a> {
    fn of(found: &'a CourseResults) -> Self {
        let mut plays = Vec::new();
        let part = |chapter: &'static Chapter| {
            let lessons = found
                .lessons
                .iter()
                .filter(|tried| tried.chapter == chapter.id);
            ChapterPart {
                chapter,
                lessons: lessons
                    .filter_map(|tried| LessonFigures::of(tried, &mut plays))
                    .collect(),
            }
        };
        let chapters = ALL
            .iter()
            .map(part)
            .filter(|part| !part.lessons.is_empty())
            .collect();
        // An event must not end the script element.
        let races = json!(plays).to_string().replace('<', r"\u003c");
        Self {
            found,
            chapters,
            conditions: found.conditions.to_string(),
            races,
            script: script("js/course-report/course-report.js"),
            timeline_style: timeline_style(),
        }
    }

    fn so(&self) -> usize {
        self.found.count(ClaimVerdict::Reproduced)
    }

    fn otherwise(&self) -> usize {
        self.found.count(ClaimVerdict::NotReproduced)
    }

    fn noise(&self) -> usize {
        self.found.count(ClaimVerdict::Noise)
    }

    fn unavailable(&self) -> usize {
        self.found.count(ClaimVerdict::Unavailable)
    }
}

impl<'a> LessonFigures<'a> {
    fn of(tried: &'a TrialResult, plays: &mut Vec<&'a Play>) -> Option<Self> {
        let figures = &tried.seen.figures;
        let longest = figures
            .sales
            .iter()
            .map(|sale| sale.sold.max(sale.gone))
            .max()
            .unwrap_or(1)
            .max(1) as f64;
        let percent = |pieces: i64| 100.0 * pieces.max(0) as f64 / longest;
        let bar = |sale: &'a Sale| Bar {
            sale,
            gone: percent(sale.gone),
            over: percent(sale.oversold),
        };
        let happened = figures.plays.iter().filter(|play| !play.events.is_empty());
        let race = |play: &'a Play| {
            plays.push(play);
            RaceFigure {
                number: plays.len() - 1,
                play,
            }
        };
        let races = happened.map(race).collect();
        Some(Self {
            lesson: find(tried.id)?,
            tried,
            sales: figures.sales.iter().map(bar).collect(),
            ratios: figures.ratios.iter().map(Scale::of).collect(),
            races,
        })
    }

    fn mark(&self) -> &'static str {
        self.tried.verdict().mark()
    }

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

impl<'a> Scale<'a> {
    /// The axis ends at 16 times, on both sides.
    fn of(ratio: &'a Ratio) -> Self {
        let at = |times: f64| (50.0 + 50.0 * times.log2() / 4.0).clamp(0.0, 100.0);
        Self {
            ratio,
            median: at(ratio.ratio.median),
            min: at(ratio.ratio.min),
            max: at(ratio.ratio.max),
        }
    }

    fn sides(&self) -> [(Words, &Rated); 2] {
        let [first, second] = self.ratio.names();
        [(first, &self.ratio.first), (second, &self.ratio.second)]
    }

    fn left(&self) -> f64 {
        self.median.min(50.0)
    }

    fn width(&self) -> f64 {
        (self.median - 50.0).abs()
    }
}
