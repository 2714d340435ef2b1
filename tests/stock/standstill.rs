//! A stalled server: its process is stopped, its connections stay open, and nothing is answered.

use crate::support::{http::*, leftovers::ensure_nothing_is_left, *};
use futures::future::join_all;
use oversell::{
    server::Server,
    stock::{self, Strategy},
};
use oversell_lab::clients::redis_at::redis_at;
use reqwest::StatusCode;
use std::time::Instant;

const WAIT_MS: u64 = 300;

/// A write without an answer is ended by the server, or becomes unknown, after some seconds. Without any bound the
/// request would wait as long as the server stalls.
const MAX_OVERRUN: Duration = Duration::from_secs(8);

/// More than is bought.
const STOCK: i64 = 5_000;

/// Works with four of five nodes.
const MAJORITY_STRATEGY: &str = "redis-redlock";

/// Each strategy that needs the server answers 503.
#[apply(test!)]
#[over([("mysql", Server::MySql), ("redis", Server::Redis), ("etcd", Server::Etcd)])]
async fn no_request_outwaits_its_limit_at_a_stalled_server(server: Server) -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses().instances[0].url.clone();
    let needs_it = |it: &&Strategy| it.spec.needs.contains(&server) && it.slug != MAJORITY_STRATEGY;
    let strategies = || stock::ALL.iter().filter(needs_it);
    // Each strategy has its connections, scripts and names.
    for strategy in strategies() {
        ask(check_url(&at, strategy.slug, 0, MINUTE)).await?;
    }
    lab.pause(server.name())?;
    let client = new_client();
    // First requests without a wait of their own: they find recently used connections, which are not checked again.
    // An order needs no etcd.
    let others = (server != Server::Etcd).then(|| format!("{at}/voucher-order/7")).into_iter();
    let sells = strategies().map(|strategy| check_url(&at, strategy.slug, 0, WAIT_MS));
    let asked = others.chain(sells).map(async |asked| {
        let begun = Instant::now();
        let answer = client.get(&asked).timeout(TEST_WAIT_LIMIT).send().await;
        let status = answer.map(|answer| answer.status());
        (asked, status, begun.elapsed())
    });
    let came = join_all(asked).await;
    lab.resume(server.name())?;
    let late: Vec<_> = came
        .into_iter()
        .filter(|(_, status, took)| *took > MAX_OVERRUN || !matches!(status, Ok(StatusCode::SERVICE_UNAVAILABLE)))
        .collect();
    ensure!(late.is_empty(), "{late:?}");
    // A lock without a lease stays if its acquisition was not answered: that is its lesson.
    put_stock(&at, STOCK).await?;
    wait_until("every strategy sells again", async || {
        for strategy in strategies() {
            if status(check_url(&at, strategy.slug, 0, MINUTE)).await?.is_server_error() {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;
    ensure_nothing_is_left(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// As before a planned fail-over: `CLIENT PAUSE … WRITE`. A write probe would get no answer and block reads on the same
/// connection.
#[apply(test!)]
async fn a_redis_that_pauses_writes_is_readable_and_ready() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses().instances[0].url.clone();
    let mut redis = redis_at(&lab.addresses().redis[0].url).await?;
    let mut pause = redis::cmd("CLIENT");
    pause.arg("PAUSE").arg(60_000).arg("WRITE");
    pause.exec_async(&mut redis).await?;
    // Longer than the cached result and a probe may last.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        for asked in ["health/ready", "stock"] {
            body_with_status(format!("{at}/{asked}"), StatusCode::OK).await?;
        }
    }
    redis::cmd("CLIENT").arg("UNPAUSE").exec_async(&mut redis).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}
