//! Load runs on real servers: one at a time, where their requests are, and how many a lock admits.

use crate::support::{
    http::{answer, ask_json, client},
    *,
};
use oversell::{
    load::{
        Plan, Row,
        run::{Snapshot, run},
    },
    stock::{self, Promise},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, MySqlConnection};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

async fn load(plan: &Plan) -> Result<Row> {
    let progress = watch::Sender::new(Snapshot::default());
    Ok(run(plan, &progress, &CancellationToken::new()).await?)
}

/// Starts a run as the page does.
async fn start(base: &str, wanted: Value) -> Result<(StatusCode, Value)> {
    let wanted = client().post(format!("{base}/runs")).header("accept", "application/json").json(&wanted);
    let (status, run) = answer(wanted).await?;
    Ok((status, serde_json::from_str(&run).context(run)?))
}

/// The run, as soon as it has left this state.
async fn after(base: &str, state: &str) -> Result<Value> {
    let view = async || ask_json(format!("{base}/runs/current")).await;
    wait_until(&format!("the end of {state}"), async || Ok(view().await?["state"] != state)).await?;
    view().await
}

/// Cancels a run and waits for its end.
async fn cancel(base: &str, run: &Value) -> Result<()> {
    let id = run["id"].as_str().unwrap_or_default();
    client().delete(format!("{base}/runs/{id}")).send().await?;
    let ended = after(base, "running").await?;
    ensure!(ended["state"] == "cancelled", "{ended}");
    Ok(())
}

/// A run on one instance holds up runs on all others, which say for whom they wait. Without MySQL, which has the lock,
/// a run that does not need MySQL starts. The twin: then a second one starts elsewhere, since each instance knows only
/// its own.
#[apply(test!)]
async fn one_run_at_a_time_over_all_instances() -> Result<()> {
    let lab = labs::full_lab().await?;
    let [first, second] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let start = async |base: &str| {
        let wanted = json!({"strategy": "redis-script", "threads": 10, "loops": 10_000});
        start(base, wanted).await
    };
    let (_, run) = start(&first.url).await?;
    let (status, waiting) = start(&second.url).await?;
    let whose = &waiting["elsewhere"];
    let is_named = whose["instance"] == first.name.as_str() && whose["id"] == run["id"] && whose["by"] == "127.0.0.1";
    ensure!(status == StatusCode::ACCEPTED && is_named && waiting["state"] == "waiting", "beside {run}: {status} {waiting}");
    cancel(&first.url, &run).await?;
    ensure!(after(&second.url, "waiting").await?["state"] == "running", "after the first has ended");
    cancel(&second.url, &waiting).await?;

    lab.kill("mysql").await?;
    let both = [start(&first.url).await?, start(&second.url).await?];
    lab.stop().await;
    let started = both.iter().all(|(status, _)| *status == StatusCode::ACCEPTED);
    ensure!(started, "without MySQL, which they do not need: {both:?}");
    Ok(())
}

/// With an exclusive section one request at a time is inside, over all instances, for every kind of lock. The twins: a
/// mutex admits one per instance, no lock admits all, a shared lock those that will deadlock. Each answer says when its
/// request was inside or tried; a waiter says how long it waited.
#[apply(test!)]
async fn a_lock_admits_as_many_at_once_as_it_promises() -> Result<()> {
    let lab = labs::full_lab().await?;
    let (http, one) = (&lab.addresses().http, &lab.addresses().instances[0].url);
    let short = |base: &str, target: &str, slug: &str| {
        let mut plan = Plan::new(base, target, slug);
        (plan.threads, plan.loops, plan.hold_ms, plan.count, plan.draws) = (9, 2, 5, 1000, true);
        plan
    };
    for strategy in stock::ALL.iter() {
        let row = load(&short(http, "three", strategy.slug)).await?;
        let alone = strategy.spec.promise != Promise::Unsafe && strategy.spec.promise != Promise::OneProcess;
        let as_meant = match row.most_inside {
            None => WITHOUT_SECTION.contains(&strategy.slug),
            Some(_) if strategy.spec.rank.is_as_printed() => true,
            Some(most) => (most == 1) == (alone && strategy.slug != "select-share"),
        };
        let waited = row.contention.map(|told| [told.waited_p50_ms, told.waited_p99_ms, told.waited_max_ms]);
        let in_order = waited.is_some_and(|waited| waited.is_sorted());
        ensure!(as_meant && in_order, "{}: {:?} inside at once, waits {waited:?}", strategy.slug, row.most_inside);
        let drawn = row.lanes.map(|lanes| lanes.drawn).unwrap_or_default();
        let tries = WITHOUT_SECTION.contains(&strategy.slug);
        ensure!(
            drawn.len() as u64 == row.counts.sold && !drawn.iter().any(|lane| lane.vain.is_some() != tries),
            "{}: {} are sold, and drawn are {drawn:?}",
            strategy.slug,
            row.counts.sold
        );
    }
    let mutex = load(&short(one, "one", "mutex")).await?.most_inside;
    ensure!(mutex == Some(1), "{mutex:?} inside one process's mutex");
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Strategies that retry, or decide in one statement or script, have no section.
const WITHOUT_SECTION: [&str; 11] = [
    "single-update",
    "single-update-merged",
    "single-update-buckets",
    "single-update-retried",
    "single-update-node-buckets",
    "version-cas",
    "version-cas-paced",
    "version-cas-retried",
    "redis-watch",
    "redis-watch-merged",
    "redis-script",
];

/// One of three instances is stopped during a run: the run says that requests wait in that one, and goes on. nginx sends to the
/// one with the fewest, so it keeps only its share; in turn, it would collect all after some 40.
#[apply(test!)]
async fn a_run_says_where_its_requests_wait() -> Result<()> {
    const THREADS: u64 = 20;
    let lab = labs::full_lab().await?;
    let nginx = &lab.addresses().http;
    let stopped = &lab.addresses().instances[1].name;
    let wanted = json!({"strategy": "single-update", "target": "three", "threads": THREADS, "loops": 2000});
    let (_, started) = start(nginx, wanted).await?;
    let run = async || ask_json(format!("{nginx}/runs/current")).await;
    wait_until("all instances say what is under way in them", || async {
        let view = run().await?;
        Ok(view["under_way"].as_object().is_some_and(|all| all.len() == 3) && view["snapshot"]["pace"] != 0)
    })
    .await?;
    lab.pause(stopped)?;
    wait_until("a share waits in the one that is stopped", || async {
        let view = run().await?;
        Ok(view["under_way"][stopped].as_u64() > Some(0))
    })
    .await?;
    let samples = async || anyhow::Ok(run().await?["snapshot"]["samples"].as_u64());
    let before = samples().await?;
    wait_until("the others go on", || async { Ok(samples().await? > before.map(|before| before + 10 * THREADS)) }).await?;
    lab.resume(stopped)?;
    cancel(nginx, &started).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A row `run` without an end is no lease, as `table-lock` writes it: a run waits for it until it is cancelled.
#[apply(test!)]
async fn a_lock_row_without_an_end_holds_a_run_up() -> Result<()> {
    let lab = labs::full_lab().await?;
    let mut mysql = MySqlConnection::connect(&lab.addresses().mysql.url).await?;
    let row = "INSERT INTO tb_lock (lock_name, class_name, method_name, server_name, thread_name, create_time, `desc`) \
               VALUES ('run', 'somebody', 'none', '8000', 'main', NOW(), 'by hand')";
    mysql.execute(row).await?;
    let base = &lab.addresses().instances[0].url;
    let started = start(base, json!({"strategy": "none"}));
    let (status, run) = within_limit("a place in the queue", started).await??;
    ensure!(status == StatusCode::ACCEPTED && run["elsewhere"]["by"] == "by hand", "{status} {run}");
    let id = run["id"].as_str().unwrap_or_default();
    client().delete(format!("{base}/runs/{id}")).send().await?;
    ensure!(after(base, "waiting").await?["state"] == "failed", "cancelled");
    mysql.execute("DELETE FROM tb_lock WHERE lock_name = 'run'").await?;
    labs::keep_for_next_test(lab);
    Ok(())
}
