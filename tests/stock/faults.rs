//! The servers of the locks break: one is killed under load, stands still with its connections open, pauses its writes, or is not there.
//!
//! What breaks a lock itself is a replay (`replay/races.rs`): a holder or an etcd that stands still beyond a lease, a replica promoted
//! without the key. A full etcd is in the library's contract, a link that is cut in `lab/members.rs`, clusters are in `oversell faults`.

use crate::support::{buyers::under_load, http::*, labs, leftovers::*, *};
use futures::future::join_all;
use oversell::{
    server::Server,
    stock::{self, Strategy},
};
use oversell_lab::{
    clients::redis_at::redis_at,
    lab::{Lab, Options},
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::time::Instant;
use zookeeper_client::{Acls, CreateMode};

/// Buyers go on after a lock that was not acquired.
const UNAVAILABLE: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];

/// Strategies, the server of their locks, and what buyers are refused with while it is away. A Redis that comes back may have lost the
/// counter of fencing tokens: it rises again above the row's token at the cost of refusals. Revisions and zxids continue.
const RESTARTS: [(&str, (&str, &[StatusCode])); 6] = [
    ("redis-lock", ("redis", UNAVAILABLE)),
    ("redis-fenced", ("redis", &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT])),
    ("zk-lock", ("zookeeper", UNAVAILABLE)),
    ("zk-fenced", ("zookeeper", UNAVAILABLE)),
    ("etcd-lock", ("etcd", UNAVAILABLE)),
    ("etcd-fenced", ("etcd", UNAVAILABLE)),
];

/// Every piece that left the stock in MySQL has an answer that said so, or one that could not know; then sales go on, and nothing is
/// left. Sections are far shorter than the restart, so old and new holders never meet.
#[apply(test!)]
#[over(RESTARTS.map(|(slug, of)| (slug, (slug, of))))]
async fn restarting_a_locks_server_under_load_costs_no_piece(
    row: (&'static str, (&'static str, &'static [StatusCode])),
) -> Result<()> {
    let (slug, (server, refusals)) = row;
    let mut lab = labs::full_lab().await?;
    under_load(&mut lab, slug, refusals, async |lab, buyers| {
        lab.kill(server).await?;
        buyers.wait_until_refused().await?;
        Ok(lab.restart(server).await?)
    })
    .await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// The twin of what is looked for: a key in etcd, which a reset clears, and a node in ZooKeeper, which ends with its session.
#[apply(test!)]
async fn what_is_left_of_a_lock_is_seen() -> Result<()> {
    let lab = labs::full_lab().await?;
    let key = json!({"key": "L2Rpc3RyaWJ1dGVkL2V0Y2QtbG9jay9sZWZ0"});
    let put = client().post(format!("{}/v3/kv/put", lab.addresses().etcd[0].url)).json(&key).send().await?;
    put.error_for_status()?;
    ensure!(!leftovers(&lab).await?.is_empty(), "a key that was left was not seen");
    put_stock(&lab.addresses().http, STOCK).await?;
    ensure!(leftovers(&lab).await?.is_empty(), "a reset leaves it");
    let zookeeper = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await?;
    let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
    zookeeper.mkdir("/distributed/zk-lock", &directory).await?;
    let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    zookeeper.create("/distributed/zk-lock/left-", b"", &node).await?;
    ensure!(!leftovers(&lab).await?.is_empty(), "a node that was left was not seen");
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A request that was not sent did nothing, and the answer says so: only a sent request may have sold a piece.
#[apply(test!)]
async fn an_unsent_request_is_refused_and_not_unknown() -> Result<()> {
    let mut lab = labs::full_lab().await?;
    let at = lab.addresses().instances[0].url.clone();
    lab.kill("redis").await?;
    wait_until("the instance sees that redis is gone", async || Ok(!readiness(&at).await?.0)).await?;
    for slug in ["redis-script", "redis-write"] {
        let answer = ask_json(check_url(&at, slug, 0, 300)).await?;
        ensure!(answer["outcome"] == "failed", "{slug}: {answer}");
    }
    lab.restart("redis").await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// An instance without etcd is ready, and says what to install; a reset misses nothing. Everybody else sells.
#[apply(test!)]
async fn without_etcd_its_strategies_say_what_to_install() -> Result<()> {
    let lab = Lab::start(Options { instance_ports: vec![0], redis_ports: vec![0], ..program() }).await?;
    let at = lab.addresses().http.clone();
    put_stock(&at, STOCK).await?;
    for slug in ["etcd-lock", "etcd-fenced"] {
        let words = body_with_status(check_url(&at, slug, 0, 1000), StatusCode::SERVICE_UNAVAILABLE).await?;
        ensure!(words.contains("etcd-server") && words.contains("--etcd 1"), "{slug}: {words}");
    }
    body_with_status(format!("{at}/health/ready"), StatusCode::OK).await?;
    body_with_status(check_url(&at, "zk-lock", 0, 10_000), StatusCode::OK).await?;
    let listed: Vec<Value> = client().get(format!("{at}/strategies")).send().await?.json().await?;
    let absent: Vec<_> = listed.iter().filter(|one| one["absent"] == "etcd").map(|one| &one["slug"]).collect();
    ensure!(absent == ["etcd-lock", "etcd-fenced"], "{absent:?}");
    lab.stop().await;
    Ok(())
}

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
