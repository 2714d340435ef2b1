//! §2.1 to §2.3: a key that only one can write, with a lease, and with its owner in it.

use super::{ask, own};
use crate::bilingual::Bilingual;
use crate::{
    course::{
        Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Words,
        experiments::{exact, sales},
        replay::flaw_and_cure,
    },
    load::verdict::Verdict as Sold,
};
use futures::future::try_join_all;

pub(super) const ONE_OF_MANY: Lesson = Lesson {
    id: "2.1",
    title: Bilingual {
        zh: "SETNX：只有一个写得进去",
        en: "SETNX: only one writes it",
    },
    claim: Bilingual {
        zh: "很多客户端同时 SETNX 同一个键，只有一个得到 1，其余都得到 0；拿它当锁，三台实例也不超卖",
        en: "Of many who send SETNX for one key, one gets 1 and all others get 0; as a lock it does not oversell on three instances",
    },
    place: "000 §2.1",
    strategies: &["redis-setnx"],
    tries: &["/check/lock/redis-setnx?hold_ms=2000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} setnx lock:by-hand 111", "1"),
        Line::at(2, "redis-cli {redis} setnx lock:by-hand 111", "0"),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
        Line::at(2, "redis-cli {redis} setnx lock:by-hand 111", "1"),
        Line::at(2, "redis-cli {redis} del lock:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(one_of_many(on))),
    ..Lesson::PLAIN
};

async fn one_of_many(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (redis, key) = (on.redis().await?, own("lock"));
    let tries = (0..100).map(|_| {
        let (mut redis, key) = (redis.clone(), &key);
        async move { ask::<i64>(&mut redis, &["SETNX", key, "111"]).await }
    });
    let had: i64 = try_join_all(tries).await?.into_iter().sum();
    ask::<()>(&mut redis.clone(), &["DEL", &key]).await?;
    let row = on.load("redis-setnx", Target::Three).await?;
    let sold = sales(std::slice::from_ref(&row));
    let words = Words::new(
        format!("100 个 SETNX，得到 1 的有 {had} 个。{}", sold.zh),
        format!("Of 100 SETNX {had} got 1. {}", sold.en),
    );
    Ok(Seen::holds(had == 1 && row.verdict == Sold::Exact, words)
        .sales([&row])
        .value("had", had))
}

pub(super) const DEAD_HOLDER: Lesson = Lesson {
    id: "2.2",
    title: Bilingual {
        zh: "死锁：持有者宕机",
        en: "A holder that dies",
    },
    claim: Bilingual {
        zh: "SETNX 之后宕机，DEL 永远不来，锁就永远放不开；带上过期时间，它会自己放开",
        en: "Who dies after SETNX never sends DEL, and the lock is never free again; with a lease it frees itself",
    },
    place: "000 §2.2",
    strategies: &["redis-setnx", "redis-setnx-ttl"],
    replay: Some("2.1"),
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} setnx lock:redis-setnx 111", "1"),
        Line::new("redis-cli {redis} ttl lock:redis-setnx", "-1"),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{http}/check/lock/redis-setnx?wait_ms=500'",
            "503",
        ),
        Line::new("redis-cli {redis} del lock:redis-setnx", "1"),
        Line::new(
            "redis-cli {redis} set lock:redis-setnx-ttl 111 ex 3 nx",
            "OK",
        ),
        Line::at(
            2,
            "curl -s {http}/check/lock/redis-setnx-ttl",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.1"))),
    ..Lesson::PLAIN
};

pub(super) const EXPIRE_AFTERWARDS: Lesson = Lesson {
    id: "2.2.expire",
    title: Bilingual {
        zh: "先 SETNX 再 EXPIRE",
        en: "SETNX, and then EXPIRE",
    },
    claim: Bilingual {
        zh: "SETNX 和 EXPIRE 是两条命令：中间出了异常，锁还是放不开；SET … EX 3 NX 一条命令做完",
        en: "SETNX and EXPIRE are two commands: who fails between them leaves a lock for ever; SET … EX 3 NX is one",
    },
    place: "000 §2.2",
    strategies: &["redis-setnx-ttl"],
    by_hand: &[
        Line::new("redis-cli {redis} setnx lock:by-hand 111", "1"),
        Line::new("redis-cli {redis} ttl lock:by-hand", "-1"),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
        Line::new("redis-cli {redis} set lock:by-hand 111 ex 30 nx", "OK"),
        Line::new("redis-cli {redis} ttl lock:by-hand", "…"),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(expire_afterwards(on))),
    ..Lesson::PLAIN
};

async fn expire_afterwards(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, two, one) = (on.redis().await?, own("two"), own("one"));
    // Who sent it is dead by now, and EXPIRE never comes.
    ask::<()>(&mut redis, &["SETNX", &two, "111"]).await?;
    ask::<()>(&mut redis, &["SET", &one, "111", "EX", "3", "NX"]).await?;
    let two_left: i64 = ask(&mut redis, &["PTTL", &two]).await?;
    let one_left: i64 = ask(&mut redis, &["PTTL", &one]).await?;
    ask::<()>(&mut redis, &["DEL", &two, &one]).await?;
    let words = Words::new(
        format!(
            "只发了 SETNX 的键，PTTL 是 {two_left}（永不过期）；SET … EX 3 NX 的键还剩 {one_left} ms。"
        ),
        format!(
            "After SETNX alone PTTL is {two_left}: for ever. After SET … EX 3 NX {one_left} ms are left."
        ),
    );
    Ok(
        Seen::holds(two_left == -1 && (1..=3000).contains(&one_left), words)
            .value("pttl", vec![two_left, one_left]),
    )
}

pub(super) const WITH_A_LEASE: Lesson = Lesson {
    id: "2.2.load",
    title: Bilingual {
        zh: "带过期时间的锁，压力测试",
        en: "The lock with a lease, under load",
    },
    claim: Bilingual {
        zh: "加了过期时间，压力测试也没有问题：三台实例一件不多卖",
        en: "With a lease the load test is right too: three instances sell not one piece too many",
    },
    place: "000 §2.2",
    strategies: &["redis-setnx-ttl"],
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies redis-setnx-ttl --targets three --threads 20 --loops 20",
        "…✓ as promised  redis-setnx-ttl [lease]: exact on three instances",
    )],
    run: Run::Experiment(|on| Box::pin(exact(on, "redis-setnx-ttl", &[Target::Three]))),
    ..Lesson::PLAIN
};

pub(super) const LATE_DELETE: Lesson = Lesson {
    id: "2.3",
    title: Bilingual {
        zh: "误删：迟到的 DEL",
        en: "A late DEL",
    },
    claim: Bilingual {
        zh: "业务 7 s、租约 3 s：迟到的 DEL 删掉别人的锁，第三个人进来，等于没锁；锁里写上是谁的，删之前先看",
        en: "7 s of work under a lease of 3 s: the late DEL deletes another's lock, a third gets in, as if there were no lock; the cure: the key names its owner, who looks before deleting",
    },
    place: "000 §2.3",
    strategies: &["redis-setnx-ttl", "redis-setnx-owner"],
    replay: Some("2.2"),
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-setnx-ttl?lease_ms=3000&hold_ms=9000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock:redis-setnx-ttl", "1"),
        Line::until(
            2,
            "redis-cli {redis} set lock:redis-setnx-ttl mine ex 60 nx",
            "OK",
        ),
        Line::new("wait", ""),
        Line::at(2, "redis-cli {redis} exists lock:redis-setnx-ttl", "0"),
        Line::new(
            "curl -s '{8000}/check/lock/redis-setnx-owner?lease_ms=3000&hold_ms=9000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock:redis-setnx-owner", "1"),
        Line::until(
            2,
            "redis-cli {redis} set lock:redis-setnx-owner mine ex 60 nx",
            "OK",
        ),
        Line::new("wait", ""),
        Line::at(2, "redis-cli {redis} get lock:redis-setnx-owner", "mine"),
        Line::at(2, "redis-cli {redis} del lock:redis-setnx-owner", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.2"))),
    ..Lesson::PLAIN
};

pub(super) const LOOK_THEN_DELETE: Lesson = Lesson {
    id: "2.3.gap",
    title: Bilingual {
        zh: "看和删之间",
        en: "Between the look and the delete",
    },
    claim: Bilingual {
        zh: "先 GET 再 DEL 不是原子的：刚看过是自己的，租约到期，删的又是别人的锁",
        en: "GET and then DEL are not atomic: it was one's own a moment ago, the lease ends, and another's lock is deleted",
    },
    place: "000 §2.3",
    strategies: &["redis-setnx-owner", "redis-setnx-lua"],
    replay: Some("2.3"),
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} set lock:by-hand A px 3000 nx", "OK"),
        Line::new("redis-cli {redis} get lock:by-hand", "A"),
        Line::until(2, "redis-cli {redis} set lock:by-hand B ex 60 nx", "OK"),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
        Line::at(2, "redis-cli {redis} exists lock:by-hand", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.3"))),
    ..Lesson::PLAIN
};
