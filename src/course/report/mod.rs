//! The report: one HTML page that needs no script and no other host. Here are its words and the lengths of its bars; how it
//! looks stands in `templates/course.html`.

mod lanes;
#[cfg(test)]
mod tests;

use super::{
    ALL, Chapter, Lesson, Rated, Ratio, Sale, Verdict, Words, find,
    found::{Found, Tried},
};
use crate::bilingual::Bilingual;
use crate::{failure::Failure, load::filters};
use askama::Template;
use lanes::Lanes;

/// Fills the template.
///
/// # Errors
///
/// [`Failure::Unusable`] where the template cannot be filled.
pub(super) fn html(found: &Found) -> Result<String, Failure> {
    Report::of(found)
        .render()
        .map_err(|e| Failure::Unusable(format!("report: {e}")))
}

#[derive(Template)]
#[template(path = "course.html")]
struct Report<'a> {
    found: &'a Found,
    chapters: Vec<Part<'a>>,
    conditions: String,
}

/// A chapter, and what came of its lessons.
struct Part<'a> {
    chapter: &'static Chapter,
    lessons: Vec<Shown<'a>>,
}

/// A lesson in pictures.
struct Shown<'a> {
    lesson: &'static Lesson,
    tried: &'a Tried,
    sales: Vec<Bar<'a>>,
    ratios: Vec<Scale<'a>>,
    races: Vec<Lanes<'a>>,
}

/// A load as a bar, in percent of the longest of its lesson.
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
    fn of(found: &'a Found) -> Self {
        let part = |chapter: &'static Chapter| {
            let lessons = found
                .lessons
                .iter()
                .filter(|tried| tried.chapter == chapter.id);
            Part {
                chapter,
                lessons: lessons.filter_map(Shown::of).collect(),
            }
        };
        let chapters = ALL
            .iter()
            .map(part)
            .filter(|part| !part.lessons.is_empty())
            .collect();
        Self {
            found,
            chapters,
            conditions: found.conditions.to_string(),
        }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.found
            .lessons
            .iter()
            .filter(|tried| tried.verdict == verdict)
            .count()
    }

    fn so(&self) -> usize {
        self.count(Verdict::Reproduced)
    }

    fn otherwise(&self) -> usize {
        self.count(Verdict::NotReproduced)
    }

    fn unavailable(&self) -> usize {
        self.count(Verdict::Unavailable)
    }
}

impl<'a> Shown<'a> {
    fn of(tried: &'a Tried) -> Option<Self> {
        let figures = &tried.figures;
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
        Some(Self {
            lesson: find(tried.id)?,
            tried,
            sales: figures.sales.iter().map(bar).collect(),
            ratios: figures.ratios.iter().map(Scale::of).collect(),
            races: figures.plays.iter().filter_map(Lanes::of).collect(),
        })
    }

    /// The mark of its verdict, which is also a class of the style.
    fn mark(&self) -> &'static str {
        match self.tried.verdict {
            Verdict::Reproduced => "✓",
            Verdict::NotReproduced => "✗",
            Verdict::Unavailable => "–",
        }
    }

    fn class(&self) -> &'static str {
        match self.tried.verdict {
            Verdict::Reproduced => "so",
            Verdict::NotReproduced => "not",
            Verdict::Unavailable => "none",
        }
    }

    fn words(&self) -> Bilingual {
        self.tried.verdict.words()
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

    /// The two sides, each with its name.
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

/// What an event of a race is called; one that is not listed is shown by its own word.
fn word(event: &str) -> Option<Bilingual> {
    let words = [
        ("start", "开始", "begins"),
        ("waits", "等待", "waits"),
        ("refused", "没抢到", "is refused"),
        ("taken", "拿到锁", "has the lock"),
        ("locked", "进去", "is inside"),
        ("read", "读到", "reads"),
        ("written", "写回", "writes"),
        ("checked", "看锁是谁的", "looks whose the lock is"),
        ("deleted", "删掉锁", "deletes the lock"),
        ("released", "还锁", "releases"),
        ("lost", "发现锁已不是自己的", "finds its lock lost"),
        ("renewed", "续期", "renews"),
        ("conflict", "冲突，重来", "conflict, tries anew"),
        ("refused-by-row", "被行拒绝", "is refused by the row"),
        ("stopped", "停住", "stands still"),
        ("continued", "继续", "goes on"),
        ("committed", "提交", "commits"),
        ("sold", "卖出", "sells a piece"),
        ("failed", "失败", "fails"),
        ("held", "属于", "is held by"),
        ("free", "空了", "is free"),
        ("expired", "过期", "expires"),
        ("queue", "队列", "queue"),
        ("stock", "库存", "stock"),
        ("fence", "令牌", "token"),
    ];
    words
        .iter()
        .find(|(name, _, _)| *name == event)
        .map(|(_, zh, en)| Bilingual { zh, en })
}
