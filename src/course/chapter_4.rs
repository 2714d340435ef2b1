//! Chapters 4 and 5: a row as a lock, and how the three families compare.

use super::Chapter;
use crate::stock::Title;

pub(super) const CHAPTER: Chapter =
    Chapter {
        id: "4", title: Title { zh: "基于 MySQL 的分布式锁", en: "Distributed locks with MySQL" }, lessons: &[]
    };
