//! What a fault of Redis, or of a holder, does to a lock in Redis: shown where it breaks it, and where it does not.
//!
//! Each test has servers of its own, so that it may break them.

use crate::{
    buyers::{Buyers, Count, LONG, PIECES, more, text, until},
    instances::{self, MINUTE, STOCK, check, cluster, put_stock, shelf, status, until_held},
    program,
    proxy::Proxy,
    support,
};
use oversell::{
    ctx::Ctx,
    error::Error,
    lab::{Lab, Options, Part},
    stock::{self, Job, Store},
};
use reqwest::{Client, StatusCode};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

type Outcome = Result<(), String>;

const NOW: Duration = Duration::ZERO;

/// Redis answers its writer first and its replica later. A Sentinel that promotes a replica that was cut off meanwhile lets
/// a second owner in: the lock is not there. With the lock on the replica in time there is one owner.
pub(crate) async fn a_replica_that_is_promoted_without_the_key_lets_a_second_owner_in() -> Outcome {
    let (kept, lost) = tokio::try_join!(second_owner_after_a_promotion(false), second_owner_after_a_promotion(true))?;
    match (kept, lost) {
        (StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK) => Ok(()),
        other => Err(format!("the lock after a promotion, with the replica up to date and cut off: {other:?}")),
    }
}

async fn second_owner_after_a_promotion(is_cut_off: bool) -> Result<StatusCode, String> {
    let (instance_ports, without) = (vec![0], vec![Part::MySql, Part::ZooKeeper, Part::Nginx]);
    let options = Options { replica: true, instance_ports, redis_ports: vec![0], without, ..program() };
    let lab = Lab::start(options).await.map_err(text)?;
    let (at, client) = (lab.addresses().instances[0].url.clone(), Client::new());
    // This lesson answers at once, and its lock stays for the lease.
    let takes = async |product: u8| {
        let path = format!("{at}/test/write?stock_id={product}&lease_ms=600000&wait_ms=0");
        client.get(path).send().await.map(|answer| answer.status()).map_err(text)
    };
    let (known, late) = (1, 2);
    let first = takes(known).await?;
    if is_cut_off {
        lab.cut("replica-redis").map_err(text)?;
    }
    let held = [first, takes(late).await?, takes(known).await?, takes(late).await?];
    if held != [StatusCode::OK, StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE] {
        return Err(format!("before the promotion: {held:?}"));
    }
    match is_cut_off {
        true => lab.promoted().await,
        false => lab.promote().await,
    }
    .map_err(text)?;
    until("the promoted one has the older lock", || async {
        Ok(takes(known).await? == StatusCode::SERVICE_UNAVAILABLE)
    })
    .await?;
    let after = takes(late).await?;
    lab.stop().await;
    Ok(after)
}

/// SIGSTOP of a holder, between its read and its write, for longer than its lease. Others get in and sell; then it goes
/// on and writes what it had worked out before. The plain lock cannot keep it from that. The fenced one can: the row
/// has seen a younger token, refuses the write, and the holder answers that it sold nothing.
pub(crate) async fn a_holder_that_is_paused_beyond_its_lease_oversells_unless_it_is_fenced() -> Outcome {
    let (answered, sold, gone) = pause_the_holder("redis-lock").await?;
    if answered != StatusCode::OK || gone > sold {
        return Err(format!(
            "redis-lock: the paused holder answered {answered}, others {sold} times that they sold; {gone} left the shelf"
        ));
    }
    let (answered, sold, gone) = pause_the_holder("redis-fenced").await?;
    if answered != StatusCode::CONFLICT || gone != sold {
        return Err(format!(
            "redis-fenced: the paused holder answered {answered}, others {sold} times that they sold; {gone} left the shelf"
        ));
    }
    Ok(())
}

/// How the paused holder answered in the end, what others sold, and how many pieces left the shelf.
pub(crate) async fn pause_the_holder(slug: &'static str) -> Result<(StatusCode, i64, i64), String> {
    const OTHERS: i64 = 5;
    let lab = cluster(vec![Part::Nginx]).await?;
    let client = Client::new();
    let (victim, other) = (lab.addresses().instances[0].clone(), lab.addresses().instances[1].url.clone());
    put_stock(&client, &other, STOCK).await?;
    let stays = 2 * instances::LEASE.max(instances::SESSION).as_millis() as u64;
    let paused = tokio::spawn(status(&client, check(&victim.url, slug, stays, MINUTE)));
    let mut sold = until_held(&client, &other, slug).await?;
    lab.pause(&victim.name).map_err(text)?;
    for _ in 0..OTHERS {
        match status(&client, check(&other, slug, 0, MINUTE)).await? {
            StatusCode::OK => sold += 1,
            other => return Err(format!("{slug}: {other} after the lease or session of the paused holder")),
        }
    }
    lab.resume(&victim.name).map_err(text)?;
    let answered = paused.await.map_err(text)??;
    let gone = STOCK - shelf(&client, &other).await?;
    lab.stop().await;
    Ok((answered, sold, gone))
}

/// Redis is killed under load and comes back with what its file has, be that nothing. Who is caught by it is answered 503;
/// every piece that left the shelf, which is MySQL's, has an answer that said so or one that could not know; then it goes
/// on by itself. The sections are far shorter than the restart, so no holder of before meets one of after; the fenced lock
/// does not rely on that, and where its counter is lost as well, it rises above what the row has seen at the cost of
/// refusals. (What becomes of a stock that Redis itself has: `resets.rs`.)
pub(crate) async fn redis_that_is_restarted_under_load_costs_answers_and_no_piece() -> Outcome {
    restart_redis_under("redis-lock", &[StatusCode::SERVICE_UNAVAILABLE]).await?;
    restart_redis_under("redis-fenced", &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT]).await
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
    let lab = Lab::start(Options { without, redis_ports: vec![0], ..program() }).await.map_err(text)?;
    let way = Proxy::to(lab.addresses().redis[0].url.replace("redis://", "")).await;
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
            let (ctx, count, id) = (Arc::clone([&cut, &whole][n % 2]), Arc::clone(&count), shelf.id);
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
    way.cut().await;
    until("somebody is told", || async { Ok(count.refused.load(Ordering::Relaxed) > 0) }).await?;
    more(&count.sold_by_others, 100).await?;
    way.mend().await;
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
