//! Text 004: a lock in the code, as an object, and as a layer of a route.

mod demos;

use super::Chapter;
use crate::bilingual::Bilingual;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "004",
    title: Bilingual {
        zh: "把锁做成注解",
        en: "A lock as an annotation",
    },
    lessons: &[
        demos::SAME_PROCESS,
        demos::REQUIREMENTS,
        demos::DEMO1,
        demos::DEMO2,
        demos::NOW,
        demos::THREAD_ID,
        demos::UUID,
        demos::FORCE,
        demos::DEMO3,
        demos::FACTORY,
        demos::DEMO4,
        demos::UNFAIR,
        demos::MAP,
    ],
};
