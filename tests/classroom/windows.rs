//! The lessons for several browser windows, on three instances behind nginx.

use super::{demos, zookeeper};
use crate::support::{
    http::{ask, ask_json, body_with_status, elements, put_stock, put_stock_of},
    labs::query_redis,
    *,
};
use oversell_lab::{clients::redis_at::redis_at, lab::Lab};
use reqwest::StatusCode;
use serde_json::Value;
use std::time::Instant;

#[apply(test!)]
async fn the_lessons_for_several_windows_go_as_the_course_says() -> Result<()> {
    let lab = Lab::start(program()).await?;
    let outcome = async {
        semaphore(&lab).await?;
        latch(&lab).await?;
        reentrant(&lab).await?;
        multi(&lab).await?;
        read_write(&lab).await?;
        fair(&lab).await?;
        what_a_visit_leaves_ends(&lab).await?;
        demos::over_http(&lab).await?;
        zookeeper::all(&lab).await?;
        red(&lab).await
    };
    let outcome = outcome.await;
    lab.stop().await;
    outcome
}

/// A client that names another product in each request does not fill Redis: every key without a lease ends by itself.
async fn what_a_visit_leaves_ends(lab: &Lab) -> Result<()> {
    let http = &lab.addresses().http;
    for lesson in ["read", "semaphore", "zk/read", "zk/share/count", "zk/barrier/set"] {
        let unknown = format!("{http}/test/{lesson}?stock_id=100000&hold_ms=0");
        body_with_status(unknown, StatusCode::NOT_FOUND).await.context(lesson)?;
    }
    let left: Vec<String> = query_redis(lab, "KEYS", "*:100000*").await?;
    ensure!(left.is_empty(), "left for a product that is not there: {left:?}");
    put_stock_of(http, 100_000, 1).await?;
    // One class of six leaves, and the next begins.
    let out = std::iter::repeat_n("countdown", 7);
    for lesson in out.chain(["semaphore", "fair"]) {
        ask(format!("{http}/test/{lesson}?stock_id=100000&hold_ms=0")).await?;
    }
    let left: Vec<String> = query_redis(lab, "KEYS", "*:100000*").await?;
    let mut for_ever = Vec::new();
    for key in left.iter().filter(|key| *key != "stock:100000") {
        if query_redis::<i64>(lab, "TTL", key).await? < 0 {
            for_ever.push(key);
        }
    }
    ensure!(left.len() >= 6 && for_ever.is_empty(), "{left:?}: {for_ever:?}");
    Ok(())
}

/// `all` clients enter and stay; another is refused; when they hang up everything is released. `held` counts what the
/// server has of them.
pub(crate) async fn others_wait(
    url: &str,
    clients: usize,
    all: usize,
    held: impl AsyncFn() -> Result<usize>,
) -> Result<()> {
    let inside: Vec<_> = (0..clients).map(|_| tokio::spawn(ask(format!("{url}?hold_ms=60000")))).collect();
    wait_until("all are inside", async || Ok(held().await? == all)).await?;
    body_with_status(format!("{url}?hold_ms=0&wait_ms=200"), StatusCode::SERVICE_UNAVAILABLE)
        .await
        .context("another")?;
    inside.iter().for_each(tokio::task::JoinHandle::abort);
    wait_until("all are out", async || Ok(held().await? == 0)).await
}

/// A visit to a lock takes these steps, while others wait.
pub(crate) async fn visited(
    lab: &Lab,
    path: &str,
    wanted: &[&str],
    all: usize,
    held: impl AsyncFn() -> Result<usize>,
) -> Result<()> {
    let url = format!("{}{path}", lab.addresses().http);
    let answer = ask_json(url.clone()).await?;
    ensure!(steps(&answer) == wanted, "{answer}");
    others_wait(&url, 1, all, held).await
}

async fn number(lab: &Lab, command: &str, of: &str) -> Result<Option<usize>> {
    query_redis(lab, command, of).await
}

async fn keys(lab: &Lab, pattern: &str) -> Result<Vec<String>> {
    query_redis(lab, "KEYS", pattern).await
}

async fn semaphore(lab: &Lab) -> Result<()> {
    const HOLD: u64 = 1000;
    let base = &lab.addresses().http;
    // Ten at once, at most three inside: so the last one has waited for three others in a row. One clock, started
    // before the first is sent: a late start only adds to its time.
    let begun = Instant::now();
    let asked = (0..10).map(|_| {
        let answer = ask_json(format!("{base}/test/semaphore?hold_ms={HOLD}"));
        async { answer.await.map(|answer| (begun.elapsed(), answer)) }
    });
    let mut all = Vec::new();
    for (at, answer) in futures::future::try_join_all(asked).await? {
        let held = answer["held_ms"].as_u64().unwrap_or_default();
        ensure!(answer["outcome"] == "done" && held >= HOLD, "{answer}");
        all.push(at);
    }
    all.sort_unstable();
    for (n, at) in all.iter().enumerate() {
        let least = Duration::from_millis((n as u64 / 3 + 1) * HOLD);
        ensure!(*at >= least, "number {n} was answered after {at:?}: {all:?}");
    }
    others_wait(&format!("{base}/test/semaphore"), 3, 3, async || {
        Ok(3 - number(lab, "GET", "semaphore").await?.unwrap_or(3))
    })
    .await?;
    let left = keys(lab, "*semaphore*").await?;
    ensure!(left == ["semaphore"], "left: {left:?}");
    put_stock_of(base, 7, 1).await?;
    let text = body_with_status(format!("{base}/test/semaphore?hold_ms=0&stock_id=7"), StatusCode::OK).await?;
    ensure!(text == "测试信号量");
    let other = number(lab, "GET", "semaphore:7").await?;
    ensure!(other == Some(3), "semaphore:7 is {other:?}");
    Ok(())
}

async fn latch(lab: &Lab) -> Result<()> {
    let base = &lab.addresses().http;
    for class in 0..2 {
        body_with_status(format!("{base}/test/latch?wait_ms=100"), StatusCode::SERVICE_UNAVAILABLE)
            .await
            .with_context(|| format!("class {class}"))?;
        // A visitor that gave up is still listed for a moment, and could be mistaken for the monitor.
        wait_until("nobody waits", || async { Ok(waiting(lab).await? == 0) }).await?;
        let monitor = tokio::spawn(ask(format!("{base}/test/latch")));
        wait_until("the monitor waits", || async { Ok(waiting(lab).await? > 0) }).await?;
        for left in (0..6).rev() {
            ensure!(!monitor.is_finished(), "class {class}: locked in {}", left + 1);
            if left == 3 {
                let text = body_with_status(format!("{base}/test/countdown"), StatusCode::OK).await?;
                ensure!(text == "出来了一位同学");
            } else {
                let answer = ask_json(format!("{base}/test/countdown")).await?;
                ensure!(answer["remaining"] == left, "{answer}");
            }
        }
        let (status, text) = monitor.await??;
        ensure!(status == StatusCode::OK && text == "班长锁门。。。", "{status} {text}");
    }
    // A reset clears a class of which half has left.
    ask(format!("{base}/test/countdown")).await?;
    put_stock(base, 5).await?;
    let left = keys(lab, "*latch*").await?;
    ensure!(left.is_empty(), "left after the reset: {left:?}");
    Ok(())
}

/// Instances with a waiter at the latch.
async fn waiting(lab: &Lab) -> Result<i64> {
    let mut redis = redis_at(&lab.addresses().redis[0].url).await?;
    let mut numsub = redis::cmd("PUBSUB");
    numsub.arg("NUMSUB").arg("redisson_countdownlatch__channel__{latch}");
    let (_, number): (String, i64) = numsub.query_async(&mut redis).await?;
    Ok(number)
}

/// The visitor's steps, as `took lock1 1`.
pub(crate) fn steps(answer: &Value) -> Vec<String> {
    let word = |step: &Value, field: &str| step[field].as_str().unwrap_or_default().to_owned();
    elements(&answer["steps"])
        .map(|step| format!("{} {} {}", word(step, "did"), word(step, "lock"), step["order"]))
        .collect()
}

async fn reentrant(lab: &Lab) -> Result<()> {
    let steps = ["took reentrantLock 1", "took reentrantLock 2", "left reentrantLock 1", "left reentrantLock 0"];
    let held = async || Ok(keys(lab, "reentrantLock").await?.len());
    visited(lab, "/test/reentrant", &steps, 1, held).await?;
    let url = format!("{}/test/reentrant", lab.addresses().http);
    let text = body_with_status(url, StatusCode::OK).await?;
    ensure!(text.contains("拿到 reentrantLock #2"), "{text}");
    Ok(())
}

/// If another owner has one part, none is kept.
async fn multi(lab: &Lab) -> Result<()> {
    let steps = ["took lock1 1", "took lock2 2", "took lock3 3", "left lock3 3", "left lock2 2", "left lock1 1"];
    let held = async || Ok(keys(lab, "lock?").await?.len());
    visited(lab, "/test/multi", &steps, 3, held).await
}

async fn red(lab: &Lab) -> Result<()> {
    let base = format!("{}/test/red", lab.addresses().http);
    let answer = ask_json(base.clone()).await?;
    let steps = steps(&answer);
    let took = steps.iter().filter(|step| step.starts_with("took")).count();
    ensure!((3..=5).contains(&took) && steps.last().is_some_and(|s| s == "left redLock 0"), "{answer}");
    for dead in ["redis-4", "redis-5"] {
        lab.kill(dead).await?;
    }
    let text = body_with_status(base.clone(), StatusCode::OK).await.context("with three nodes")?;
    ensure!(!text.contains("redLock #4"), "{text}");
    lab.kill("redis-3").await?;
    body_with_status(format!("{base}?wait_ms=2000"), StatusCode::SERVICE_UNAVAILABLE)
        .await
        .context("with two nodes")?;
    Ok(())
}

async fn read_write(lab: &Lab) -> Result<()> {
    halves(lab, "/test").await?;
    put_stock_of(&lab.addresses().http, 40, 1).await?;
    for half in ["read", "write"] {
        let base = &lab.addresses().http;
        let passes = format!("{base}/test/{half}?stock_id=40&hold_ms=0&wait_ms=20000");
        body_with_status(passes, StatusCode::OK).await?;
    }
    wait_until("the last lease has ended", || async { Ok(keys(lab, "*rwLock:3?*").await?.is_empty()) }).await
}

/// Readers share, writers are alone; each is answered at once and keeps its half of the lock. Each pair has its own
/// products: 20 to 22 are kept longer than any refusal takes, 30 to 32 are free soon.
pub(crate) async fn halves(lab: &Lab, lesson: &str) -> Result<()> {
    const KEPT_FOR: Duration = Duration::from_millis(1500);
    let base = format!("{}{lesson}", lab.addresses().http);
    let long =
        |half: &str, product: u8, wait: u64| format!("{base}/{half}?stock_id={product}&hold_ms=60000&wait_ms={wait}");
    for product in (20..23).chain(30..33) {
        put_stock_of(&lab.addresses().http, product, 1).await?;
    }
    for reader in ["read", "read beside read"] {
        let text = body_with_status(long("read", 20, 20_000), StatusCode::OK).await.context(reader)?;
        ensure!(text == "测试读");
    }
    for (n, (first, half)) in (0..).zip([("read", "write"), ("write", "write"), ("write", "read")]) {
        body_with_status(long(first, 20 + n, 20_000), StatusCode::OK)
            .await
            .with_context(|| format!("{first} before {half}"))?;
        body_with_status(long(half, 20 + n, 0), StatusCode::SERVICE_UNAVAILABLE)
            .await
            .with_context(|| format!("{half} after {first}"))?;
        // Its request was answered long ago and nobody releases it, so only the end of its lease lets the next one in.
        let short =
            |half: &str| format!("{base}/{half}?stock_id={}&hold_ms={}&wait_ms=60000", 30 + n, KEPT_FOR.as_millis());
        let begun = Instant::now();
        body_with_status(short(first), StatusCode::OK).await.context(first)?;
        let answer = ask_json(short(half)).await?;
        ensure!(answer["outcome"] == "done" && begun.elapsed() >= KEPT_FOR, "{half} after {first}: {answer}");
    }
    Ok(())
}

async fn fair(lab: &Lab) -> Result<()> {
    const QUEUE: usize = 12;
    let base = &lab.addresses().http;
    let text = body_with_status(format!("{base}/test/fair"), StatusCode::OK).await?;
    ensure!(text.contains("来到 fairLock #1"), "{text}");
    // It stays inside until all others are queued: it leaves when its client hangs up.
    let second = tokio::spawn(ask(format!("{base}/test/fair?hold_ms=60000")));
    wait_until("the second is inside", || async { Ok(number(lab, "GET", "{fairLock}:entered").await? == Some(2)) })
        .await?;
    let mut queue = Vec::new();
    for n in 1..=QUEUE {
        let url = format!("{base}/test/fair?wait_ms=60000");
        queue.push(tokio::spawn(ask_json(url)));
        // Send the next one only when this one is queued.
        wait_until("it queues", || async {
            Ok(number(lab, "LLEN", "redisson_lock_queue:{fairLock}").await? == Some(n))
        })
        .await?;
    }
    second.abort();
    for (n, visit) in queue.into_iter().enumerate() {
        let answer = visit.await??;
        let number = n + 3;
        let wanted = ["came", "took", "left"].map(|did| format!("{did} fairLock {number}"));
        ensure!(steps(&answer) == wanted, "number {number}: {answer}");
    }
    Ok(())
}
