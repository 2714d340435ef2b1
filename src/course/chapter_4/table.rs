//! §4: a row under a unique key as a lock, its flaws, and their cures.

use crate::bilingual::Bilingual;
use crate::{
    course::{
        Cluster, Lesson, Line, NoVerdict, Run, Says, Seen, Side, Target, Words,
        experiments::{compared, sale},
        replay::flaw_and_cure,
    },
    load::verdict::Verdict as Sold,
};
use sqlx::{Connection, Executor};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const CLEAN: Line = Line::new(
    r#"mysql {mysql} -Ne "delete from tb_lock where lock_name = 'by-hand'""#,
    "",
);
const TAKE: &str = r#"mysql {mysql} -Ne "insert into tb_lock (lock_name) values ('by-hand')" 2>&1"#;

pub(super) const ROW: Lesson = Lesson {
    id: "4.2",
    title: Bilingual {
        zh: "唯一键当锁",
        en: "A unique key as a lock",
    },
    claim: Bilingual {
        zh: "插得进去就是拿到锁，删掉就是放锁：5000 件卖完，线程安全",
        en: "Who can insert the row has the lock, and deletes it to unlock: 5000 pieces sold, and not one too many",
    },
    place: "000 §4.1, §4.2",
    strategies: &["table-lock", "mysql-named-lock"],
    replay: Some("4"),
    tries: &["/check/lock/table-lock?hold_ms=3000&who={who}"],
    quick: true,
    by_hand: &[
        CLEAN,
        Line::new(TAKE, ""),
        Line::at(2, TAKE, "…ERROR 1062 …Duplicate entry…"),
        CLEAN,
        Line::at(2, TAKE, ""),
        CLEAN,
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "table-lock"))),
    ..Lesson::PLAIN
};

/// 20 × 25 on three instances, since the course's 100 × 50 takes minutes: not one piece too many.
async fn exact(on: &Cluster, strategy: &str) -> Result<Seen, NoVerdict> {
    let mut plan = on.plan(strategy, Target::Three);
    (plan.threads, plan.loops) = (20, 25);
    let row = on.send(plan).await?;
    Ok(Seen::holds(row.verdict == Sold::Exact, sale(&row)).sales([&row]))
}

pub(super) const SLOW: Lesson = Lesson {
    id: "4.2.rate",
    title: Bilingual {
        zh: "表锁的性能",
        en: "The speed of the row as a lock",
    },
    claim: Bilingual {
        zh: "性能感人：远不如直接用悲观锁",
        en: "It is slow: far slower than the pessimistic lock on the stock's own row",
    },
    place: "000 §4.2",
    strategies: &["table-lock", "select-for-update"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies select-for-update,table-lock --targets three --threads 20 --loops 10",
        "…select-for-update …exact…table-lock …exact…",
    )],
    run: Run::Experiment(|on| {
        let (first, second) = (Side::of("select-for-update"), Side::of("table-lock"));
        Box::pin(compared(
            on,
            first,
            second,
            Says::Between(2.0, f64::INFINITY),
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const SINGLE_POINT: Lesson = Lesson {
    id: "4.3.1",
    title: Bilingual {
        zh: "数据库是单点",
        en: "The database is a single point of failure",
    },
    claim: Bilingual {
        zh: "数据库一旦挂掉，锁就用不了，业务也停了",
        en: "Once the database is down there is no lock, and no business either",
    },
    place: "000 §4.3",
    strategies: &["table-lock"],
    by_hand: &[
        Line::new("{fault} kill mysql", "…"),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' {http}/check/lock/table-lock",
            "503",
        ),
        Line::new("{fault} start mysql", "…"),
        Line::new(
            "curl -sf --retry 20 --retry-all-errors --retry-delay 1 {http}/check/lock/table-lock",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(single_point(on))),
    ..Lesson::PLAIN
};

async fn single_point(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (before, _) = product.buy(on.one(), "table-lock", "").await?;
    on.fault("kill", "mysql").await?;
    let (down, _) = product.buy(on.one(), "table-lock", "&wait_ms=1000").await?;
    on.fault("start", "mysql").await?;
    let back = async {
        while product
            .buy(on.one(), "table-lock", "&wait_ms=1000")
            .await?
            .0
            != 200
        {
            sleep(Duration::from_millis(200)).await;
        }
        Ok::<_, NoVerdict>(())
    };
    timeout(Duration::from_secs(60), back)
        .await
        .map_err(|_| NoVerdict::failed("MySQL does not come back"))??;
    product.remove().await?;
    let words = Words::new(
        format!("数据库在：{before}；挂了：{down}；起来以后又是 200。"),
        format!("With the database: {before}; without: {down}; with it again: 200."),
    );
    Ok(Seen::holds((before, down) == (200, 503), words).value("status", vec![before, down, 200]))
}

pub(super) const DEAD_HOLDER: Lesson = Lesson {
    id: "4.3.2",
    title: Bilingual {
        zh: "没有失效时间",
        en: "No expiry",
    },
    claim: Bilingual {
        zh: "解锁失败，那一行就一直在，谁也拿不到锁；定期清掉超时的行就好了",
        en: "Where the unlock fails the row stays and nobody gets the lock; sweeping rows that are over cures it",
    },
    place: "000 §4.3; 003 基于数据库",
    strategies: &["table-lock", "table-lock-lease"],
    replay: Some("4"),
    quick: true,
    by_hand: &[
        Line::new(
            r#"mysql {mysql} -Ne "insert into tb_lock (lock_name, expires_at) values ('lock', null), ('lock:table-lock-lease', now(3) + interval 2 second)""#,
            "",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{http}/check/lock/table-lock?wait_ms=3000'",
            "503",
        ),
        Line::new(
            "curl -s '{http}/check/lock/table-lock-lease?wait_ms=10000'",
            "验库存并锁库存成功！",
        ),
        Line::new(
            r#"mysql {mysql} -Ne "delete from tb_lock where lock_name = 'lock'""#,
            "",
        ),
        Line::new(
            "curl -s {http}/check/lock/table-lock",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(dead_holder(on))),
    ..Lesson::PLAIN
};

async fn dead_holder(on: &Cluster) -> Result<Seen, NoVerdict> {
    Ok(flaw_and_cure(on, "4")
        .await?
        .and(exact(on, "table-lock-lease").await?))
}

pub(super) const NOT_REENTRANT: Lesson = Lesson {
    id: "4.3.3",
    title: Bilingual {
        zh: "不可重入",
        en: "Not re-entrant",
    },
    claim: Bilingual {
        zh: "同一个人再拿一次也插不进去；记下是谁的，同一个人就能重入",
        en: "Its holder cannot insert it a second time; with the owner in the row, the owner gets in again",
    },
    place: "000 §4.3; 003 基于数据库",
    strategies: &["table-lock", "table-lock-lease"],
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s '{8000}/check/lock/table-lock-lease?hold_ms=6000' &",
            "验库存并锁库存成功！",
        ),
        Line::until(
            2,
            r#"mysql {mysql} -Ne "select holds from tb_lock where lock_name = 'lock:table-lock-lease'""#,
            "2",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(not_reentrant(on))),
    ..Lesson::PLAIN
};

/// The same connection inserts the course's row twice; and the strategy that takes its lock twice, seen in the table.
async fn not_reentrant(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (product, mut conn) = (on.product(5000).await?, on.mysql().await?);
    let name = format!("re-entry:{}", product.id);
    let insert = format!("INSERT INTO tb_lock (lock_name) VALUES ('{name}')");
    conn.execute(insert.as_str())
        .await
        .map_err(NoVerdict::failed)?;
    let again = conn.execute(insert.as_str()).await;
    let refused = again
        .as_ref()
        .err()
        .and_then(sqlx::Error::as_database_error)
        .is_some_and(|e| e.is_unique_violation());
    let delete = format!("DELETE FROM tb_lock WHERE lock_name = '{name}'");
    conn.execute(delete.as_str())
        .await
        .map_err(NoVerdict::failed)?;

    let holds = async {
        let holds = format!(
            "SELECT CAST(holds AS SIGNED) FROM tb_lock WHERE lock_name = 'lock:table-lock-lease:{}'",
            product.id
        );
        loop {
            let seen: Option<i64> = sqlx::query_scalar(&holds)
                .fetch_optional(&mut conn)
                .await
                .map_err(NoVerdict::failed)?;
            if seen == Some(2) {
                return Ok::<_, NoVerdict>(2);
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let buying = product.buy(on.one(), "table-lock-lease", "&hold_ms=1500");
    let holds = async {
        timeout(Duration::from_secs(5), holds)
            .await
            .unwrap_or(Ok(1))
    };
    let (bought, holds) = tokio::join!(buying, holds);
    let ((status, _), holds) = (bought?, holds?);
    conn.close().await.map_err(NoVerdict::failed)?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "同一个连接第二次插入：{}；table-lock-lease 的行里 holds = {holds}，照样卖了。",
            if refused {
                "被唯一键拒绝"
            } else {
                "插进去了"
            }
        ),
        format!(
            "The same connection's second insert was {}; in the row of table-lock-lease holds = {holds}, and it sold.",
            if refused {
                "refused by the key"
            } else {
                "done"
            }
        ),
    );
    Ok(Seen::holds(refused && holds == 2 && status == 200, words).value("holds", holds))
}

pub(super) const BOUNDED: Lesson = Lesson {
    id: "4.3.4",
    title: Bilingual {
        zh: "受制于数据库",
        en: "Bounded by the database",
    },
    claim: Bilingual {
        zh: "并发能力受制于数据库，无法解决",
        en: "It is bounded by the database, and nothing can be done about it",
    },
    place: "000 §4.3",
    strategies: &["table-lock", "mysql-named-lock"],
    run: Run::NotRun(Bilingual {
        zh: "快慢见 4.2.rate 和 5.speed；“无法解决”不是能做的实验",
        en: "the rates are those of 4.2.rate and 5.speed; that nothing can be done is no experiment",
    }),
    ..Lesson::PLAIN
};
