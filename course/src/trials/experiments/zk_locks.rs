//! §3.4.2: how many waiters a release wakes, if all watch the directory, or each the node before its own.

use crate::trials::{Cluster, NoVerdict, Observation, tools::get_json};
use oversell::claims::Words;
use serde_json::json;

experiments! {
    "3.4.2.herd" => count_woken_waiters(["watch_parent", "watch_predecessor"]), twin(["watch_predecessor", "watch_parent"]);
}

/// Claim: of 50 waiters a release wakes all that are left if they watch the directory, and one if each watches the node before.
async fn count_woken_waiters(on: &Cluster, ways: [&str; 2]) -> Result<Observation, NoVerdict> {
    let herd = get_json(
        on,
        &format!("{}/test/zk/herd?waiters=50", on.one_instance()),
    )
    .await?;
    let [parent, predecessor] = ways.map(|way| &herd["each"][way]);
    let all: Vec<u64> = (0..=50).rev().collect();
    let one: Vec<u64> = (0..=50).map(|n| u64::from(n < 50)).collect();
    let words = Words::new(
        "50 个排队，一个一个释放锁：都监听父节点依次唤醒 50、49、48 … 1、0 个；只监听前一个依次唤醒 1、1、1 … 1、0 个。",
        "50 wait, one release after the other: watching the directory, 50, 49, 48 … 1, 0 are woken; watching the node before, 1, 1, 1 … 1, 0.",
    );
    let holds = *parent == json!(all) && *predecessor == json!(one);
    let words = if holds {
        words
    } else {
        Words::untranslated(herd.to_string())
    };
    Ok(Observation::holds(holds, words)
        .value("watch_parent", parent.clone())
        .value("watch_predecessor", predecessor.clone()))
}
