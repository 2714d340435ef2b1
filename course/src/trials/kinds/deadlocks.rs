//! [003] Deadlocks of the database, each with its cure.

use crate::trials::{Cluster, NoVerdict, Observation};
use oversell::{claims::Words, classroom::deadlocks};
use serde::Deserialize;
use serde_json::json;

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
pub(super) async fn play_deadlock_and_cure(
    on: &Cluster,
    slug: &str,
    cured: [bool; 2],
) -> Result<Observation, NoVerdict> {
    let lesson = deadlocks::find(slug).ok_or_else(|| NoVerdict::failed(format!("there is no deadlock {slug}")))?;
    let mut played = Vec::new();
    for cured in cured {
        let (status, answer) =
            on.answer(http::Method::POST, &format!("{}/test/deadlock/{slug}?cured={cured}", on.one_instance())).await?;
        if status != 200 {
            return Err(NoVerdict::failed(answer));
        }
        played.push(serde_json::from_value::<DeadlockRun>(answer)?);
    }
    let most = |played: &DeadlockRun| played.steps.iter().filter_map(|step| step.row_locks).max().unwrap_or(0);
    let plan = |played: &DeadlockRun| {
        let plan = played.plans.last();
        let of = |word: Option<&String>| word.map_or("NULL", String::as_str).to_owned();
        plan.map(|plan| (of(plan.r#type.as_ref()), of(plan.key.as_ref())))
    };
    let (flaw, cure) = (&played[0], &played[1]);
    let error = flaw.error.unwrap_or(0);
    let (mut zh, mut en) = (
        format!("错误 {error}，{} 个提交，一个事务最多锁 {} 行；", flaw.committed.len(), most(flaw)),
        format!("error {error}, {} committed, at most {} rows locked by one;", flaw.committed.len(), most(flaw)),
    );
    zh += &format!("修正后：没有错误，{} 个提交，最多锁 {} 行。", cure.committed.len(), most(cure));
    en += &format!(" with its cure no error, {} committed, at most {} rows.", cure.committed.len(), most(cure));
    if let (Some(before), Some(after)) = (plan(flaw), plan(cure)) {
        zh += &format!("执行计划：{} {}，加索引以后 {} {}。", before.0, before.1, after.0, after.1);
        en += &format!(" The plan: {} {}, with the index {} {}.", before.0, before.1, after.0, after.1);
    }
    let shown = lesson.explain.is_none() || uses_another_index(flaw, cure);
    let holds = shown
        && error == lesson.error
        && flaw.committed.len() == 1
        && cure.error.is_none()
        && cure.committed.len() == 2;
    let figures =
        |played: &DeadlockRun| json!({"error": played.error, "committed": played.committed, "row_locks": most(played)});
    Ok(Observation::holds(holds, Words::new(zh, en)).value("flaw", figures(flaw)).value("cure", figures(cure)))
}

/// Whether the plan of the cure uses an index that the plan of the flaw does not use.
fn uses_another_index(flaw: &DeadlockRun, cure: &DeadlockRun) -> bool {
    match (flaw.plans.last(), cure.plans.last()) {
        (Some(before), Some(after)) => before.r#type.is_some() && after.key.is_some() && before.key != after.key,
        _ => false,
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
        let plan = |way: Option<&str>, key: Option<&str>| played(json!([{"type": way, "key": key}]));
        let (all, by_index) = (plan(Some("ALL"), None), plan(Some("range"), Some("idx_code")));
        assert!(uses_another_index(&all, &by_index));
        let (none, tree) = (played(json!([])), plan(None, None));
        for (flaw, cure) in [(&tree, &tree), (&none, &none), (&all, &all), (&tree, &by_index)] {
            assert!(!uses_another_index(flaw, cure));
        }
    }

    #[test]
    fn a_route_s_answer_is_read() {
        let answer: serde_json::Value =
            json!({"outcome": "done", "error": 1213, "committed": ["A"], "steps": [{"row_locks": 2}], "plans": []});
        let played: DeadlockRun = serde_json::from_value(answer).unwrap();
        assert_eq!((played.error, played.committed.len(), played.steps[0].row_locks), (Some(1213), 1, Some(2)));
    }
}
