//! §5: how the three families compare.

use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Ratio, Run, Says, Seen, Side, Words, experiments::words,
};

pub(super) const SPEED: Lesson = Lesson {
    id: "5.speed",
    title: Bilingual {
        zh: "三种锁的快慢",
        en: "How fast the three are",
    },
    claim: Bilingual {
        zh: "性能：Redis > ZooKeeper > 数据库",
        en: "By speed: Redis > ZooKeeper > the database",
    },
    place: "000 §5",
    strategies: &["redis-lock", "zk-lock", "table-lock"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies redis-lock,zk-lock,table-lock --targets three --threads 20 --loops 10",
        "…redis-lock …exact…zk-lock …exact…table-lock …exact…",
    )],
    run: Run::Experiment(|on| Box::pin(speed(on))),
    ..Lesson::PLAIN
};

async fn speed(on: &Cluster) -> Result<Seen, NoVerdict> {
    let redis_zk = on
        .paired(Side::of("redis-lock"), Side::of("zk-lock"), Says::Faster)
        .await?;
    let zk_table = on
        .paired(Side::of("zk-lock"), Side::of("table-lock"), Says::Faster)
        .await?;
    let (one, other) = (words(&redis_zk), words(&zk_table));
    let words = Words::new(one.zh + &other.zh, one.en + " " + &other.en);
    let ratios = [redis_zk, zk_table];
    Ok(Seen::holds(ratios.iter().all(Ratio::holds), words).ratios(ratios))
}

pub(super) const RELIABILITY: Lesson = Lesson {
    id: "5.reliability",
    title: Bilingual {
        zh: "三种锁的可靠",
        en: "How reliable the three are",
    },
    claim: Bilingual {
        zh: "可靠性：ZooKeeper > Redis = 数据库",
        en: "By reliability: ZooKeeper > Redis = the database",
    },
    place: "000 §5",
    strategies: &["zk-lock", "redis-lock", "table-lock"],
    run: Run::NotRun(Bilingual {
        zh: "各自怎么坏在各自的课里：2.9（主从切换）、3.3（会话过期）、4.3；没有一个数能排出名次",
        en: "how each breaks is in its own lessons: 2.9 (promotion), 3.3 (session), 4.3; no figure ranks them",
    }),
    ..Lesson::PLAIN
};

pub(super) const COMPLEXITY: Lesson = Lesson {
    id: "5.complexity",
    title: Bilingual {
        zh: "实现的难度",
        en: "How hard to write",
    },
    claim: Bilingual {
        zh: "实现难度：ZooKeeper > Redis > 数据库",
        en: "By difficulty: ZooKeeper > Redis > the database",
    },
    place: "000 §5",
    run: Run::NotRun(Bilingual {
        zh: "这是看法；代码可以自己比",
        en: "this is an opinion; the code is there to compare",
    }),
    ..Lesson::PLAIN
};

pub(super) const KINDS: Lesson = Lesson {
    id: "5.kinds",
    title: Bilingual {
        zh: "锁的分类",
        en: "Kinds of locks",
    },
    claim: Bilingual {
        zh: "悲观与乐观、独占与共享、可重入、公平、自旋与阻塞、读与写、偏向锁到重量级锁、表级与行级",
        en: "Pessimistic and optimistic, exclusive and shared, re-entrant, fair, spinning and blocking, read and write, and the JVM's own",
    },
    place: "000 §5",
    run: Run::NotRun(Bilingual {
        zh: "这是定义；每一种在它的课里演示。JVM 的锁升级要 JVM",
        en: "these are definitions, each shown in its lesson; how a JVM upgrades its locks takes a JVM",
    }),
    ..Lesson::PLAIN
};
