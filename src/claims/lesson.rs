//! A lesson: a claim of the documents, its place in them, and the experiment that tries it. Lessons are data: one file per chapter in
//! `lessons/`, which is read once.

use super::{
    Rates, Run, Script, Twin, TypedLine,
    toml::{leaked_text, leaked_texts, refuse_computed_field},
};
use crate::{
    registry::{Rank, RegistryEntry, Spec},
    seckill, stock,
};
use oversell_lab::terminal::bilingual::Bilingual;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::LazyLock;
use utoipa::ToSchema;

/// The chapters' files in the order of the documents, then the claims beyond them: name and TOML text of each.
const FILES: [(&str, &str); 9] = [
    ("chapter_1.toml", include_str!("lessons/chapter_1.toml")),
    ("chapter_2.toml", include_str!("lessons/chapter_2.toml")),
    ("chapter_3.toml", include_str!("lessons/chapter_3.toml")),
    ("chapter_4.toml", include_str!("lessons/chapter_4.toml")),
    ("text_002.toml", include_str!("lessons/text_002.toml")),
    ("text_003.toml", include_str!("lessons/text_003.toml")),
    ("text_004.toml", include_str!("lessons/text_004.toml")),
    ("errata.toml", include_str!("lessons/errata.toml")),
    ("beyond.toml", include_str!("lessons/beyond.toml")),
];

/// Every chapter, in the order of the documents. A strategy or step that no lesson names is added to a lesson.
///
/// # Panics
///
/// If a file is malformed; a unit test reads all of them.
pub static ALL: LazyLock<Vec<Chapter>> = LazyLock::new(|| {
    let mut chapters: Vec<Chapter> =
        FILES.iter().map(|(file, text)| ::toml::from_str(text).unwrap_or_else(|e| panic!("{file}: {e}"))).collect();
    for lesson in chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons) {
        lesson.loads = lesson.run.parts().iter().any(Run::loads);
        lesson.starts_lab = lesson.by_hand.iter().any(TypedLine::starts_lab);
    }
    for entry in stock::ALL.iter() {
        add_to_a_lesson(&mut chapters, entry, |lesson| &mut lesson.strategies);
    }
    for entry in seckill::ALL.iter() {
        add_to_a_lesson(&mut chapters, entry, |lesson| &mut lesson.steps);
    }
    chapters
});

/// Adds a strategy or step that no lesson names to the first lesson of its predecessor, or to the lesson of its chapter;
/// without such a lesson, to none.
fn add_to_a_lesson<F: Spec>(
    chapters: &mut [Chapter],
    entry: &RegistryEntry<F>,
    list: impl Fn(&mut Lesson) -> &mut Vec<&'static str>,
) {
    let lessons = chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons);
    let mut lists: Vec<_> = lessons.map(|lesson| (lesson.id, list(lesson))).collect();
    if lists.iter().any(|(_, named)| named.contains(&entry.slug)) {
        return;
    }
    let home = lists.iter_mut().find(|(id, named)| match entry.spec.rank() {
        Rank::Course => *id == entry.spec.chapter(),
        Rank::After(before) | Rank::AsPrinted(before) | Rank::Beyond(before) => named.contains(&before),
    });
    if let Some((_, named)) = home {
        named.push(entry.slug);
    }
}

/// A chapter of the main text, or a companion text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Chapter {
    /// `2` of the main text, `003` of a companion text.
    #[serde(deserialize_with = "leaked_text")]
    #[schema(example = "2")]
    pub id: &'static str,
    /// What it is about.
    pub title: Bilingual,
    /// In the order of the text.
    pub lessons: Vec<Lesson>,
}

/// One claim, and the experiment that tries it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// The section.
    #[serde(deserialize_with = "leaked_text")]
    #[schema(example = "2.3")]
    pub id: &'static str,
    /// The subject, in a few words.
    #[schema(inline)]
    pub title: Bilingual,
    /// The claim, in our own words.
    #[schema(inline)]
    pub claim: Bilingual,
    /// The document and its heading, word for word; where there are several, `; ` stands between them. Of a claim that goes beyond
    /// the documents, what it goes on from.
    #[serde(deserialize_with = "leaked_text")]
    #[schema(example = "000 2.3. 防误删")]
    pub place: &'static str,
    /// The strategies that the lesson is about, by their names in `GET /strategies`.
    #[serde(default, deserialize_with = "leaked_texts")]
    pub strategies: Vec<&'static str>,
    /// The steps of the seckill that the lesson is about, by their names in `GET /voucher-order/strategies`.
    #[serde(default, deserialize_with = "leaked_texts")]
    pub steps: Vec<&'static str>,
    /// The deadlocks that the lesson is about, by their names in `GET /test/deadlock`.
    #[serde(default, deserialize_with = "leaked_texts")]
    pub deadlocks: Vec<&'static str>,
    /// Paths for a browser; `{who}` is a person's name.
    #[serde(default, deserialize_with = "leaked_texts")]
    pub r#try: Vec<&'static str>,
    /// Whether the verdict rests on timing, so that two runs may differ in it.
    #[serde(default)]
    pub timing: bool,
    /// Whether the quick form of `oversell course` tries the lesson.
    #[serde(default)]
    pub quick: bool,
    /// Whether a load shows the claim, of the first strategy or of several in comparison.
    #[serde(default, deserialize_with = "refuse_computed_field")]
    pub loads: bool,
    /// Whether a line that a student types starts a lab of its own: then all its lines are typed in a terminal.
    #[serde(default, deserialize_with = "refuse_computed_field")]
    pub starts_lab: bool,
    /// The experiment; a client is told why it is not run, where it is not.
    #[serde(rename(serialize = "why_not"), serialize_with = "serialize_why_not_run")]
    #[schema(rename = "why_not", inline, value_type = Option<Bilingual>)]
    pub run: Run,
    /// The change that makes the claim false, where the kind of the experiment implies none or another is wanted.
    #[serde(default, skip_serializing)]
    pub twin: Option<Twin>,
    /// The lines that a student types, in this order.
    #[serde(default)]
    pub by_hand: Vec<TypedLine>,
    /// The lines that try the claim on the library that the text names.
    #[serde(default, skip_serializing)]
    pub theirs: Option<Script>,
}

/// Serializes the reason why a lesson is not run.
fn serialize_why_not_run<S: Serializer>(run: &Run, to: S) -> Result<S::Ok, S::Error> {
    run.why_not().serialize(to)
}

impl Lesson {
    /// Why the lesson is not run on our service; `None` if it is run.
    pub const fn why_not(&self) -> Option<Bilingual> {
        self.run.why_not()
    }

    /// Returns whether the experiment, or a part of it, compares rates or retries.
    pub fn compares_rates(&self) -> bool {
        self.run.parts().iter().any(Run::compares_rates)
    }

    /// The rates that the claim compares, one entry for each comparison; empty if there is none.
    pub fn rates(&self) -> Vec<Rates> {
        let compared = self.run.parts().iter().filter_map(|run| match run {
            Run::Compared { first, second, says, .. } => Some(Rates::of(*first, *second, *says)),
            _ => None,
        });
        compared.collect()
    }

    /// Whether the lesson is tried, on our service or on the library that the text names.
    pub const fn is_tried(&self) -> bool {
        self.why_not().is_none() || self.theirs.is_some()
    }
}
