//! The herd effect, counted by the lesson and by the server.

use crate::support::{
    http::{ask, ask_json, body_with_status, elements},
    *,
};
use oversell_lab::{clients::four_letters::four_letter_command, lab::Lab};
use reqwest::StatusCode;
use serde_json::{Value, json};

const HERDS: &str = "/distributed/zk-herd";

/// In a lab where nothing else sets watches.
#[apply(test!)]
async fn a_release_wakes_all_directory_watchers_and_one_successor() -> Result<()> {
    let lab = labs::full_lab().await?;
    notifications_are_counted(&lab, 20).await?;
    notifications_are_counted(&lab, 1).await?;
    report_as_text_is_exact(&lab).await?;
    cancelled_herd_leaves_nothing(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

async fn notifications_are_counted(lab: &Lab, waiters: u64) -> Result<()> {
    let (children, deleted) = server_counts(lab).await?;
    let url = format!("{}/test/zk/herd?waiters={waiters}", lab.addresses().http);
    let answer = ask_json(url).await?;
    let list = |name: &str| -> Vec<u64> {
        let counts = elements(&answer["each"][name]);
        counts.filter_map(Value::as_u64).collect()
    };
    let (parent, predecessor) = (list("watch_parent"), list("watch_predecessor"));
    let releases = waiters + 1;
    ensure!(answer["releases"] == releases && answer["waiters"] == waiters, "{answer}");
    ensure!(parent == (0..=waiters).rev().collect::<Vec<_>>(), "{answer}");
    let near = |name: &str, wanted: f64| answer[name].as_f64().is_some_and(|value| (value - wanted).abs() < 1e-9);
    ensure!(near("watch_parent", waiters as f64 / 2.0), "{answer}");
    ensure!(near("watch_predecessor", waiters as f64 / releases as f64), "{answer}");
    ensure!(wakes_one_each(&predecessor), "{answer}");
    // The twin: the same count over the waiters that watch the directory finds a herd.
    ensure!(waiters == 1 || !wakes_one_each(&parent), "no herd is seen in {answer}");

    let (children_after, deleted_after) = server_counts(lab).await?;
    ensure!(deleted_after - deleted == waiters, "the server told {} of deletions", deleted_after - deleted);
    // A waiter that gets in may keep its watch for a moment, and its own release then fires it.
    let told = children_after - children;
    let all = waiters * releases / 2;
    ensure!((all..=all + releases).contains(&told), "the server told {told} of {all} changes");
    wait_until("the directories are gone", || async { Ok(count_herd_directories(lab).await? == 0) }).await
}

fn wakes_one_each(notified: &[u64]) -> bool {
    matches!(notified, [others @ .., 0] if others.iter().all(|n| *n == 1))
}

async fn report_as_text_is_exact(lab: &Lab) -> Result<()> {
    let url = format!("{}/test/zk/herd?waiters=4", lab.addresses().http);
    let text = body_with_status(url, StatusCode::OK).await?;
    let wanted = "4 个人排队，锁释放 5 次\n\
        都监听父节点：共通知 10 次，平均每次释放锁 2.00 次\n\
        只监听前一个：共通知 4 次，平均每次释放锁 0.80 次\n";
    ensure!(text == wanted);
    Ok(())
}

/// A client that hangs up leaves no directory, and the next request is served.
async fn cancelled_herd_leaves_nothing(lab: &Lab) -> Result<()> {
    let url = format!("{}/test/zk/herd", lab.addresses().instances[0].url);
    let long = ask(format!("{url}?waiters=100"));
    let long = tokio::spawn(long);
    wait_until("a herd is there", || async { Ok(count_herd_directories(lab).await? == 1) }).await?;
    long.abort();
    wait_until("the herd is gone", || async { Ok(count_herd_directories(lab).await? == 0) }).await?;
    let next = ask_json(format!("{url}?waiters=2")).await?;
    ensure!(next["each"]["watch_parent"] == json!([2, 1, 0]), "{next}");
    Ok(())
}

async fn count_herd_directories(lab: &Lab) -> Result<usize> {
    let herds = labs::child_nodes(&lab.addresses().zookeeper.connect, HERDS);
    Ok(herds.await?.len())
}

/// Notifications of changed children and of deletions that the server has sent since its start.
async fn server_counts(lab: &Lab) -> Result<(u64, u64)> {
    let answer = four_letter_command(&lab.addresses().zookeeper.connect, "mntr").await?;
    let value = |name: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        line.with_context(|| format!("no {name} in {answer}"))
    };
    Ok((value("zk_sum_node_children_watch_count")?, value("zk_sum_node_deleted_watch_count")?))
}
