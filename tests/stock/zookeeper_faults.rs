//! A fault of ZooKeeper under its locks. A holder that stands still beyond its session is a replay: `replay/races.rs`; an ensemble
//! that loses its leader is in `oversell faults`.

use crate::support::{buyers::under_load, leftovers::leftovers, *};
use oversell_lab::lab::Lab;
use reqwest::StatusCode;
use zookeeper_client::{Acls, CreateMode};

/// Buyers go on after a lock that was not acquired.
const UNAVAILABLE: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];

/// ZooKeeper is killed under load and returns with its data. Affected requests get 503; every piece that left the stock
/// has an answer that said so, or one that could not know; then sales go on and no node is left. zxids continue, so no
/// fenced buyer is refused.
#[apply(test!)]
#[over(["zk-lock", "zk-fenced"].map(|slug| (slug, slug)))]
async fn restarting_zookeeper_under_load_costs_no_piece(slug: &'static str) -> Result<()> {
    let mut lab = labs::full_lab().await?;
    under_load(&mut lab, slug, UNAVAILABLE, async |lab, buyers| {
        lab.kill("zookeeper").await?;
        buyers.wait_until_refused().await?;
        Ok(lab.restart("zookeeper").await?)
    })
    .await?;
    a_planted_node_is_seen(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// The twin leaves its node.
async fn a_planted_node_is_seen(lab: &Lab) -> Result<()> {
    let zookeeper = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await?;
    let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
    zookeeper.mkdir("/distributed/zk-lock", &directory).await?;
    let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    zookeeper.create("/distributed/zk-lock/left-", b"", &node).await?;
    ensure!(!leftovers(lab).await?.is_empty(), "a node that was left was not seen");
    Ok(())
}
