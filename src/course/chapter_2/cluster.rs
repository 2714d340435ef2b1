//! §2.8 and §2.9: what a lock in one Redis does not survive, and the five nodes of Redlock.

use crate::{
    course::{Lesson, Run, replay::flaw_and_cure},
    stock::Title,
};

pub(super) const FAIL_OVER: Lesson = Lesson {
    id: "2.8",
    title: Title { zh: "集群情况下锁失效", en: "In a cluster the lock fails" },
    claim: Title {
        zh: "10010 在主库拿到锁，从库还没同步主库就挂了；从库升为主库，10086 又拿到了锁",
        en: "10010 has the lock on the main one, which fails before its replica has heard of it; the replica is promoted, and 10086 has the lock too",
    },
    place: "000 §2.8",
    strategies: &["redis-lock"],
    replay: Some("2.9"),
    run: Run::NotRun(Title { zh: "和 2.9 是同一个实验", en: "the same experiment as 2.9" }),
    ..Lesson::PLAIN
};

pub(super) const REDLOCK: Lesson = Lesson {
    id: "2.9",
    title: Title { zh: "红锁算法", en: "Redlock" },
    claim: Title {
        zh: "主从切换时两个人都有锁；五个独立的节点、多数同意才算，就没有这个问题",
        en: "With a fail-over two have the lock; where most of five independent nodes must agree, one has it",
    },
    place: "000 §2.9",
    strategies: &["redis-lock", "redis-redlock"],
    replay: Some("2.9"),
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.9"))),
    ..Lesson::PLAIN
};

pub(super) const DEAD_NODES: Lesson = Lesson {
    id: "2.9.nodes",
    title: Title { zh: "红锁死了几个节点", en: "How many nodes may be dead" },
    claim: Title {
        zh: "五个节点死两个照样能加锁，死三个就不能",
        en: "With two of five nodes dead the lock is had, with three it is not",
    },
    place: "000 §2.9, 2.10.4",
    strategies: &["redis-redlock"],
    replay: Some("2.10.4"),
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.10.4"))),
    ..Lesson::PLAIN
};
