//! What a lesson is: a claim of the documents, where it stands, and the experiment that tries it. Lessons are data: one file per
//! chapter in `lessons/`, read once.

use super::{
    Rates, Run, Script, Twin, TypedLine,
    toml::{refuse_computed_field, text, texts},
};
use crate::{
    registry::{Rank, RegistryEntry, Spec},
    seckill, stock,
    terminal::bilingual::Bilingual,
};
use serde::{Deserialize, Serialize, Serializer};
use std::sync::LazyLock;
use utoipa::ToSchema;

/// In the documents' order, then the claims beyond them.
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

/// Every chapter, in the documents' order. A strategy or step that no lesson names is added to a lesson.
///
/// # Panics
///
/// If a file is malformed; a unit test reads all of them.
pub static ALL: LazyLock<Vec<Chapter>> = LazyLock::new(|| {
    let mut chapters: Vec<Chapter> = FILES
        .iter()
        .map(|(file, text)| ::toml::from_str(text).unwrap_or_else(|e| panic!("{file}: {e}")))
        .collect();
    for lesson in chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons) {
        lesson.loads = lesson.run.parts().iter().any(Run::loads);
    }
    for entry in stock::ALL.iter() {
        join(&mut chapters, entry, |lesson| &mut lesson.strategies);
    }
    for entry in seckill::ALL.iter() {
        join(&mut chapters, entry, |lesson| &mut lesson.steps);
    }
    chapters
});

/// Adds an entry that no lesson names to the first lesson of its predecessor, or to the lesson of its chapter.
fn join<F: Spec>(
    chapters: &mut [Chapter],
    entry: &RegistryEntry<F>,
    list: impl Fn(&mut Lesson) -> &mut Vec<&'static str>,
) {
    let lessons = chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons);
    let mut lists: Vec<_> = lessons.map(|lesson| (lesson.id, list(lesson))).collect();
    if lists.iter().any(|(_, named)| named.contains(&entry.slug)) {
        return;
    }
    let home = lists
        .iter_mut()
        .find(|(id, named)| match entry.spec.rank() {
            Rank::Course => *id == entry.spec.chapter(),
            Rank::After(before) | Rank::AsPrinted(before) | Rank::Beyond(before) => {
                named.contains(&before)
            }
        });
    if let Some((_, named)) = home {
        named.push(entry.slug);
    }
}

/// A chapter of the main text, or a companion text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CourseChapter)]
pub struct Chapter {
    /// `2` of the main text, `003` of a companion text.
    #[serde(deserialize_with = "text")]
    #[schema(example = "2")]
    pub id: &'static str,
    /// What it is about.
    pub title: Bilingual,
    /// In the order of the text.
    pub lessons: Vec<Lesson>,
}

/// One claim, and what is done to try it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CourseLesson)]
pub struct Lesson {
    /// The section.
    #[serde(deserialize_with = "text")]
    #[schema(example = "2.3")]
    pub id: &'static str,
    /// What it is about, in a few words.
    #[schema(inline)]
    pub title: Bilingual,
    /// What is claimed, in our own words.
    #[schema(inline)]
    pub claim: Bilingual,
    /// The document and its heading, word for word; where there are several, `; ` stands between them. Of a claim that goes beyond
    /// the documents, what it goes on from.
    #[serde(rename = "place", deserialize_with = "text")]
    #[schema(example = "000 2.3. 防误删")]
    pub heading: &'static str,
    /// Of `GET /strategies`.
    #[serde(default, deserialize_with = "texts")]
    pub strategies: Vec<&'static str>,
    /// Of `GET /voucher-order/strategies`.
    #[serde(default, deserialize_with = "texts")]
    pub steps: Vec<&'static str>,
    /// Of `GET /test/deadlock`.
    #[serde(default, deserialize_with = "texts")]
    pub deadlocks: Vec<&'static str>,
    /// Paths for a browser; `{who}` is a person's name.
    #[serde(default, deserialize_with = "texts")]
    pub r#try: Vec<&'static str>,
    /// Whether the verdict rests on timing, so that two runs may differ in it.
    #[serde(default)]
    pub timing: bool,
    /// Whether the quick form of `oversell course` has it.
    #[serde(default)]
    pub quick: bool,
    /// Whether many requests at once show what it claims, of its first strategy or of several beside each other.
    #[serde(default, deserialize_with = "refuse_computed_field")]
    pub loads: bool,
    /// The experiment; a client is told why it is not run, where it is not.
    #[serde(rename(serialize = "why_not"), serialize_with = "why_not")]
    #[schema(rename = "why_not", inline, value_type = Option<Bilingual>)]
    pub run: Run,
    /// What stands in its place in a system in which the claim is false, where the kind of the experiment does not say.
    #[serde(default, skip_serializing)]
    pub twin: Option<Twin>,
    /// What a student types, in this order.
    #[serde(default)]
    pub by_hand: Vec<TypedLine>,
    /// How it is tried on the library that the text speaks of.
    #[serde(default, skip_serializing)]
    pub theirs: Option<Script>,
}

fn why_not<S: Serializer>(run: &Run, to: S) -> Result<S::Ok, S::Error> {
    run.why_not().serialize(to)
}

impl Lesson {
    /// Why it is not run on our service; `None` if it is.
    pub const fn why_not(&self) -> Option<Bilingual> {
        self.run.why_not()
    }

    /// Whether rates are compared.
    pub fn compares_rates(&self) -> bool {
        self.run.parts().iter().any(Run::compares_rates)
    }

    /// The rates that its claim compares.
    pub fn rates(&self) -> Vec<Rates> {
        let compared = self.run.parts().iter().filter_map(|run| match run {
            Run::Compared {
                first,
                second,
                says,
                ..
            } => Some(Rates::of(*first, *second, *says)),
            _ => None,
        });
        compared.collect()
    }

    /// Whether it is tried at all, on our service or on the reference implementation.
    pub const fn is_tried(&self) -> bool {
        self.why_not().is_none() || self.theirs.is_some()
    }
}
