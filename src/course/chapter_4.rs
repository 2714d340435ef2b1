//! Chapters 4 and 5: a row as a lock, and how the three families compare.

mod summary;
mod table;

use super::Chapter;
use crate::bilingual::Bilingual;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "4",
    title: Bilingual {
        zh: "基于 MySQL 的分布式锁",
        en: "Distributed locks with MySQL",
    },
    lessons: &[
        table::ROW,
        table::SLOW,
        table::SINGLE_POINT,
        table::DEAD_HOLDER,
        table::NOT_REENTRANT,
        table::BOUNDED,
        summary::SPEED,
        summary::RELIABILITY,
        summary::COMPLEXITY,
        summary::KINDS,
    ],
};
