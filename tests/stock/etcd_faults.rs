//! Faults of etcd under its locks: a restart, a standstill beyond a lease, a quota that is used up, and no etcd at all.

use crate::support::{buyers::under_load, http::*, labs, leftovers::leftovers, *};
use oversell::stock::Store;
use oversell_lab::lab::{Lab, Options};
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Buyers go on after a lock that was not acquired.
const UNAVAILABLE: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];
const STOCK: i64 = 1000;

/// etcd is killed under load and returns with its data. Affected requests get 503; every piece that left the stock has an answer
/// that said so, or one that could not know; then sales go on and no key is left. Revisions continue, so no fenced buyer is refused.
#[apply(test!)]
#[over(["etcd-lock", "etcd-fenced"].map(|slug| (slug, slug)))]
async fn restarting_etcd_under_load_costs_no_piece(slug: &'static str) -> Result<()> {
    let mut lab = labs::full_lab().await?;
    under_load(&mut lab, slug, UNAVAILABLE, async |lab, buyers| {
        lab.kill("etcd").await?;
        buyers.wait_until_refused().await?;
        Ok(lab.restart("etcd").await?)
    })
    .await?;
    // The twin leaves its key.
    etcd(&lab, "kv/put", json!({"key": "L2Rpc3RyaWJ1dGVkL2V0Y2QtbG9jay9sZWZ0"})).await?;
    ensure!(!leftovers(&lab).await?.is_empty(), "a key that was left was not seen");
    put_stock(&lab.addresses().http, STOCK).await?;
    ensure!(leftovers(&lab).await?.is_empty(), "a reset leaves it");
    labs::keep_for_next_test(lab);
    Ok(())
}

/// etcd stands still for longer than a lease: it ends, although its holder was never paused, and the next one gets in. Two are told
/// that they have bought one piece; the twin, whose row checks the token, refuses the older one.
#[apply(test!)]
async fn a_standstill_beyond_the_lease_lets_a_second_holder_in() -> Result<()> {
    let lab = labs::full_lab().await?;
    let [first, second] = [0, 1].map(|n| lab.addresses().instances[n].url.clone());
    for (slug, refused) in [("etcd-lock", false), ("etcd-fenced", true)] {
        put_stock(&first, STOCK).await?;
        let holds = tokio::spawn(status(check_url(&first, slug, 20_000, MINUTE)));
        let sold = wait_until_held(&second, slug).await?;
        lab.pause("etcd")?;
        // Longer than the lease, `labs::LEASE`: it ends by etcd's own clock.
        tokio::time::sleep(2 * labs::LEASE).await;
        lab.resume("etcd")?;
        wait_until("the next one is in", || async { Ok(status(check_url(&second, slug, 0, 1000)).await? == StatusCode::OK) })
            .await?;
        ensure!(!holds.is_finished(), "{slug}: the holder was not inside any more");
        let held = holds.await??;
        let expected = if refused { StatusCode::CONFLICT } else { StatusCode::OK };
        let gone = STOCK - stock(&first, Store::MySql).await?;
        ensure!(
            held == expected && gone == sold + 1,
            "{slug}: the holder got {held}, {sold} and one more were sold, {gone} are gone"
        );
    }
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A holder releases, and nobody gets the lock any more; the answer and the probe say why. Once there is room and the alarm is
/// disarmed, sales go on.
#[apply(test!)]
async fn a_full_etcd_refuses_new_locks_and_says_why() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses().instances[0].url.clone();
    put_stock(&at, STOCK).await?;
    let member = etcd(&lab, "maintenance/status", json!({})).await?["header"]["member_id"].clone();
    let alarm = |action| json!({"action": action, "memberID": member, "alarm": "NOSPACE"});
    let holds = tokio::spawn(status(check_url(&at, "etcd-lock", 3000, MINUTE)));
    wait_until_held(&at, "etcd-lock").await?;
    // As if the quota were used up.
    etcd(&lab, "maintenance/alarm", alarm("ACTIVATE")).await?;
    let refused = body_with_status(check_url(&at, "etcd-fenced", 0, 1000), StatusCode::SERVICE_UNAVAILABLE).await?;
    ensure!(refused.contains("etcdctl alarm disarm"), "{refused}");
    wait_until("the probe has seen it", || async {
        let ready: Value = client().get(format!("{at}/health/ready")).send().await?.json().await?;
        Ok(ready["servers"]["etcd"]["detail"].as_str().is_some_and(|why| why.contains("alarm disarm")))
    })
    .await?;
    let held = holds.await??;
    ensure!(held == StatusCode::OK, "the holder got {held}");
    etcd(&lab, "maintenance/alarm", alarm("DEACTIVATE")).await?;
    body_with_status(check_url(&at, "etcd-fenced", 0, 10_000), StatusCode::OK).await?;
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

/// The answer of etcd's gateway.
async fn etcd(lab: &Lab, request: &str, body: Value) -> Result<Value> {
    let node = &lab.addresses().etcd[0].url;
    let answer = client().post(format!("{node}/v3/{request}")).json(&body).send().await?;
    Ok(answer.error_for_status()?.json().await?)
}
