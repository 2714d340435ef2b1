//! ZooKeeper's lessons for several browser windows, on three instances behind nginx.

use super::windows::{halves, in_redis, steps};
use crate::support::{
    http::{answered, ask, ask_json},
    *,
};
use oversell::lab::Lab;
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Every lesson, one after the other.
pub(crate) async fn all(lab: &Lab) -> Result<()> {
    read_write(lab).await?;
    semaphore(lab).await?;
    shared_count(lab).await?;
    atomic(lab).await?;
    barrier(lab).await?;
    double_barrier(lab).await?;
    locks(lab).await
}

/// What is below a node.
async fn children(lab: &Lab, path: &str) -> Result<Vec<String>> {
    let zk = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await?;
    match zk.list_children(path).await {
        Err(zookeeper_client::Error::NoNode) => Ok(vec![]),
        children => Ok(children?),
    }
}

async fn gone(lab: &Lab, path: &str) -> Result<()> {
    until(&format!("{path} is empty"), || async {
        Ok(children(lab, path).await?.is_empty())
    })
    .await
}

/// §3.7.3. Answered at once, and kept for a while after the answer.
async fn read_write(lab: &Lab) -> Result<()> {
    halves(lab, "/test/zk").await?;
    for product in 30..33 {
        gone(lab, &format!("/curator/rwlock-{product}")).await?;
    }
    Ok(())
}

/// §3.7.5. Five leases, and both lines in the log.
async fn semaphore(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/zk/semaphore", lab.addresses().http);
    let inside: Vec<_> = (0..5)
        .map(|_| tokio::spawn(ask(format!("{base}?hold_ms=60000"))))
        .collect();
    until("five are inside", || async {
        Ok(in_redis::<usize>(lab, "LLEN", "log").await? == 5)
    })
    .await?;
    answered(
        format!("{base}?hold_ms=0&wait_ms=300"),
        StatusCode::SERVICE_UNAVAILABLE,
    )
    .await
    .context("a sixth")?;
    inside.iter().for_each(tokio::task::JoinHandle::abort);
    gone(lab, "/locks/semaphore/leases").await?;
    let text = answered(format!("{base}?hold_ms=0"), StatusCode::OK).await?;
    ensure!(text == "hello Semaphore");
    let lines: usize = in_redis(lab, "LLEN", "log").await?;
    ensure!(
        lines == 7,
        "{lines} lines in the log, and not five and both of the last"
    );
    Ok(())
}

/// §3.7.7.1. What one instance has set another reads.
async fn shared_count(lab: &Lab) -> Result<()> {
    let text = answered(
        format!("{}/test/zk/share/count", lab.addresses().http),
        StatusCode::OK,
    )
    .await?;
    ensure!(text == "hello shareData");
    let mut last: Option<Value> = None;
    for instance in lab.addresses().instances.iter().cycle().take(6) {
        let answer = ask_json(format!("{}/test/zk/share/count", instance.url)).await?;
        ensure!(
            last.is_none_or(|last| answer["before"] == last),
            "another number was there: {answer}"
        );
        last = Some(answer["after"].clone());
    }
    Ok(())
}

/// §3.7.7.2. Each change says what was before and what is after; many at once all count.
async fn atomic(lab: &Lab) -> Result<()> {
    const EACH: usize = 20;
    let base = format!("{}/test/zk/atomic", lab.addresses().http);
    let mut value = 40;
    for (change, after) in [
        ("try-set?value=40", 40),
        ("increment", 41),
        ("decrement", 40),
        ("add?value=7", 47),
        ("subtract?value=-3", 50),
    ] {
        let answer = ask_json(format!("{base}/{change}")).await?;
        ensure!(
            answer["succeeded"] == true && answer["postValue"] == after,
            "{change}: {answer}"
        );
        ensure!(
            change.starts_with("try") || answer["preValue"] == value,
            "{change}: {answer}"
        );
        value = after;
    }
    let answer = ask_json(format!("{base}/force-set?value=0")).await?;
    ensure!(
        answer["preValue"] == 50 && answer["postValue"] == 0,
        "{answer}"
    );
    let crowd = (0..3 * EACH).map(|n| {
        let url = format!(
            "{}/test/zk/atomic/increment",
            lab.addresses().instances[n % 3].url
        );
        async move { ask_json(url).await }
    });
    let answers = futures::future::try_join_all(crowd).await?;
    let made = answers
        .iter()
        .filter(|answer| answer["succeeded"] == true)
        .count();
    let answer = ask_json(format!("{base}/get")).await?;
    ensure!(
        answer["postValue"] == made && made == 3 * EACH,
        "{made} were made, and it is {answer}"
    );
    for (bad, names) in [
        ("add", "value"),
        ("add?value=x", "value"),
        ("increment?member=1", "member"),
        ("halve", "change"),
    ] {
        let text = answered(format!("{base}/{bad}"), StatusCode::BAD_REQUEST)
            .await
            .context(bad)?;
        ensure!(text.contains(names), "{text}");
    }
    Ok(())
}

/// §3.7.6. Closed, everybody waits; removed, everybody goes on.
async fn barrier(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/zk/barrier", lab.addresses().http);
    answered(format!("{base}/wait?wait_ms=0"), StatusCode::OK)
        .await
        .context("with no barrier")?;
    ask(format!("{base}/set")).await?;
    answered(
        format!("{base}/wait?wait_ms=200"),
        StatusCode::SERVICE_UNAVAILABLE,
    )
    .await
    .context("at a closed barrier")?;
    let waiting: Vec<_> = (0..6)
        .map(|_| tokio::spawn(ask(format!("{base}/wait"))))
        .collect();
    ask(format!("{base}/remove")).await?;
    for waiter in waiting {
        let (status, text) = waiter.await??;
        ensure!(
            status == StatusCode::OK,
            "after it was removed: {status} {text}"
        );
    }
    Ok(())
}

/// §3.7.6. Nobody is inside before three are, and nobody is out before all have left, on whatever instance.
async fn double_barrier(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/zk/double-barrier", lab.addresses().http);
    answered(
        format!("{base}/enter?members=3&wait_ms=200"),
        StatusCode::SERVICE_UNAVAILABLE,
    )
    .await
    .context("alone")?;
    gone(lab, "/curator/double-barrier").await?;
    let enter = || {
        let url = format!("{base}/enter?members=3");
        tokio::spawn(ask_json(url))
    };
    let early = [enter(), enter()];
    until("two wait", || async {
        Ok(children(lab, "/curator/double-barrier").await?.len() == 2)
    })
    .await?;
    ensure!(
        early.iter().all(|one| !one.is_finished()),
        "one is inside before three are"
    );
    let mut members = Vec::new();
    for one in early.into_iter().chain([enter()]) {
        let answer = one.await??;
        members.push(
            answer["member"]
                .as_str()
                .with_context(|| answer.to_string())?
                .to_owned(),
        );
    }
    let leave = |member: &str| {
        let url = format!("{base}/leave?members=3&member={member}");
        tokio::spawn(ask(url))
    };
    let early = [leave(&members[0]), leave(&members[1])];
    until("one is left beside", || async {
        Ok(children(lab, "/curator/double-barrier").await?.len() <= 3)
    })
    .await?;
    ensure!(
        early.iter().all(|one| !one.is_finished()),
        "one is out before all have left"
    );
    for one in early.into_iter().chain([leave(&members[2])]) {
        let (status, text) = one.await??;
        ensure!(status == StatusCode::OK, "leaving: {status} {text}");
    }
    gone(lab, "/curator/double-barrier").await?;
    let text = answered(
        format!("{base}/leave?members=3&member={}", members[0]),
        StatusCode::BAD_REQUEST,
    )
    .await
    .context("twice")?;
    ensure!(text.contains("member"), "{text}");
    let text = answered(format!("{base}/enter?members=0"), StatusCode::BAD_REQUEST)
        .await
        .context("nobody")?;
    ensure!(text.contains("members"), "{text}");
    Ok(())
}

/// §3.5, 3.7.4. The steps of a visit, and that another waits meanwhile.
async fn locks(lab: &Lab) -> Result<()> {
    let base = &lab.addresses().http;
    for (lesson, directory, wanted) in [
        (
            "multi",
            "/curator/multi/3",
            json!(["took 1", "took 2", "took 3", "left 3", "left 2", "left 1"]),
        ),
        (
            "reentrant",
            "/curator/reentrant",
            json!(["took 1", "took 2", "left 1", "left 0"]),
        ),
    ] {
        let url = format!("{base}/test/zk/{lesson}");
        let answer = ask_json(url.clone()).await?;
        ensure!(json!(steps(&answer)) == wanted, "{lesson}: {answer}");
        let inside = tokio::spawn(ask(format!("{url}?hold_ms=60000")));
        until("one is inside", || async {
            Ok(children(lab, directory).await?.len() == 1)
        })
        .await?;
        answered(
            format!("{url}?wait_ms=200"),
            StatusCode::SERVICE_UNAVAILABLE,
        )
        .await
        .with_context(|| format!("{lesson}, another"))?;
        inside.abort();
        gone(lab, directory).await?;
    }
    Ok(())
}
