//! The text of a file that registers itself: one `.md` beside it, English first, then Chinese, with a line between.
//!
//! Each half has a title; where it breaks, in one line; the steps; what it survives; what breaks it; what to read next; and
//! paragraphs of its own. rustdoc shows the file as it is, the page and the generated documents show parts of it.

use oversell_lab::terminal::bilingual::{Bilingual, leak};
use serde::Serialize;
use utoipa::ToSchema;

/// How it is done, in both languages.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Text {
    pub zh: Opening,
    pub en: Opening,
}

/// How it is done, in one language; code stands between back-ticks.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Opening {
    #[serde(skip)]
    title: &'static str,
    #[serde(skip)]
    breaks_in_short: &'static str,
    /// One step after the other.
    pub steps: Vec<&'static str>,
    /// What it survives.
    pub survives: &'static str,
    /// What breaks it.
    pub breaks: &'static str,
}

/// How the paragraphs of a text begin in one language, by which they are found: title, breaks in short, survives, breaks, next.
type Labels = [&'static str; 5];

/// The labels of the English half.
const EN: Labels = ["# ", "Breaks: ", "**What it survives**: ", "**What breaks it**: ", "Next: "];
/// The labels of the Chinese half.
const ZH: Labels = ["# ", "失效：", "**能承受**：", "**何时失效**：", "下一篇："];

impl Text {
    /// Reads a file. Fails if a half lacks a part, if the halves differ in their number of paragraphs or steps or in their
    /// code, or if a Chinese part has no Chinese.
    pub(super) fn parse(file: &str) -> Result<Self, String> {
        let (en, zh) = file.split_once("\n---\n").ok_or("one language only")?;
        let same = |what, en, zh| match en == zh {
            true => Ok(()),
            false => Err(format!("{what}: {en:?} in English, {zh:?} in Chinese")),
        };
        let count = |half: &str| paragraphs(half).count().to_string();
        same("paragraphs", count(en), count(zh))?;
        same("code", sorted_quoted_code(en), sorted_quoted_code(zh))?;
        let (zh, en) = (Opening::parse(zh, ZH)?, Opening::parse(en, EN)?);
        let count = |half: &Opening| half.steps.len().to_string();
        same("steps", count(&en), count(&zh))?;
        let said = [zh.title, zh.breaks_in_short, zh.survives, zh.breaks];
        if let Some(other) = said.iter().find(|said| !said.chars().any(is_chinese)) {
            return Err(format!("not in Chinese: {other}"));
        }
        Ok(Self { zh, en })
    }

    /// The titles of both halves.
    pub(super) fn title(&self) -> Bilingual {
        Bilingual { zh: self.zh.title, en: self.en.title }
    }

    /// What breaks it, in one line.
    pub(super) fn breaks_in_short(&self) -> Bilingual {
        Bilingual { zh: self.zh.breaks_in_short, en: self.en.breaks_in_short }
    }
}

impl Opening {
    /// Reads one half; fails if a paragraph with one of the labels is missing, or the steps.
    fn parse(half: &str, labels: Labels) -> Result<Self, String> {
        let said = |label: &str| {
            let said = paragraphs(half).find_map(|text| text.strip_prefix(label));
            said.map(|said| leak(one_line(said))).ok_or_else(|| format!("nothing of {label:?}"))
        };
        let [title, breaks_in_short, survives, breaks, next] = labels;
        said(next)?;
        let steps = paragraphs(half).find(|text| text.starts_with("1. "));
        Ok(Self {
            title: said(title)?,
            breaks_in_short: said(breaks_in_short)?,
            steps: numbered_steps(steps.ok_or("no steps")?),
            survives: said(survives)?,
            breaks: said(breaks)?,
        })
    }
}

/// The paragraphs of a half, which empty lines separate.
fn paragraphs(half: &str) -> impl Iterator<Item = &str> {
    half.split("\n\n").map(str::trim)
}

/// The text on one line, with a space for each line end.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The steps of a numbered list, each on one line and without its number; the texts are leaked.
fn numbered_steps(list: &str) -> Vec<&'static str> {
    let mut steps: Vec<String> = Vec::new();
    for line in list.lines() {
        let number = format!("{}. ", steps.len() + 1);
        match (line.strip_prefix(&number), steps.last_mut()) {
            (None, Some(step)) => *step += &format!("\n{line}"),
            (step, _) => steps.push(step.unwrap_or(line).to_owned()),
        }
    }
    steps.iter().map(|step| leak(one_line(step))).collect()
}

/// All texts between back-ticks, sorted and joined: the languages may order them differently.
fn sorted_quoted_code(half: &str) -> String {
    let mut code: Vec<_> = half.split('`').skip(1).step_by(2).map(one_line).collect();
    code.sort_unstable();
    code.join(", ")
}

fn is_chinese(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

/// A whole text, for tests.
#[cfg(test)]
pub(super) const COMPLETE_TEXT: &str = "# A lock

Breaks: never

The idea.

1. `SET` the key,
   and wait.
2. Go on.

**What it survives**: all.

**What breaks it**: nothing
that is known.

Next: `other.rs`.

---

# 一把锁

失效：从不

想法。

1. `SET` 这个键，然后等。
2. 继续。

**能承受**：一切。

**何时失效**：没有。

下一篇：`other.rs`。
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_both_languages() {
        let text = Text::parse(COMPLETE_TEXT).expect("a whole text");
        assert_eq!(text.title().zh, "一把锁");
        assert_eq!(text.breaks_in_short().en, "never");
        assert_eq!(text.en.steps, ["`SET` the key, and wait.", "Go on."]);
        assert_eq!(text.zh.steps, ["`SET` 这个键，然后等。", "继续。"]);
        assert_eq!(text.en.survives, "all.");
        assert_eq!(text.en.breaks, "nothing that is known.");
    }

    #[test]
    fn a_text_that_is_not_whole_is_refused() {
        for (from, to, why) in [
            ("\n---\n", "\n", "one language only"),
            ("\n2. 继续。", "", "steps"),
            ("想法。\n\n", "", "paragraphs"),
            ("`SET` 这", "`GET` 这", "code"),
            ("：没有。", "：nothing.", "not in Chinese"),
            ("**What it survives**: ", "", "What it survives"),
            ("下一篇：", "下一页：", "下一篇"),
            ("# A lock", "A lock", "# "),
            ("失效：从不", "从不", "失效"),
        ] {
            let broken = COMPLETE_TEXT.replace(from, to);
            assert_ne!(broken, COMPLETE_TEXT, "{from}");
            let said = Text::parse(&broken).expect_err(why);
            assert!(said.contains(why), "{why}: {said}");
        }
    }
}
