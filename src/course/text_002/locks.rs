//! [002] The locks of the orders in Redis, from SETNX to Redisson.

use super::orders::{HELD, NEW, PLACED, beside, how_many, one_each, order};
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Words, replay::flaw_and_cure,
};

pub(super) const COMPARED: Lesson = Lesson {
    id: "002.compared",
    title: Bilingual {
        zh: "三种分布式锁",
        en: "Three kinds of distributed locks",
    },
    claim: Bilingual {
        zh: "MySQL 性能一般，少用；Redis 和 ZooKeeper 最常用",
        en: "MySQL is rarely used, being slow; Redis and ZooKeeper are what is used",
    },
    place: "002 基本原理和实现方式对比",
    run: Run::NotRun(Bilingual {
        zh: "谁常用不是实验；快慢见 5.speed",
        en: "what is used is no experiment; the rates are those of 5.speed",
    }),
    ..Lesson::PLAIN
};

pub(super) const FIRST: Lesson = Lesson {
    id: "002.lock.first",
    title: Bilingual {
        zh: "版本一：SET NX EX",
        en: "The first version: SET NX EX",
    },
    claim: Bilingual {
        zh: "每个用户一个键，SET NX EX 拿锁，DEL 放锁：三台实例上一人一单，同时来的第二单被拒绝",
        en: "A key per user, SET NX EX to lock, DEL to unlock: one order per user on three instances, and one that comes beside it is refused",
    },
    place: "002 实现分布式锁版本一",
    steps: &["redis-lock-fixed-id"],
    quick: true,
    by_hand: &[
        NEW,
        Line::new(
            concat!(
                order!("redis-lock-fixed-id", "&hold_ms=6000", "{8000}"),
                " &"
            ),
            PLACED,
        ),
        Line::until(2, "redis-cli {redis} get lock:order:1010", "1"),
        Line::at(
            2,
            order!("redis-lock-fixed-id", "", "{8100}"),
            "…不允许重复下单…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(refused_beside(on, "redis-lock-fixed-id"))),
    ..Lesson::PLAIN
};

/// One order each under load, and one beside another is refused.
async fn refused_beside(on: &Cluster, step: &str) -> Result<Seen, NoVerdict> {
    let voucher = on.on_sale(10).await?;
    let (status, said) = beside(on, &voucher, step).await?;
    voucher.remove().await?;
    let words = Words::new(
        format!("同时来的第二单：{status} {said}。"),
        format!("One beside it: {status} {said}."),
    );
    let refused =
        Seen::holds(status == 409 && said.contains("不允许重复下单"), words).value("beside", said);
    Ok(one_each(on, step, Target::Three).await?.and(refused))
}

pub(super) const LATE_UNLOCK: Lesson = Lesson {
    id: "002.late-unlock",
    title: Bilingual {
        zh: "误删别人的锁",
        en: "Another's lock is deleted",
    },
    claim: Bilingual {
        zh: "持有者卡住，锁到期；后来者拿到锁，前者醒来把它删了。先看是不是自己的就不会",
        en: "The holder is late and its lock ends; the next one has the lock, and the first deletes it. Not where it looks first",
    },
    place: "002 Redis分布式锁误删情况说明",
    steps: &["redis-lock-fixed-id", "redis-lock-owner"],
    replay: Some("002.late-unlock"),
    quick: true,
    by_hand: &[
        NEW,
        Line::new(
            concat!(
                order!(
                    "redis-lock-fixed-id",
                    "&hold_ms=9000&lease_ms=3000",
                    "{8000}"
                ),
                " &"
            ),
            PLACED,
        ),
        HELD,
        ANOTHER,
        Line::new("wait", ""),
        Line::at(2, "redis-cli {redis} exists lock:order:1010", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "002.late-unlock"))),
    ..Lesson::PLAIN
};

pub(super) const OWNER: Lesson = Lesson {
    id: "002.lock.owner",
    title: Bilingual {
        zh: "锁里写上 UUID",
        en: "A UUID in the lock",
    },
    claim: Bilingual {
        zh: "放锁之前先比较：是自己的才删",
        en: "The unlock compares first, and deletes only what is its own",
    },
    place: "002 解决Redis分布式锁误删问题",
    steps: &["redis-lock-owner"],
    by_hand: &[
        NEW,
        Line::new(
            concat!(
                order!("redis-lock-owner", "&hold_ms=9000&lease_ms=3000", "{8000}"),
                " &"
            ),
            r#"{"outcome":"sold",…"lock":"lost"}"#,
        ),
        HELD,
        ANOTHER,
        Line::new("wait", ""),
        Line::at(2, "redis-cli {redis} get lock:order:1010", "another"),
        Line::at(2, "redis-cli {redis} del lock:order:1010", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(refused_beside(on, "redis-lock-owner"))),
    ..Lesson::PLAIN
};

/// The row of an order cannot be written for so long, and its lock is given back after that.
const LATE_INSERT: Line = Line::new(
    "mysql {mysql} -Ne 'lock tables tb_voucher_order read; do sleep(3.5)' &",
    "",
);
const LATE: Line = Line::until(
    2,
    r#"mysql {mysql} -e 'show processlist' | grep -c 'do sleep'"#,
    "1",
);
const WAITS_TO_INSERT: Line = Line::until(
    2,
    "mysql {mysql} -e 'show processlist' | grep -c 'INSERT INTO tb_voucher'",
    "1",
);
/// Redis answers who looks, and lets those who write wait: the look comes before the lease ends, the delete after it, and
/// after whoever asked for the lock meanwhile.
const NO_WRITES: Line = Line::at(2, "redis-cli {redis} client pause 20000 write", "OK");
const ANOTHER_WAITS: Line = Line::at(
    3,
    "redis-cli {redis} set lock:order:1010 another nx ex 60 &",
    "OK",
);
const ENDED: Line = Line::until(2, "redis-cli {redis} exists lock:order:1010", "0");
const WRITES: Line = Line::at(2, "redis-cli {redis} client unpause", "OK");
const ANOTHER: Line = Line::until(
    2,
    "redis-cli {redis} set lock:order:1010 another nx ex 60",
    "OK",
);

pub(super) const NOT_ATOMIC: Lesson = Lesson {
    id: "002.lock.lua",
    title: Bilingual {
        zh: "判断和删除不是原子的",
        en: "The look and the delete are not atomic",
    },
    claim: Bilingual {
        zh: "判断之后、删除之前锁到期，还是会误删；写成一段 Lua 脚本就不会",
        en: "Where the lock ends between the look and the delete another's is deleted still; not where both are one script",
    },
    place: "002 分布式锁的原子性问题",
    steps: &["redis-lock-owner", "redis-lock-lua"],
    replay: Some("2.3"),
    by_hand: &[
        NEW,
        LATE_INSERT,
        LATE,
        Line::new(
            concat!(order!("redis-lock-owner", "&lease_ms=4000", "{8000}"), " &"),
            r#"{"outcome":"sold",…"lock":"kept"}"#,
        ),
        WAITS_TO_INSERT,
        NO_WRITES,
        ANOTHER_WAITS,
        ENDED,
        WRITES,
        Line::new("wait", ""),
        Line::at(2, "redis-cli {redis} exists lock:order:1010", "0"),
        NEW,
        LATE_INSERT,
        LATE,
        Line::new(
            concat!(order!("redis-lock-lua", "&lease_ms=4000", "{8000}"), " &"),
            r#"{"outcome":"sold",…"lock":"lost"}"#,
        ),
        WAITS_TO_INSERT,
        NO_WRITES,
        ANOTHER_WAITS,
        ENDED,
        WRITES,
        Line::new("wait", ""),
        Line::at(2, "redis-cli {redis} get lock:order:1010", "another"),
        Line::at(2, "redis-cli {redis} del lock:order:1010", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(not_atomic(on))),
    ..Lesson::PLAIN
};

async fn not_atomic(on: &Cluster) -> Result<Seen, NoVerdict> {
    Ok(flaw_and_cure(on, "2.3")
        .await?
        .and(refused_beside(on, "redis-lock-lua").await?))
}

pub(super) const REDISSON: Lesson = Lesson {
    id: "002.redisson",
    title: Bilingual {
        zh: "Redisson 的 tryLock",
        en: "Redisson's tryLock",
    },
    claim: Bilingual {
        zh: "换成 RLock.tryLock()：一人一单，同时来的第二单马上被拒绝",
        en: "With RLock.tryLock(): one order per user, and one that comes beside it is refused at once",
    },
    place: "002 分布式锁-Redission快速入门",
    steps: &["redis-rlock"],
    by_hand: &[
        NEW,
        Line::new(
            concat!(order!("redis-rlock", "&hold_ms=6000", "{8000}"), " &"),
            PLACED,
        ),
        Line::until(2, "redis-cli {redis} hvals lock:order:1010", "1"),
        Line::at(2, order!("redis-rlock", "", "{8100}"), "不允许重复下单"),
        Line::until(2, "redis-cli {redis} exists lock:order:1010", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(refused_beside(on, "redis-rlock"))),
    ..Lesson::PLAIN
};

pub(super) const RE_ENTRY: Lesson = Lesson {
    id: "002.reentrant",
    title: Bilingual {
        zh: "可重入：hash 里的计数",
        en: "Re-entry: the count in the hash",
    },
    claim: Bilingual {
        zh: "锁是一个 hash：重入加一，释放减一，到 0 才删",
        en: "The lock is a hash: one more for each re-entry, one less for each release, gone at 0",
    },
    place: "002 分布式锁-redission可重入锁原理",
    strategies: &["redis-reentrant"],
    replay: Some("2.6"),
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-reentrant?hold_ms=6000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} hgetall lock:redis-reentrant", "…\n2"),
        Line::until(2, "redis-cli {redis} exists lock:redis-reentrant", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.6"))),
    ..Lesson::PLAIN
};

pub(super) const WATCHDOG: Lesson = Lesson {
    id: "002.watchdog",
    title: Bilingual {
        zh: "重试与 WatchDog",
        en: "Waiting, and the watchdog",
    },
    claim: Bilingual {
        zh: "没拿到锁的得到剩余时间，等着再试；拿到的由 WatchDog 续期",
        en: "Who has not got it is told the time that is left, and tries again; who has it is renewed by the watchdog",
    },
    place: "002 分布式锁-redission锁重试和WatchDog机制",
    strategies: &["redis-watchdog"],
    replay: Some("2.7"),
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-watchdog?lease_ms=6000&hold_ms=10000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock:redis-watchdog", "1"),
        Line::at(
            2,
            "sleep 7; redis-cli {redis} exists lock:redis-watchdog",
            "1",
        ),
        Line::at(2, "redis-cli {redis} pttl lock:redis-watchdog", "…"),
        Line::at(
            2,
            "curl -s '{8100}/check/lock/redis-watchdog?lease_ms=6000'",
            "验库存并锁库存成功！",
        ),
        Line::at(2, "redis-cli {redis} exists lock:redis-watchdog", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.7"))),
    ..Lesson::PLAIN
};

pub(super) const BEYOND: Lesson = Lesson {
    id: "002.stream",
    title: Bilingual {
        zh: "再往后：脚本加消息流",
        en: "Beyond: a script and a stream",
    },
    claim: Bilingual {
        zh: "资格在一段脚本里判完，订单随后写库：三台实例上一人一单，不超卖",
        en: "A script decides who gets one, the orders are written behind: one each on three instances, nothing oversold",
    },
    place: "002（文中没有写到）",
    steps: &["script-stream"],
    by_hand: &[
        NEW,
        Line::new(order!("script-stream", "", "{8000}"), PLACED),
        Line::new(order!("script-stream", "", "{8100}"), "用户已经购买过一次!"),
        Line::new(
            "seq 30 | xargs -P 30 -I N curl -s -o /dev/null -w '%{http_code}\\n' -X POST -H 'x-user-id: N' \"{http}/voucher-order/seckill/$(mysql {mysql} -Ne 'select max(voucher_id) from tb_seckill_voucher')?strategy=script-stream\" | grep -c 200",
            "9",
        ),
        Line::until(1, how_many!(), "10"),
    ],
    run: Run::Experiment(|on| Box::pin(one_each(on, "script-stream", Target::Three))),
    ..Lesson::PLAIN
};
