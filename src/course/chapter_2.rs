//! Chapter 2: locks in Redis, from SETNX to Redisson.

use super::{
    Chapter, Lesson, Run, Side,
    experiments::{Says, compared},
};
use crate::stock::Title;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "2",
    title: Title { zh: "基于 Redis 的分布式锁", en: "Distributed locks with Redis" },
    lessons: &[REDISSON_OR_BY_HAND],
};

const REDISSON_OR_BY_HAND: Lesson = Lesson {
    id: "2.10.1.rate",
    title: Title { zh: "Redisson 与手写的锁", en: "Redisson's lock and the one written by hand" },
    claim: Title {
        zh: "Redisson 的锁和手写的性能差不多",
        en: "Redisson's lock is about as fast as the one written by hand",
    },
    place: "000 §2.10.1",
    strategies: &["redis-lock", "redis-watchdog"],
    timing: true,
    run: Run::Experiment(|on| Box::pin(compared(on, Side::of("redis-lock"), Side::of("redis-watchdog"), Says::Alike))),
    ..Lesson::PLAIN
};
