//! ZooKeeper's lessons for several browser windows, on three instances behind nginx.

use crate::classroom::{ask, ask_json, ensure, halves, redis, steps, until};
use oversell::lab::Lab;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

type Outcome = Result<(), String>;

/// Every lesson, one after the other.
pub(crate) async fn all(lab: &Lab) -> Outcome {
    read_write(lab).await?;
    semaphore(lab).await?;
    shared_count(lab).await?;
    atomic(lab).await?;
    barrier(lab).await?;
    double_barrier(lab).await?;
    locks(lab).await
}

/// What is below a node.
async fn children(lab: &Lab, path: &str) -> Result<Vec<String>, String> {
    let zk = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect)
        .await
        .map_err(|e| e.to_string())?;
    match zk.list_children(path).await {
        Err(zookeeper_client::Error::NoNode) => Ok(vec![]),
        children => children.map_err(|e| e.to_string()),
    }
}

async fn gone(lab: &Lab, path: &str) -> Outcome {
    until(&format!("{path} is empty"), || async {
        Ok(children(lab, path).await?.is_empty())
    })
    .await
}

/// §3.7.3. Answered at once, and kept for a while after the answer.
async fn read_write(lab: &Lab) -> Outcome {
    halves(lab, "/test/zk").await?;
    for product in 30..33 {
        gone(lab, &format!("/curator/rwlock-{product}")).await?;
    }
    Ok(())
}

/// §3.7.5. Five leases, and both lines in the log.
async fn semaphore(lab: &Lab) -> Outcome {
    let (client, base) = (
        Client::new(),
        format!("{}/test/zk/semaphore", lab.addresses().http),
    );
    let inside: Vec<_> = (0..5)
        .map(|_| tokio::spawn(ask(&client, format!("{base}?hold_ms=60000"))))
        .collect();
    until("five are inside", || async {
        Ok(redis(lab, "LLEN", "log").await? == 5)
    })
    .await?;
    let (status, text) = ask(&client, format!("{base}?hold_ms=0&wait_ms=300")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("a sixth: {status} {text}")
    })?;
    inside.iter().for_each(tokio::task::JoinHandle::abort);
    gone(lab, "/locks/semaphore/leases").await?;
    let (status, text) = ask(&client, format!("{base}?hold_ms=0")).await?;
    ensure(
        status == StatusCode::OK && text == "hello Semaphore",
        || format!("{status} {text}"),
    )?;
    let lines = redis(lab, "LLEN", "log").await?;
    ensure(lines == 7, || {
        format!("{lines} lines in the log, and not five and both of the last")
    })
}

/// §3.7.7.1. What one instance has set another reads.
async fn shared_count(lab: &Lab) -> Outcome {
    let client = Client::new();
    let (status, text) = ask(
        &client,
        format!("{}/test/zk/share/count", lab.addresses().http),
    )
    .await?;
    ensure(
        status == StatusCode::OK && text == "hello shareData",
        || format!("{status} {text}"),
    )?;
    let mut last: Option<Value> = None;
    for instance in lab.addresses().instances.iter().cycle().take(6) {
        let answer = ask_json(&client, format!("{}/test/zk/share/count", instance.url)).await?;
        ensure(last.is_none_or(|last| answer["before"] == last), || {
            format!("another number was there: {answer}")
        })?;
        last = Some(answer["after"].clone());
    }
    Ok(())
}

/// §3.7.7.2. Each change says what was before and what is after; many at once all count.
async fn atomic(lab: &Lab) -> Outcome {
    const EACH: usize = 20;
    let (client, base) = (
        Client::new(),
        format!("{}/test/zk/atomic", lab.addresses().http),
    );
    let mut value = 40;
    for (change, after) in [
        ("try-set?value=40", 40),
        ("increment", 41),
        ("decrement", 40),
        ("add?value=7", 47),
        ("subtract?value=-3", 50),
    ] {
        let answer = ask_json(&client, format!("{base}/{change}")).await?;
        ensure(
            answer["succeeded"] == true && answer["postValue"] == after,
            || format!("{change}: {answer}"),
        )?;
        ensure(
            change.starts_with("try") || answer["preValue"] == value,
            || format!("{change}: {answer}"),
        )?;
        value = after;
    }
    let answer = ask_json(&client, format!("{base}/force-set?value=0")).await?;
    ensure(answer["preValue"] == 50 && answer["postValue"] == 0, || {
        answer.to_string()
    })?;
    let crowd = (0..3 * EACH).map(|n| {
        let url = format!(
            "{}/test/zk/atomic/increment",
            lab.addresses().instances[n % 3].url
        );
        let client = client.clone();
        async move { ask_json(&client, url).await }
    });
    let answers = futures::future::try_join_all(crowd).await?;
    let made = answers
        .iter()
        .filter(|answer| answer["succeeded"] == true)
        .count();
    let answer = ask_json(&client, format!("{base}/get")).await?;
    ensure(answer["postValue"] == made && made == 3 * EACH, || {
        format!("{made} were made, and it is {answer}")
    })?;
    for (bad, names) in [
        ("add", "value"),
        ("add?value=x", "value"),
        ("increment?member=1", "member"),
        ("halve", "change"),
    ] {
        let (status, text) = ask(&client, format!("{base}/{bad}")).await?;
        ensure(
            status == StatusCode::BAD_REQUEST && text.contains(names),
            || format!("{bad}: {status} {text}"),
        )?;
    }
    Ok(())
}

/// §3.7.6. Closed, everybody waits; removed, everybody goes on.
async fn barrier(lab: &Lab) -> Outcome {
    let (client, base) = (
        Client::new(),
        format!("{}/test/zk/barrier", lab.addresses().http),
    );
    let (status, text) = ask(&client, format!("{base}/wait?wait_ms=0")).await?;
    ensure(status == StatusCode::OK, || {
        format!("with no barrier: {status} {text}")
    })?;
    ask(&client, format!("{base}/set")).await?;
    let (status, text) = ask(&client, format!("{base}/wait?wait_ms=200")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("at a closed barrier: {status} {text}")
    })?;
    let waiting: Vec<_> = (0..6)
        .map(|_| tokio::spawn(ask(&client, format!("{base}/wait"))))
        .collect();
    ask(&client, format!("{base}/remove")).await?;
    for waiter in waiting {
        let (status, text) = waiter.await.map_err(|e| e.to_string())??;
        ensure(status == StatusCode::OK, || {
            format!("after it was removed: {status} {text}")
        })?;
    }
    Ok(())
}

/// §3.7.6. Nobody is inside before three are, and nobody is out before all have left, on whatever instance.
async fn double_barrier(lab: &Lab) -> Outcome {
    let (client, base) = (
        Client::new(),
        format!("{}/test/zk/double-barrier", lab.addresses().http),
    );
    let (status, text) = ask(&client, format!("{base}/enter?members=3&wait_ms=200")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("alone: {status} {text}")
    })?;
    gone(lab, "/curator/double-barrier").await?;
    let enter = || {
        let (client, url) = (client.clone(), format!("{base}/enter?members=3"));
        tokio::spawn(async move { ask_json(&client, url).await })
    };
    let early = [enter(), enter()];
    until("two wait", || async {
        Ok(children(lab, "/curator/double-barrier").await?.len() == 2)
    })
    .await?;
    ensure(early.iter().all(|one| !one.is_finished()), || {
        "one is inside before three are".into()
    })?;
    let mut members = Vec::new();
    for one in early.into_iter().chain([enter()]) {
        let answer = one.await.map_err(|e| e.to_string())??;
        members.push(
            answer["member"]
                .as_str()
                .ok_or_else(|| answer.to_string())?
                .to_owned(),
        );
    }
    let leave = |member: &str| {
        let (client, url) = (
            client.clone(),
            format!("{base}/leave?members=3&member={member}"),
        );
        tokio::spawn(async move { ask(&client, url).await })
    };
    let early = [leave(&members[0]), leave(&members[1])];
    until("one is left beside", || async {
        Ok(children(lab, "/curator/double-barrier").await?.len() <= 3)
    })
    .await?;
    ensure(early.iter().all(|one| !one.is_finished()), || {
        "one is out before all have left".into()
    })?;
    for one in early.into_iter().chain([leave(&members[2])]) {
        let (status, text) = one.await.map_err(|e| e.to_string())??;
        ensure(status == StatusCode::OK, || {
            format!("leaving: {status} {text}")
        })?;
    }
    gone(lab, "/curator/double-barrier").await?;
    let (status, text) = ask(
        &client,
        format!("{base}/leave?members=3&member={}", members[0]),
    )
    .await?;
    ensure(
        status == StatusCode::BAD_REQUEST && text.contains("member"),
        || format!("twice: {status} {text}"),
    )?;
    let (status, text) = ask(&client, format!("{base}/enter?members=0")).await?;
    ensure(
        status == StatusCode::BAD_REQUEST && text.contains("members"),
        || format!("nobody: {status} {text}"),
    )
}

/// §3.5, 3.7.4. The steps of a visit, and that another waits meanwhile.
async fn locks(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), &lab.addresses().http);
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
        let answer = ask_json(&client, url.clone()).await?;
        ensure(json!(steps(&answer)) == wanted, || {
            format!("{lesson}: {answer}")
        })?;
        let inside = tokio::spawn(ask(&client, format!("{url}?hold_ms=60000")));
        until("one is inside", || async {
            Ok(children(lab, directory).await?.len() == 1)
        })
        .await?;
        let (status, text) = ask(&client, format!("{url}?wait_ms=200")).await?;
        ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
            format!("{lesson}, another: {status} {text}")
        })?;
        inside.abort();
        gone(lab, directory).await?;
    }
    Ok(())
}
