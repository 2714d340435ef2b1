//! [003] Locks of the database, and its deadlocks.

use crate::bilingual::Bilingual;
use crate::{
    classroom::deadlocks,
    course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Words, replay::flaw_and_cure},
};
use serde::Deserialize;
use serde_json::json;
use sqlx::{Connection, Executor};

/// What is looked at of a play.
#[derive(Deserialize)]
struct Played {
    error: Option<u16>,
    committed: Vec<String>,
    steps: Vec<Step>,
    #[serde(default)]
    plans: Vec<Plan>,
}

#[derive(Deserialize)]
struct Step {
    row_locks: Option<u64>,
}

#[derive(Deserialize)]
struct Plan {
    r#type: Option<String>,
    key: Option<String>,
}

/// Plays a deadlock and its cure by the public route: the error comes without the cure, and not with it.
async fn deadlock(on: &Cluster, slug: &str) -> Result<Seen, NoVerdict> {
    let lesson = deadlocks::find(slug)
        .ok_or_else(|| NoVerdict::failed(format!("there is no deadlock {slug}")))?;
    let mut played = Vec::new();
    for cured in [false, true] {
        let (status, answer) = on
            .answer(&format!("{}/test/deadlock/{slug}?cured={cured}", on.one()))
            .await?;
        if status != 200 {
            return Err(NoVerdict::failed(answer));
        }
        played.push(serde_json::from_value::<Played>(answer).map_err(NoVerdict::failed)?);
    }
    let most = |played: &Played| {
        played
            .steps
            .iter()
            .filter_map(|step| step.row_locks)
            .max()
            .unwrap_or(0)
    };
    let plan = |played: &Played| {
        let plan = played.plans.last();
        let of = |word: Option<&String>| word.map_or("NULL", String::as_str).to_owned();
        plan.map(|plan| (of(plan.r#type.as_ref()), of(plan.key.as_ref())))
    };
    let (flaw, cure) = (&played[0], &played[1]);
    let error = flaw.error.unwrap_or(0);
    let (mut zh, mut en) = (
        format!(
            "错误 {error}，{} 个提交，一个事务最多锁 {} 行；",
            flaw.committed.len(),
            most(flaw)
        ),
        format!(
            "error {error}, {} committed, at most {} rows locked by one;",
            flaw.committed.len(),
            most(flaw)
        ),
    );
    zh += &format!(
        "换成解法：没有错误，{} 个提交，最多锁 {} 行。",
        cure.committed.len(),
        most(cure)
    );
    en += &format!(
        " with its cure no error, {} committed, at most {} rows.",
        cure.committed.len(),
        most(cure)
    );
    if let (Some(before), Some(after)) = (plan(flaw), plan(cure)) {
        zh += &format!(
            "执行计划：{} {}，加索引以后 {} {}。",
            before.0, before.1, after.0, after.1
        );
        en += &format!(
            " The plan: {} {}, with the index {} {}.",
            before.0, before.1, after.0, after.1
        );
    }
    let holds = error == lesson.error
        && flaw.committed.len() == 1
        && cure.error.is_none()
        && cure.committed.len() == 2;
    let figures = |played: &Played| json!({"error": played.error, "committed": played.committed, "row_locks": most(played)});
    Ok(Seen::holds(holds, Words::new(zh, en))
        .value("flaw", figures(flaw))
        .value("cure", figures(cure)))
}

pub(super) const OPPOSITE_ORDER: Lesson = Lesson {
    id: "003.deadlock.opposite-order",
    title: Bilingual {
        zh: "访问顺序相反",
        en: "Opposite order",
    },
    claim: Bilingual {
        zh: "A 先锁甲再锁乙，B 先锁乙再锁甲：死锁；按同一顺序就不会",
        en: "A locks one and then two, B two and then one: a deadlock; in one order there is none",
    },
    place: "003 事务之间对资源的访问顺序",
    deadlocks: &["opposite-order"],
    replay: Some("003.deadlock.opposite-order"),
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s -X POST {8000}/test/deadlock/opposite-order",
            "两个事务以相反的顺序锁两行…错误 1213…",
        ),
        Line::new(
            "curl -s -X POST '{8000}/test/deadlock/opposite-order?cured=true'",
            "…没有错误…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(deadlock(on, "opposite-order"))),
    ..Lesson::PLAIN
};

pub(super) const SHARED_TO_EXCLUSIVE: Lesson = Lesson {
    id: "003.deadlock.shared-to-exclusive",
    title: Bilingual {
        zh: "并发修改同一记录",
        en: "Two change one row",
    },
    claim: Bilingual {
        zh: "没有一次申请够权限：共享锁升级成排他锁时死锁；用 FOR UPDATE 就不会",
        en: "Who does not ask for all it needs at once: a shared lock that becomes exclusive deadlocks; FOR UPDATE does not",
    },
    place: "003 并发修改同一记录",
    strategies: &["select-share"],
    deadlocks: &["shared-to-exclusive"],
    replay: Some("003.deadlock.shared-to-exclusive"),
    by_hand: &[
        Line::new(
            "curl -s -X POST {8000}/test/deadlock/shared-to-exclusive",
            "…LOCK IN SHARE MODE…错误 1213…",
        ),
        Line::new(
            "curl -s -X POST '{8000}/test/deadlock/shared-to-exclusive?cured=true'",
            "…FOR UPDATE…没有错误…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(deadlock(on, "shared-to-exclusive"))),
    ..Lesson::PLAIN
};

pub(super) const FULL_SCAN: Lesson = Lesson {
    id: "003.deadlock.full-scan",
    title: Bilingual {
        zh: "全表扫描，行锁变成表锁",
        en: "A full scan: row locks become a table lock",
    },
    claim: Bilingual {
        zh: "更新走不到索引，就把每一行都锁住，几个这样的事务就死锁；按执行计划加上索引就好",
        en: "An update without an index locks every row, and several of them deadlock; with the index that the plan wants they do not",
    },
    place: "003 过多的表锁",
    deadlocks: &["full-scan"],
    replay: Some("003.deadlock.full-scan"),
    quick: true,
    by_hand: &[
        Line::new(
            "curl -s -X POST {8000}/test/deadlock/full-scan",
            "…锁住 10…行…错误 1213…",
        ),
        Line::new(
            "curl -s -X POST '{8000}/test/deadlock/full-scan?cured=true'",
            "…key idx_code…没有错误…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(deadlock(on, "full-scan"))),
    ..Lesson::PLAIN
};

pub(super) const GAP: Lesson = Lesson {
    id: "003.deadlock.gap",
    title: Bilingual {
        zh: "间隙锁",
        en: "Gap locks",
    },
    claim: Bilingual {
        zh: "把隔离级别从 RR 降到 RC，可以避免间隙锁造成的死锁",
        en: "READ COMMITTED instead of REPEATABLE READ avoids the deadlocks of gap locks",
    },
    place: "003 数据库中的死锁 总结 4",
    deadlocks: &["gap"],
    replay: Some("003.deadlock.gap"),
    by_hand: &[
        Line::new(
            "curl -s -X POST {8000}/test/deadlock/gap",
            "…REPEATABLE READ…错误 1213…",
        ),
        Line::new(
            "curl -s -X POST '{8000}/test/deadlock/gap?cured=true'",
            "…READ COMMITTED…没有错误…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(deadlock(on, "gap"))),
    ..Lesson::PLAIN
};

pub(super) const LOCK_WAIT: Lesson = Lesson {
    id: "003.deadlock.lock-wait",
    title: Bilingual {
        zh: "只堵塞一段时间",
        en: "It waits only so long",
    },
    claim: Bilingual {
        zh: "A 长时间不提交，B 堵塞一段时间以后报错；把大事务拆小就不会",
        en: "Where A does not commit for long B waits a while and gets an error; not with smaller transactions",
    },
    place: "003 悲观锁；数据库中的死锁 总结 2",
    deadlocks: &["lock-wait"],
    replay: Some("003.deadlock.lock-wait"),
    by_hand: &[
        Line::new(
            "curl -s -X POST {8000}/test/deadlock/lock-wait",
            "…错误 1205…",
        ),
        Line::new(
            "curl -s -X POST '{8000}/test/deadlock/lock-wait?cured=true'",
            "…没有错误…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(deadlock(on, "lock-wait"))),
    ..Lesson::PLAIN
};

pub(super) const NO_INDEX: Lesson = Lesson {
    id: "003.for-update.no-index",
    title: Bilingual {
        zh: "FOR UPDATE 没有索引就锁表",
        en: "FOR UPDATE without an index locks the table",
    },
    claim: Bilingual {
        zh: "for update 的条件必须有索引，否则会锁表",
        en: "The condition of FOR UPDATE must have an index, or the whole table is locked",
    },
    place: "003 悲观锁",
    strategies: &["select-for-update"],
    by_hand: &[
        Line::new(
            "mysql {mysql} -Ne \"create or replace table by_hand (id int primary key, code varchar(8), n int); insert into by_hand values (1, 'a', 0), (2, 'b', 0)\"",
            "",
        ),
        Line::new(
            "mysql {mysql} -Ne \"start transaction; select id from by_hand where code = 'a' for update; do sleep(4); commit\" &",
            "1",
        ),
        Line::until(
            2,
            "mysql {mysql} -Ne \"set innodb_lock_wait_timeout = 1; update by_hand set n = 1 where id = 2\" 2>&1",
            "…ERROR 1205 …",
        ),
        Line::new("wait", ""),
        Line::at(2, "mysql {mysql} -Ne 'drop table by_hand'", ""),
    ],
    run: Run::Experiment(|on| Box::pin(no_index(on))),
    ..Lesson::PLAIN
};

/// One locks the row of a code; another wants another row, without an index on the code and with it.
async fn no_index(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut one, mut other) = (on.mysql().await?, on.mysql().await?);
    let table = format!("course_{:08x}", fastrand::u32(..));
    let mut refused = Vec::new();
    let played = async {
        let make = format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, code VARCHAR(8), n INT) ENGINE = InnoDB"
        );
        one.execute(make.as_str()).await?;
        one.execute(format!("INSERT INTO {table} VALUES (1, 'a', 0), (2, 'b', 0)").as_str())
            .await?;
        other
            .execute("SET SESSION innodb_lock_wait_timeout = 1")
            .await?;
        for index in [false, true] {
            if index {
                one.execute(format!("CREATE INDEX by_code ON {table} (code)").as_str())
                    .await?;
            }
            one.execute("START TRANSACTION").await?;
            one.execute(format!("SELECT id FROM {table} WHERE code = 'a' FOR UPDATE").as_str())
                .await?;
            let update = other
                .execute(format!("UPDATE {table} SET n = n + 1 WHERE id = 2").as_str())
                .await;
            refused.push(update.is_err());
            one.execute("COMMIT").await?;
        }
        Ok::<_, sqlx::Error>(())
    };
    let played = played.await;
    one.execute(format!("DROP TABLE IF EXISTS {table}").as_str())
        .await
        .map_err(NoVerdict::failed)?;
    for conn in [one, other] {
        conn.close().await.map_err(NoVerdict::failed)?;
    }
    played.map_err(NoVerdict::failed)?;
    let word = |refused: bool| {
        if refused {
            ("等不到，报错", "waits in vain")
        } else {
            ("照样能改", "is changed")
        }
    };
    let (without, with) = (word(refused[0]), word(refused[1]));
    let words = Words::new(
        format!(
            "锁着 code = 'a' 的行，另一行：没有索引时{}，有索引时{}。",
            without.0, with.0
        ),
        format!(
            "With the row of code 'a' locked, another row {} without an index, and {} with it.",
            without.1, with.1
        ),
    );
    Ok(Seen::holds(refused == [true, false], words).value("refused", refused))
}

const TAKE: &str = r#"mysql {mysql} -Ne "insert into tb_lock (lock_name) values ('by-hand')" 2>&1"#;
const UNLOCK: &str = r#"mysql {mysql} -Ne "delete from tb_lock where lock_name = 'by-hand'""#;

pub(super) const TABLE_LOCK: Lesson = Lesson {
    id: "003.table-lock",
    title: Bilingual {
        zh: "基于数据库的锁的四条注意",
        en: "Four cautions on a row as a lock",
    },
    claim: Bilingual {
        zh: "没有失效时间、依赖数据库、插不进去就报错要自己循环、不可重入",
        en: "It has no expiry, rests on the database, fails at once so that one must loop, and is not re-entrant",
    },
    place: "003 基于数据库的分布式锁",
    strategies: &["table-lock", "table-lock-lease"],
    replay: Some("4"),
    by_hand: &[
        Line::new(UNLOCK, ""),
        Line::new(TAKE, ""),
        Line::new(
            r#"mysql {mysql} -Ne "select expires_at from tb_lock where lock_name = 'by-hand'""#,
            "NULL",
        ),
        Line::new(TAKE, "…ERROR 1062 …Duplicate entry…"),
        Line::at(
            2,
            r#"(until mysql {mysql} -Ne "insert into tb_lock (lock_name) values ('by-hand')" 2>/dev/null; do sleep .1; done; echo mine) &"#,
            "mine",
        ),
        Line::new(UNLOCK, ""),
        Line::at(2, "wait", ""),
        Line::at(2, UNLOCK, ""),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "4"))),
    ..Lesson::PLAIN
};

pub(super) const OPTIMISTIC: Lesson = Lesson {
    id: "003.optimistic",
    title: Bilingual {
        zh: "乐观锁",
        en: "The optimistic lock",
    },
    claim: Bilingual {
        zh: "并发小时只有少数请求失败，并发大时大量失败",
        en: "With few requests at once few of them fail, with many a great many",
    },
    place: "003 乐观锁",
    strategies: &["version-cas"],
    replay: Some("1.7.3"),
    timing: true,
    by_hand: &[
        Line::new(
            "curl -s -H 'accept: application/json' '{8000}/check/lock/version-cas?hold_ms=10000' &",
            r#"…"retries":1…"#,
        ),
        Line::at(
            2,
            "sleep 4; curl -s -H 'accept: application/json' {8000}/check/lock/version-cas",
            r#"…"retries":0…"#,
        ),
        Line::new(
            "oversell compare --http {http} --instance {8000} --strategies version-cas --targets one --threads 2 --loops 100",
            "…version-cas …exact…",
        ),
        Line::new(
            "oversell compare --http {http} --instance {8000} --strategies version-cas --targets one --threads 40 --loops 5",
            "…version-cas …exact…",
        ),
    ],
    run: Run::Experiment(|on| {
        Box::pin(crate::course::experiments::retries_grow(on, "version-cas"))
    }),
    ..Lesson::PLAIN
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_route_answers_is_read() {
        let answer: serde_json::Value = json!({"outcome": "done", "error": 1213, "committed": ["A"], "steps": [{"row_locks": 2}], "plans": []});
        let played: Played = serde_json::from_value(answer).unwrap();
        assert_eq!(
            (
                played.error,
                played.committed.len(),
                played.steps[0].row_locks
            ),
            (Some(1213), 1, Some(2))
        );
    }
}
