//! §2.10.2 to §2.10.7: fair locks, several locks as one, read-write locks, semaphores, latches.

use super::{ask, until_there};
use crate::bilingual::Bilingual;
use crate::{
    course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Verdict, Words, replay::flaw_and_cure},
    redis_at::redis_at,
};
use futures::future::{join_all, try_join_all};
use std::time::{Duration, Instant};

pub(super) const FAIR: Lesson = Lesson {
    id: "2.10.2",
    title: Bilingual {
        zh: "公平锁",
        en: "The fair lock",
    },
    claim: Bilingual {
        zh: "公平锁优先给先请求的：所有请求排成一个队；普通的锁谁碰巧先试谁进去",
        en: "The fair lock goes to who asked first: all stand in one queue; of a plain lock whoever happens to try first has it",
    },
    place: "000 §2.10.2",
    strategies: &["redis-fair", "redis-watchdog"],
    replay: Some("2.10.2"),
    tries: &["/test/fair?hold_ms=3000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new("curl -s -o /dev/null '{8000}/test/fair?hold_ms=8000' &", ""),
        Line::until(2, "redis-cli {redis} exists fairLock", "1"),
        Line::at(2, "curl -s -o /dev/null '{8100}/test/fair' &", ""),
        Line::until(
            3,
            "redis-cli {redis} llen 'redisson_lock_queue:{fairLock}'",
            "1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.10.2"))),
    ..Lesson::PLAIN
};

pub(super) const FIVE_DEAD: Lesson = Lesson {
    id: "2.10.2.dead",
    title: Bilingual {
        zh: "排队的人宕机了",
        en: "Waiters that die",
    },
    claim: Bilingual {
        zh: "排在前面的 5 个线程都宕机了，每个等 5 秒，后面的至少要等 25 秒",
        en: "With five dead waiters before it, each waited for 5 seconds, the next one waits at least 25",
    },
    place: "000 §2.10.2",
    strategies: &["redis-fair"],
    timing: true,
    expected: Verdict::NotReproduced,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/redis-fair?hold_ms=8000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(2, "redis-cli {redis} exists fairLock", "1"),
        Line::at(
            2,
            "curl -sZ --parallel-immediate -o /dev/null '{8200}/check/lock/redis-fair?who=[1-5]' &",
            "",
        ),
        Line::until(
            2,
            "redis-cli {redis} llen 'redisson_lock_queue:{fairLock}'",
            "5",
        ),
        Line::at(
            3,
            "curl -s -m 20 -w ' %{time_total}' {8100}/check/lock/redis-fair &",
            "验库存并锁库存成功！ …",
        ),
        // The five are dropped together, 5 s after their last try: the living one does not wait for 25 s.
        Line::until(
            1,
            "redis-cli {redis} llen 'redisson_lock_queue:{fairLock}'",
            "6",
        ),
        Line::new(
            "{fault} kill {name-8200}; {fault} start {name-8200}",
            "{name-8200} is killed\n{name-8200} runs again",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(five_dead(on))),
    ..Lesson::PLAIN
};

/// One has the lock; five wait in an instance that is killed, and behind them one in another.
async fn five_dead(on: &Cluster) -> Result<Seen, NoVerdict> {
    let [first, second, third] = &on.servers()?.instances[..] else {
        return Err(NoVerdict::without(
            "要有三台实例",
            "it takes three instances",
        ));
    };
    let product = on.product(5000).await?;
    let (redis, lock, begun) = (
        on.redis().await?,
        format!("fairLock:{}", product.id),
        Instant::now(),
    );
    let queue = format!("redisson_lock_queue:{{{lock}}}");
    let queued = async |waiters: i64| {
        let mut redis = redis.clone();
        while ask::<i64>(&mut redis, &["LLEN", &queue]).await? < waiters {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<_, NoVerdict>(())
    };
    let held = async {
        product
            .buy(&first.url, "redis-fair", "&hold_ms=4000")
            .await?;
        Ok::<_, NoVerdict>(())
    };
    let die = async {
        until_there(&mut redis.clone(), &lock).await?;
        // Nobody answers them any more.
        join_all((0..5).map(|_| product.buy(&third.url, "redis-fair", "&wait_ms=60000"))).await;
        Ok::<_, NoVerdict>(())
    };
    let lives = async {
        queued(5).await?;
        product
            .buy(&second.url, "redis-fair", "&wait_ms=60000")
            .await?;
        Ok::<_, NoVerdict>(begun.elapsed())
    };
    let killed = async {
        queued(6).await?;
        on.fault("kill", &third.name).await?;
        Ok::<_, NoVerdict>(begun.elapsed())
    };
    let ((), (), lives, killed) = tokio::try_join!(held, die, lives, killed)?;
    on.fault("start", &third.name).await?;
    product.remove().await?;
    let waited = lives.saturating_sub(killed).as_millis();
    let words = Words::new(
        format!(
            "五个宕机 {waited} ms 以后，活着的就进去了：每个等待者都留下最后一次来试的时间，5 秒没来的一起出队，不是一个一个地等。"
        ),
        format!(
            "The living one was through {waited} ms after the five had died: each waiter's last try is noted, and those who have not tried \
             for 5 s leave the queue together, not one after the other."
        ),
    );
    let waited = u64::try_from(waited).unwrap_or(u64::MAX);
    Ok(Seen::holds(waited >= 25_000, words).value("waited_ms", waited))
}

pub(super) const ALL_OR_NONE: Lesson = Lesson {
    id: "2.10.3",
    title: Bilingual {
        zh: "联锁",
        en: "The multi lock",
    },
    claim: Bilingual {
        zh: "联锁的几把锁全部加上才算成功",
        en: "A multi lock is had only where all of its locks are",
    },
    place: "000 §2.10.3",
    strategies: &["redis-multi"],
    tries: &["/test/multi?hold_ms=3000&who={who}"],
    by_hand: &[
        Line::new("redis-cli {redis} hset lock2 somebody 1", "1"),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{http}/check/lock/redis-multi?wait_ms=500'",
            "503",
        ),
        Line::new("redis-cli {redis} exists lock1 lock3", "0"),
        Line::new("redis-cli {redis} del lock2", "1"),
        Line::new(
            "curl -s {http}/check/lock/redis-multi",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(all_or_none(on))),
    ..Lesson::PLAIN
};

async fn all_or_none(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let [one, two, three] = [1, 2, 3].map(|n| format!("lock{n}:{}", product.id));
    let mut redis = on.redis().await?;
    ask::<()>(&mut redis, &["HSET", &two, "somebody", "1"]).await?;
    let (without, _) = product.buy(on.one(), "redis-multi", "&wait_ms=500").await?;
    let left: i64 = ask(&mut redis, &["EXISTS", &one, &three]).await?;
    ask::<()>(&mut redis, &["DEL", &two]).await?;
    let (with, _) = product
        .buy(on.one(), "redis-multi", "&wait_ms=5000")
        .await?;
    product.remove().await?;
    let words = Words::new(
        format!("lock2 被别人占着：{without}，lock1、lock3 留下 {left} 把；都空着：{with}。"),
        format!(
            "With lock2 another's: {without}, and {left} of lock1 and lock3 are left; with all free: {with}."
        ),
    );
    Ok(Seen::holds((without, left, with) == (503, 0, 200), words))
}

pub(super) const MOST_NODES: Lesson = Lesson {
    id: "2.10.4",
    title: Bilingual {
        zh: "红锁",
        en: "Redlock",
    },
    claim: Bilingual {
        zh: "红锁在大部分节点上加锁成功就算成功：五个节点里三个就够，两个不够",
        en: "Redlock is had where most nodes give it: three of five are enough, two are not",
    },
    place: "000 §2.10.4",
    strategies: &["redis-redlock"],
    tries: &["/test/red?hold_ms=3000&who={who}"],
    by_hand: &[
        Line::new("redis-cli {redis-4} hset redLock somebody 1", "1"),
        Line::new("redis-cli {redis-5} hset redLock somebody 1", "1"),
        Line::new(
            "curl -s '{http}/check/lock/redis-redlock?wait_ms=2000'",
            "验库存并锁库存成功！",
        ),
        Line::new("redis-cli {redis-3} hset redLock somebody 1", "1"),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{http}/check/lock/redis-redlock?wait_ms=1000'",
            "503",
        ),
        Line::new(
            "redis-cli {redis-3} del redLock; redis-cli {redis-4} del redLock; redis-cli {redis-5} del redLock",
            "1\n1\n1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(most_nodes(on))),
    ..Lesson::PLAIN
};

async fn most_nodes(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let key = format!("redLock:{}", product.id);
    let nodes = &on.servers()?.redis;
    let mut answers = vec![
        product
            .buy(on.one(), "redis-redlock", "&wait_ms=1000")
            .await?
            .0,
    ];
    for node in nodes {
        let mut node = redis_at(&node.url).await.map_err(NoVerdict::failed)?;
        ask::<()>(&mut node, &["HSET", &key, "somebody", "1"]).await?;
        answers.push(
            product
                .buy(on.one(), "redis-redlock", "&wait_ms=1000")
                .await?
                .0,
        );
    }
    product.remove().await?;
    let words = Words::new(
        format!("0 到 5 个节点被别人占着：{answers:?}。"),
        format!("With 0 to 5 nodes another's: {answers:?}."),
    );
    Ok(Seen::holds(answers == [200, 200, 200, 503, 503, 503], words).value("answers", answers))
}

pub(super) const READ_WRITE: Lesson = Lesson {
    id: "2.10.5",
    title: Bilingual {
        zh: "读写锁",
        en: "The read-write lock",
    },
    claim: Bilingual {
        zh: "同时读不用等待；先写后读、先读后写、同时写都要等",
        en: "Readers do not wait for each other; a reader waits for a writer, a writer for a reader, and a writer for a writer",
    },
    place: "000 §2.10.5",
    strategies: &["redis-write"],
    replay: Some("2.10.5"),
    tries: &["/test/read?who={who}", "/test/write?who={who}"],
    quick: true,
    by_hand: &[
        Line::new("curl -s '{http}/test/read?hold_ms=4000'", "测试读"),
        Line::at(
            2,
            "curl -s '{http}/test/read?hold_ms=4000&wait_ms=0'",
            "测试读",
        ),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{http}/test/write?wait_ms=0'",
            "503",
        ),
        Line::at(2, "curl -s '{http}/test/write?hold_ms=3000'", "测试写"),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{http}/test/read?wait_ms=0'",
            "503",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{http}/test/write?wait_ms=0'",
            "503",
        ),
        Line::new("curl -s '{http}/test/read?hold_ms=100'", "测试读"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.10.5"))),
    ..Lesson::PLAIN
};

pub(super) const SEMAPHORE: Lesson = Lesson {
    id: "2.10.6",
    title: Bilingual {
        zh: "信号量",
        en: "The semaphore",
    },
    claim: Bilingual {
        zh: "3 个许可，并发 10 次：三台实例合起来每批只进 3 个",
        en: "With 3 permits and 10 requests at once, over three instances only 3 are inside at a time",
    },
    place: "000 §2.10.6",
    replay: Some("2.10.6"),
    tries: &["/test/semaphore?who={who}"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -sZ --parallel-immediate -o /dev/null '{http}/test/semaphore?hold_ms=8000&who=[1-3]' &",
            "",
        ),
        Line::until(2, "redis-cli {redis} get semaphore", "0"),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{http}/test/semaphore?wait_ms=0'",
            "503",
        ),
        Line::at(2, "curl -s '{http}/test/semaphore?hold_ms=0'", "测试信号量"),
    ],
    run: Run::Experiment(|on| Box::pin(semaphore(on))),
    ..Lesson::PLAIN
};

async fn semaphore(on: &Cluster) -> Result<Seen, NoVerdict> {
    const STAY: u128 = 500;
    let (product, begun) = (on.product(5000).await?, Instant::now());
    let visits = (0..10).map(|n| {
        let at = format!(
            "{}/test/semaphore?stock_id={}&hold_ms={STAY}&who={n}",
            on.three(),
            product.id
        );
        async move {
            on.get(&at).await?.success()?;
            Ok::<_, NoVerdict>(begun.elapsed().as_millis())
        }
    });
    let mut left = try_join_all(visits).await?;
    product.remove().await?;
    left.sort_unstable();
    // Who leaves fourth after another has come in after it.
    let three = left
        .windows(4)
        .all(|four| four[3] - four[0] >= STAY * 9 / 10);
    let words = Words::new(
        format!("10 个请求离开的时刻（ms）：{left:?}；任何一段停留时间里最多 3 个：{three}。"),
        format!("The ten left after (ms) {left:?}; never more than 3 within one stay: {three}."),
    );
    let left: Vec<_> = left
        .into_iter()
        .map(|at| u64::try_from(at).unwrap_or(u64::MAX))
        .collect();
    Ok(Seen::holds(three, words).value("left_ms", left))
}

pub(super) const LATCH: Lesson = Lesson {
    id: "2.10.7",
    title: Bilingual {
        zh: "闭锁",
        en: "The latch",
    },
    claim: Bilingual {
        zh: "班长等六位同学：第六次 countdown 之后，第一个请求才有回答",
        en: "The monitor waits for six: the first request is answered after the sixth count-down",
    },
    place: "000 §2.10.7",
    replay: Some("2.10.7"),
    tries: &["/test/latch?who={who}", "/test/countdown?who={who}"],
    quick: true,
    by_hand: &[
        Line::new("curl -s {http}/test/latch &", "班长锁门。。。"),
        Line::until(2, "redis-cli {redis} exists latch", "1"),
        Line::at(
            2,
            "for n in 1 2 3 4 5; do curl -s {http}/test/countdown; done; redis-cli {redis} get latch",
            "出来了一位同学…1",
        ),
        Line::at(2, "curl -s {http}/test/countdown", "出来了一位同学"),
        Line::at(2, "redis-cli {redis} exists latch", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(latch(on))),
    ..Lesson::PLAIN
};

async fn latch(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("latch:{}", product.id));
    let at = |route: &str| format!("{}/test/{route}?stock_id={}", on.three(), product.id);
    let (door, countdown) = (at("latch"), at("countdown"));
    let monitor = on.get(&door);
    tokio::pin!(monitor);
    let five = async {
        until_there(&mut redis, &key).await?;
        for _ in 0..5 {
            on.get(&countdown).await?.success()?;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok::<_, NoVerdict>(())
    };
    let early = tokio::select! {
        answer = &mut monitor => Some(answer?),
        five = five => five.map(|()| None)?,
    };
    let after_six = match &early {
        Some(_) => false,
        None => {
            let (door, last) = tokio::join!(monitor, on.get(&countdown));
            last?.success()?;
            door?.success().is_ok()
        }
    };
    product.remove().await?;
    let words = Words::new(
        format!(
            "五位出来以后门{}锁；第六位出来以后锁门：{after_six}。",
            if early.is_some() { "已" } else { "没" }
        ),
        format!(
            "After five the door is {}; after the sixth it is locked: {after_six}.",
            if early.is_some() { "locked" } else { "open" }
        ),
    );
    Ok(Seen::holds(early.is_none() && after_six, words))
}
