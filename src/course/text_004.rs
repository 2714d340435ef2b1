//! Text 004: a lock in the code, as an object, and as a layer of a route.

use super::Chapter;
use crate::stock::Title;

pub(super) const CHAPTER: Chapter =
    Chapter { id: "004", title: Title { zh: "把锁做成注解", en: "A lock as an annotation" }, lessons: &[] };
