//! What registers itself by its file: the strategies of the stock, and the steps of the seckill.
//!
//! `build.rs` finds the files; here is how their lists come into the course's order.

use serde::{Serialize, Serializer};

/// Where an entry stands in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// In the course, at the place of its chapter.
    Course,
    /// In the course or a companion text, behind this entry.
    After(&'static str),
    /// Beyond the course, behind this entry.
    Beyond(&'static str),
}

impl Rank {
    /// Whether it is a better way than the course's.
    #[must_use]
    pub const fn is_beyond(self) -> bool {
        matches!(self, Self::Beyond(_))
    }
}

/// As answers say it: whether it is beyond the course.
impl Serialize for Rank {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(self.is_beyond())
    }
}

/// An entry of a list.
pub(crate) trait Entry: Copy {
    /// Its name.
    fn slug(&self) -> &'static str;
    /// Where it stands.
    fn rank(&self) -> Rank;
    /// The section of the course that it is from.
    fn chapter(&self) -> &'static str;
}

/// The entries of these files in the course's order: by chapter, and what stands behind another directly behind it.
///
/// # Panics
///
/// Where one stands behind an entry that is not there, which each test of the list sees.
pub(crate) fn in_order<E: Entry>(files: &[&E]) -> Vec<E> {
    let mut all: Vec<_> = files.iter().map(|file| **file).collect();
    all.sort_by_cached_key(|entry| (place(files, entry), entry.slug()));
    all
}

/// The numbers of its chapter: of `2.9, 2.10.4` the last ones; a 1 more than the entry that it stands behind.
fn place<E: Entry>(files: &[&E], entry: &E) -> Vec<u32> {
    match entry.rank() {
        Rank::Course => {
            let chapter = entry.chapter().rsplit(' ').next().unwrap_or_default();
            chapter.split('.').flat_map(str::parse).collect()
        }
        Rank::After(slug) | Rank::Beyond(slug) => {
            let before = files.iter().find(|file| file.slug() == slug);
            let before = before.unwrap_or_else(|| panic!("{}: no {slug}", entry.slug()));
            let mut place = place(files, *before);
            place.push(1);
            place
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, chapter, rank.
    #[derive(Clone, Copy)]
    struct Named(&'static str, &'static str, Rank);

    impl Entry for Named {
        fn slug(&self) -> &'static str {
            self.0
        }

        fn rank(&self) -> Rank {
            self.2
        }

        fn chapter(&self) -> &'static str {
            self.1
        }
    }

    fn order(files: &[Named]) -> Vec<&'static str> {
        let files: Vec<_> = files.iter().collect();
        in_order(&files).iter().map(Named::slug).collect()
    }

    #[test]
    fn entries_stand_in_the_order_of_their_chapters_and_one_behind_another_follows_it() {
        let files = [
            Named("ten", "2.9, 2.10", Rank::Course),
            Named("two", "2.2", Rank::Course),
            Named("better-still", "2.2", Rank::Beyond("better")),
            Named("better", "2.2", Rank::Beyond("two")),
            Named("text", "[002]", Rank::After("ten")),
            Named("three", "2.3", Rank::Course),
        ];
        let wanted = ["two", "better", "better-still", "three", "ten", "text"];
        assert_eq!(order(&files), wanted);
    }

    #[test]
    #[should_panic(expected = "better: no gone")]
    fn an_entry_behind_one_that_is_not_there_is_refused() {
        order(&[
            Named("two", "2.2", Rank::Course),
            Named("better", "2.2", Rank::Beyond("gone")),
        ]);
    }
}
