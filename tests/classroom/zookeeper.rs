//! ZooKeeper's lessons for several browser windows, on three instances behind nginx.

use super::windows::{halves, others_wait, visited};
use crate::support::{
    http::{ask, ask_json, body_with_status},
    labs::query_redis,
    *,
};
use oversell_lab::lab::Lab;
use reqwest::StatusCode;
use serde_json::Value;

pub(crate) async fn all(lab: &Lab) -> Result<()> {
    read_write(lab).await?;
    semaphore(lab).await?;
    shared_count(lab).await?;
    atomic(lab).await?;
    barrier(lab).await?;
    double_barrier(lab).await?;
    locks(lab).await
}

async fn children(lab: &Lab, path: &str) -> Result<Vec<String>> {
    labs::child_nodes(&lab.addresses().zookeeper.connect, path).await
}

async fn wait_until_node_is_gone(lab: &Lab, path: &str) -> Result<()> {
    wait_until(&format!("{path} is empty"), || async { Ok(children(lab, path).await?.is_empty()) }).await
}

/// §3.7.3. The request is answered at once, and the lock is kept for a while.
async fn read_write(lab: &Lab) -> Result<()> {
    halves(lab, "/test/zk").await?;
    for product in 30..33 {
        wait_until_node_is_gone(lab, &format!("/curator/rwlock-{product}")).await?;
    }
    Ok(())
}

/// §3.7.5. Five leases, and both lines in the log.
async fn semaphore(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/zk/semaphore", lab.addresses().http);
    // A visitor is inside once it has a lease and has logged its line.
    others_wait(&base, 5, 5, async || {
        let leases = children(lab, "/locks/semaphore/leases").await?.len();
        Ok(leases.min(query_redis(lab, "LLEN", "log").await?))
    })
    .await?;
    let text = body_with_status(format!("{base}?hold_ms=0"), StatusCode::OK).await?;
    ensure!(text == "hello Semaphore");
    let lines: usize = query_redis(lab, "LLEN", "log").await?;
    ensure!(lines == 7, "{lines} lines in the log, and not five and both of the last");
    Ok(())
}

/// §3.7.7.1. One instance sets the number, another reads it.
async fn shared_count(lab: &Lab) -> Result<()> {
    let text = body_with_status(format!("{}/test/zk/share/count", lab.addresses().http), StatusCode::OK).await?;
    ensure!(text == "hello shareData");
    let mut last: Option<Value> = None;
    for instance in lab.addresses().instances.iter().cycle().take(6) {
        let answer = ask_json(format!("{}/test/zk/share/count", instance.url)).await?;
        ensure!(last.is_none_or(|last| answer["before"] == last), "another number was there: {answer}");
        last = Some(answer["after"].clone());
    }
    Ok(())
}

/// §3.7.7.2. Each change reports the value before and after; concurrent changes all count.
async fn atomic(lab: &Lab) -> Result<()> {
    const EACH: usize = 20;
    let base = format!("{}/test/zk/atomic", lab.addresses().http);
    let mut value = 40;
    for (change, after) in
        [("try-set?value=40", 40), ("increment", 41), ("decrement", 40), ("add?value=7", 47), ("subtract?value=-3", 50)]
    {
        let answer = ask_json(format!("{base}/{change}")).await?;
        ensure!(answer["succeeded"] == true && answer["postValue"] == after, "{change}: {answer}");
        ensure!(change.starts_with("try") || answer["preValue"] == value, "{change}: {answer}");
        value = after;
    }
    let answer = ask_json(format!("{base}/force-set?value=0")).await?;
    ensure!(answer["preValue"] == 50 && answer["postValue"] == 0, "{answer}");
    let crowd = (0..3 * EACH).map(|n| {
        let url = format!("{}/test/zk/atomic/increment", lab.addresses().instances[n % 3].url);
        async move { ask_json(url).await }
    });
    let answers = futures::future::try_join_all(crowd).await?;
    let made = answers.iter().filter(|answer| answer["succeeded"] == true).count();
    let answer = ask_json(format!("{base}/get")).await?;
    ensure!(answer["postValue"] == made && made == 3 * EACH, "{made} were made, and it is {answer}");
    for (bad, names) in
        [("add", "value"), ("add?value=x", "value"), ("increment?member=1", "member"), ("halve", "change")]
    {
        let text = body_with_status(format!("{base}/{bad}"), StatusCode::BAD_REQUEST).await.context(bad)?;
        ensure!(text.contains(names), "{text}");
    }
    Ok(())
}

/// §3.7.6. All wait at the closed barrier; once it is removed, all go on.
async fn barrier(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/zk/barrier", lab.addresses().http);
    body_with_status(format!("{base}/wait?wait_ms=0"), StatusCode::OK).await.context("with no barrier")?;
    ask(format!("{base}/set")).await?;
    body_with_status(format!("{base}/wait?wait_ms=200"), StatusCode::SERVICE_UNAVAILABLE)
        .await
        .context("at a closed barrier")?;
    let waiting: Vec<_> = (0..6).map(|_| tokio::spawn(ask(format!("{base}/wait")))).collect();
    ask(format!("{base}/remove")).await?;
    for waiter in waiting {
        let (status, text) = waiter.await??;
        ensure!(status == StatusCode::OK, "after it was removed: {status} {text}");
    }
    Ok(())
}

/// §3.7.6. All enter once three have come, and leave once three are done, on any instance.
async fn double_barrier(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/zk/double-barrier", lab.addresses().http);
    body_with_status(format!("{base}/enter?members=3&wait_ms=200"), StatusCode::SERVICE_UNAVAILABLE)
        .await
        .context("alone")?;
    wait_until_node_is_gone(lab, "/curator/double-barrier").await?;
    let enter = || {
        let url = format!("{base}/enter?members=3");
        tokio::spawn(ask_json(url))
    };
    let early = [enter(), enter()];
    wait_until("two wait", || async { Ok(children(lab, "/curator/double-barrier").await?.len() == 2) }).await?;
    ensure!(early.iter().all(|one| !one.is_finished()), "one is inside before three are");
    let mut members = Vec::new();
    for one in early.into_iter().chain([enter()]) {
        let answer = one.await??;
        members.push(answer["member"].as_str().with_context(|| answer.to_string())?.to_owned());
    }
    let leave = |member: &str| {
        let url = format!("{base}/leave?members=3&member={member}");
        tokio::spawn(ask(url))
    };
    let early = [leave(&members[0]), leave(&members[1])];
    wait_until("one is left beside", || async { Ok(children(lab, "/curator/double-barrier").await?.len() <= 3) })
        .await?;
    ensure!(early.iter().all(|one| !one.is_finished()), "one is out before all have left");
    for one in early.into_iter().chain([leave(&members[2])]) {
        let (status, text) = one.await??;
        ensure!(status == StatusCode::OK, "leaving: {status} {text}");
    }
    wait_until_node_is_gone(lab, "/curator/double-barrier").await?;
    let text = body_with_status(format!("{base}/leave?members=3&member={}", members[0]), StatusCode::BAD_REQUEST)
        .await
        .context("twice")?;
    ensure!(text.contains("member"), "{text}");
    let text = body_with_status(format!("{base}/enter?members=0"), StatusCode::BAD_REQUEST).await.context("nobody")?;
    ensure!(text.contains("members"), "{text}");
    Ok(())
}

/// §3.5, 3.7.4. The steps of a visit, while another one waits.
async fn locks(lab: &Lab) -> Result<()> {
    let steps = [1, 2, 3].map(|n| format!("took /curator/multi/{n} {n}"));
    let back = [3, 2, 1].map(|n| format!("left /curator/multi/{n} {n}"));
    let multi: Vec<_> = steps.iter().chain(&back).map(String::as_str).collect();
    let reentrant = [
        "took /curator/reentrant 1",
        "took /curator/reentrant 2",
        "left /curator/reentrant 1",
        "left /curator/reentrant 0",
    ];
    for (path, directory, wanted) in
        [("/test/zk/multi", "/curator/multi/3", &multi[..]), ("/test/zk/reentrant", "/curator/reentrant", &reentrant)]
    {
        let held = async || Ok(children(lab, directory).await?.len());
        visited(lab, path, wanted, 1, held).await.context(path)?;
    }
    Ok(())
}
