//! §3.3 to §3.6: the hand-written locks, from one node that all fight for to a queue in which each watches the one before.

use super::got;
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Says, Seen, Side, Target, Verdict, Words,
    experiments::{compared, exact},
    replay::flaw_and_cure,
};
use serde_json::json;

pub(super) const EPHEMERAL: Lesson = Lesson {
    id: "3.3",
    title: Bilingual {
        zh: "临时节点当锁",
        en: "An ephemeral node as a lock",
    },
    claim: Bilingual {
        zh: "同一个临时节点只有一个人建得成：拿到锁的减库存，库存不多不少减到 0",
        en: "Of all who make the same ephemeral node one succeeds, and has the lock: not one piece too many is sold",
    },
    place: "000 §3.3",
    strategies: &["zk-ephemeral"],
    replay: Some("3.3"),
    tries: &["/check/lock/zk-ephemeral?hold_ms=3000&who={who}"],
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/zk-ephemeral?hold_ms=20000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            2,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-ephemeral",
            "1",
        ),
        Line::at(
            2,
            "zkCli.sh {zookeeper} stat /distributed/zk-ephemeral 2>&1",
            "…ephemeralOwner = 0x1…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "zk-ephemeral", &[Target::Three]))),
    ..Lesson::PLAIN
};

/// What was seen, with the reason why a claim does not hold here.
async fn else_because(
    seen: impl Future<Output = Result<Seen, NoVerdict>>,
    why: Bilingual,
) -> Result<Seen, NoVerdict> {
    let mut seen = seen.await?;
    if seen.verdict == Verdict::NotReproduced {
        seen.words = Words::new(
            format!("{}{}", seen.words.zh, why.zh),
            format!("{} {}", seen.words.en, why.en),
        );
    }
    Ok(seen)
}

pub(super) const NEXT_TO_THE_TABLE: Lesson = Lesson {
    id: "3.3.rate",
    title: Bilingual {
        zh: "比 MySQL 的锁略好",
        en: "A little better than MySQL's lock",
    },
    claim: Bilingual {
        zh: "性能一般，比用 MySQL 的表做的锁略好",
        en: "Its speed is so-so, a little better than the lock in a table of MySQL",
    },
    place: "000 §3.3",
    strategies: &["zk-ephemeral", "table-lock"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies zk-ephemeral,table-lock --targets one --threads 4 --loops 10",
        "…✓ as promised  zk-ephemeral [lease]: exact on one instance\n✓ as promised  table-lock [safe]: exact on one instance\n§3.3 …",
    )],
    run: Run::Experiment(|on| {
        const WHY: Bilingual = Bilingual {
            zh: "没拿到的要睡 200 ms 才再试，MySQL 的锁睡 50 ms：快慢由睡多久决定，不由服务器决定。",
            en: "Who is refused sleeps for 200 ms, and for 50 ms with MySQL's lock: that decides, and not the server.",
        };
        let compared = compared(
            on,
            Side::of("zk-ephemeral"),
            Side::of("table-lock"),
            Says::Faster,
        );
        Box::pin(else_because(compared, WHY))
    }),
    ..Lesson::PLAIN
};

pub(super) const SPINNING_ON_NUMBERED_NODES: Lesson = Lesson {
    id: "3.4.1",
    title: Bilingual {
        zh: "排队再自旋",
        en: "Queue, and look again and again",
    },
    claim: Bilingual {
        zh: "每个请求一个带序号的节点、每 20 毫秒再看一次：性能比 3.3 反而更弱",
        en: "A numbered node for each request, looked at every 20 ms: slower than the plain node of 3.3",
    },
    place: "000 §3.4.1",
    strategies: &["zk-ephemeral", "zk-sequential"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies zk-ephemeral,zk-sequential --targets one --threads 4 --loops 10",
        "…✓ as promised  zk-ephemeral [lease]: exact on one instance\n✓ as promised  zk-sequential [lease]: exact on one instance\n§3.4.1 …",
    )],
    run: Run::Experiment(|on| {
        Box::pin(compared(
            on,
            Side::of("zk-ephemeral"),
            Side::of("zk-sequential"),
            Says::Faster,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const HERD: Lesson = Lesson {
    id: "3.4.2.herd",
    title: Bilingual {
        zh: "羊群效应",
        en: "The herd effect",
    },
    claim: Bilingual {
        zh: "都盯着父节点，放一次锁要叫醒所有人；每个只盯前一个，只叫醒下一个",
        en: "Where all watch the directory each release wakes all of them; where each watches the node before its own, one",
    },
    place: "000 §3.4.2",
    strategies: &["zk-lock"],
    replay: Some("3.4"),
    tries: &["/test/zk/herd?waiters=50"],
    quick: true,
    by_hand: &[Line::new(
        "curl -s '{8000}/test/zk/herd?waiters=50'",
        "50 个人排队，锁放掉 51 次\n都盯父节点：共通知 1275 次，平均每次放锁 25.00 次\n只盯前一个：共通知 50 次，平均每次放锁 0.98 次",
    )],
    run: Run::Experiment(|on| Box::pin(herd(on))),
    ..Lesson::PLAIN
};

async fn herd(on: &Cluster) -> Result<Seen, NoVerdict> {
    let herd = got(on, &format!("{}/test/zk/herd?waiters=50", on.one())).await?;
    let (parent, predecessor) = (
        &herd["each"]["watch_parent"],
        &herd["each"]["watch_predecessor"],
    );
    let all: Vec<u64> = (0..=50).rev().collect();
    let one: Vec<u64> = (0..=50).map(|n| u64::from(n < 50)).collect();
    let words = Words::new(
        "50 个排队，一个一个放锁：都盯父节点依次叫醒 50、49、48 … 1、0 个；只盯前一个依次叫醒 1、1、1 … 1、0 个。",
        "50 wait, one release after the other: watching the directory, 50, 49, 48 … 1, 0 are woken; watching the node before, 1, 1, 1 … 1, 0.",
    );
    let holds = *parent == json!(all) && *predecessor == json!(one);
    let words = if holds {
        words
    } else {
        Words::same(herd.to_string())
    };
    Ok(Seen::holds(holds, words)
        .value("watch_parent", parent.clone())
        .value("watch_predecessor", predecessor.clone()))
}

pub(super) const WATCHING: Lesson = Lesson {
    id: "3.4.2",
    title: Bilingual {
        zh: "监听前一个节点",
        en: "Each watches the node before its own",
    },
    claim: Bilingual {
        zh: "序号最小的拿到锁，其余的只盯前一个节点：库存不多不少",
        en: "The lowest number has the lock, every other watches the one before: not one piece too many is sold",
    },
    place: "000 §3.4.2",
    strategies: &["zk-lock"],
    replay: Some("3.4.2"),
    tries: &["/check/lock/zk-lock?hold_ms=3000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/zk-lock?hold_ms=20000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            2,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-lock/",
            "1",
        ),
        Line::at(
            2,
            "curl -s '{8100}/check/lock/zk-lock' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            3,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-lock/",
            "2",
        ),
        Line::at(
            3,
            "zkCli.sh {zookeeper} ls /distributed/zk-lock 2>&1",
            "…lock-0…, …lock-0…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "zk-lock", &[Target::Three]))),
    ..Lesson::PLAIN
};

pub(super) const FASTER_THAN_SPINNING: Lesson = Lesson {
    id: "3.4.2.rate",
    title: Bilingual {
        zh: "监听比自旋快",
        en: "Watching is faster than spinning",
    },
    claim: Bilingual {
        zh: "改成监听以后，性能提高不少",
        en: "With a watch instead of spinning it is a good deal faster",
    },
    place: "000 §3.4.2",
    strategies: &["zk-lock", "zk-sequential"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies zk-lock,zk-sequential --targets one --threads 4 --loops 10",
        "…✓ as promised  zk-lock [lease]: exact on one instance\n✓ as promised  zk-sequential [lease]: exact on one instance",
    )],
    run: Run::Experiment(|on| {
        Box::pin(compared(
            on,
            Side::of("zk-lock"),
            Side::of("zk-sequential"),
            Says::Faster,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const NEXT_TO_REDIS: Lesson = Lesson {
    id: "3.4.2.redis",
    title: Bilingual {
        zh: "接近 Redis 的锁",
        en: "Near the lock in Redis",
    },
    claim: Bilingual {
        zh: "监听以后，性能接近 Redis 的分布式锁",
        en: "With the watch it comes near the distributed lock in Redis",
    },
    place: "000 §3.4.2",
    strategies: &["zk-lock", "redis-lock"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies zk-lock,redis-lock --targets one --threads 20 --loops 10",
        "…✓ as promised  zk-lock [lease]: exact on one instance\n✓ as promised  redis-lock [lease]: exact on one instance",
    )],
    run: Run::Experiment(|on| {
        const WHY: Bilingual = Bilingual {
            zh: "ZooKeeper 每次加锁、解锁都先写盘，Redis 在内存里，一个进程里还能直接交给下一个。",
            en: "ZooKeeper writes each lock and unlock to disk first; Redis has them in memory, and a process hands the lock on.",
        };
        Box::pin(else_because(
            compared(on, Side::of("zk-lock"), Side::of("redis-lock"), Says::Alike),
            WHY,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const RE_ENTRY: Lesson = Lesson {
    id: "3.5",
    title: Bilingual {
        zh: "可重入",
        en: "Re-entry",
    },
    claim: Bilingual {
        zh: "3.3 的锁不可重入：再要一次就等自己；在进程里记下谁拿了几次，就可以重入",
        en: "The lock of 3.3 cannot be taken twice: it waits for itself; with a count in the process it can",
    },
    place: "000 §3.5",
    strategies: &["zk-ephemeral", "zk-reentrant"],
    replay: Some("3.5"),
    tries: &["/test/zk/reentrant?hold_ms=3000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/zk-reentrant?hold_ms=20000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            2,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-reentrant/",
            "1",
        ),
        Line::at(
            2,
            "zkCli.sh {zookeeper} ls /distributed/zk-reentrant 2>&1",
            "…lock-0…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "3.5"))),
    ..Lesson::PLAIN
};

pub(super) const FAIR: Lesson = Lesson {
    id: "3.6",
    title: Bilingual {
        zh: "公平",
        en: "Fair",
    },
    claim: Bilingual {
        zh: "节点有序，锁就是公平的：先来的先进",
        en: "Numbered nodes make the lock fair: first come, first served",
    },
    place: "000 §3.6",
    strategies: &["zk-lock", "zk-ephemeral"],
    replay: Some("3.4.2"),
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -s '{8000}/check/lock/zk-lock?hold_ms=8000&who=A' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            2,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-lock/",
            "1",
        ),
        Line::at(
            2,
            "curl -s -H 'accept: application/json' '{8100}/check/lock/zk-lock?hold_ms=500&who=B' &",
            r#"…"remaining":4998…"#,
        ),
        Line::until(
            3,
            "echo dump | curl -s telnet://{zk} | grep -c /zk-lock/",
            "2",
        ),
        Line::at(
            3,
            "curl -s -H 'accept: application/json' '{8200}/check/lock/zk-lock?who=C'",
            r#"…"remaining":4997…"#,
        ),
        // The plain node of 3.3: who comes between two tries of another gets in before it.
        Line::new(
            r#"id=$(curl -s -X POST '{8000}/replays/3.4.2?pace=fast' | grep -o '"id":"[^"]*"' | cut -d'"' -f4); curl -sN {8000}/replays/$id/events | tail -2"#,
            r#"data: {…"saw":"A C B"…"#,
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "3.4.2"))),
    ..Lesson::PLAIN
};
