//! [003] Locks of the database, and its deadlocks.

use crate::trials::{Cluster, NoVerdict, Observation, experiments::galera::error_number};
use oversell::{
    claims::{Words, words},
    classroom::deadlocks::{self, DEADLOCK},
};
use serde::Deserialize;
use serde_json::json;
use sqlx::{Connection, Executor};
use std::time::Duration;
use tokio::time::{sleep, timeout};

experiments! {
    "5.kinds.table" => table_locks_do_not_deadlock(&[TABLE_LOCKS, METADATA_LOCKS]), twin(&[ROW_LOCKS]);
    "003.for-update.no-index" => locks_other_rows_without_index([false, true]), twin([true, true]);
}

/// The answer of `POST /test/deadlock/{slug}`.
#[derive(Deserialize)]
struct DeadlockRun {
    error: Option<u16>,
    committed: Vec<String>,
    steps: Vec<StatementResult>,
    #[serde(default)]
    plans: Vec<Plan>,
}

/// A statement of the deadlock, and how many rows its transaction had locked then.
#[derive(Deserialize)]
struct StatementResult {
    row_locks: Option<u64>,
}

/// A row of EXPLAIN.
#[derive(Deserialize)]
struct Plan {
    r#type: Option<String>,
    key: Option<String>,
}

/// Claim: the deadlock ends with its error, and its cure without one. `cured`: whether the first and the second run have the cure.
pub(in crate::trials) async fn play_deadlock_and_cure(
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
                &format!("{}/test/deadlock/{slug}?cured={cured}", on.one_instance()),
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
        "修正后：没有错误，{} 个提交，最多锁 {} 行。",
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
    let shown = lesson.explain.is_none() || uses_another_index(flaw, cure);
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

/// Whether the plan of the cure uses an index that the plan of the flaw does not use.
fn uses_another_index(flaw: &DeadlockRun, cure: &DeadlockRun) -> bool {
    match (flaw.plans.last(), cure.plans.last()) {
        (Some(before), Some(after)) => {
            before.r#type.is_some() && after.key.is_some() && before.key != after.key
        }
        _ => false,
    }
}

/// Claim: locking the row of a code locks other rows too, unless the code has an index. `has_index`: in each of two rounds.
async fn locks_other_rows_without_index(
    on: &Cluster,
    has_index: [bool; 2],
) -> Result<Observation, NoVerdict> {
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

/// What two connections lock in two tables, in opposite order.
#[derive(Debug, Clone, Copy)]
struct OppositeLocks {
    words: [&'static str; 2],
    begin: &'static str,
    /// For each connection, the statement for the one table and that for the other.
    locks: [[&'static str; 2]; 2],
}

const TABLE_LOCKS: OppositeLocks = OppositeLocks {
    words: [
        "LOCK TABLES（先放掉手里的那张，再锁下一张）",
        "LOCK TABLES (which gives back what it has before it takes the next)",
    ],
    begin: "SET autocommit = 1",
    locks: [
        ["LOCK TABLES {b} WRITE", "LOCK TABLES {a} WRITE"],
        ["LOCK TABLES {a} WRITE", "LOCK TABLES {b} WRITE"],
    ],
};
/// A transaction that reads a table has its metadata lock until the end; RENAME TABLE takes the metadata locks of both tables.
const METADATA_LOCKS: OppositeLocks = OppositeLocks {
    words: [
        "元数据锁（SELECT 与 RENAME TABLE）",
        "metadata locks (SELECT and RENAME TABLE)",
    ],
    begin: "START TRANSACTION",
    locks: [
        ["SELECT id FROM {b}", "SELECT id FROM {a}"],
        [
            "SELECT 1",
            "RENAME TABLE {a} TO {a}_new, {b} TO {b}_new, {a}_new TO {a}, {b}_new TO {b}",
        ],
    ],
};
/// The control: locks on rows, which do deadlock.
const ROW_LOCKS: OppositeLocks = OppositeLocks {
    words: ["行锁", "locks on rows"],
    begin: "START TRANSACTION",
    locks: [
        [
            "SELECT id FROM {b} FOR UPDATE",
            "SELECT id FROM {a} FOR UPDATE",
        ],
        [
            "SELECT id FROM {a} FOR UPDATE",
            "SELECT id FROM {b} FOR UPDATE",
        ],
    ],
};

/// Claim: none of these locks on tables deadlocks, and those on rows do.
async fn table_locks_do_not_deadlock(
    on: &Cluster,
    of_tables: &[OppositeLocks],
) -> Result<Observation, NoVerdict> {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for tried in of_tables.iter().chain([&ROW_LOCKS]) {
        let error = lock_in_opposite_order(on, tried).await?;
        let [zh, en] = tried.words;
        all.push(match error {
            Some(number) => words!("{zh}：错误 {number}", "{en}: error {number}"),
            None => words!("{zh}：没有错误", "{en}: no error"),
        });
        errors.push(error);
    }
    let Words { zh, en } = Words::join(&all, ["；", "; "]);
    let words = words!(
        "两个连接，相反的顺序。{zh}。",
        "Two connections, in opposite order. {en}."
    );
    let deadlock = Some(DEADLOCK);
    let (of_rows, of_tables) = (errors.pop(), errors);
    let holds = of_rows == Some(deadlock) && !of_tables.contains(&deadlock);
    Ok(Observation::holds(holds, words).value("errors", json!(of_tables)))
}

/// Two connections lock in two tables, in opposite order. Returns 1213 if that is a deadlock, else `None`; any other error fails.
async fn lock_in_opposite_order(
    on: &Cluster,
    tried: &OppositeLocks,
) -> Result<Option<u16>, NoVerdict> {
    let (mut one, mut other, mut observer) =
        (on.mysql().await?, on.mysql().await?, on.mysql().await?);
    // RENAME TABLE takes its locks in the order of the names.
    let of_this_run = fastrand::u32(..);
    let [a, b] = ["a", "b"].map(|of| format!("course_{of_this_run:08x}_{of}"));
    let on_tables = |statement: &str| statement.replace("{a}", &a).replace("{b}", &b);
    for table in ["{a}", "{b}"] {
        for make in [
            "CREATE TABLE {table} (id INT PRIMARY KEY) ENGINE = InnoDB",
            "INSERT INTO {table} VALUES (1)",
        ] {
            one.execute(on_tables(&make.replace("{table}", table)).as_str())
                .await?;
        }
    }
    let [first, second] = tried.locks.map(|locks| locks.map(&on_tables));
    let played = async {
        for (conn, [lock, _]) in [(&mut one, &first), (&mut other, &second)] {
            conn.execute(tried.begin).await?;
            conn.execute(lock.as_str()).await?;
        }
        let id: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()")
            .fetch_one(&mut other)
            .await?;
        let last = async {
            let waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND (state LIKE 'Waiting for table%' \
                OR id IN (SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'))";
            let waits = async {
                loop {
                    let count = sqlx::query_scalar(waits).bind(id);
                    let count: i64 = count.fetch_one(&mut observer).await?;
                    if count > 0 {
                        return Ok::<_, sqlx::Error>(());
                    }
                    sleep(Duration::from_millis(10)).await;
                }
            };
            // Without a wait there is no deadlock either.
            timeout(Duration::from_secs(1), waits)
                .await
                .unwrap_or(Ok(()))?;
            let done = one.execute(first[1].as_str()).await;
            // The connection that waits for these locks goes on.
            one.execute("ROLLBACK").await?;
            one.execute("UNLOCK TABLES").await?;
            Ok::<_, sqlx::Error>(done)
        };
        let (waits, last) = tokio::join!(other.execute(second[1].as_str()), last);
        Ok::<_, sqlx::Error>([waits, last?])
    };
    let ends = played.await?;
    for statement in ["ROLLBACK", "UNLOCK TABLES"] {
        other.execute(statement).await?;
    }
    one.execute(format!("DROP TABLE {a}, {b}").as_str()).await?;
    for conn in [one, other, observer] {
        conn.close().await?;
    }
    let [one, other] = ends.map(error_number);
    let error = one?.or(other?);
    match error {
        None | Some(DEADLOCK) => Ok(error),
        Some(other) => Err(NoVerdict::failed(format!("error {other}"))),
    }
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
        assert!(uses_another_index(&all, &by_index));
        let (none, tree) = (played(json!([])), plan(None, None));
        for (flaw, cure) in [
            (&tree, &tree),
            (&none, &none),
            (&all, &all),
            (&tree, &by_index),
        ] {
            assert!(!uses_another_index(flaw, cure));
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
