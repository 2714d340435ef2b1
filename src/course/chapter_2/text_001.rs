//! Text 001: the same way in short, and Redisson's read-write lock as a hash.

use super::{ask, own};
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Says, Seen, Side, Verdict, Words, experiments::compared,
    replay::flaw_and_cure,
};
use redis::Value;

pub(super) const SET_NX: Lesson = Lesson {
    id: "001.set-nx",
    title: Bilingual {
        zh: "SET … NX 返回什么",
        en: "What SET … NX answers",
    },
    claim: Bilingual {
        zh: "SET key value NX 返回 1 是加锁成功，0 是失败",
        en: "SET key value NX answers 1 where the lock was taken and 0 where it was not",
    },
    place: "001 §2.2.1.1",
    expected: Verdict::NotReproduced,
    by_hand: &[
        Line::new("redis-cli {redis} set lock:by-hand any nx", "OK"),
        Line::at(2, "redis-cli {redis} set lock:by-hand any nx", ""),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(set_nx(on))),
    ..Lesson::PLAIN
};

async fn set_nx(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, key) = (on.redis().await?, own("lock"));
    let first: Value = ask(&mut redis, &["SET", &key, "any", "NX"]).await?;
    let second: Value = ask(&mut redis, &["SET", &key, "any", "NX"]).await?;
    ask::<()>(&mut redis, &["DEL", &key]).await?;
    let words = Words::new(
        format!(
            "第一次 {first:?}，第二次 {second:?}：SET … NX 返回 OK 或空，返回 1 和 0 的是 SETNX。"
        ),
        format!(
            "First {first:?}, then {second:?}: SET … NX answers OK or nil; it is SETNX that answers 1 and 0."
        ),
    );
    Ok(Seen::holds(
        first == Value::Int(1) && second == Value::Int(0),
        words,
    ))
}

pub(super) const DEL: Lesson = Lesson {
    id: "001.del",
    title: Bilingual {
        zh: "谁都能 DEL",
        en: "Anybody can send DEL",
    },
    claim: Bilingual {
        zh: "DEL 返回 1 是释放成功，0 是键不存在；它不管锁是谁的",
        en: "DEL answers 1 where there was a key and 0 where there was none; whose lock it was does not matter to it",
    },
    place: "001 §2.2.1.2",
    by_hand: &[
        Line::new("redis-cli {redis} set lock:by-hand mine nx px 60000", "OK"),
        Line::at(2, "redis-cli {redis} del lock:by-hand", "1"),
        Line::new("redis-cli {redis} del lock:by-hand", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(del(on))),
    ..Lesson::PLAIN
};

async fn del(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut mine, mut other, key) = (on.redis().await?, on.redis().await?, own("lock"));
    ask::<()>(&mut mine, &["SET", &key, "mine", "NX", "PX", "60000"]).await?;
    let others: i64 = ask(&mut other, &["DEL", &key]).await?;
    let own: i64 = ask(&mut mine, &["DEL", &key]).await?;
    let words = Words::new(
        format!("别人 DEL 得到 {others}，持有者再 DEL 得到 {own}。"),
        format!("Another's DEL got {others}, and the holder's own after it {own}."),
    );
    Ok(Seen::holds((others, own) == (1, 0), words))
}

pub(super) const LATE_DELETE: Lesson = Lesson {
    id: "001.expire",
    title: Bilingual {
        zh: "带过期时间的缺陷",
        en: "What a lease does not cure",
    },
    claim: Bilingual {
        zh: "A 超时，B 拿到锁，C 在等；A 删掉 B 的锁，C 和 B 同时在临界区里",
        en: "A is late, B has the lock and C waits; A deletes B's lock, and C and B are inside together",
    },
    place: "001 §2.2.1.2",
    strategies: &["redis-setnx-ttl"],
    replay: Some("2.2"),
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -s '{8000}/check/lock/redis-setnx-ttl?lease_ms=3000&hold_ms=8000&who=A' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock:redis-setnx-ttl", "1"),
        Line::at(
            2,
            "curl -s '{8100}/check/lock/redis-setnx-ttl?lease_ms=60000&hold_ms=12000&who=B' &",
            "验库存并锁库存成功！",
        ),
        Line::new("wait", ""),
        Line::at(
            3,
            "curl -s '{8200}/check/lock/redis-setnx-ttl?lease_ms=60000&hold_ms=500&who=C'",
            "验库存并锁库存成功！",
        ),
        // Three have bought, and two pieces are missing: B and C were inside together.
        Line::at(2, "wait", ""),
        Line::new("redis-cli {redis} get stock", "4999"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.2"))),
    ..Lesson::PLAIN
};

pub(super) const LATE_RENEWAL: Lesson = Lesson {
    id: "001.renewal",
    title: Bilingual {
        zh: "续期续错了人",
        en: "A renewal of another's lock",
    },
    claim: Bilingual {
        zh: "只按键 EXPIRE，停顿后醒来的客户端会给别人的锁续期；续期前比较持有者就不会",
        en: "By EXPIRE alone a client that wakes after a pause renews another's lock; one that compares the owner first does not",
    },
    place: "001 §2.2.1.3, §2.2.1.4",
    strategies: &["redis-watchdog"],
    replay: Some("001.renewal"),
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} set lock:by-hand B nx px 600000", "OK"),
        Line::at(2, "redis-cli {redis} pexpire lock:by-hand 1000", "1"),
        Line::until(1, "redis-cli {redis} exists lock:by-hand", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "001.renewal"))),
    ..Lesson::PLAIN
};

pub(super) const READ_WRITE: Lesson = Lesson {
    id: "001.rw",
    title: Bilingual {
        zh: "读写锁是一个 Hash",
        en: "The read-write lock is a hash",
    },
    claim: Bilingual {
        zh: "锁是一个 Hash：mode 是读还是写，每个持有者一个计数；租约是所有读者里最长的",
        en: "The lock is a hash: mode, and a count for each holder; its lease is the longest of its readers'",
    },
    place: "001 §2.2.2",
    strategies: &["redis-write"],
    tries: &["/test/read?who={who}"],
    by_hand: &[
        Line::new("curl -s '{http}/test/read?hold_ms=10000'", "测试读"),
        Line::at(2, "curl -s '{http}/test/read?hold_ms=10000'", "测试读"),
        Line::new("redis-cli {redis} hget rwLock mode", "read"),
        Line::new("redis-cli {redis} hlen rwLock", "3"),
        Line::until(1, "redis-cli {redis} exists rwLock", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(read_write(on))),
    ..Lesson::PLAIN
};

async fn read_write(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("rwLock:{}", product.id));
    for stay in [20_000, 1000] {
        on.get(&format!(
            "{}/test/read?stock_id={}&hold_ms={stay}&who={stay}",
            on.three(),
            product.id
        ))
        .await?
        .success()?;
    }
    let fields: Vec<(String, String)> = ask(&mut redis, &["HGETALL", &key]).await?;
    let left: i64 = ask(&mut redis, &["PTTL", &key]).await?;
    product.remove().await?;
    let mode = fields
        .iter()
        .find(|(field, _)| field == "mode")
        .map_or("", |(_, mode)| mode.as_str());
    let readers = fields
        .iter()
        .filter(|(field, count)| field != "mode" && count == "1")
        .count();
    let words = Words::new(
        format!(
            "两个读者，租约 20 s 和 1 s：mode 是 {mode}，{readers} 个持有者，租约还剩 {left} ms。"
        ),
        format!(
            "Two readers with leases of 20 s and 1 s: mode is {mode}, {readers} holders, {left} ms are left."
        ),
    );
    Ok(Seen::holds(
        mode == "read" && readers == 2 && left > 1000,
        words,
    ))
}

pub(super) const DOWNGRADE: Lesson = Lesson {
    id: "001.rw.downgrade",
    title: Bilingual {
        zh: "写锁里再拿读锁",
        en: "The read half under the write half",
    },
    claim: Bilingual {
        zh: "持有写锁的可以再拿读锁；写锁放开后 mode 变成 read",
        en: "Who has the write half may take the read half too; when it gives the write half back, mode becomes read",
    },
    place: "001 §2.2.2",
    run: Run::NotRun(Bilingual {
        zh: "没有路由以同一个持有者拿两半；锁库自己的测试里有（lock/tests）",
        en: "no route takes both halves as one owner; the lock library's own tests do (lock/tests)",
    }),
    ..Lesson::PLAIN
};

pub(super) const TWO_MASTERS: Lesson = Lesson {
    id: "001.two-masters",
    title: Bilingual {
        zh: "双主架构",
        en: "Two masters",
    },
    claim: Bilingual {
        zh: "每次写两个独立的 master：比主从慢，其中一次失败还要考虑同步",
        en: "Two masters that are both written: slower than one, and where one write fails they must be brought together",
    },
    place: "001 §2.2.3",
    run: Run::NotRun(Bilingual {
        zh: "文中只有一句话，没有算法；写多个独立节点的算法是红锁（2.10.4）",
        en: "the text gives no algorithm; the one that writes several independent nodes is Redlock (2.10.4)",
    }),
    ..Lesson::PLAIN
};

pub(super) const REDLOCK: Lesson = Lesson {
    id: "001.redlock",
    title: Bilingual {
        zh: "红锁的代价",
        en: "What Redlock costs",
    },
    claim: Bilingual {
        zh: "红锁写五个节点，性能比写一个节点的锁低",
        en: "Redlock writes five nodes and is slower than a lock on one",
    },
    place: "001 §2.2.3",
    strategies: &["redis-lock", "redis-redlock"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies redis-lock,redis-redlock --targets one --threads 20 --loops 20",
        "…✓ as promised  redis-lock [lease]: exact on one instance\n✓ as promised  redis-redlock [lease]: exact on one instance",
    )],
    run: Run::Experiment(|on| {
        Box::pin(compared(
            on,
            Side::of("redis-lock"),
            Side::of("redis-redlock"),
            Says::Faster,
        ))
    }),
    ..Lesson::PLAIN
};
