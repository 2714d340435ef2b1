//! The lessons for several browser windows, on three instances behind nginx.

use crate::{buyers::until_seen, demos, program, zk_classroom};
use oversell::{lab::Lab, redis_at::redis_at};
use reqwest::{Client, StatusCode, header};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

/// What one request came to: its status, its text or JSON.
pub(crate) fn ask(
    client: &Client,
    url: String,
) -> impl Future<Output = Result<(StatusCode, String), String>> + use<> {
    let answer = client.get(url).send();
    async {
        let answer = answer.await.map_err(|e| e.to_string())?;
        Ok((
            answer.status(),
            answer.text().await.map_err(|e| e.to_string())?,
        ))
    }
}

pub(crate) async fn ask_json(client: &Client, url: String) -> Result<Value, String> {
    let answer = client
        .get(url)
        .header(header::ACCEPT, "application/json")
        .send()
        .await
        .map_err(|e| e.to_string())?;
    answer.json().await.map_err(|e| e.to_string())
}

pub(crate) async fn until<F: Future<Output = Result<bool, String>>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Outcome {
    until_seen(Duration::from_millis(25), what, condition).await
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
    let mut redis = redis_at(&lab.addresses().redis[0].url)
        .await
        .map_err(|e| e.to_string())?;
    let keys: Vec<String>;
    Ok(if command == "KEYS" {
        keys = redis::cmd(command)
            .arg(name)
            .query_async(&mut redis)
            .await
            .map_err(|e| e.to_string())?;
        json!(keys)
    } else {
        let value: Option<i64> = redis::cmd(command)
            .arg(name)
            .query_async(&mut redis)
            .await
            .map_err(|e| e.to_string())?;
        json!(value)
    })
}

async fn semaphore(lab: &Lab) -> Outcome {
    const HOLD: u64 = 1000;
    let (client, base) = (Client::new(), &lab.addresses().http);
    // Ten at once: at no moment are more than three inside, so the last must have waited for three others in a row. By one
    // clock, from before the first is sent: who begins late, or hears of it late, only adds to its time.
    let begun = Instant::now();
    let asked = (0..10).map(|_| {
        let answer = ask_json(&client, format!("{base}/test/semaphore?hold_ms={HOLD}"));
        async { answer.await.map(|answer| (begun.elapsed(), answer)) }
    });
    let mut answered = Vec::new();
    for (at, answer) in futures::future::try_join_all(asked).await? {
        let held = answer["held_ms"].as_u64().unwrap_or_default();
        ensure(answer["outcome"] == "done" && held >= HOLD, || {
            answer.to_string()
        })?;
        answered.push(at);
    }
    answered.sort_unstable();
    for (n, at) in answered.iter().enumerate() {
        let least = Duration::from_millis((n as u64 / 3 + 1) * HOLD);
        ensure(*at >= least, || {
            format!("number {n} was answered after {at:?}: {answered:?}")
        })?;
    }
    // Three are inside, and the clients hang up; a fourth gets nothing meanwhile.
    let long = format!("{base}/test/semaphore?hold_ms=60000");
    let inside: Vec<_> = (0..3)
        .map(|_| tokio::spawn(ask(&client, long.clone())))
        .collect();
    until("three are inside", || async {
        Ok(redis(lab, "GET", "semaphore").await? == 0)
    })
    .await?;
    let (status, text) = ask(
        &client,
        format!("{base}/test/semaphore?hold_ms=0&wait_ms=200"),
    )
    .await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("a fourth: {status} {text}")
    })?;
    inside.iter().for_each(tokio::task::JoinHandle::abort);
    until("all are out", || async {
        Ok(redis(lab, "GET", "semaphore").await? == 3)
    })
    .await?;
    let left = redis(lab, "KEYS", "*semaphore*").await?;
    ensure(left == json!(["semaphore"]), || format!("left: {left}"))?;
    let (status, text) = ask(
        &client,
        format!("{base}/test/semaphore?hold_ms=0&stock_id=7"),
    )
    .await?;
    ensure(
        status == StatusCode::OK && text == "测试信号量",
        || format!("{status} {text}"),
    )?;
    let other = redis(lab, "GET", "semaphore:7").await?;
    ensure(other == 3, || format!("semaphore:7 is {other}"))
}

async fn latch(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), &lab.addresses().http);
    for class in 0..2 {
        let (status, text) = ask(&client, format!("{base}/test/latch?wait_ms=100")).await?;
        ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
            format!("class {class}: {status} {text}")
        })?;
        // Who has given up is seen for a moment longer, and would be taken for the monitor.
        until("nobody waits", || async { Ok(waiting(lab).await? == 0) }).await?;
        let monitor = tokio::spawn(ask(&client, format!("{base}/test/latch")));
        // It has subscribed: it waits.
        until("the monitor waits", || async {
            Ok(waiting(lab).await? > 0)
        })
        .await?;
        for left in (0..6).rev() {
            ensure(!monitor.is_finished(), || {
                format!("class {class}: locked in {}", left + 1)
            })?;
            if left == 3 {
                let (status, text) = ask(&client, format!("{base}/test/countdown")).await?;
                ensure(
                    status == StatusCode::OK && text == "出来了一位同学",
                    || format!("{status} {text}"),
                )?;
            } else {
                let answer = ask_json(&client, format!("{base}/test/countdown")).await?;
                ensure(answer["remaining"] == left, || answer.to_string())?;
            }
        }
        let (status, text) = monitor.await.map_err(|e| e.to_string())??;
        ensure(
            status == StatusCode::OK && text == "班长锁门。。。",
            || format!("{status} {text}"),
        )?;
    }
    // A reset clears a class that is half out.
    ask(&client, format!("{base}/test/countdown")).await?;
    let reset = client
        .put(format!("{base}/stock"))
        .json(&json!({"count": 5}))
        .send()
        .await;
    ensure(reset.is_ok_and(|a| a.status().is_success()), || {
        "no reset".into()
    })?;
    let left = redis(lab, "KEYS", "*latch*").await?;
    ensure(left == json!([]), || {
        format!("left after the reset: {left}")
    })
}

/// How many instances have somebody who waits at the latch.
async fn waiting(lab: &Lab) -> Result<i64, String> {
    let mut redis = redis_at(&lab.addresses().redis[0].url)
        .await
        .map_err(|e| e.to_string())?;
    let mut numsub = redis::cmd("PUBSUB");
    numsub
        .arg("NUMSUB")
        .arg("redisson_countdownlatch__channel__{latch}");
    let (_, number): (String, i64) = numsub
        .query_async(&mut redis)
        .await
        .map_err(|e| e.to_string())?;
    Ok(number)
}

/// What the visitor did, as `took 1`.
pub(crate) fn steps(answer: &Value) -> Vec<String> {
    let steps = answer["steps"].as_array().cloned().unwrap_or_default();
    steps
        .iter()
        .map(|step| {
            format!(
                "{} {}",
                step["did"].as_str().unwrap_or_default(),
                step["order"]
            )
        })
        .collect()
}

async fn reentrant(lab: &Lab) -> Outcome {
    let (client, base) = (
        Client::new(),
        format!("{}/test/reentrant", lab.addresses().http),
    );
    let answer = ask_json(&client, base.clone()).await?;
    ensure(
        steps(&answer) == ["took 1", "took 2", "left 1", "left 0"],
        || answer.to_string(),
    )?;
    let (status, text) = ask(&client, base.clone()).await?;
    ensure(
        status == StatusCode::OK && text.contains("拿到 reentrantLock #2"),
        || format!("{status} {text}"),
    )?;
    let inside = tokio::spawn(ask(&client, format!("{base}?hold_ms=60000")));
    until("one is inside", || async {
        Ok(redis(lab, "EXISTS", "reentrantLock").await? == 1)
    })
    .await?;
    let (status, text) = ask(&client, format!("{base}?wait_ms=100")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("another owner: {status} {text}")
    })?;
    inside.abort();
    until("nobody is inside", || async {
        Ok(redis(lab, "EXISTS", "reentrantLock").await? == 0)
    })
    .await
}

async fn multi(lab: &Lab) -> Outcome {
    let (client, base) = (
        Client::new(),
        format!("{}/test/multi", lab.addresses().http),
    );
    let answer = ask_json(&client, base.clone()).await?;
    let parts: Vec<_> = answer["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| step["lock"].clone())
        .collect();
    ensure(
        steps(&answer) == ["took 1", "took 2", "took 3", "left 3", "left 2", "left 1"],
        || answer.to_string(),
    )?;
    ensure(
        parts == ["lock1", "lock2", "lock3", "lock3", "lock2", "lock1"],
        || answer.to_string(),
    )?;
    // Where one part is another's, none is kept.
    let inside = tokio::spawn(ask(&client, format!("{}?hold_ms=60000", base)));
    until("one is inside", || async {
        Ok(redis(lab, "EXISTS", "lock3").await? == 1)
    })
    .await?;
    let (status, text) = ask(&client, format!("{base}?wait_ms=100")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("another: {status} {text}")
    })?;
    inside.abort();
    until("nobody is inside", || async {
        Ok(redis(lab, "KEYS", "lock?").await? == json!([]))
    })
    .await
}

async fn red(lab: &Lab) -> Outcome {
    let (client, base) = (Client::new(), format!("{}/test/red", lab.addresses().http));
    let answer = ask_json(&client, base.clone()).await?;
    let steps = steps(&answer);
    let took = steps.iter().filter(|step| step.starts_with("took")).count();
    ensure(
        (3..=5).contains(&took) && steps.last().is_some_and(|s| s == "left 0"),
        || answer.to_string(),
    )?;
    for dead in ["redis-4", "redis-5"] {
        lab.kill(dead).await.map_err(|e| e.to_string())?;
    }
    let (status, text) = ask(&client, base.clone()).await?;
    ensure(
        status == StatusCode::OK && !text.contains("redLock #4"),
        || format!("with three nodes: {status} {text}"),
    )?;
    lab.kill("redis-3").await.map_err(|e| e.to_string())?;
    let (status, text) = ask(&client, format!("{base}?wait_ms=2000")).await?;
    ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
        format!("with two nodes: {status} {text}")
    })
}

async fn read_write(lab: &Lab) -> Outcome {
    halves(lab, "/test").await?;
    until("the last lease has ended", || async {
        Ok(redis(lab, "KEYS", "*rwLock:3?*").await? == json!([]))
    })
    .await
}

/// Readers together, writers alone, each of whom is answered at once and keeps its half. Every pair has products of its own:
/// one of 20 to 22, kept for longer than anybody is refused there, and one of 30 to 32, soon free.
pub(crate) async fn halves(lab: &Lab, lesson: &str) -> Outcome {
    const KEPT: Duration = Duration::from_millis(1500);
    let (client, base) = (Client::new(), format!("{}{lesson}", lab.addresses().http));
    let long = |half: &str, product: u8, wait: u64| {
        format!("{base}/{half}?stock_id={product}&hold_ms=60000&wait_ms={wait}")
    };
    for reader in ["read", "read beside read"] {
        let (status, text) = ask(&client, long("read", 20, 20_000)).await?;
        ensure(status == StatusCode::OK && text == "测试读", || {
            format!("{reader}: {status} {text}")
        })?;
    }
    for (n, (first, half)) in (0..).zip([("read", "write"), ("write", "write"), ("write", "read")])
    {
        let (status, text) = ask(&client, long(first, 20 + n, 20_000)).await?;
        ensure(status == StatusCode::OK, || {
            format!("{first} before {half}: {status} {text}")
        })?;
        let (status, text) = ask(&client, long(half, 20 + n, 0)).await?;
        ensure(status == StatusCode::SERVICE_UNAVAILABLE, || {
            format!("{half} after {first}: {status} {text}")
        })?;
        // Answered long ago, and nobody releases it: only its end lets the next one in, and that is not sooner than this.
        let short = |half: &str| {
            format!(
                "{base}/{half}?stock_id={}&hold_ms={}&wait_ms=60000",
                30 + n,
                KEPT.as_millis()
            )
        };
        let begun = Instant::now();
        let (status, text) = ask(&client, short(first)).await?;
        ensure(status == StatusCode::OK, || {
            format!("{first}: {status} {text}")
        })?;
        let answer = ask_json(&client, short(half)).await?;
        ensure(
            answer["outcome"] == "done" && begun.elapsed() >= KEPT,
            || format!("{half} after {first}: {answer}"),
        )?;
    }
    Ok(())
}

async fn fair(lab: &Lab) -> Outcome {
    const QUEUE: usize = 12;
    let (client, base) = (Client::new(), &lab.addresses().http);
    let (status, text) = ask(&client, format!("{base}/test/fair")).await?;
    ensure(
        status == StatusCode::OK && text.contains("来到 fairLock #1"),
        || format!("{status} {text}"),
    )?;
    // Inside until all others stand in line, however long that takes: it leaves when its client hangs up.
    let second = tokio::spawn(ask(&client, format!("{base}/test/fair?hold_ms=60000")));
    until("the second is inside", || async {
        Ok(redis(lab, "GET", "{fairLock}:entered").await? == 2)
    })
    .await?;
    let mut queue = Vec::new();
    for n in 1..=QUEUE {
        let (client, url) = (client.clone(), format!("{base}/test/fair?wait_ms=60000"));
        queue.push(tokio::spawn(async move { ask_json(&client, url).await }));
        // The next one comes when this one stands in line.
        until("it queues", || async {
            Ok(redis(lab, "LLEN", "redisson_lock_queue:{fairLock}").await? == n)
        })
        .await?;
    }
    second.abort();
    for (n, visit) in queue.into_iter().enumerate() {
        let answer = visit.await.map_err(|e| e.to_string())??;
        let number = n + 3;
        let wanted = [
            format!("came {number}"),
            format!("took {number}"),
            format!("left {number}"),
        ];
        ensure(steps(&answer) == wanted, || {
            format!("number {number}: {answer}")
        })?;
    }
    Ok(())
}
