//! §1.7: three ways to let MySQL keep the count: one statement, a lock of the row, a version.

use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Ratio, Run, Says, Seen, Side, Target, Verdict, Words,
    experiments::{compared, exact, retries_grow, words},
    replay::flaw_and_cure,
};
use sqlx::{Connection, Executor};

const THREE: &[Target] = &[Target::Three];
const ONE_LEFT: Line = Line::new(
    r#"curl -s -X PUT -H 'content-type: application/json' -d '{"count":1}' {http}/stock"#,
    r#"{"mysql":{"id":1,…,"count":1,…"#,
);

pub(super) const ONE_STATEMENT: Lesson = Lesson {
    id: "1.7.1",
    title: Bilingual {
        zh: "一个 SQL",
        en: "One statement",
    },
    claim: Bilingual {
        zh: "更新的时候顺便判断库存：一条 SQL，三台实例也不超卖",
        en: "One UPDATE that checks as it writes does not oversell, on three instances either",
    },
    place: "000 §1.7.1",
    strategies: &[
        "single-update",
        "single-update-merged",
        "single-update-buckets",
    ],
    replay: Some("1.3"),
    tries: &["/check/lock/single-update?who={who}"],
    quick: true,
    by_hand: &[
        ONE_LEFT,
        Line::new(
            "curl -s {http}/check/lock/single-update",
            "验库存并锁库存成功！",
        ),
        Line::new("curl -s {http}/check/lock/single-update", "库存不足！"),
        Line::new(
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "0",
        ),
        Line::RESTOCK,
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "single-update", THREE))),
    ..Lesson::PLAIN
};

pub(super) const LAST_PIECE: Lesson = Lesson {
    id: "1.7.1.last",
    title: Bilingual {
        zh: "最后一件卖得掉吗",
        en: "The last piece",
    },
    claim: Bilingual {
        zh: "文中的条件 (surplus - buyQuantity) > 0 能把库存卖完",
        en: "With the condition of the text, (surplus - buyQuantity) > 0, the stock can be sold to the last piece",
    },
    place: "000 §1.7",
    strategies: &["single-update"],
    expected: Verdict::NotReproduced,
    by_hand: &[
        ONE_LEFT,
        Line::new(
            "mysql {mysql} -Ne 'update db_stock set count = count - 1 where id = 1 and (count - 1) > 0; select row_count(), count from db_stock where id = 1'",
            "0\t1",
        ),
        Line::RESTOCK,
    ],
    run: Run::Experiment(|on| Box::pin(last_piece(on))),
    ..Lesson::PLAIN
};

/// The text's statement, on a product with one piece.
async fn last_piece(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let mut conn = on.mysql().await?;
    let mut changed = Vec::new();
    for condition in ["(count - 1) > 0", "count > 0"] {
        let take = format!(
            "UPDATE db_stock SET count = count - 1 WHERE id = {} AND {condition}",
            product.id
        );
        changed.push(
            conn.execute(take.as_str())
                .await
                .map_err(NoVerdict::failed)?
                .rows_affected(),
        );
    }
    conn.close().await.map_err(NoVerdict::failed)?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "还剩 1 件：文中的条件改了 {} 行，卖不掉；写成 count > 0 改了 {} 行。",
            changed[0], changed[1]
        ),
        format!(
            "One piece is left: with the text's condition {} rows change, and it cannot be sold; with count > 0, {}.",
            changed[0], changed[1]
        ),
    );
    Ok(Seen::holds(changed == [1, 1], words).value("rows", changed))
}

pub(super) const FOR_UPDATE: Lesson = Lesson {
    id: "1.7.2",
    title: Bilingual {
        zh: "悲观锁：FOR UPDATE",
        en: "The pessimistic lock: FOR UPDATE",
    },
    claim: Bilingual {
        zh: "SELECT … FOR UPDATE 锁住这一行，别的事务要等它提交：三台实例也不超卖",
        en: "SELECT … FOR UPDATE locks the row, others wait for the commit: three instances do not oversell",
    },
    place: "000 §1.7.2",
    strategies: &["select-for-update"],
    replay: Some("1.7.2"),
    tries: &["/check/lock/select-for-update?hold_ms=3000&who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "mysql {mysql} -Ne 'start transaction; select count from db_stock where id = 1 for update; do sleep(4); commit' &",
            "5000",
        ),
        Line::until(
            2,
            "mysql {mysql} -Ne 'set innodb_lock_wait_timeout = 1; select count from db_stock where id = 1 for update' 2>&1",
            "…ERROR 1205 …",
        ),
        Line::at(
            2,
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "5000",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(locked_row(on))),
    ..Lesson::PLAIN
};

async fn locked_row(on: &Cluster) -> Result<Seen, NoVerdict> {
    Ok(flaw_and_cure(on, "1.7.2")
        .await?
        .and(exact(on, "select-for-update", THREE).await?))
}

pub(super) const SHARED: Lesson = Lesson {
    id: "1.7.2.shared",
    title: Bilingual {
        zh: "共享锁：LOCK IN SHARE MODE",
        en: "The shared lock: LOCK IN SHARE MODE",
    },
    claim: Bilingual {
        zh: "用共享锁读、然后更新，很容易死锁；后面要更新的，应该用 FOR UPDATE 读",
        en: "To read under a shared lock and then to write easily deadlocks; who is going to write reads FOR UPDATE",
    },
    place: "000 §1.7.2",
    strategies: &["select-share"],
    replay: Some("1.7.2.shared"),
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "mysql {mysql} -Ne 'start transaction; select count from db_stock where id = 1 lock in share mode; do sleep(3); update db_stock set count = 4999 where id = 1; commit' 2>&1 &",
            "5000…",
        ),
        Line::at(
            2,
            "mysql {mysql} -Ne 'start transaction; select count from db_stock where id = 1 lock in share mode; do sleep(3); update db_stock set count = 4999 where id = 1; commit' 2>&1 &",
            "5000…",
        ),
        Line::until(
            1,
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "4999",
        ),
        Line::new(
            "mysql {mysql} -e 'show engine innodb status' | grep -c 'LATEST DETECTED DEADLOCK'",
            "1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "1.7.2.shared"))),
    ..Lesson::PLAIN
};

pub(super) const FASTER_THAN_MUTEX: Lesson = Lesson {
    id: "1.7.2.mutex",
    title: Bilingual {
        zh: "悲观锁与 JVM 锁谁快",
        en: "The pessimistic lock and the mutex",
    },
    claim: Bilingual {
        zh: "悲观锁比 JVM 锁快很多",
        en: "The pessimistic lock is much faster than the mutex",
    },
    place: "000 §1.7.2",
    strategies: &["select-for-update", "mutex"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies select-for-update,mutex --targets one --threads 20 --loops 20",
        "…✓ as promised  select-for-update [safe]: exact on one instance\n✓ as promised  mutex [one-process]: exact on one instance\n§1.7.4 …",
    )],
    run: Run::Experiment(|on| {
        Box::pin(compared(
            on,
            Side::of("select-for-update"),
            Side::of("mutex"),
            Says::Faster,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const HALF_OF_NONE: Lesson = Lesson {
    id: "1.7.2.none",
    title: Bilingual {
        zh: "悲观锁与无锁",
        en: "The pessimistic lock and no lock",
    },
    claim: Bilingual {
        zh: "悲观锁比无锁低将近一倍",
        en: "The pessimistic lock is about half as fast as no lock",
    },
    place: "000 §1.7.2",
    strategies: &["select-for-update", "none"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies select-for-update,none --targets one --threads 20 --loops 20",
        "…✓ as promised  select-for-update [safe]: exact on one instance\n✓ as promised  none [unsafe]: oversold … on one instance",
    )],
    run: Run::Experiment(|on| {
        let (first, second) = (Side::of("select-for-update"), Side::of("none"));
        Box::pin(compared(on, first, second, Says::Between(0.33, 0.75)))
    }),
    ..Lesson::PLAIN
};

pub(super) const VERSION: Lesson = Lesson {
    id: "1.7.3",
    title: Bilingual {
        zh: "乐观锁：版本号",
        en: "The optimistic lock: a version",
    },
    claim: Bilingual {
        zh: "版本号没变才更新，变了就重试：三台实例也不超卖",
        en: "Write only where the version still stands, else try anew: three instances do not oversell",
    },
    place: "000 §1.7.3",
    strategies: &["version-cas", "version-cas-paced"],
    replay: Some("1.7.3"),
    tries: &["/check/lock/version-cas?hold_ms=1000&who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "mysql {mysql} -Ne 'set @v = (select version from db_stock where id = 1); update db_stock set count = 4999, version = version + 1 where id = 1 and version = @v; select row_count(); update db_stock set count = 4999, version = version + 1 where id = 1 and version = @v; select row_count()'",
            "1\n0",
        ),
        Line::new(
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "4999",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(version(on))),
    ..Lesson::PLAIN
};

async fn version(on: &Cluster) -> Result<Seen, NoVerdict> {
    Ok(flaw_and_cure(on, "1.7.3")
        .await?
        .and(exact(on, "version-cas", THREE).await?))
}

pub(super) const MORE_IS_SLOWER: Lesson = Lesson {
    id: "1.7.3.retries",
    title: Bilingual {
        zh: "并发越大，重试越多",
        en: "The more at once, the more retries",
    },
    claim: Bilingual {
        zh: "并发量越大，乐观锁的重试越多，性能越低；并发量越小，性能越高",
        en: "The more requests at once, the more retries and the slower is the optimistic lock",
    },
    place: "000 §1.7.3",
    strategies: &["version-cas"],
    timing: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            r#"curl -s -H 'accept: application/json' '{8000}/check/lock/version-cas?hold_ms=50&who=[1-10]' | grep -o '"retries":[0-9]*' | sort | uniq -c"#,
            r#"10 "retries":0"#,
        ),
        Line::new(
            r#"curl -sZ --parallel-immediate -H 'accept: application/json' '{8000}/check/lock/version-cas?hold_ms=50&who=[1-10]' | grep -o '"retries":[0-9]*' | sort | uniq -c"#,
            "…\"retries\":0\n…\"retries\":…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(more_is_slower(on))),
    ..Lesson::PLAIN
};

async fn more_is_slower(on: &Cluster) -> Result<Seen, NoVerdict> {
    let [few, many] = [10, 100].map(|threads| Side {
        threads,
        ..Side::of("version-cas")
    });
    Ok(retries_grow(on, "version-cas")
        .await?
        .and(compared(on, few, many, Says::Faster).await?))
}

pub(super) const RANKING: Lesson = Lesson {
    id: "1.7.4",
    title: Bilingual {
        zh: "四种办法的快慢",
        en: "How fast the four are",
    },
    claim: Bilingual {
        zh: "性能：一个 SQL > 悲观锁 > JVM 锁 > 乐观锁",
        en: "By speed: one statement > pessimistic lock > the process's mutex > optimistic lock",
    },
    place: "000 §1.7.4",
    strategies: &["single-update", "select-for-update", "mutex", "version-cas"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies single-update,select-for-update,mutex,version-cas --targets one --threads 20 --loops 20",
        "…✓ as promised  single-update [safe]: exact on one instance\n✓ as promised  select-for-update [safe]: exact on one instance\n✓ as promised  mutex [one-process]: exact on one instance\n✓ as promised  version-cas [safe]: exact on one instance\n§1.7.4 …",
    )],
    run: Run::Experiment(|on| Box::pin(ranking(on))),
    ..Lesson::PLAIN
};

async fn ranking(on: &Cluster) -> Result<Seen, NoVerdict> {
    let order = ["single-update", "select-for-update", "mutex", "version-cas"];
    let mut ratios = Vec::new();
    for pair in order.windows(2) {
        ratios.push(
            on.paired(Side::of(pair[0]), Side::of(pair[1]), Says::Faster)
                .await?,
        );
    }
    let each: Vec<_> = ratios.iter().map(words).collect();
    let words = Words::new(
        each.iter()
            .map(|words| words.zh.as_str())
            .collect::<String>(),
        each.iter()
            .map(|words| words.en.as_str())
            .collect::<Vec<_>>()
            .join(" "),
    );
    Ok(Seen::holds(ratios.iter().all(Ratio::holds), words).ratios(ratios))
}

pub(super) const CHOICE: Lesson = Lesson {
    id: "1.7.4.choice",
    title: Bilingual {
        zh: "怎么选",
        en: "Which to choose",
    },
    claim: Bilingual {
        zh: "写少用乐观锁，写多用悲观锁，简单又要快用一个 SQL",
        en: "Few writes: optimistic; many: pessimistic; simple and fast: one statement",
    },
    place: "000 §1.7.4",
    strategies: &["version-cas", "select-for-update", "single-update"],
    run: Run::NotRun(Bilingual {
        zh: "这是建议；它依据的快慢见 1.7.4 和 1.7.3.retries",
        en: "this is advice; the rates that it rests on are those of 1.7.4 and 1.7.3.retries",
    }),
    ..Lesson::PLAIN
};
