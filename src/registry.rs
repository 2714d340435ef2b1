//! Files that register themselves with a text: the strategies of the stock, and the steps of the seckill.
//!
//! `build.rs` finds the files, `NAME.rs` with `NAME.md` beside it; here they become a list in the course's order.
//!
//! Next: `registry/text.rs`, what an `.md` says.

mod text;

pub use text::{Opening, Text};

use oversell_lab::terminal::bilingual::Bilingual;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// The specification in a file that registers itself, of a strategy or of a seckill step: what gives it its place in the list.
pub trait Spec: Copy {
    fn rank(&self) -> Rank;
    /// The section of the course that it is from, as in `2.3`; the last one counts for its place, as in `2.9, 2.10.4`.
    fn chapter(&self) -> &'static str;
}

/// Where an entry stands in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// In the course, at the place of its chapter.
    Course,
    /// In the course or a companion text, behind this entry.
    After(&'static str),
    /// The code of this entry's section as it is printed, with a flaw that the text does not know. Its text says where it differs.
    AsPrinted(&'static str),
    /// Beyond the course, behind this entry.
    Beyond(&'static str),
}

/// A file as `build.rs` has found it: its name, its specification, its `.md` and its Rust text.
pub(crate) struct File<S> {
    pub(crate) slug: &'static str,
    pub(crate) spec: S,
    pub(crate) text: &'static str,
    pub(crate) source: &'static str,
}

/// An entry: the specification of its file, with its name and text.
#[derive(Clone, Serialize, ToSchema)]
pub struct RegistryEntry<S> {
    /// Its name in routes, commands and figures.
    pub slug: &'static str,
    /// A title in one line.
    pub title: Bilingual,
    /// Where it breaks, in one line.
    pub breaks: Bilingual,
    /// The specification in its file.
    #[serde(flatten)]
    pub spec: S,
    #[serde(skip)]
    pub text: Text,
    /// Its Rust file, for the page to show.
    #[serde(skip)]
    pub source: &'static str,
}

impl Rank {
    /// Whether it is printed code with a flaw that the text does not know.
    pub const fn is_as_printed(self) -> bool {
        matches!(self, Self::AsPrinted(_))
    }

    /// Whether it is a better way than the course's.
    pub const fn is_beyond(self) -> bool {
        matches!(self, Self::Beyond(_))
    }
}

/// A bool in JSON: whether it is beyond the course.
impl Serialize for Rank {
    fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        to.serialize_bool(self.is_beyond())
    }
}

impl<S> std::fmt::Debug for RegistryEntry<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.slug)
    }
}

/// The entries of these files in the course's order: by chapter, and what stands behind another directly behind it.
/// Panics: if a text is incomplete, or a file stands behind a missing one: each test of the list sees it.
pub(crate) fn in_order<S: Spec>(files: &[File<S>]) -> Vec<RegistryEntry<S>> {
    let mut files: Vec<_> = files.iter().collect();
    let all = files.clone();
    files.sort_by_cached_key(|file| (sort_key(&all, file), file.slug));
    files.into_iter().map(read_entry).collect()
}

/// The sort key: the numbers of its chapter (the last one of `2.9, 2.10.4`), with a 1 appended behind another entry.
fn sort_key<S: Spec>(files: &[&File<S>], file: &File<S>) -> Vec<u32> {
    match file.spec.rank() {
        Rank::Course => {
            let chapter = file.spec.chapter().rsplit(' ').next().unwrap_or_default();
            chapter.split('.').flat_map(str::parse).collect()
        }
        Rank::After(slug) | Rank::AsPrinted(slug) | Rank::Beyond(slug) => {
            let before = files.iter().find(|file| file.slug == slug);
            let before = before.unwrap_or_else(|| panic!("{}: no {slug}", file.slug));
            let mut key = sort_key(files, before);
            key.push(1);
            key
        }
    }
}

/// The entry of a file. Panics if its text is incomplete.
fn read_entry<S: Spec>(file: &File<S>) -> RegistryEntry<S> {
    let text = Text::parse(file.text).unwrap_or_else(|why| panic!("{}.md: {why}", file.slug));
    RegistryEntry {
        slug: file.slug,
        title: text.title(),
        breaks: text.breaks_in_short(),
        spec: file.spec,
        text,
        source: file.source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chapter, rank.
    #[derive(Clone, Copy)]
    struct TestSpec(&'static str, Rank);

    impl Spec for TestSpec {
        fn rank(&self) -> Rank {
            self.1
        }

        fn chapter(&self) -> &'static str {
            self.0
        }
    }

    fn file(slug: &'static str, chapter: &'static str, rank: Rank) -> File<TestSpec> {
        File { slug, spec: TestSpec(chapter, rank), text: text::COMPLETE_TEXT, source: "" }
    }

    #[test]
    fn entries_are_sorted_by_chapter_and_rank() {
        let listed = in_order(&[
            file("ten", "2.9, 2.10", Rank::Course),
            file("two", "2.2", Rank::Course),
            file("better-still", "2.2", Rank::Beyond("better")),
            file("better", "2.2", Rank::Beyond("two")),
            file("text", "[002]", Rank::After("ten")),
            file("three", "2.3", Rank::Course),
        ]);
        let slugs: Vec<_> = listed.iter().map(|entry| entry.slug).collect();
        assert_eq!(slugs, ["two", "better", "better-still", "three", "ten", "text"]);
    }

    #[test]
    #[should_panic(expected = "better: no gone")]
    fn an_entry_behind_one_that_is_not_there_is_refused() {
        in_order(&[file("two", "2.2", Rank::Course), file("better", "2.2", Rank::Beyond("gone"))]);
    }

    #[test]
    #[should_panic(expected = "two.md: one language only")]
    fn a_file_whose_text_is_not_whole_is_refused() {
        in_order(&[File { text: "# Only a title", ..file("two", "2.2", Rank::Course) }]);
    }
}
