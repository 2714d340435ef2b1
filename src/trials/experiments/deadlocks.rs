//! [003] Locks of the database, and its deadlocks.

use crate::{
    claims::Words,
    classroom::deadlocks,
    trials::{Cluster, NoVerdict, Observation},
};
use serde::Deserialize;
use serde_json::json;
use sqlx::{Connection, Executor};

experiments! {
    "5.kinds.table" => tables(WHOLE_TABLES), twin(ROWS);
    "003.for-update.no-index" => no_index([false, true]), twin([true, true]);
}

#[derive(Deserialize)]
struct DeadlockRun {
    error: Option<u16>,
    committed: Vec<String>,
    steps: Vec<StatementResult>,
    #[serde(default)]
    plans: Vec<Plan>,
}

#[derive(Deserialize)]
struct StatementResult {
    row_locks: Option<u64>,
}

#[derive(Deserialize)]
struct Plan {
    r#type: Option<String>,
    key: Option<String>,
}

/// Claim: the deadlock ends with its error, and its cure without one. `cured`: whether each of the two is played with the cure.
pub(in crate::trials) async fn deadlock(
    on: &Cluster,
    slug: &str,
    cured: [bool; 2],
) -> Result<Observation, NoVerdict> {
    let lesson = deadlocks::find(slug)
        .ok_or_else(|| NoVerdict::failed(format!("there is no deadlock {slug}")))?;
    let mut played = Vec::new();
    for cured in cured {
        let (status, answer) = on
            .answer(
                http::Method::POST,
                &format!("{}/test/deadlock/{slug}?cured={cured}", on.one()),
            )
            .await?;
        if status != 200 {
            return Err(NoVerdict::failed(answer));
        }
        played.push(serde_json::from_value::<DeadlockRun>(answer)?);
    }
    let most = |played: &DeadlockRun| {
        played
            .steps
            .iter()
            .filter_map(|step| step.row_locks)
            .max()
            .unwrap_or(0)
    };
    let plan = |played: &DeadlockRun| {
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
        "采用解法后：没有错误，{} 个提交，最多锁 {} 行。",
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
    let shown = lesson.explain.is_none() || shows_the_cure(flaw, cure);
    let holds = shown
        && error == lesson.error
        && flaw.committed.len() == 1
        && cure.error.is_none()
        && cure.committed.len() == 2;
    let figures = |played: &DeadlockRun| json!({"error": played.error, "committed": played.committed, "row_locks": most(played)});
    Ok(Observation::holds(holds, Words::new(zh, en))
        .value("flaw", figures(flaw))
        .value("cure", figures(cure)))
}

/// Whether the plans before and after differ in the index they use.
fn shows_the_cure(flaw: &DeadlockRun, cure: &DeadlockRun) -> bool {
    match (flaw.plans.last(), cure.plans.last()) {
        (Some(before), Some(after)) => {
            before.r#type.is_some() && after.key.is_some() && before.key != after.key
        }
        _ => false,
    }
}

/// Claim: locking the row of a code locks other rows too, unless the code has an index.
async fn no_index(on: &Cluster, has_index: [bool; 2]) -> Result<Observation, NoVerdict> {
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
        for (round, has_index) in has_index.into_iter().enumerate() {
            if has_index {
                one.execute(format!("CREATE INDEX by_code_{round} ON {table} (code)").as_str())
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
        .await?;
    for conn in [one, other] {
        conn.close().await?;
    }
    played?;
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
    Ok(Observation::holds(refused == [true, false], words).value("refused", refused))
}

/// How a transaction begins, locks and unlocks.
const WHOLE_TABLES: [&str; 3] = [
    "SET autocommit = 1",
    "LOCK TABLES {table} WRITE",
    "UNLOCK TABLES",
];
const ROWS: [&str; 3] = [
    "START TRANSACTION",
    "SELECT id FROM {table} FOR UPDATE",
    "ROLLBACK",
];

/// Two connections lock in two tables, in opposite order.
async fn tables(on: &Cluster, [begin, lock, unlock]: [&str; 3]) -> Result<Observation, NoVerdict> {
    let (mut one, mut other) = (on.mysql().await?, on.mysql().await?);
    let [a, b] = ["a", "b"].map(|of| format!("course_{:08x}_{of}", fastrand::u32(..)));
    for table in [&a, &b] {
        one.execute(format!("CREATE TABLE {table} (id INT PRIMARY KEY) ENGINE = InnoDB").as_str())
            .await?;
        one.execute(format!("INSERT INTO {table} VALUES (1)").as_str())
            .await?;
    }
    let lock = |table: &str| lock.replace("{table}", table);
    let played = async {
        for (conn, first) in [(&mut one, &a), (&mut other, &b)] {
            conn.execute(begin).await?;
            conn.execute(lock(first).as_str()).await?;
        }
        let (one_more, other_more) = (lock(&b), lock(&a));
        let both = tokio::join!(
            one.execute(one_more.as_str()),
            other.execute(other_more.as_str())
        );
        Ok::<_, sqlx::Error>([both.0, both.1].map(|done| done.err()))
    };
    let errors = played.await?;
    for conn in [&mut one, &mut other] {
        conn.execute(unlock).await?;
    }
    one.execute(format!("DROP TABLE {a}, {b}").as_str()).await?;
    for conn in [one, other] {
        conn.close().await?;
    }
    let error = errors
        .iter()
        .flatten()
        .find_map(sqlx::Error::as_database_error);
    let error = error.map_or_else(|| "-".to_owned(), |error| error.message().to_owned());
    let words = Words::new(
        format!(
            "相反的顺序各锁两个，错误：{error}。LOCK TABLES 先放掉手里的再去锁下一张：没有人拿着一张等另一张。"
        ),
        format!(
            "Two each, in opposite order, error: {error}. LOCK TABLES gives back what it has before it takes the next: nobody has one table and waits for another."
        ),
    );
    Ok(Observation::holds(errors.iter().all(Option::is_none), words).value("error", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_plan_the_cure_is_not_shown() {
        let played = |plans: serde_json::Value| -> DeadlockRun {
            let answer = json!({"error": null, "committed": [], "steps": [], "plans": plans});
            serde_json::from_value(answer).unwrap()
        };
        let plan =
            |way: Option<&str>, key: Option<&str>| played(json!([{"type": way, "key": key}]));
        let (all, by_index) = (
            plan(Some("ALL"), None),
            plan(Some("range"), Some("idx_code")),
        );
        assert!(shows_the_cure(&all, &by_index));
        let (none, tree) = (played(json!([])), plan(None, None));
        for (flaw, cure) in [
            (&tree, &tree),
            (&none, &none),
            (&all, &all),
            (&tree, &by_index),
        ] {
            assert!(!shows_the_cure(flaw, cure));
        }
    }

    #[test]
    fn a_route_s_answer_is_read() {
        let answer: serde_json::Value = json!({"outcome": "done", "error": 1213, "committed": ["A"], "steps": [{"row_locks": 2}], "plans": []});
        let played: DeadlockRun = serde_json::from_value(answer).unwrap();
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
