//! Text 003 on locks: the pause beyond the lease, fencing tokens, what Redlock stands on, and ZooKeeper's sessions.

use crate::bilingual::Bilingual;
use crate::course::{Lesson, Line, Run, replay::flaw_and_cure};

const PAUSED: Line = Line::at(2, "{fault} pause {name-8100}", "{name-8100} is paused");
const RESUMED: Line = Line::at(2, "{fault} resume {name-8100}", "{name-8100} goes on");
const LEFT: Line = Line::at(
    2,
    "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
    "4999",
);

pub(super) const PAUSE: Lesson = Lesson {
    id: "003.pause",
    title: Bilingual {
        zh: "停顿超过租约，和栅栏令牌",
        en: "A pause beyond the lease, and the fencing token",
    },
    claim: Bilingual {
        zh: "客户端 1 停顿超过租约，客户端 2 拿到锁；1 醒来照样写，冲突。带上单调递增的令牌，资源拒绝旧的，就不会冲突",
        en: "Client 1 is paused beyond its lease and client 2 has the lock; 1 wakes and writes all the same. With tokens that only grow the resource refuses the older one",
    },
    place: "003",
    strategies: &["redis-lock", "redis-fenced"],
    replay: Some("003.pause"),
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -s '{8100}/check/lock/redis-lock?hold_ms=8000&lease_ms=3000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock", "1"),
        PAUSED,
        Line::at(
            2,
            "curl -s '{8000}/check/lock/redis-lock'",
            "验库存并锁库存成功！",
        ),
        RESUMED,
        Line::new("wait", ""),
        LEFT,
        Line::RESTOCK,
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/check/lock/redis-fenced?hold_ms=8000&lease_ms=3000' &",
            "409",
        ),
        Line::until(2, "redis-cli {redis} exists fencedLock", "1"),
        PAUSED,
        Line::at(
            2,
            "curl -s '{8000}/check/lock/redis-fenced'",
            "验库存并锁库存成功！",
        ),
        RESUMED,
        Line::new("wait", ""),
        LEFT,
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "003.pause"))),
    ..Lesson::PLAIN
};

const EXPIRED: Line = Line::at(
    2,
    "{fault} expire {name-8100}",
    "{name-8100} has lost its session",
);

pub(super) const SESSION: Lesson = Lesson {
    id: "003.pause.zk",
    title: Bilingual {
        zh: "停顿超过会话",
        en: "A pause beyond the session",
    },
    claim: Bilingual {
        zh: "ZooKeeper 的锁也一样：停顿超过会话，临时节点被删，客户端 2 拿到锁，两个都以为锁是自己的",
        en: "ZooKeeper's lock is no better: paused beyond its session its node is deleted, client 2 has the lock, and both believe that it is theirs",
    },
    place: "003",
    strategies: &["zk-lock", "zk-fenced"],
    replay: Some("003.pause.zk"),
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -s '{8100}/check/lock/zk-lock?hold_ms=8000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            2,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-lock/",
            "1",
        ),
        PAUSED,
        EXPIRED,
        Line::at(
            2,
            "curl -s {8000}/check/lock/zk-lock",
            "验库存并锁库存成功！",
        ),
        RESUMED,
        Line::new("wait", ""),
        LEFT,
        Line::RESTOCK,
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/check/lock/zk-fenced?hold_ms=8000' &",
            "409",
        ),
        Line::until(
            2,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-fenced/",
            "1",
        ),
        PAUSED,
        EXPIRED,
        Line::at(
            2,
            "curl -s {8000}/check/lock/zk-fenced",
            "验库存并锁库存成功！",
        ),
        RESUMED,
        Line::new("wait", ""),
        LEFT,
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "003.pause.zk"))),
    ..Lesson::PLAIN
};

/// Somebody else has the lock on two of the five nodes: the next one gets it on the other three.
const TWO_TAKEN: Line = Line::new(
    "redis-cli {redis-4} hset redLock other 1; redis-cli {redis-5} hset redLock other 1",
    "1\n1",
);
/// Now the first client has these three.
const THREE_TAKEN: Line = Line::until(
    2,
    "redis-cli {redis} exists redLock; redis-cli {redis-2} exists redLock; redis-cli {redis-3} exists redLock",
    "1\n1\n1",
);
const TWO_FREE: Line = Line::at(
    2,
    "redis-cli {redis-4} del redLock; redis-cli {redis-5} del redLock",
    "1\n1",
);

pub(super) const RESTART: Lesson = Lesson {
    id: "003.redlock.restart",
    title: Bilingual {
        zh: "红锁：节点丢了数据重启",
        en: "Redlock: a node that comes back without its data",
    },
    claim: Bilingual {
        zh: "五个节点，客户端 1 锁住 A、B、C；C 丢了数据重启，客户端 2 锁住 C、D、E：两个都有锁。等旧锁都过期再重启就没事",
        en: "Of five nodes client 1 has A, B and C; C comes back without its data, and client 2 has C, D and E: both have the lock. A restart that is delayed beyond the lease does no harm",
    },
    place: "003",
    strategies: &["redis-redlock"],
    replay: Some("003.redlock.restart"),
    by_hand: &[
        Line::RESTOCK,
        TWO_TAKEN,
        Line::new(
            "curl -s '{8000}/check/lock/redis-redlock?hold_ms=12000' &",
            "验库存并锁库存成功！",
        ),
        THREE_TAKEN,
        Line::at(
            2,
            "{fault} kill redis-3; {fault} start redis-3",
            "redis-3 is killed\nredis-3 runs again",
        ),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/check/lock/redis-redlock?wait_ms=0'",
            "503",
        ),
        TWO_FREE,
        Line::at(
            2,
            "curl -s {8100}/check/lock/redis-redlock",
            "验库存并锁库存成功！",
        ),
        Line::at(2, "redis-cli {redis-3} exists redLock", "0"),
        Line::new("wait", ""),
        LEFT,
        TWO_TAKEN,
        Line::new(
            "curl -s '{8000}/check/lock/redis-redlock?hold_ms=8000' &",
            "验库存并锁库存成功！",
        ),
        THREE_TAKEN,
        Line::at(2, "{fault} kill redis-3", "redis-3 is killed"),
        TWO_FREE,
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/check/lock/redis-redlock?wait_ms=500'",
            "503",
        ),
        Line::new("wait", ""),
        Line::at(2, "{fault} start redis-3", "redis-3 runs again"),
        Line::at(
            2,
            "curl -s {8100}/check/lock/redis-redlock",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "003.redlock.restart"))),
    ..Lesson::PLAIN
};

pub(super) const CLOCK: Lesson = Lesson {
    id: "003.redlock.clock",
    title: Bilingual {
        zh: "红锁：时钟跳跃",
        en: "Redlock: a clock that jumps",
    },
    claim: Bilingual {
        zh: "C 的时钟往前跳，上面的锁提前到期，客户端 2 锁住 C、D、E：红锁靠时钟，令牌不靠",
        en: "C's clock jumps forward, its key ends early, and client 2 has C, D and E: Redlock relies on clocks, a token does not",
    },
    place: "003",
    strategies: &["redis-redlock", "redis-fenced"],
    replay: Some("003.redlock.clock"),
    by_hand: &[
        Line::RESTOCK,
        TWO_TAKEN,
        Line::new(
            "curl -s '{8000}/check/lock/redis-redlock?hold_ms=8000' &",
            "验库存并锁库存成功！",
        ),
        THREE_TAKEN,
        Line::at(2, "redis-cli {redis-3} pexpire redLock 1", "1"),
        TWO_FREE,
        Line::at(
            2,
            "curl -s {8100}/check/lock/redis-redlock",
            "验库存并锁库存成功！",
        ),
        Line::new("wait", ""),
        LEFT,
        Line::RESTOCK,
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8000}/check/lock/redis-fenced?hold_ms=8000' &",
            "409",
        ),
        Line::until(2, "redis-cli {redis} exists fencedLock", "1"),
        Line::at(2, "redis-cli {redis} pexpire fencedLock 1", "1"),
        Line::at(
            2,
            "curl -s {8100}/check/lock/redis-fenced",
            "验库存并锁库存成功！",
        ),
        Line::new("wait", ""),
        LEFT,
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "003.redlock.clock"))),
    ..Lesson::PLAIN
};

pub(super) const LATE_ANSWERS: Lesson = Lesson {
    id: "003.redlock.answers",
    title: Bilingual {
        zh: "红锁：答复来得太晚",
        en: "Redlock: answers that come too late",
    },
    claim: Bilingual {
        zh: "各节点已经答复，客户端停顿到锁都过期才收到：它会算用了多久，不会当成拿到了",
        en: "The nodes have answered, and the client is paused until all keys have ended: it counts how long asking took, and does not believe that it has the lock",
    },
    place: "003",
    strategies: &["redis-redlock"],
    run: Run::NotRun(Bilingual {
        zh: "停顿要正好落在发出和收到之间，从外面停不准；锁库的测试里有",
        en: "the pause must fall between sending and receiving, which cannot be hit from outside; the tests of the lock library do it",
    }),
    ..Lesson::PLAIN
};

pub(super) const MASTER: Lesson = Lesson {
    id: "003.master",
    title: Bilingual {
        zh: "主从切换丢锁",
        en: "A fail-over loses the lock",
    },
    claim: Bilingual {
        zh: "不管单机、主从、哨兵还是集群，复制都是异步的：切换时锁会丢；红锁解决",
        en: "Replication is asynchronous, whatever the set-up: a fail-over may lose the lock; Redlock does not",
    },
    place: "003",
    strategies: &["redis-lock", "redis-redlock"],
    replay: Some("2.9"),
    run: Run::NotRun(Bilingual {
        zh: "和 2.9 是同一个实验",
        en: "the same experiment as 2.9",
    }),
    ..Lesson::PLAIN
};

pub(super) const HEARTBEAT: Lesson = Lesson {
    id: "003.session",
    title: Bilingual {
        zh: "会话靠心跳",
        en: "A session lives by its heartbeats",
    },
    claim: Bilingual {
        zh: "收不到心跳，ZooKeeper 让会话过期，它的临时节点全部删除：锁一定会放",
        en: "Without heartbeats ZooKeeper ends the session and deletes all of its ephemeral nodes: the lock is freed in any case",
    },
    place: "003",
    strategies: &["zk-ephemeral"],
    replay: Some("3.3"),
    run: Run::NotRun(Bilingual {
        zh: "和 3.2 是同一个实验",
        en: "the same experiment as 3.2",
    }),
    ..Lesson::PLAIN
};
