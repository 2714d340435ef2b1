//! What a fault of Redis, or of a holder, does to a lock in Redis: shown where it breaks it, and where it does not.
//!
//! A holder that is paused, and a replica that is promoted
//! without the key, are replays: `replays.rs`.

use crate::support::{
    self,
    buyers::{Count, PIECES, under_load},
    *,
};
use oversell::{
    ctx::Ctx,
    error::Error,
    lab::Proxy,
    section::Job,
    stock::{self, Store},
};
use reqwest::StatusCode;
use std::sync::{Arc, atomic::Ordering};

const NOW: Duration = Duration::ZERO;

/// Redis is killed under load and comes back with what its file has, be that nothing. A request that is caught by it is answered 503;
/// every piece that left the shelf, which is MySQL's, has an answer that said so or one that could not know; then it goes
/// on by itself. The sections are far shorter than the restart, so no holder of before meets one of after; the fenced lock
/// does not rely on that, and where its counter is lost as well, it rises above what the row has seen at the cost of
/// refusals. (What becomes of a stock that Redis itself has: `resets.rs`.)
#[apply(test!)]
#[over([
    ("redis-lock", &[StatusCode::SERVICE_UNAVAILABLE][..]),
    ("redis-fenced", &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT]),
].map(|under| (under.0, under)))]
async fn redis_that_is_restarted_under_load_costs_answers_and_no_piece(
    under: (&'static str, &'static [StatusCode]),
) -> Result<()> {
    let (slug, refusals) = under;
    let mut lab = labs::whole().await?;
    under_load(&mut lab, slug, refusals, async |lab, buyers| {
        lab.kill("redis").await?;
        buyers.are_told().await?;
        Ok(lab.restart("redis").await?)
    })
    .await?;
    labs::hand_on(lab);
    Ok(())
}

/// The way to Redis is cut under load and mended. A request that is caught by it is told; nothing is oversold; then it goes on by itself.
#[apply(test!)]
async fn a_way_to_redis_that_is_cut_and_mended_costs_answers_and_no_piece() -> Result<()> {
    const BUYERS: usize = 20;
    let lab = labs::whole().await?;
    let main = &lab.addresses().redis[0].url;
    let way = Proxy::to(main.replace("redis://", ""))?;
    let instance = |redis: &str| {
        let mut config = config_at(lab.addresses(), redis);
        config.lock.lease_ms = labs::LEASE.as_millis() as u64;
        Ctx::new(config).map(Arc::new)
    };
    // One instance has the way that is cut, and one another.
    let (cut, whole) = (
        instance(&format!("redis://{}", way.address()))?,
        instance(main)?,
    );
    let shelf = support::shelf(&whole).await;
    shelf.put_stock(PIECES).await;

    let count = Arc::new(Count::default());
    let deduct = stock::find("redis-lock").context("no redis-lock")?.deduct;
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
                        Err(other) => return Err(other),
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
        buyer.await??;
    }
    let gone = PIECES - shelf.stock(Store::MySql).await;
    for ctx in [&cut, &whole] {
        ctx.close(LONG).await;
    }
    labs::hand_on(lab);
    count.explains(gone)
}
