//! The Sentinel of a lab promotes the replica, whatever happened before.

use crate::support::{labs::program, *};
use oversell_lab::{
    addresses::Process,
    clients::redis_at::redis_at,
    lab::{Lab, Options, Part},
};
use redis::InfoDict;

async fn with_a_replica() -> Result<Lab> {
    let lab = Lab::start(Options {
        without: vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx],
        replica: true,
        redis_ports: vec![0],
        ..program()
    });
    Ok(lab.await?)
}

fn url(at: &Option<Process>) -> Result<&str> {
    Ok(&at.as_ref().context("no replica")?.url)
}

/// The replication section of a Redis' INFO.
async fn replication(url: &str) -> Result<InfoDict> {
    let mut info = redis::cmd("INFO");
    info.arg("replication");
    Ok(info.query_async(&mut redis_at(url).await?).await?)
}

/// If the main Redis follows another one for a while, it must announce the address that the Sentinel knows. With a
/// second address the Sentinel would take it for another server and miss that its link is cut.
#[apply(test!)]
async fn a_main_redis_that_was_restored_is_promoted_away_again() -> Result<()> {
    let lab = with_a_replica().await?;
    let mut sentinel = redis_at(url(&lab.addresses().sentinel)?).await?;
    let replica = url(&lab.addresses().replica)?;
    let main = async |sentinel: &mut redis::aio::MultiplexedConnection| {
        let mut asked = redis::cmd("SENTINEL");
        asked.arg(&["GET-MASTER-ADDR-BY-NAME", "main"]);
        asked.query_async::<(String, u16)>(sentinel).await
    };
    let known = main(&mut sentinel).await?.1;
    lab.promote().await?;
    // Listed by its port once it follows: "slave0:ip=127.0.0.1,port=…,…".
    let follows = async || anyhow::Ok(replication(replica).await?.get::<String>("slave0"));
    wait_until("the first one follows", || async { Ok(follows().await?.is_some()) }).await?;
    let follower = follows().await?.unwrap_or_default();
    ensure!(
        follower.contains(&format!("port={known},")),
        "the Sentinel knows it by {known}, and whom it follows by {follower}"
    );
    lab.restore().await?;
    ensure!(main(&mut sentinel).await?.1 == known, "the Sentinel follows it at another address");
    lab.cut("replica-redis")?;
    lab.wait_until_promoted().await?;
    lab.stop().await;
    Ok(())
}

/// A Sentinel that was delayed does nothing for 3 s (TILT). The replica loses the main Redis long before, and is
/// promoted all the same: only one that is disconnected for ten times `down-after-milliseconds` is not.
#[apply(test!)]
async fn a_delayed_sentinel_still_promotes_the_replica() -> Result<()> {
    const SENTINEL_PAUSE: Duration = Duration::from_secs(3);
    let lab = with_a_replica().await?;
    let replica = url(&lab.addresses().replica)?;
    lab.pause("sentinel")?;
    lab.cut("replica-redis")?;
    tokio::time::sleep(SENTINEL_PAUSE).await;
    lab.resume("sentinel")?;
    wait_until("the replica is promoted", || async {
        // The Sentinel closes the connections of the Redis that it promotes.
        let info = replication(replica).await;
        Ok(info.is_ok_and(|info| info.get("role") == Some("master".to_owned())))
    })
    .await?;
    lab.stop().await;
    Ok(())
}
