//! The figures of the Grafana dashboard on a real Prometheus, beside the books of the stores.

use crate::support::{
    http::{ask_json, client, put_stock, status, stock},
    labs, *,
};
use futures::future::join_all;
use oversell::stock::Store;
use oversell_lab::{lab::Lab, programs};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::{net::TcpListener, process::Stdio, time::Instant};
use tokio::process::Command;

const DASHBOARD: &str = include_str!("../../observe/dashboards/course.json");
const PIECES: i64 = 5000;

/// The value of this expression now; `None` without a value.
async fn value(prometheus: &str, expression: &str) -> Result<Option<f64>> {
    let asked = client().get(format!("{prometheus}/api/v1/query")).query(&[("query", expression)]);
    let answer: Value = asked.send().await?.json().await?;
    ensure!(answer["status"] == "success", "{expression}: {answer}");
    Ok(answer["data"]["result"][0]["value"][1].as_str().and_then(|value| value.parse().ok()))
}

/// Buys product 1 at once by many; returns how many were told that they have a piece.
async fn buy(http: &str, strategy: &str) -> Result<i64> {
    let buyer = async || {
        let mut sold = 0;
        for _ in 0..20 {
            let bought = status(format!("{http}/check/lock/{strategy}")).await?;
            sold += i64::from(bought == StatusCode::OK);
        }
        anyhow::Ok(sold)
    };
    let all = join_all((0..40).map(|_| buyer())).await;
    Ok(all.into_iter().collect::<Result<Vec<_>>>()?.iter().sum())
}

#[apply(soak_test!)]
async fn the_dashboard_says_what_the_books_say() -> Result<()> {
    let prometheus = programs::find("prometheus").context("prometheus is not installed: apt-get install prometheus")?;
    let dashboard: Value = serde_json::from_str(DASHBOARD)?;
    let lab = Lab::start(labs::short_leases()).await?;
    let at = lab.addresses();
    let folder = labs::folder()?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let targets: Vec<_> = at.instances.iter().map(|one| one.url.trim_start_matches("http://")).collect();
    let config = json!({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "oversell", "static_configs": [{"targets": targets}]}],
    });
    std::fs::write(folder.path().join("prometheus.yml"), config.to_string())?;
    let mut server = Command::new(prometheus)
        .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let prometheus = format!("http://127.0.0.1:{port}");
    // Each instance was asked several times since then, so what had been done before is seen, a second ago too.
    let scraped = async || {
        let now = chrono::Utc::now().timestamp() as f64 + 3.0;
        let seen = "min(timestamp(oversell_product_sold_total))";
        wait_until("it has looked", async || {
            let there = value(&prometheus, "count(oversell_product_sold_total)").await.ok().flatten() == Some(3.0);
            Ok(there && value(&prometheus, seen).await?.is_some_and(|at| at > now))
        })
        .await
    };
    let panels = || dashboard["panels"].as_array().into_iter().flatten();
    let expressions = |panel: &Value| -> Vec<String> {
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.filter_map(|target| Some(target["expr"].as_str()?.to_owned())).collect()
    };
    let oversold = expressions(panels().next().context("no panel")?).pop().context("no expression")?;
    let shown = async |since: Duration| value(&prometheus, &oversold.replace("$__range", &format!("{}s", since.as_secs()))).await;

    scraped().await?;
    let begun = Instant::now();
    let mut truths = Vec::new();
    for (strategy, store) in [("none", Store::MySql), ("single-update", Store::MySql), ("redis-script", Store::Redis)] {
        put_stock(&at.http, PIECES).await?;
        let sold = buy(&at.http, strategy).await?;
        let truth = sold - (PIECES - stock(&at.http, store).await?);
        scraped().await?;
        let rests = Instant::now();
        // From before the reset; all of these ranges begin at rest.
        truths.push(truth);
        let all: i64 = truths.iter().sum();
        for _ in 0..5 {
            let from_begin = shown(begun.elapsed() + Duration::from_secs(1)).await?;
            ensure!(from_begin == Some(all as f64), "{strategy}: {from_begin:?}, and {truths:?} by the books");
            let since_rest = shown(rests.elapsed().max(Duration::from_secs(1))).await?;
            ensure!(since_rest == Some(0.0), "{strategy}: {since_rest:?} since it rests");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let sold_shown = value(&prometheus, "sum(oversell_sold_total)").await?;
        ensure!(sold_shown.is_some_and(|shown| shown >= sold as f64), "{sold_shown:?}");
    }
    ensure!(truths[0] > 0 && truths[1] == 0, "{truths:?}");
    // A range from before anything was seen: since the instances began.
    let ever = shown(Duration::from_secs(86_400)).await?;
    ensure!(ever == Some(truths.iter().sum::<i64>() as f64), "{ever:?}, and {truths:?} by the books");

    // The gauges against the books, and no expression that Prometheus does not understand.
    let left = ask_json(format!("{}/stock", at.http)).await?;
    for store in ["mysql", "redis"] {
        let shown = value(&prometheus, &format!("max(oversell_stock_pieces{{store=\"{store}\"}})")).await?;
        ensure!(shown == left[store]["count"].as_f64(), "{store}: {shown:?} {left}");
    }
    for panel in panels() {
        for expression in expressions(panel) {
            let expression = expression.replace("$__range", "60s").replace("$__rate_interval", "30s");
            value(&prometheus, &expression).await?;
        }
    }
    labs::terminate(server.id())?;
    within_limit("its end", server.wait()).await??;
    lab.stop().await;
    Ok(())
}
