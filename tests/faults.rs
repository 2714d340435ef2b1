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
use oversell_lock::{Lock, LockError};
use reqwest::{Client, StatusCode};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

type Outcome = Result<(), String>;

const NOW: Duration = Duration::ZERO;

/// Redis answers its writer first and its replica later. A primary that fails in between takes the key with it: on the
/// promoted replica the lock is free while its holder works. With the key on the replica in time there is one owner.
pub(crate) async fn a_replica_that_is_promoted_without_the_key_lets_a_second_owner_in() -> Outcome {
    if owners_after_a_promotion(Replica::CutOff).await? != 2 {
        return Err("the replica had the key that was written after it was cut off".into());
    }
    match owners_after_a_promotion(Replica::UpToDate).await? {
        1 => Ok(()),
        owners => Err(format!("{owners} owners though the replica had the key")),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Replica {
    UpToDate,
    CutOff,
}

async fn owners_after_a_promotion(replica: Replica) -> Result<usize, String> {
    let without = vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options { without, redis_ports: vec![0, 0], ..program() }).await.map_err(text)?;
    let [before, after] = [0, 1].map(|n| support::config_with(lab.addresses(), &lab.addresses().redis[n].url));
    let (before, after) = (Ctx::new(before).map_err(text)?, Ctx::new(after).map_err(text)?);
    let way = Proxy::to(lab.addresses().redis[0].url.replace("redis://", "")).await;
    let (host, port) = way.address().split_once(':').map(|(h, p)| (h.to_owned(), p.to_owned())).ok_or("no port")?;
    // By default a primary waits 5 s for more replicas.
    let at_once = redis::cmd("CONFIG").arg("SET").arg("repl-diskless-sync-delay").arg(0).to_owned();
    at_once.exec_async(&mut before.redis.connection()).await.map_err(text)?;
    let mut second = after.redis.connection();
    redis::cmd("REPLICAOF").arg(host).arg(port).exec_async(&mut second).await.map_err(text)?;
    until("the replica follows", || async {
        let link: String =
            redis::cmd("INFO").arg("replication").query_async(&mut after.redis.connection()).await.map_err(text)?;
        Ok(link.contains("master_link_status:up"))
    })
    .await?;

    if replica == Replica::CutOff {
        way.cut().await;
    }
    let first = before.redis.lock("lock").acquire(NOW).await.map_err(text)?;
    if replica == Replica::UpToDate {
        until("the replica has the key", || async {
            redis::cmd("EXISTS").arg("lock").query_async(&mut after.redis.connection()).await.map_err(text)
        })
        .await?;
    }
    lab.kill("redis").await.map_err(text)?;
    redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec_async(&mut second).await.map_err(text)?;
    let owners = match after.redis.lock("lock").acquire(NOW).await {
        Ok(_second) if first.is_lost() => return Err("the first was told that it has lost its lock".into()),
        Ok(_second) => 2,
        Err(LockError::Taken { .. }) => 1,
        Err(other) => return Err(other.to_string()),
    };
    drop(first);
    lab.stop().await;
    Ok(owners)
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
