//! What a fault of Redis, or of a holder, does to a lock in Redis: shown where it breaks it, and where it does not.
//!
//! Each test has servers of its own, so that it may break them. A holder that is paused, and a replica that is promoted
//! without the key, are replays: `replays.rs`.

use crate::{
    buyers::{Buyers, Count, LONG, PIECES, more, text, until},
    instances::{self, cluster, put_stock, shelf},
    program, support,
};
use oversell::{
    addresses::Process,
    ctx::Ctx,
    error::Error,
    lab::{Lab, Options, Part, Proxy},
    redis_at::redis_at,
    section::Job,
    stock::{self, Store},
};
use reqwest::{Client, StatusCode};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

type Outcome = Result<(), String>;

const NOW: Duration = Duration::ZERO;

/// Redis is killed under load and comes back with what its file has, be that nothing. Who is caught by it is answered 503;
/// every piece that left the shelf, which is MySQL's, has an answer that said so or one that could not know; then it goes
/// on by itself. The sections are far shorter than the restart, so no holder of before meets one of after; the fenced lock
/// does not rely on that, and where its counter is lost as well, it rises above what the row has seen at the cost of
/// refusals. (What becomes of a stock that Redis itself has: `resets.rs`.)
pub(crate) async fn redis_that_is_restarted_under_load_costs_answers_and_no_piece() -> Outcome {
    restart_redis_under("redis-lock", &[StatusCode::SERVICE_UNAVAILABLE]).await?;
    restart_redis_under(
        "redis-fenced",
        &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT],
    )
    .await
}

async fn restart_redis_under(slug: &'static str, refusals: &'static [StatusCode]) -> Outcome {
    let mut lab = cluster(vec![]).await?;
    let (client, nginx) = (Client::new(), lab.addresses().http.clone());
    put_stock(&client, &nginx, PIECES).await?;
    let buyers = Buyers::send(&client, &nginx, slug, refusals);
    buyers.buy(200).await?;
    lab.kill("redis").await.map_err(text)?;
    buyers.are_told().await?;
    lab.restart("redis").await.map_err(text)?;
    buyers.buy(200).await?;
    let count = buyers.go_home().await?;
    let gone = PIECES - shelf(&client, &nginx).await?;
    instances::nothing_is_left(&lab).await?;
    lab.stop().await;
    count.explains(gone).map_err(|e| format!("{slug}: {e}"))
}

/// The way to Redis is cut under load and mended. Who is caught is told; nothing is oversold; then it goes on by itself.
pub(crate) async fn a_way_to_redis_that_is_cut_and_mended_costs_answers_and_no_piece() -> Outcome {
    const BUYERS: usize = 20;
    let without = vec![Part::ZooKeeper, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options {
        without,
        redis_ports: vec![0],
        ..program()
    })
    .await
    .map_err(text)?;
    let way = Proxy::to(lab.addresses().redis[0].url.replace("redis://", "")).map_err(text)?;
    let mut config = support::config_with(lab.addresses(), &format!("redis://{}", way.address()));
    config.lock.lease_ms = instances::LEASE.as_millis() as u64;
    // One instance has the way that is cut, and one another.
    let cut = Arc::new(Ctx::new(config.clone()).map_err(text)?);
    let mut config = support::config_with(lab.addresses(), &lab.addresses().redis[0].url);
    config.lock.lease_ms = instances::LEASE.as_millis() as u64;
    let whole = Arc::new(Ctx::new(config).map_err(text)?);
    let shelf = support::shelf(&whole).await;
    shelf.put_stock(PIECES).await;

    let count = Arc::new(Count::default());
    let deduct = stock::find("redis-lock").ok_or("no redis-lock")?.deduct;
    let buyers: Vec<_> = (0..BUYERS)
        .map(|n| {
            let (ctx, count, id) = (
                Arc::clone([&cut, &whole][n % 2]),
                Arc::clone(&count),
                shelf.id,
            );
            tokio::spawn(async move {
                while !count.over.load(Ordering::Relaxed) {
                    let counter = match deduct(&ctx, &Job::new(id, NOW, LONG)).await {
                        Ok(_) if n % 2 == 0 => &count.sold,
                        Ok(_) => &count.sold_by_others,
                        Err(Error::Unknown { .. }) => &count.unknown,
                        Err(Error::Unavailable { .. }) => &count.refused,
                        Err(other) => return Err(other.to_string()),
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        })
        .collect();
    more(&count.sold, 100).await?;
    way.cut();
    until("somebody is told", || async {
        Ok(count.refused.load(Ordering::Relaxed) > 0)
    })
    .await?;
    more(&count.sold_by_others, 100).await?;
    way.mend();
    more(&count.sold, 100).await?;
    count.over.store(true, Ordering::Relaxed);
    for buyer in buyers {
        buyer.await.map_err(text)??;
    }
    let gone = PIECES - shelf.stock(Store::MySql).await;
    for ctx in [&cut, &whole] {
        ctx.close(LONG).await;
    }
    lab.stop().await;
    count.explains(gone)
}

/// Where the main Redis follows another one for a while, that one hears of it by the address that the Sentinel knows: by a
/// second one the Sentinel would take it for another server, follow it there, and not see it go when its way is cut.
pub(crate) async fn a_main_redis_that_was_restored_is_promoted_away_again() -> Outcome {
    let without = vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options {
        without,
        replica: true,
        redis_ports: vec![0],
        ..program()
    })
    .await
    .map_err(text)?;
    let away = there_and_back_and_away(&lab).await;
    lab.stop().await;
    away
}

async fn there_and_back_and_away(lab: &Lab) -> Outcome {
    let url = |at: &Option<Process>| at.as_ref().map(|at| at.url.clone()).ok_or("no replica");
    let (sentinel, replica) = (
        url(&lab.addresses().sentinel)?,
        url(&lab.addresses().replica)?,
    );
    let mut sentinel = redis_at(&sentinel).await.map_err(text)?;
    let main = async |sentinel: &mut redis::aio::MultiplexedConnection| {
        let mut asked = redis::cmd("SENTINEL");
        asked
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg("main")
            .query_async::<(String, u16)>(sentinel)
            .await
            .map_err(text)
    };
    let known = main(&mut sentinel).await?.1;
    lab.promote().await.map_err(text)?;
    // By its port, once it follows: "slave0:ip=127.0.0.1,port=…,…".
    let follows = async || {
        let mut replica = redis_at(&replica).await.map_err(text)?;
        let info = redis::cmd("INFO")
            .arg("replication")
            .query_async::<redis::InfoDict>(&mut replica)
            .await;
        Ok::<_, String>(info.map_err(text)?.get::<String>("slave0"))
    };
    until("the first one follows", || async {
        Ok(follows().await?.is_some())
    })
    .await?;
    let follower = follows().await?.unwrap_or_default();
    if !follower.contains(&format!("port={known},")) {
        return Err(format!(
            "the Sentinel knows it by {known}, and whom it follows by {follower}"
        ));
    }
    lab.restore().await.map_err(text)?;
    if main(&mut sentinel).await?.1 != known {
        return Err("the Sentinel follows it at another address".into());
    }
    lab.cut("replica-redis").map_err(text)?;
    lab.promoted().await.map_err(text)
}

/// A Sentinel that was itself held up does nothing for 3 s. The replica has lost the main one long before that is over, and
/// is promoted all the same: a Sentinel takes none that has been alone for longer than ten times its patience.
pub(crate) async fn a_sentinel_that_was_held_up_promotes_the_replica_all_the_same() -> Outcome {
    const HELD_UP: Duration = Duration::from_secs(3);
    let without = vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options {
        without,
        replica: true,
        redis_ports: vec![0],
        ..program()
    })
    .await
    .map_err(text)?;
    let replica = lab
        .addresses()
        .replica
        .as_ref()
        .map(|at| at.url.clone())
        .ok_or("no replica")?;
    lab.pause("sentinel").map_err(text)?;
    lab.cut("replica-redis").map_err(text)?;
    tokio::time::sleep(HELD_UP).await;
    lab.resume("sentinel").map_err(text)?;
    // The Sentinel ends all connections of the one that it promotes.
    let role = async || {
        let mut connection = redis_at(&replica).await?;
        redis::cmd("INFO")
            .arg("replication")
            .query_async::<redis::InfoDict>(&mut connection)
            .await
    };
    let is_promoted = async {
        while !role().await.is_ok_and(|info| {
            info.get::<String>("role")
                .is_some_and(|role| role == "master")
        }) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let promoted = tokio::time::timeout(LONG, is_promoted).await;
    lab.stop().await;
    promoted.map_err(|_| "the replica was not promoted".to_owned())
}
