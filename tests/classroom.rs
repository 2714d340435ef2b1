//! The lessons for several browser windows, on three instances behind nginx.

use crate::{demos, program, zk_classroom};
use oversell::lab::Lab;
use reqwest::{Client, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;

type Outcome = Result<(), String>;

/// What one request came to: its status, its text or JSON.
pub(crate) fn ask(client: &Client, url: String) -> impl Future<Output = Result<(StatusCode, String), String>> + use<> {
    let answer = client.get(url).send();
    async {
        let answer = answer.await.map_err(|e| e.to_string())?;
        Ok((answer.status(), answer.text().await.map_err(|e| e.to_string())?))
    }
}

pub(crate) async fn ask_json(client: &Client, url: String) -> Result<Value, String> {
    let answer = client.get(url).header(header::ACCEPT, "application/json").send().await.map_err(|e| e.to_string())?;
    answer.json().await.map_err(|e| e.to_string())
}

pub(crate) async fn until<F: Future<Output = Result<bool, String>>>(what: &str, condition: impl Fn() -> F) -> Outcome {
    for _ in 0..400 {
        if condition().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Err(format!("never came: {what}"))
}

pub(crate) fn ensure(condition: bool, broken: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(broken()) }
}

/// Every lesson, one after the other, in one lab.
pub(crate) async fn the_lessons_for_several_windows_go_as_the_course_says() -> Outcome {
    let lab = Lab::start(program()).await.map_err(|e| e.to_string())?;
    let outcome = async {
        semaphore(&lab).await?;
        latch(&lab).await?;
        reentrant(&lab).await?;
        multi(&lab).await?;
        read_write(&lab).await?;
        fair(&lab).await?;
        demos::over_http(&lab).await?;
        zk_classroom::all(&lab).await?;
        red(&lab).await
    };
    let outcome = outcome.await;
    lab.stop().await;
    outcome
}

pub(crate) async fn redis(lab: &Lab, command: &str, name: &str) -> Result<Value, String> {
    let client = redis::Client::open(lab.addresses().redis[0].url.as_str()).map_err(|e| e.to_string())?;
    let mut redis = client.get_multiplexed_async_connection().await.map_err(|e| e.to_string())?;
    let keys: Vec<String>;
    Ok(if command == "KEYS" {
        keys = redis::cmd(command).arg(name).query_async(&mut redis).await.map_err(|e| e.to_string())?;
        json!(keys)
    } else {
        let value: Option<i64> =
            redis::cmd(command).arg(name).query_async(&mut redis).await.map_err(|e| e.to_string())?;
        json!(value)
    })
}

async fn semaphore(lab: &Lab) -> Outcome {
    const HOLD: u64 = 1000;
    let (client, base) = (Client::new(), &lab.addresses().http);
    // Ten at once: at no moment are more than three inside, so the last must have waited for three others in a row.
    let asked = (0..10).map(|_| ask_json(&client, format!("{base}/test/semaphore?hold_ms={HOLD}")));
    let mut waits = Vec::new();
    for answer in futures::future::try_join_all(asked).await? {
        let held = answer["held_ms"].as_u64().unwrap_or_default();
        ensure(answer["outcome"] == "done" && held >= HOLD, || answer.to_string())?;
        waits.push(answer["waited_ms"].as_u64().unwrap_or_default());
    }
    waits.sort_unstable();
    for (n, wait) in waits.iter().enumerate() {
        // Less a little: the ten do not start at the same moment.
        let least = (n as u64 / 3 * HOLD).saturating_sub(500);
        ensure(*wait >= least, || format!("number {n} waited {wait} ms: {waits:?}"))?;
    }
    // Three are inside, and the clients hang up; a fourth gets nothing meanwhile.
    let long = format!("{base}/test/semaphore?hold_ms=60000");
    let inside: Vec<_> = (0..3).map(|_| tokio::spawn(ask(&client, long.clone()))).collect();
    until("three are inside", || async { Ok(redis(lab, "GET", "semaphore").await? == 0) }).await?;
    let (status, text) = ask(&client, format!("{base}/test/semaphore?hold_ms=0&wait_ms=200")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || format!("a fourth: {status} {text}"))?;
    inside.iter().for_each(tokio::task::JoinHandle::abort);
    until("all are out", || async { Ok(redis(lab, "GET", "semaphore").await? == 3) }).await?;
    let left = redis(lab, "KEYS", "*semaphore*").await?;
    ensure(left == json!(["semaphore"]), || format!("left: {left}"))?;
    let (status, text) = ask(&client, format!("{base}/test/semaphore?hold_ms=0&stock_id=7")).await?;
    ensure(status == StatusCode::OK && text == "测试信号量", || format!("{status} {text}"))?;
    let other = redis(lab, "GET", "semaphore:7").await?;
    ensure(other == 3, || format!("semaphore:7 is {other}"))
}

async fn latch(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), &lab.addresses().http);
    for class in 0..2 {
        let (status, text) = ask(&client, format!("{base}/test/latch?wait_ms=100")).await?;
        ensure(status == StatusCode::SERVICE_UNAVAILABLE, || format!("class {class}: {status} {text}"))?;
        let monitor = tokio::spawn(ask(&client, format!("{base}/test/latch")));
        // It has subscribed: it waits.
        until("the monitor waits", || async { waits(lab).await }).await?;
        for left in (0..6).rev() {
            ensure(!monitor.is_finished(), || format!("class {class}: locked in {}", left + 1))?;
            if left == 3 {
                let (status, text) = ask(&client, format!("{base}/test/countdown")).await?;
                ensure(status == StatusCode::OK && text == "出来了一位同学", || format!("{status} {text}"))?;
            } else {
                let answer = ask_json(&client, format!("{base}/test/countdown")).await?;
                ensure(answer["remaining"] == left, || answer.to_string())?;
            }
        }
        let (status, text) = monitor.await.map_err(|e| e.to_string())??;
        ensure(status == StatusCode::OK && text == "班长锁门。。。", || format!("{status} {text}"))?;
    }
    // A reset clears a class that is half out.
    ask(&client, format!("{base}/test/countdown")).await?;
    let reset = client.put(format!("{base}/stock")).json(&json!({"count": 5})).send().await;
    ensure(reset.is_ok_and(|a| a.status().is_success()), || "no reset".into())?;
    let left = redis(lab, "KEYS", "*latch*").await?;
    ensure(left == json!([]), || format!("left after the reset: {left}"))
}

async fn waits(lab: &Lab) -> Result<bool, String> {
    let client = redis::Client::open(lab.addresses().redis[0].url.as_str()).map_err(|e| e.to_string())?;
    let mut redis = client.get_multiplexed_async_connection().await.map_err(|e| e.to_string())?;
    let mut numsub = redis::cmd("PUBSUB");
    numsub.arg("NUMSUB").arg("redisson_countdownlatch__channel__{latch}");
    let (_, number): (String, i64) = numsub.query_async(&mut redis).await.map_err(|e| e.to_string())?;
    Ok(number > 0)
}

/// What the visitor did, as `took 1`.
pub(crate) fn steps(answer: &Value) -> Vec<String> {
    let steps = answer["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().map(|step| format!("{} {}", step["did"].as_str().unwrap_or_default(), step["order"])).collect()
}

async fn reentrant(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), format!("{}/test/reentrant", lab.addresses().http));
    let answer = ask_json(&client, base.clone()).await?;
    ensure(steps(&answer) == ["took 1", "took 2", "left 1", "left 0"], || answer.to_string())?;
    let (status, text) = ask(&client, base.clone()).await?;
    ensure(status == StatusCode::OK && text.contains("拿到 reentrantLock #2"), || format!("{status} {text}"))?;
    let inside = tokio::spawn(ask(&client, format!("{base}?hold_ms=60000")));
    until("one is inside", || async { Ok(redis(lab, "EXISTS", "reentrantLock").await? == 1) }).await?;
    let (status, text) = ask(&client, format!("{base}?wait_ms=100")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || format!("another owner: {status} {text}"))?;
    inside.abort();
    until("nobody is inside", || async { Ok(redis(lab, "EXISTS", "reentrantLock").await? == 0) }).await
}

async fn multi(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), format!("{}/test/multi", lab.addresses().http));
    let answer = ask_json(&client, base.clone()).await?;
    let parts: Vec<_> = answer["steps"].as_array().into_iter().flatten().map(|step| step["lock"].clone()).collect();
    ensure(steps(&answer) == ["took 1", "took 2", "took 3", "left 3", "left 2", "left 1"], || answer.to_string())?;
    ensure(parts == ["lock1", "lock2", "lock3", "lock3", "lock2", "lock1"], || answer.to_string())?;
    // Where one part is another's, none is kept.
    let inside = tokio::spawn(ask(&client, format!("{}?hold_ms=60000", base)));
    until("one is inside", || async { Ok(redis(lab, "EXISTS", "lock3").await? == 1) }).await?;
    let (status, text) = ask(&client, format!("{base}?wait_ms=100")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || format!("another: {status} {text}"))?;
    inside.abort();
    until("nobody is inside", || async { Ok(redis(lab, "KEYS", "lock?").await? == json!([])) }).await
}

async fn red(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), format!("{}/test/red", lab.addresses().http));
    let answer = ask_json(&client, base.clone()).await?;
    let steps = steps(&answer);
    let took = steps.iter().filter(|step| step.starts_with("took")).count();
    ensure((3..=5).contains(&took) && steps.last().is_some_and(|s| s == "left 0"), || answer.to_string())?;
    for dead in ["redis-4", "redis-5"] {
        lab.kill(dead).await.map_err(|e| e.to_string())?;
    }
    let (status, text) = ask(&client, base.clone()).await?;
    ensure(status == StatusCode::OK && !text.contains("redLock #4"), || format!("with three nodes: {status} {text}"))?;
    lab.kill("redis-3").await.map_err(|e| e.to_string())?;
    let (status, text) = ask(&client, format!("{base}?wait_ms=2000")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || format!("with two nodes: {status} {text}"))
}

async fn read_write(lab: &Lab) -> Outcome {
    const LEASE: u64 = 1500;
    let (client, base) = (Client::new(), &lab.addresses().http);
    let url = |half: &str, wait: u64| format!("{base}/test/{half}?hold_ms={LEASE}&wait_ms={wait}");
    let (status, text) = ask(&client, url("read", 0)).await?;
    ensure(status == StatusCode::OK && text == "测试读", || format!("{status} {text}"))?;
    let (status, text) = ask(&client, url("read", 0)).await?;
    ensure(status == StatusCode::OK, || format!("read beside read: {status} {text}"))?;
    // Answered long ago, and nobody releases it: its lease is what ends it.
    for (after, half) in [("read", "write"), ("write", "write"), ("write", "read")] {
        let (status, text) = ask(&client, url(half, 0)).await?;
        ensure(status == StatusCode::SERVICE_UNAVAILABLE, || format!("{half} after {after}: {status} {text}"))?;
        let answer = ask_json(&client, url(half, 20_000)).await?;
        ensure(answer["outcome"] == "done" && answer["waited_ms"] != 0, || format!("{half} after {after}: {answer}"))?;
    }
    until("the last lease has ended", || async { Ok(redis(lab, "KEYS", "*rwLock*").await? == json!([])) }).await
}

async fn fair(lab: &Lab) -> Outcome {
    const QUEUE: usize = 12;
    let (client, base) = (Client::new(), &lab.addresses().http);
    let first = tokio::spawn(ask(&client, format!("{base}/test/fair?hold_ms=1500")));
    until("the first is inside", || async { Ok(redis(lab, "EXISTS", "fairLock").await? == 1) }).await?;
    let mut queue = Vec::new();
    for n in 1..=QUEUE {
        let (client, url) = (client.clone(), format!("{base}/test/fair"));
        queue.push(tokio::spawn(async move { ask_json(&client, url).await }));
        // The next one comes when this one stands in line.
        until("it queues", || async { Ok(redis(lab, "LLEN", "redisson_lock_queue:{fairLock}").await? == n) }).await?;
    }
    let (status, text) = first.await.map_err(|e| e.to_string())??;
    ensure(status == StatusCode::OK && text.contains("来到 fairLock #1"), || format!("{status} {text}"))?;
    for (n, visit) in queue.into_iter().enumerate() {
        let answer = visit.await.map_err(|e| e.to_string())??;
        let number = n + 2;
        let wanted = [format!("came {number}"), format!("took {number}"), format!("left {number}")];
        ensure(steps(&answer) == wanted, || format!("number {number}: {answer}"))?;
    }
    Ok(())
}
