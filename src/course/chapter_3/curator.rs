//! §3.7.1 to §3.7.6: the locks, leases and barriers of Curator.

use super::{below, got, until_below};
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Product, Run, Seen, Target, Words, experiments::exact,
    replay::flaw_and_cure,
};
use futures::future::try_join_all;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

pub(super) const MUTEX: Lesson = Lesson {
    id: "3.7.1",
    title: Bilingual {
        zh: "InterProcessMutex",
        en: "InterProcessMutex",
    },
    claim: Bilingual {
        zh: "不超卖；拿着锁的可以再拿，拿几次就放几次",
        en: "It does not oversell; who has it may take it again, and gives it back as often",
    },
    place: "000 §3.7.1",
    strategies: &["zk-mutex"],
    replay: Some("3.5"),
    tries: &["/test/zk/reentrant?hold_ms=3000&who={who}"],
    by_hand: &[
        Line::new(
            "curl -s '{http}/check/lock/zk-mutex'",
            "验库存并锁库存成功！",
        ),
        Line::new(
            "curl -s -H 'accept: application/json' '{8000}/test/zk/reentrant'",
            "…\"took\"…\"order\":2…\"left\"…\"order\":0…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(mutex(on))),
    ..Lesson::PLAIN
};

async fn mutex(on: &Cluster) -> Result<Seen, NoVerdict> {
    let visit = steps(&got(on, &format!("{}/test/zk/reentrant", on.one())).await?);
    let sale = exact(on, "zk-mutex", &[Target::Three]).await?;
    let twice = visit == [("took", 1), ("took", 2), ("left", 1), ("left", 0)].map(own);
    let words = Words::new(
        format!("{}同一个持有者：{}。", sale.words.zh, said(&visit)),
        format!("{} One owner: {}.", sale.words.en, said(&visit)),
    );
    let holds = sale.verdict == crate::course::Verdict::Reproduced && twice;
    Ok(Seen {
        figures: sale.figures,
        ..Seen::holds(holds, words)
    })
}

fn own((did, order): (&str, u64)) -> (String, u64) {
    (did.to_owned(), order)
}

/// What a visit did, and its numbers.
fn steps(visit: &Value) -> Vec<(String, u64)> {
    let steps = visit["steps"].as_array().into_iter().flatten();
    steps
        .filter_map(|step| Some((step["did"].as_str()?.to_owned(), step["order"].as_u64()?)))
        .collect()
}

fn said(steps: &[(String, u64)]) -> String {
    steps
        .iter()
        .map(|(did, order)| format!("{did} #{order}"))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) const SAME_OBJECT: Lesson = Lesson {
    id: "3.7.1.object",
    title: Bilingual {
        zh: "要用同一个对象",
        en: "It takes the same object",
    },
    claim: Bilingual {
        zh: "想重入，必须用同一个 InterProcessMutex 对象",
        en: "Re-entry takes the same InterProcessMutex object",
    },
    place: "000 §3.7.1.1",
    strategies: &["zk-mutex"],
    run: Run::NotRun(Bilingual {
        zh: "Curator 按线程和对象计数；这里按持有者计数，换一个对象也能重入",
        en: "Curator counts for a thread in an object; here the owner is what counts, whatever the object",
    }),
    ..Lesson::PLAIN
};

pub(super) const SEMAPHORE_MUTEX: Lesson = Lesson {
    id: "3.7.2",
    title: Bilingual {
        zh: "InterProcessSemaphoreMutex",
        en: "InterProcessSemaphoreMutex",
    },
    claim: Bilingual {
        zh: "不可重入的互斥锁，也不超卖",
        en: "A mutex that is not re-entrant, and does not oversell either",
    },
    place: "000 §3.7.2",
    strategies: &["zk-semaphore-mutex"],
    by_hand: &[Line::new(
        "curl -s '{http}/check/lock/zk-semaphore-mutex'",
        "验库存并锁库存成功！",
    )],
    run: Run::Experiment(|on| Box::pin(exact(on, "zk-semaphore-mutex", &[Target::Three]))),
    ..Lesson::PLAIN
};

pub(super) const READ_WRITE: Lesson = Lesson {
    id: "3.7.3",
    title: Bilingual {
        zh: "读写锁",
        en: "The read-write lock",
    },
    claim: Bilingual {
        zh: "读的一起进，写的独占；写锁可以降级成读锁，读锁不能升级成写锁",
        en: "Readers together, a writer alone; who writes may read besides, who reads may not write besides",
    },
    place: "000 §3.7.3",
    strategies: &["zk-write"],
    replay: Some("3.7.3"),
    tries: &["/test/zk/read?who={who}", "/test/zk/write?who={who}"],
    quick: true,
    by_hand: &[
        Line::new("curl -s '{8000}/test/zk/read?hold_ms=4000'", "测试读"),
        Line::at(
            2,
            "curl -s '{8100}/test/zk/read?hold_ms=4000&wait_ms=1000'",
            "测试读",
        ),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{8100}/test/zk/write?wait_ms=500'",
            "503",
        ),
        Line::at(2, "curl -s '{8100}/test/zk/write?hold_ms=3000'", "测试写"),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8000}/test/zk/read?wait_ms=500'",
            "503",
        ),
        Line::new("curl -s '{8000}/test/zk/read?hold_ms=100'", "测试读"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "3.7.3"))),
    ..Lesson::PLAIN
};

pub(super) const MULTI: Lesson = Lesson {
    id: "3.7.4",
    title: Bilingual {
        zh: "联锁",
        en: "The multi lock",
    },
    claim: Bilingual {
        zh: "里面的锁全部拿到才算拿到，放的时候全部放掉",
        en: "It is had where all of its locks are, and all of them are given back",
    },
    place: "000 §3.7.4",
    strategies: &["zk-multi"],
    tries: &["/test/zk/multi?hold_ms=3000&who={who}"],
    by_hand: &[Line::new(
        "curl -s '{http}/check/lock/zk-multi'",
        "验库存并锁库存成功！",
    )],
    run: Run::Experiment(|on| Box::pin(multi(on))),
    ..Lesson::PLAIN
};

async fn multi(on: &Cluster) -> Result<Seen, NoVerdict> {
    let visit = steps(&got(on, &format!("{}/test/zk/multi", on.one())).await?);
    let wanted = [
        ("took", 1),
        ("took", 2),
        ("took", 3),
        ("left", 3),
        ("left", 2),
        ("left", 1),
    ]
    .map(own);
    let words = Words::new(
        format!("依次：{}。", said(&visit)),
        format!("In turn: {}.", said(&visit)),
    );
    Ok(Seen::holds(visit == wanted, words))
}

pub(super) const LEASES: Lesson = Lesson {
    id: "3.7.5",
    title: Bilingual {
        zh: "信号量：五个租约",
        en: "A semaphore of five leases",
    },
    claim: Bilingual {
        zh: "同时最多五个进去，第六个等有人归还",
        en: "At most five are inside at once, the sixth waits for one to leave",
    },
    place: "000 §3.7.5",
    tries: &["/test/zk/semaphore?hold_ms=5000&who={who}"],
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} del log", "…"),
        Line::new(
            "curl -sZ --parallel-immediate -o /dev/null '{8000}/test/zk/semaphore?hold_ms=8000&who=[1-7]' &",
            "",
        ),
        Line::until(2, "redis-cli {redis} llen log", "5"),
        Line::at(2, "sleep 1; redis-cli {redis} llen log", "5"),
    ],
    run: Run::Experiment(|on| Box::pin(leases(on))),
    ..Lesson::PLAIN
};

/// The lines that those who came in and left have written.
async fn log(on: &Cluster, product: &Product<'_>) -> Result<Vec<bool>, NoVerdict> {
    let mut redis = on.redis().await?;
    let lines: Result<Vec<String>, _> = redis::cmd("LRANGE")
        .arg(format!("log:{}", product.id))
        .arg(0)
        .arg(-1)
        .query_async(&mut redis)
        .await;
    Ok(lines
        .map_err(NoVerdict::failed)?
        .iter()
        .map(|line| line.contains("获取了资源"))
        .collect())
}

async fn leases(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let visits = (0..7).map(|n| {
        let at = &on.instances()[n % on.instances().len()];
        let url = format!(
            "{at}/test/zk/semaphore?stock_id={}&hold_ms=500&who=v{n}",
            product.id
        );
        async move { on.get(&url).await?.success() }
    });
    try_join_all(visits).await?;
    let (mut inside, mut most) = (0_i64, 0);
    for came in log(on, &product).await? {
        inside += if came { 1 } else { -1 };
        most = most.max(inside);
    }
    product.remove().await?;
    let words = Words::new(
        format!("七个人同时来：同时在里面的最多 {most} 个，最后都出来了（还剩 {inside} 个）。"),
        format!(
            "Seven came at once: at most {most} were inside, and all came out ({inside} left)."
        ),
    );
    Ok(Seen::holds((most, inside) == (5, 0), words).value("inside", most))
}

pub(super) const LEASES_OF_THE_DEAD: Lesson = Lesson {
    id: "3.7.5.crash",
    title: Bilingual {
        zh: "宕机的人归还租约",
        en: "The leases of the dead",
    },
    claim: Bilingual {
        zh: "客户端宕机、会话丢失，它的租约自动归还，别人可以接着用",
        en: "Where a client crashes its session ends, and its leases come back for others",
    },
    place: "000 §3.7.5",
    by_hand: &[
        Line::new(
            "curl -sZ --parallel-immediate -o /dev/null '{8200}/test/zk/semaphore?hold_ms=10000&who=[1-5]' &",
            "",
        ),
        Line::until(
            2,
            "curl -s -o /dev/null -w '%{http_code}' '{8000}/test/zk/semaphore?hold_ms=0&wait_ms=500'",
            "503",
        ),
        // As ZooKeeper does by itself once it has not heard of a client for as long as its session lasts.
        Line::new(
            "{fault} expire {name-8200}",
            "{name-8200} has lost its session",
        ),
        Line::at(
            2,
            "curl -s '{8000}/test/zk/semaphore?hold_ms=0&wait_ms=3000'",
            "hello Semaphore",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(leases_of_the_dead(on))),
    ..Lesson::PLAIN
};

async fn leases_of_the_dead(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (product, zookeeper) = (on.product(5000).await?, on.zookeeper().await?);
    let instances = &on.servers()?.instances;
    let [alive, .., dies] = &instances[..] else {
        return Err(NoVerdict::without("要有两台实例", "it takes two instances"));
    };
    let url = |at: &str, wait: u32| {
        format!(
            "{at}/test/zk/semaphore?stock_id={}&hold_ms=60000&wait_ms={wait}",
            product.id
        )
    };
    let taken = format!("/locks/semaphore-{}/leases", product.id);
    let all = try_join_all((0..5).map(|n| {
        let url = format!("{}&who=v{n}", url(&dies.url, 60_000));
        async move { on.get(&url).await }
    }));
    let killed = async {
        until_below(&zookeeper, &taken, 5).await?;
        let before = on.get(&url(&alive.url, 500)).await?.status.as_u16();
        on.fault("kill", &dies.name).await?;
        // Once the session has ended, by itself.
        while below(&zookeeper, &taken).await? > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        let after = on
            .get(&format!(
                "{}/test/zk/semaphore?stock_id={}&hold_ms=0",
                alive.url, product.id
            ))
            .await?;
        Ok::<_, NoVerdict>((before, after.status.as_u16()))
    };
    // Those who were inside have no answer: their instance is dead.
    let (_, answers) = tokio::join!(all, killed);
    let (before, after) = answers?;
    on.fault("start", &dies.name).await?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "五个租约都在 {} 手里时：{before}；它被杀、会话结束以后：{after}。",
            dies.name
        ),
        format!(
            "With all five leases in {}: {before}; after it was killed and its session ended: {after}.",
            dies.name
        ),
    );
    Ok(Seen::holds((before, after) == (503, 200), words))
}

pub(super) const BARRIER: Lesson = Lesson {
    id: "3.7.6.barrier",
    title: Bilingual {
        zh: "栅栏",
        en: "The barrier",
    },
    claim: Bilingual {
        zh: "设了栅栏大家都等，移除以后一起继续",
        en: "Behind a barrier all wait, and go on together once it is removed",
    },
    place: "000 §3.7.6",
    tries: &[
        "/test/zk/barrier/set",
        "/test/zk/barrier/wait?who={who}",
        "/test/zk/barrier/remove",
    ],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' {http}/test/zk/barrier/set",
            "200",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8000}/test/zk/barrier/wait?wait_ms=500'",
            "503",
        ),
        Line::at(
            2,
            "curl -s -o /dev/null -w '%{http_code}' {8100}/test/zk/barrier/wait &",
            "200",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' {http}/test/zk/barrier/remove",
            "200",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(barrier(on))),
    ..Lesson::PLAIN
};

async fn barrier(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let ask = async |at: &str, what: &str, wait: u32| {
        let url = format!(
            "{at}/test/zk/barrier/{what}?stock_id={}&wait_ms={wait}",
            product.id
        );
        Ok::<_, NoVerdict>(on.get(&url).await?.status.as_u16())
    };
    ask(on.one(), "set", 1000).await?;
    let closed = ask(on.one(), "wait", 500).await?;
    let waiting = try_join_all(on.instances().iter().map(|at| ask(at, "wait", 20_000)));
    let removed = ask(on.one(), "remove", 1000);
    let (waited, removed) = tokio::join!(waiting, removed);
    let (waited, removed) = (waited?, removed?);
    product.remove().await?;
    let words = Words::new(
        format!("栅栏关着，等半秒：{closed}；移除 {removed} 以后，每台上等的：{waited:?}。"),
        format!(
            "Closed, after half a second: {closed}; removed {removed}, and those who wait, on each instance: {waited:?}."
        ),
    );
    Ok(Seen::holds(
        closed == 503 && removed == 200 && waited.iter().all(|status| *status == 200),
        words,
    ))
}

pub(super) const DOUBLE_BARRIER: Lesson = Lesson {
    id: "3.7.6",
    title: Bilingual {
        zh: "双栅栏",
        en: "The double barrier",
    },
    claim: Bilingual {
        zh: "到齐了才开始，都做完才离开",
        en: "Nobody begins until all are there, and nobody leaves until all are through",
    },
    place: "000 §3.7.6",
    replay: Some("3.7.6"),
    tries: &[
        "/test/zk/double-barrier/enter?members=3&who={who}",
        "/test/zk/double-barrier/leave?members=3&who={who}",
    ],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{8000}/test/zk/double-barrier/enter?members=2&wait_ms=500'",
            "503",
        ),
        Line::new(
            "curl -s '{8000}/test/zk/double-barrier/enter?members=2' &",
            "都到齐了 …",
        ),
        Line::at(
            2,
            "curl -s '{8100}/test/zk/double-barrier/enter?members=2'",
            "都到齐了 …",
        ),
        Line::new("wait", ""),
        Line::new(
            "curl -s '{8000}/test/zk/double-barrier/leave?members=2' &",
            "都离开了 …",
        ),
        Line::at(
            2,
            "curl -s '{8100}/test/zk/double-barrier/leave?members=2'",
            "都离开了 …",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "3.7.6"))),
    ..Lesson::PLAIN
};

pub(super) const THRESHOLD: Lesson = Lesson {
    id: "3.7.6.threshold",
    title: Bilingual {
        zh: "memberQty 是阈值",
        en: "memberQty is a threshold",
    },
    claim: Bilingual {
        zh: "memberQty 只是阈值，不是上限：人数够了，后来的照样进",
        en: "memberQty is a threshold, and no limit: once enough have come, whoever comes later gets in too",
    },
    place: "000 §3.7.6",
    by_hand: &[
        Line::new(
            "curl -s '{8000}/test/zk/double-barrier/enter?members=2' &",
            "都到齐了 …",
        ),
        Line::at(
            2,
            "curl -s '{8100}/test/zk/double-barrier/enter?members=2'",
            "都到齐了 …",
        ),
        Line::at(
            3,
            "curl -s '{8200}/test/zk/double-barrier/enter?members=2&wait_ms=5000'",
            "都到齐了 …",
        ),
        Line::new("wait", ""),
        Line::new(
            "curl -s '{8000}/test/zk/double-barrier/leave?members=2' &",
            "都离开了 …",
        ),
        Line::at(
            2,
            "curl -s '{8100}/test/zk/double-barrier/leave?members=2' &",
            "都离开了 …",
        ),
        Line::at(
            3,
            "curl -s '{8200}/test/zk/double-barrier/leave?members=2'",
            "都离开了 …",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(threshold(on))),
    ..Lesson::PLAIN
};

async fn threshold(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let enter = async |wait: u32| {
        let url = format!(
            "{}/test/zk/double-barrier/enter?members=2&stock_id={}&wait_ms={wait}",
            on.one(),
            product.id
        );
        Ok::<_, NoVerdict>(on.get(&url).await?.status.as_u16())
    };
    let alone = enter(500).await?;
    let (first, second) = tokio::join!(enter(20_000), enter(20_000));
    let together = [first?, second?];
    let third = enter(5_000).await?;
    product.remove().await?;
    let words = Words::new(
        format!("阈值 2：一个人等半秒 {alone}，两个人 {together:?}，第三个 {third}。"),
        format!(
            "A threshold of 2: one alone, half a second, {alone}; two {together:?}; a third {third}."
        ),
    );
    Ok(Seen::holds(
        json!([alone, together, third]) == json!([503, [200, 200], 200]),
        words,
    ))
}
