//! §2.10.1: Redisson's lock, which here is `redis-lock`.

use super::{
    ask,
    hash::{renewals, watched},
    until_there,
};
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Says, Seen, Side, Target, Words,
    experiments::{compared, exact},
};
use std::time::{Duration, Instant};

pub(super) const LOCK: Lesson = Lesson {
    id: "2.10.1",
    title: Bilingual {
        zh: "Redisson 的可重入锁",
        en: "Redisson's lock",
    },
    claim: Bilingual {
        zh: "压力测试之后，数据库也没有问题",
        en: "After the load test the database is right",
    },
    place: "000 §2.10.1",
    strategies: &["redis-lock"],
    tries: &["/check/lock/redis-lock?hold_ms=2000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-lock?hold_ms=6000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} hvals lock", "1"),
        Line::at(2, "redis-cli {redis} pttl lock", "2…"),
        Line::until(2, "redis-cli {redis} exists lock", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "redis-lock", &[Target::One, Target::Three]))),
    ..Lesson::PLAIN
};

pub(super) const REDISSON_OR_BY_HAND: Lesson = Lesson {
    id: "2.10.1.rate",
    title: Bilingual {
        zh: "Redisson 与手写的锁",
        en: "Redisson's lock and the one written by hand",
    },
    claim: Bilingual {
        zh: "Redisson 的锁和手写的性能差不多",
        en: "Redisson's lock is about as fast as the one written by hand",
    },
    place: "000 §2.10.1",
    strategies: &["redis-lock", "redis-watchdog"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies redis-lock,redis-watchdog --targets one --threads 20 --loops 20",
        "…✓ as promised  redis-lock [lease]: exact on one instance\n✓ as promised  redis-watchdog [lease]: exact on one instance\n§2.10.1 …",
    )],
    run: Run::Experiment(|on| {
        Box::pin(compared(
            on,
            Side::of("redis-lock"),
            Side::of("redis-watchdog"),
            Says::Alike,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const THIRTY_SECONDS: Lesson = Lesson {
    id: "2.10.1.watchdog",
    title: Bilingual {
        zh: "看门狗：默认 30 秒",
        en: "The watchdog: 30 seconds",
    },
    claim: Bilingual {
        zh: "没给 leaseTime 时，租约默认 30 s，看门狗在实例关闭前不断续期",
        en: "Without a lease time the lease is 30 s, and a watchdog renews it as long as the client lives",
    },
    place: "000 §2.10.1",
    strategies: &["redis-lock"],
    timing: true,
    by_hand: &[
        Line::new(
            "curl -s '{8100}/check/lock/redis-lock?hold_ms=6000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} pttl lock", "2…"),
        Line::new("wait", ""),
        // 10 s are a third of 30: a shorter lease is renewed more often, until its client stands still.
        Line::at(
            2,
            "curl -s '{8100}/check/lock/redis-lock?lease_ms=5000&hold_ms=14000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(1, "redis-cli {redis} exists lock", "1"),
        Line::new("sleep 6; redis-cli {redis} exists lock", "1"),
        Line::new(
            "{fault} pause {name-8100}; sleep 5.5; redis-cli {redis} exists lock",
            "{name-8100} is paused\n0",
        ),
        Line::new("{fault} resume {name-8100}", "{name-8100} goes on"),
    ],
    run: Run::Experiment(|on| Box::pin(thirty_seconds(on))),
    ..Lesson::PLAIN
};

async fn thirty_seconds(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:{}", product.id));
    let left = watched(
        product.buy(on.one(), "redis-lock", "&hold_ms=11500"),
        &mut redis,
        &key,
    )
    .await?;
    product.remove().await?;
    let (renewed, most) = (
        renewals(&left),
        left.iter().max().copied().unwrap_or_default(),
    );
    let words = Words::new(
        format!("持有 11.5 s：租约最多 {most} ms，续了 {renewed} 次。"),
        format!(
            "Held for 11.5 s: the lease was {most} ms at most, and was renewed {renewed} times."
        ),
    );
    let holds = (29_000..=30_000).contains(&most) && renewed == 1;
    Ok(Seen::holds(holds, words)
        .value("renewed", renewed)
        .value("most_ms", most))
}

pub(super) const ONLY_THE_OWNER: Lesson = Lesson {
    id: "2.10.1.owner",
    title: Bilingual {
        zh: "只有拥有者能解锁",
        en: "Only its owner unlocks it",
    },
    claim: Bilingual {
        zh: "只有拥有锁的进程才能解锁，别人解锁会得到异常",
        en: "Only the process that has the lock may unlock it; another's unlock fails",
    },
    place: "000 §2.10.1",
    strategies: &["redis-lock"],
    by_hand: &[
        Line::new(
            "curl -s -H 'accept: application/json' '{8000}/check/lock/redis-lock?hold_ms=8000' &",
            r#"…"lock":"lost"…"#,
        ),
        Line::until(2, "redis-cli {redis} exists lock", "1"),
        Line::at(
            2,
            "redis-cli {redis} del lock; redis-cli {redis} hset lock somebody 1",
            "1\n1",
        ),
        Line::new("wait", ""),
        Line::new("redis-cli {redis} hgetall lock", "somebody\n1"),
        Line::at(2, "redis-cli {redis} del lock", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(only_the_owner(on))),
    ..Lesson::PLAIN
};

async fn only_the_owner(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:{}", product.id));
    let others = async {
        until_there(&mut redis, &key).await?;
        // By somebody's hand it is another's lock now.
        ask::<()>(&mut redis, &["DEL", &key]).await?;
        ask::<()>(&mut redis, &["HSET", &key, "somebody", "1"]).await
    };
    let (bought, others) =
        tokio::join!(product.buy(on.one(), "redis-lock", "&hold_ms=1000"), others);
    others?;
    let found = bought?.1["lock"].clone();
    let stays: Option<i64> = ask(&mut redis, &["HGET", &key, "somebody"]).await?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "锁中途成了别人的：解锁说 {found}，别人的锁还在：{}。",
            stays.is_some()
        ),
        format!(
            "The lock became another's meanwhile: the unlock says {found}; the other's lock stays: {}.",
            stays.is_some()
        ),
    );
    Ok(Seen::holds(found == "lost" && stays == Some(1), words))
}

pub(super) const LEASE_TIME: Lesson = Lesson {
    id: "2.10.1.lease",
    title: Bilingual {
        zh: "leaseTime：到点自动解锁",
        en: "A lease time: unlocked by itself",
    },
    claim: Bilingual {
        zh: "加锁时给了 leaseTime，过了这个时间自动解开，不用调用 unlock",
        en: "With a lease time the lock is free after it, and nobody need unlock",
    },
    place: "000 §2.10.1",
    by_hand: &[
        Line::new("curl -s '{http}/test/write?hold_ms=1000'", "测试写"),
        Line::until(1, "redis-cli {redis} exists rwLock", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(lease_time(on))),
    ..Lesson::PLAIN
};

async fn lease_time(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("rwLock:{}", product.id));
    let begun = Instant::now();
    on.get(&format!(
        "{}/test/write?stock_id={}&hold_ms=1500",
        on.one(),
        product.id
    ))
    .await?
    .success()?;
    let answered = begun.elapsed().as_millis();
    let left: i64 = ask(&mut redis, &["PTTL", &key]).await?;
    let gone = tokio::time::timeout(Duration::from_secs(10), async {
        while ask::<bool>(&mut redis, &["EXISTS", &key]).await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, NoVerdict>(begun.elapsed().as_millis())
    });
    let gone = gone
        .await
        .map_err(|_| NoVerdict::failed("the lock stays"))??;
    product.remove().await?;
    let words = Words::new(
        format!(
            "写锁给了 1500 ms：{answered} ms 就有了回答，那时租约还剩 {left} ms；{gone} ms 时锁自己没了。"
        ),
        format!(
            "A write lock for 1500 ms: answered after {answered} ms with {left} ms left; gone by itself after {gone} ms."
        ),
    );
    Ok(Seen::holds(
        (0..=1500).contains(&left) && gone >= 1400,
        words,
    ))
}

pub(super) const TRY_LOCK: Lesson = Lesson {
    id: "2.10.1.try",
    title: Bilingual {
        zh: "tryLock：最多等这么久",
        en: "tryLock: waits so long at most",
    },
    claim: Bilingual {
        zh: "tryLock(等多久, 租约)：等到了就拿到锁，等不到就返回 false，不再等",
        en: "tryLock(wait, lease): had within the wait, or false after it, and no longer",
    },
    place: "000 §2.10.1",
    strategies: &["redis-lock"],
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-lock?hold_ms=8000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock", "1"),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/check/lock/redis-lock?wait_ms=500'",
            "503",
        ),
        Line::at(
            2,
            "curl -s '{8100}/check/lock/redis-lock?wait_ms=20000'",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(try_lock(on))),
    ..Lesson::PLAIN
};

async fn try_lock(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:{}", product.id));
    let other = on.instances().last().map_or(on.one(), String::as_str);
    let tries = async {
        until_there(&mut redis, &key).await?;
        let begun = Instant::now();
        let (short, _) = product.buy(other, "redis-lock", "&wait_ms=500").await?;
        let waited = begun.elapsed().as_millis();
        let (long, _) = product.buy(other, "redis-lock", "&wait_ms=20000").await?;
        Ok::<_, NoVerdict>((short, waited, long))
    };
    let (held, tries) = tokio::join!(product.buy(on.one(), "redis-lock", "&hold_ms=2500"), tries);
    held?;
    let (short, waited, long) = tries?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "锁被占着：最多等 500 ms 的，{waited} ms 后得到 {short}；愿意等久些的得到 {long}。"
        ),
        format!(
            "While another has it: who waits 500 ms at most got {short} after {waited} ms; who waits longer got {long}."
        ),
    );
    Ok(Seen::holds(
        short == 503 && waited >= 490 && long == 200,
        words,
    ))
}
