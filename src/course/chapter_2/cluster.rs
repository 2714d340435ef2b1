//! §2.8 and §2.9: what a lock in one Redis does not survive, and the five nodes of Redlock.

use crate::bilingual::Bilingual;
use crate::course::{Lesson, Line, Run, replay::flaw_and_cure};

pub(super) const FAIL_OVER: Lesson = Lesson {
    id: "2.8",
    title: Bilingual {
        zh: "集群情况下锁失效",
        en: "In a cluster the lock fails",
    },
    claim: Bilingual {
        zh: "10010 在主库拿到锁，从库还没同步主库就挂了；从库升为主库，10086 又拿到了锁",
        en: "10010 has the lock on the main one, which fails before its replica has heard of it; the replica is promoted, and 10086 has the lock too",
    },
    place: "000 §2.8",
    strategies: &["redis-lock"],
    replay: Some("2.9"),
    run: Run::NotRun(Bilingual {
        zh: "和 2.9 是同一个实验",
        en: "the same experiment as 2.9",
    }),
    ..Lesson::PLAIN
};

pub(super) const REDLOCK: Lesson = Lesson {
    id: "2.9",
    title: Bilingual {
        zh: "红锁算法",
        en: "Redlock",
    },
    claim: Bilingual {
        zh: "主从切换时两个人都有锁；五个独立的节点、多数同意才算，就没有这个问题",
        en: "With a fail-over two have the lock; where most of five independent nodes must agree, one has it",
    },
    place: "000 §2.9",
    strategies: &["redis-lock", "redis-redlock"],
    replay: Some("2.9"),
    by_hand: &[
        // The lock is had, and the replica has not heard of it. Cut off for 4 s, it would be promoted so.
        Line::new(
            "replica=$(redis-cli {redis} info replication | grep -o 'port=[0-9]*' | cut -d= -f2); {fault} cut replica-redis; redis-cli {redis} set lock:by-hand 10010 ex 60 nx; redis-cli -p $replica exists lock:by-hand; {fault} mend replica-redis",
            "replica-redis is cut\nOK\n0\nreplica-redis is mended",
        ),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
        // Of five nodes one has lost the lock: the one alone is not most of them.
        Line::new(
            "curl -s '{8000}/check/lock/redis-redlock?hold_ms=8000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis-5} exists redLock", "1"),
        Line::at(2, "redis-cli {redis-3} del redLock", "1"),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/check/lock/redis-redlock?wait_ms=500'",
            "503",
        ),
        Line::at(
            2,
            "curl -s {8100}/check/lock/redis-redlock",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.9"))),
    ..Lesson::PLAIN
};

pub(super) const DEAD_NODES: Lesson = Lesson {
    id: "2.9.nodes",
    title: Bilingual {
        zh: "红锁死了几个节点",
        en: "How many nodes may be dead",
    },
    claim: Bilingual {
        zh: "五个节点死两个照样能加锁，死三个就不能",
        en: "With two of five nodes dead the lock is had, with three it is not",
    },
    place: "000 §2.9, 2.10.4",
    strategies: &["redis-redlock"],
    replay: Some("2.10.4"),
    by_hand: &[
        Line::new(
            "{fault} kill redis-5; {fault} kill redis-4",
            "redis-5 is killed\nredis-4 is killed",
        ),
        Line::new(
            "curl -s {8000}/check/lock/redis-redlock",
            "验库存并锁库存成功！",
        ),
        Line::new("{fault} kill redis-3", "redis-3 is killed"),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8000}/check/lock/redis-redlock?wait_ms=1000'",
            "503",
        ),
        Line::new(
            "{fault} start redis-3; {fault} start redis-4; {fault} start redis-5",
            "redis-3 runs again\nredis-4 runs again\nredis-5 runs again",
        ),
        Line::new(
            "for at in {8000} {8100} {8200}; do curl -s $at/check/lock/redis-redlock; done",
            "验库存并锁库存成功！验库存并锁库存成功！验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.10.4"))),
    ..Lesson::PLAIN
};
