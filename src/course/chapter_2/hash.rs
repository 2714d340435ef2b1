//! §2.6 and §2.7: a hash that counts its owner's holds, and a timer that renews it.

use super::{ask, own};
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Words, experiments::exact,
    replay::flaw_and_cure,
};
use std::time::Duration;

const ENTER_LUA: &str = include_str!("../../stock/lua/enter.lua");
const LEAVE_LUA: &str = include_str!("../../stock/lua/leave.lua");
const LEASE_MS: &str = "30000";

pub(super) const RE_ENTRY: Lesson = Lesson {
    id: "2.6",
    title: Bilingual {
        zh: "可重入",
        en: "Re-entry",
    },
    claim: Bilingual {
        zh: "键一旦在，SETNX 就再也设置不成功：拿着锁的人再拿一次，要等自己放开；用 Hash 计数就不用等",
        en: "Once the key is there SETNX fails: who has the lock and takes it again waits for itself; a hash that counts lets it in",
    },
    place: "000 §2.6",
    strategies: &["redis-setnx-lua", "redis-reentrant"],
    replay: Some("2.6"),
    tries: &["/test/reentrant?who={who}"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-reentrant?hold_ms=6000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} hvals lock:redis-reentrant", "2"),
        Line::until(2, "redis-cli {redis} exists lock:redis-reentrant", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.6"))),
    ..Lesson::PLAIN
};

pub(super) const ENTER: Lesson = Lesson {
    id: "2.6.1",
    title: Bilingual {
        zh: "加锁脚本",
        en: "The script that locks",
    },
    claim: Bilingual {
        zh: "锁不在，或者是自己的：计数加一，重新计租约，返回 1；是别人的：返回 0",
        en: "Nobody's, or one's own already: one hold more and the lease anew, 1; another's: 0",
    },
    place: "000 §2.6.1",
    strategies: &["redis-reentrant"],
    by_hand: &[
        // A script that is loaded is called by the SHA-1 of its text.
        Line::new(
            r#"redis-cli {redis} script load "if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return 1""#,
            "f5c49a8473b0e1182abd71dd84047e325c0bc04d",
        ),
        Line::new(
            "redis-cli {redis} evalsha f5c49a8473b0e1182abd71dd84047e325c0bc04d 1 lock:by-hand A 30000",
            "1",
        ),
        Line::new(
            "redis-cli {redis} evalsha f5c49a8473b0e1182abd71dd84047e325c0bc04d 1 lock:by-hand A 30000",
            "1",
        ),
        Line::at(
            2,
            "redis-cli {redis} evalsha f5c49a8473b0e1182abd71dd84047e325c0bc04d 1 lock:by-hand B 30000",
            "0",
        ),
        Line::new("redis-cli {redis} hgetall lock:by-hand", "A\n2"),
        Line::new("redis-cli {redis} ttl lock:by-hand", "…"),
        Line::new("redis-cli {redis} del lock:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(enter(on))),
    ..Lesson::PLAIN
};

async fn enter(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, lock) = (on.redis().await?, own("lock"));
    let mut said = Vec::new();
    for owner in ["A", "A", "B"] {
        said.push(
            ask::<i64>(
                &mut redis,
                &["EVAL", ENTER_LUA, "1", &lock, owner, LEASE_MS],
            )
            .await?,
        );
    }
    let holds: Vec<(String, i64)> = ask(&mut redis, &["HGETALL", &lock]).await?;
    let left: i64 = ask(&mut redis, &["PTTL", &lock]).await?;
    ask::<()>(&mut redis, &["DEL", &lock]).await?;
    let words = Words::new(
        format!("A、A、B 依次来拿，返回 {said:?}；Hash 里是 {holds:?}，租约还剩 {left} ms。"),
        format!(
            "A, A and B came in turn and got {said:?}; the hash is {holds:?}, {left} ms of its lease are left."
        ),
    );
    Ok(Seen::holds(
        said == [1, 1, 0] && holds == [("A".to_owned(), 2)] && left > 0,
        words,
    )
    .value("returned", said))
}

pub(super) const LEAVE: Lesson = Lesson {
    id: "2.6.2",
    title: Bilingual {
        zh: "解锁脚本",
        en: "The script that unlocks",
    },
    claim: Bilingual {
        zh: "不是自己的锁解不了；是自己的，计数减一，减到 0 才删",
        en: "Another's lock is not unlocked; of one's own the count goes down by one, and at 0 it is deleted",
    },
    place: "000 §2.6.2",
    strategies: &["redis-reentrant"],
    by_hand: &[
        Line::new(
            r#"redis-cli {redis} script load "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end if redis.call('hincrby', KEYS[1], ARGV[1], -1) <= 0 then redis.call('del', KEYS[1]) end return 1""#,
            "9148f9cb98cbf1427af24ad4be687be357a03cb0",
        ),
        Line::new("redis-cli {redis} hset lock:by-hand A 2", "1"),
        Line::at(
            2,
            "redis-cli {redis} evalsha 9148f9cb98cbf1427af24ad4be687be357a03cb0 1 lock:by-hand B",
            "0",
        ),
        Line::new(
            "redis-cli {redis} evalsha 9148f9cb98cbf1427af24ad4be687be357a03cb0 1 lock:by-hand A",
            "1",
        ),
        Line::new("redis-cli {redis} hget lock:by-hand A", "1"),
        Line::new(
            "redis-cli {redis} evalsha 9148f9cb98cbf1427af24ad4be687be357a03cb0 1 lock:by-hand A",
            "1",
        ),
        Line::new("redis-cli {redis} exists lock:by-hand", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(leave(on))),
    ..Lesson::PLAIN
};

async fn leave(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, lock) = (on.redis().await?, own("lock"));
    ask::<()>(&mut redis, &["HSET", &lock, "A", "2"]).await?;
    let (mut had, mut counts) = (Vec::new(), Vec::new());
    for owner in ["B", "A", "A", "A"] {
        had.push(ask::<i64>(&mut redis, &["EVAL", LEAVE_LUA, "1", &lock, owner]).await?);
        counts.push(
            ask::<Option<i64>>(&mut redis, &["HGET", &lock, "A"])
                .await?
                .unwrap_or(0),
        );
    }
    let words = Words::new(
        format!("A 进了两次。B、A、A、A 依次来解，返回 {had:?}，A 的计数随后是 {counts:?}。"),
        format!(
            "A was in twice. B, A, A and A unlocked in turn and got {had:?}; A's count was then {counts:?}."
        ),
    );
    let holds = had == [0, 1, 1, 0] && counts == [2, 1, 0, 0];
    Ok(Seen::holds(holds, words))
}

pub(super) const UNDER_LOAD: Lesson = Lesson {
    id: "2.6.4",
    title: Bilingual {
        zh: "可重入锁，压力测试",
        en: "The re-entrant lock, under load",
    },
    claim: Bilingual {
        zh: "用它扣库存，三台实例不超卖",
        en: "With it three instances do not oversell",
    },
    place: "000 §2.6.4",
    strategies: &["redis-reentrant"],
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies redis-reentrant --targets three --threads 20 --loops 20",
        "…✓ as promised  redis-reentrant [lease]: exact on three instances",
    )],
    run: Run::Experiment(|on| Box::pin(exact(on, "redis-reentrant", &[Target::Three]))),
    ..Lesson::PLAIN
};

pub(super) const WATCHDOG: Lesson = Lesson {
    id: "2.7",
    title: Bilingual {
        zh: "自动续期",
        en: "Renewal",
    },
    claim: Bilingual {
        zh: "业务比租约长，锁中途就没了，两个人同时在里面；有定时器续期，锁一直是自己的",
        en: "A job longer than its lease loses the lock in the middle, and two are inside; with a timer that renews, it keeps it",
    },
    place: "000 §2.7",
    strategies: &["redis-reentrant", "redis-watchdog"],
    replay: Some("2.7"),
    tries: &["/check/lock/redis-watchdog?lease_ms=3000&hold_ms=10000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-reentrant?lease_ms=6000&hold_ms=10000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists lock:redis-reentrant", "1"),
        Line::at(
            2,
            "sleep 7; redis-cli {redis} exists lock:redis-reentrant",
            "0",
        ),
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
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.7"))),
    ..Lesson::PLAIN
};

pub(super) const EVERY_THIRD: Lesson = Lesson {
    id: "2.7.third",
    title: Bilingual {
        zh: "每过三分之一续一次",
        en: "Every third of the lease",
    },
    claim: Bilingual {
        zh: "定时器每过租约的三分之一（30 s 的锁是 10 s）把它续满",
        en: "A timer begins the lease anew every third of it (10 s of 30 s)",
    },
    place: "000 §2.7",
    strategies: &["redis-watchdog"],
    timing: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-watchdog?lease_ms=15000&hold_ms=12000' &",
            "验库存并锁库存成功！",
        ),
        // Renewed every 5 s it has never less than 10 s; without a timer it would have less than 6 s left at the end.
        Line::until(2, "redis-cli {redis} exists lock:redis-watchdog", "1"),
        Line::at(
            2,
            "redis-cli {redis} -r 4 -i 3 pttl lock:redis-watchdog | awk '{print ($1 > 6000 ? \"over 6 s\" : $1)}'",
            "over 6 s\nover 6 s\nover 6 s\nover 6 s",
        ),
        Line::until(2, "redis-cli {redis} exists lock:redis-watchdog", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(every_third(on))),
    ..Lesson::PLAIN
};

async fn every_third(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (
        on.redis().await?,
        format!("lock:redis-watchdog:{}", product.id),
    );
    // Nine seconds of work under a lease of three.
    let left = watched(
        product.buy(on.one(), "redis-watchdog", "&lease_ms=3000&hold_ms=9500"),
        &mut redis,
        &key,
    )
    .await?;
    product.remove().await?;
    let renewed = renewals(&left);
    let lowest = left.iter().min().copied().unwrap_or_default();
    let words = Words::new(
        format!("租约 3 s、业务 9.5 s：续了 {renewed} 次，剩得最少时 {lowest} ms。"),
        format!(
            "A lease of 3 s and 9.5 s of work: renewed {renewed} times, and never less than {lowest} ms left."
        ),
    );
    let holds = (8..=9).contains(&renewed) && lowest > 1500;
    Ok(Seen::holds(holds, words)
        .value("renewed", renewed)
        .value("lowest_ms", lowest))
}

/// What is left of a key's lease, every 20 ms until the purchase is through, in milliseconds.
pub(super) async fn watched<T>(
    purchase: impl Future<Output = T>,
    redis: &mut redis::aio::MultiplexedConnection,
    key: &str,
) -> Result<Vec<i64>, NoVerdict> {
    let mut left = Vec::new();
    tokio::pin!(purchase);
    loop {
        tokio::select! {
            _ = &mut purchase => return Ok(left),
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                left.extend(Some(ask::<i64>(redis, &["PTTL", key]).await?).filter(|left| *left >= 0));
            }
        }
    }
}

/// How often the lease was begun anew.
pub(super) fn renewals(left: &[i64]) -> usize {
    left.windows(2)
        .filter(|pair| pair[1] > pair[0] + 100)
        .count()
}
