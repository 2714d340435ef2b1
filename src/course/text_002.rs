//! Text 002: a seckill of vouchers, from the first oversell to the stream.

mod ids;
mod locks;
mod orders;

use super::Chapter;
use crate::bilingual::Bilingual;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "002",
    title: Bilingual {
        zh: "优惠券秒杀",
        en: "A seckill of vouchers",
    },
    lessons: &[
        ids::UNIQUE,
        ids::LATCH,
        orders::ON_SALE,
        orders::OVERSOLD,
        orders::CONDITIONAL,
        orders::TWICE,
        orders::GLOBAL_MUTEX,
        orders::NEW_MUTEX,
        orders::USER_MUTEX,
        orders::UNLOCK_BEFORE_COMMIT,
        orders::PROXY,
        orders::CLUSTER,
        locks::COMPARED,
        locks::FIRST,
        locks::LATE_UNLOCK,
        locks::OWNER,
        locks::NOT_ATOMIC,
        locks::REDISSON,
        locks::RE_ENTRY,
        locks::WATCHDOG,
        locks::BEYOND,
    ],
};
