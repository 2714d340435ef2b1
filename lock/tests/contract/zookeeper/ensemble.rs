//! What only an ensemble of three servers does to a lock.

use crate::{support::*, zookeeper::*};
use oversell_lock::zk::ZkOptions;
use zookeeper_client::{Client, SessionState};

/// The leader is stopped. A follower does not know that for `syncLimit * tickTime`, longer than the session here, and
/// keeps answering what it can answer alone. The holder that it serves is told before the follower finds out.
#[apply(soak_test!)]
async fn a_holder_served_by_a_follower_without_a_leader_is_told(_: &ZooKeeper) -> Result {
    let lab = lab(Part::ZooKeeper, 3, 0).await?;
    let leader = lab.zookeeper_leader().await;
    let leader = leader.context("an ensemble without a leader")?;
    let connect = lab.addresses().zookeeper.connect.clone();
    let servers = connect.split(',').zip(["zookeeper", "zookeeper-2", "zookeeper-3"]);
    let (follower, _) = servers.into_iter().find(|(_, name)| *name != leader).context("no follower")?;
    let client = client_of(ZkOptions::new(follower).session(SESSION)).await?;
    let guard = take(&client.lock("/contract/follower")).await?;
    let outsider = Client::connector().with_session_timeout(SOON).connect(follower).await?;
    lab.pause(&leader)?;
    // First the follower, then the guard, which knows by the clock: if the follower has found out, its holder must
    // know, whatever stood still.
    let either = || async {
        let serves = outsider.check_stat("/").await.is_ok() && outsider.state() == SessionState::SyncConnected;
        !serves || guard.is_lost()
    };
    let came = until("the holder is told, or the follower finds out", either).await;
    let known = guard.is_lost();
    let loss = timeout(SOON, guard.lost()).await;
    lab.resume(&leader)?;
    drop(guard);
    lab.stop().await;
    came?;
    ensure!(known, "told after the follower had found out");
    loss.context("the waiter for the loss was never told")
}
