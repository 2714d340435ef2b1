//! The verdicts as a table for the terminal: a row for each claim.

use super::results::{CourseResults, TrialResult};
use comfy_table::{ContentArrangement, Table};
use oversell::{claims::Words, load::terminal::empty_table};
use oversell_lab::terminal::{
    bilingual::Bilingual,
    chinese,
    stdout::{colour_mark, terminal_width},
    wrap::wrap_lines,
};

/// The greatest width, and the width without a terminal: longer lines are hard to read.
const MAX_WIDTH: u16 = 100;
/// The least width. In less, four columns of text cannot be read; a narrower terminal breaks the lines of the table itself.
const MIN_WIDTH: u16 = 60;

const LESSON: Bilingual = Bilingual::of("课", "lesson");
const CLAIM: Bilingual = Bilingual::of("原文说", "claim");
const SEEN: Bilingual = Bilingual::of("看到", "seen");
const VERDICT: Bilingual = Bilingual::of("结论", "verdict");
const TIMING: Bilingual = Bilingual::of("（结果取决于计时）", " (timing)");
const CHANGED: Bilingual = Bilingual::of("，与上次完整运行不同", ", otherwise than in the last full run");

/// The language of the table, of the generated pages and of their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Lang {
    /// Chinese
    Zh,
    /// English
    En,
}

impl Lang {
    /// The language of the locale.
    pub(super) fn of_locale() -> Self {
        if chinese::is_wanted() { Self::Zh } else { Self::En }
    }

    pub(super) const fn of(self, title: Bilingual) -> &'static str {
        match self {
            Self::Zh => title.zh,
            Self::En => title.en,
        }
    }

    pub(super) fn words(self, words: &Words) -> &str {
        match self {
            Self::Zh => &words.zh,
            Self::En => &words.en,
        }
    }
}

/// The verdict and the claim of a lesson, cut to one line of the terminal.
pub(super) fn verdict_line(tried: &TrialResult, lang: Lang) -> String {
    let verdict = verdict_words(tried, lang);
    let line = format!("{}  {verdict}: {}", tried.id, lang.of(tried.claim));
    // The mark and a space come before it.
    let width = terminal_width().map(|width| width.saturating_sub(2));
    let line = width.map_or_else(|| line.clone(), |width| shortened(&line, width));
    format!("{} {line}", colour_mark(tried.verdict().mark()))
}

/// The first line of the words, and `…` if there are more.
fn shortened(line: &str, width: usize) -> String {
    if textwrap::core::display_width(line) <= width {
        return line.to_owned();
    }
    let lines = wrap_lines(line, width.saturating_sub(2));
    format!("{} …", lines.lines().next().unwrap_or_default())
}

/// The words for the verdict of a lesson, for timing and for an unexpected verdict.
fn verdict_words(tried: &TrialResult, lang: Lang) -> String {
    let mut verdict = lang.of(tried.verdict().words()).to_owned();
    if tried.timing {
        verdict += lang.of(TIMING);
    }
    if tried.is_unexpected() {
        verdict += lang.of(CHANGED);
    }
    verdict
}

/// Draws the table: a row for each lesson, with the twin in place of the claim where it was tried.
pub(super) fn verdict_table(lessons: &[&TrialResult], lang: Lang) -> Table {
    let width = terminal_width().and_then(|width| u16::try_from(width).ok());
    let width = width.map_or(MAX_WIDTH, |width| width.clamp(MIN_WIDTH, MAX_WIDTH));
    let mut table = empty_table(false);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header([LESSON, CLAIM, SEEN, VERDICT].map(|title| lang.of(title)));
    table.add_rows(lessons.iter().map(|tried| {
        [
            tried.id.to_owned(),
            match &tried.twin {
                Some(twin) => lang.words(&twin.what).to_owned(),
                None => lang.of(tried.claim).to_owned(),
            },
            lang.words(&tried.seen.words).to_owned(),
            format!("{} {}", tried.verdict().mark(), verdict_words(tried, lang)),
        ]
    }));
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table
}

/// The number of claims per verdict.
pub(super) fn summary(results: &CourseResults, lang: Lang) -> String {
    let [reproduced, not_reproduced, noise, unavailable] = results.counts();
    let all = results.lessons.len();
    let sign = colour_mark(if results.verdict().is_ok() { "✓" } else { "✗" });
    match lang {
        Lang::Zh => {
            format!(
                "{sign} {all} 条论断：{reproduced} 条已复现，{not_reproduced} 条未复现，{noise} 条误差范围内，{unavailable} 条未验证"
            )
        }
        Lang::En => format!(
            "{sign} {all} {}: {reproduced} reproduced, {not_reproduced} not reproduced, {noise} noise, {unavailable} unavailable",
            if all == 1 { "claim" } else { "claims" }
        ),
    }
}
