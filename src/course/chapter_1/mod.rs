//! Chapter 1: a stock that oversells, and the locks of one process, of MySQL and of Redis' transactions.

mod mysql;
mod oversold;
mod watch;

use super::Chapter;
use crate::bilingual::Bilingual;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "1",
    title: Bilingual {
        zh: "传统锁回顾",
        en: "Locks without distribution",
    },
    lessons: &[
        oversold::TWO_AT_ONCE,
        oversold::ONE_BY_ONE,
        oversold::UNDER_LOAD,
        oversold::MUTEX,
        oversold::THREE_INSTANCES,
        oversold::LITTLE_FASTER,
        mysql::ONE_STATEMENT,
        mysql::LAST_PIECE,
        mysql::FOR_UPDATE,
        mysql::SHARED,
        mysql::FASTER_THAN_MUTEX,
        mysql::HALF_OF_NONE,
        mysql::VERSION,
        mysql::MORE_IS_SLOWER,
        mysql::RANKING,
        mysql::CHOICE,
        watch::WATCH,
        watch::RETRIES,
    ],
};
