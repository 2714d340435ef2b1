//! The herd effect, as the lesson counts it and as the server itself does.

use crate::program;
use crate::{buyers::until, classroom::ensure};
use oversell::{four_letters::four_letters, lab::Lab};
use reqwest::{Client, StatusCode, header};
use serde_json::{Value, json};

type Outcome = Result<(), String>;

const HERDS: &str = "/distributed/zk-herd";

/// The lesson, in a lab of its own: nobody else there watches anything.
pub(crate) async fn a_release_wakes_all_that_watch_the_directory_and_one_that_watches_its_predecessor()
-> Outcome {
    let lab = Lab::start(program()).await.map_err(|e| e.to_string())?;
    let outcome = async {
        counted(&lab, 20).await?;
        counted(&lab, 1).await?;
        in_words(&lab).await?;
        given_up(&lab).await
    };
    let outcome = outcome.await;
    lab.stop().await;
    outcome
}

async fn counted(lab: &Lab, waiters: u64) -> Outcome {
    let (children, deleted) = server_counts(lab).await?;
    let url = format!("{}/test/zk/herd?waiters={waiters}", lab.addresses().http);
    let answer = Client::new()
        .get(url)
        .header(header::ACCEPT, "application/json")
        .send()
        .await;
    let answer: Value = answer
        .map_err(|e| e.to_string())?
        .json()
        .await
        .map_err(|e| e.to_string())?;
    let list = |name: &str| -> Vec<u64> {
        answer["each"][name]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect()
    };
    let (parent, predecessor) = (list("watch_parent"), list("watch_predecessor"));
    let releases = waiters + 1;
    ensure(
        answer["releases"] == releases && answer["waiters"] == waiters,
        || answer.to_string(),
    )?;
    ensure(parent == (0..=waiters).rev().collect::<Vec<_>>(), || {
        answer.to_string()
    })?;
    let near = |name: &str, wanted: f64| {
        answer[name]
            .as_f64()
            .is_some_and(|value| (value - wanted).abs() < 1e-9)
    };
    ensure(near("watch_parent", waiters as f64 / 2.0), || {
        answer.to_string()
    })?;
    ensure(
        near("watch_predecessor", waiters as f64 / releases as f64),
        || answer.to_string(),
    )?;
    ensure(wakes_one_each(&predecessor), || answer.to_string())?;
    // The twin: the same look at those who watch the directory sees the herd.
    ensure(waiters == 1 || !wakes_one_each(&parent), || {
        format!("no herd is seen in {answer}")
    })?;

    let (children_after, deleted_after) = server_counts(lab).await?;
    ensure(deleted_after - deleted == waiters, || {
        format!("the server told {} of deletions", deleted_after - deleted)
    })?;
    // Whoever gets in may have a watch for a moment longer, which its own release then fires.
    let told = children_after - children;
    let all = waiters * releases / 2;
    ensure((all..=all + releases).contains(&told), || {
        format!("the server told {told} of {all} changes")
    })?;
    until("the directories are gone", || async {
        Ok(herds(lab).await? == 0)
    })
    .await
}

fn wakes_one_each(notified: &[u64]) -> bool {
    matches!(notified, [others @ .., 0] if others.iter().all(|n| *n == 1))
}

async fn in_words(lab: &Lab) -> Outcome {
    let url = format!("{}/test/zk/herd?waiters=4", lab.addresses().http);
    let answer = Client::new()
        .get(url)
        .send()
        .await
        .map_err(|e| e.to_string())?;
    let (status, text) = (
        answer.status(),
        answer.text().await.map_err(|e| e.to_string())?,
    );
    let wanted = "4 个人排队，锁放掉 5 次\n\
        都盯父节点：共通知 10 次，平均每次放锁 2.00 次\n\
        只盯前一个：共通知 4 次，平均每次放锁 0.80 次\n";
    ensure(status == StatusCode::OK && text == wanted, || {
        format!("{status} {text}")
    })
}

/// A client that hangs up in the middle leaves no directory behind, and the next one is served.
async fn given_up(lab: &Lab) -> Outcome {
    let url = format!("{}/test/zk/herd", lab.addresses().instances[0].url);
    let long = Client::new().get(format!("{url}?waiters=100")).send();
    let long = tokio::spawn(long);
    until("a herd is there", || async { Ok(herds(lab).await? == 1) }).await?;
    long.abort();
    until("the herd is gone", || async { Ok(herds(lab).await? == 0) }).await?;
    let next = Client::new()
        .get(format!("{url}?waiters=2"))
        .header(header::ACCEPT, "application/json")
        .send()
        .await;
    let next: Value = next
        .map_err(|e| e.to_string())?
        .json()
        .await
        .map_err(|e| e.to_string())?;
    ensure(next["each"]["watch_parent"] == json!([2, 1, 0]), || {
        next.to_string()
    })
}

/// How many herds have a directory.
async fn herds(lab: &Lab) -> Result<usize, String> {
    let client = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await;
    match client
        .map_err(|e| e.to_string())?
        .list_children(HERDS)
        .await
    {
        Err(zookeeper_client::Error::NoNode) => Ok(0),
        listed => listed.map(|herds| herds.len()).map_err(|e| e.to_string()),
    }
}

/// Of how many changed children and of how many deletions the server has told somebody, since it was started.
async fn server_counts(lab: &Lab) -> Result<(u64, u64), String> {
    let answer = four_letters(&lab.addresses().zookeeper.connect, "mntr")
        .await
        .map_err(|e| e.to_string())?;
    let value = |name: &str| {
        let line = answer
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        line.ok_or_else(|| format!("no {name} in {answer}"))
    };
    Ok((
        value("zk_sum_node_children_watch_count")?,
        value("zk_sum_node_deleted_watch_count")?,
    ))
}
