//! The verdicts as a table for the terminal: a row for each claim.

use super::results::{CourseResults, TrialResult};
use crate::{
    claims::{ClaimVerdict, Words},
    terminal::{
        bilingual::Bilingual,
        stdout::{columns, has_colours, mark},
        wrap::wrapped,
    },
};
use comfy_table::{ContentArrangement, LineStyle, Table, presets::NOTHING};

/// The greatest width, and the width without a terminal.
const WIDTH: u16 = 100;
/// A narrower terminal breaks its lines.
const MIN_WIDTH: u16 = 60;

const LESSON: Bilingual = Bilingual::of("课", "lesson");
const CLAIM: Bilingual = Bilingual::of("原文说", "claim");
const SEEN: Bilingual = Bilingual::of("看到", "seen");
const VERDICT: Bilingual = Bilingual::of("结论", "verdict");
const TIMING: Bilingual = Bilingual::of("（结果取决于计时）", " (timing)");
const CHANGED: Bilingual = Bilingual::of(
    "，与上次完整运行不同",
    ", otherwise than in the last full run",
);

/// A language of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Lang {
    /// Chinese
    Zh,
    /// English
    En,
}

impl Lang {
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

/// ClaimVerdict and claim, cut to one line of the terminal.
pub(super) fn verdict_line(tried: &TrialResult, lang: Lang) -> String {
    let verdict = verdict(tried, lang);
    let line = format!("{}  {verdict}: {}", tried.id, lang.of(tried.claim));
    // The mark and a space come before it.
    let width = columns().map(|width| width.saturating_sub(2));
    let line = width.map_or_else(|| line.clone(), |width| shortened(&line, width));
    format!("{} {line}", mark(tried.verdict().mark()))
}

/// The first line of the words, and `…` if there are more.
fn shortened(line: &str, width: usize) -> String {
    if textwrap::core::display_width(line) <= width {
        return line.to_owned();
    }
    let lines = wrapped(line, width.saturating_sub(2));
    format!("{} …", lines.lines().next().unwrap_or_default())
}

/// The verdict in words, and whether it rests on timing or has changed.
fn verdict(tried: &TrialResult, lang: Lang) -> String {
    let mut verdict = lang.of(tried.verdict().words()).to_owned();
    if tried.timing {
        verdict += lang.of(TIMING);
    }
    if tried.is_otherwise() {
        verdict += lang.of(CHANGED);
    }
    verdict
}

pub(super) fn of(lessons: &[&TrialResult], lang: Lang) -> Table {
    let width = columns().and_then(|columns| u16::try_from(columns).ok());
    let width = width.map_or(WIDTH, |width| width.clamp(MIN_WIDTH, WIDTH));
    let mut table = Table::new();
    if !has_colours() {
        table.force_no_tty();
    }
    table.load_style(NOTHING.header_separator(LineStyle::none().fill('─').junction('─')));
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table.set_header([LESSON, CLAIM, SEEN, VERDICT].map(|title| lang.of(title)));
    table.add_rows(lessons.iter().map(|tried| {
        [
            tried.id.to_owned(),
            match &tried.twin {
                Some(twin) => lang.words(&twin.what).to_owned(),
                None => lang.of(tried.claim).to_owned(),
            },
            lang.words(&tried.seen.words).to_owned(),
            format!("{} {}", tried.verdict().mark(), verdict(tried, lang)),
        ]
    }));
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table
}

/// The number of claims per verdict.
pub(super) fn summary(found: &CourseResults, lang: Lang) -> String {
    let (so, otherwise, noise, unavailable) = (
        found.count(ClaimVerdict::Reproduced),
        found.count(ClaimVerdict::NotReproduced),
        found.count(ClaimVerdict::Noise),
        found.count(ClaimVerdict::Unavailable),
    );
    let all = found.lessons.len();
    let sign = mark(if found.verdict().is_ok() {
        "✓"
    } else {
        "✗"
    });
    match lang {
        Lang::Zh => {
            format!(
                "{sign} {all} 条论断：{so} 条已复现，{otherwise} 条未复现，{noise} 条误差范围内，{unavailable} 条未验证"
            )
        }
        Lang::En => format!(
            "{sign} {all} claims: {so} reproduced, {otherwise} not reproduced, {noise} noise, {unavailable} unavailable"
        ),
    }
}
