//! A Redis Cluster refuses commands whose keys are in several slots or on another node. With a prefix in braces all
//! keys of an instance are in one slot. A refused command has changed nothing.

use crate::{
    own_cluster::{ClusterNode, OwnCluster},
    seckill::on_sale,
    support::*,
};
use oversell::{
    classroom,
    ctx::Ctx,
    error::Error,
    seckill::{self, Order, consumer::Consumer, stream, voucher},
    section::{Job, Name},
    server::Server,
    stock::{self, Store},
    stock_admin,
};
use oversell_lab::clients::redis_at::redis_at;
use redis::AsyncCommands;
use std::{fmt::Debug, sync::Arc};

const BRACES: &str = "{oversell}:";

/// An instance with this node as its main Redis.
fn instance(node: &ClusterNode, servers: &Servers, prefix: &str) -> Arc<Ctx> {
    servers.with(|config| {
        config.redis.url = node.url.clone().into();
        config.redis.prefix = prefix.to_owned();
    })
}

/// Nothing was changed, and the answer names the setting that helps.
fn ensure_refused<T: Debug>(came: Result<T, Error>, words: &str) -> Result<()> {
    let named = matches!(&came, Err(Error::Refuses { server: "redis", why, .. }) if why.contains(words));
    ensure!(named, "not refused with {words}: {came:?}");
    Ok(())
}

/// Three nodes with an instance each. Without braces a reset is refused before it changes anything, and a strategy
/// sells only where its keys are. The twin: with braces everything works at the node with their slot, and nothing
/// elsewhere.
#[apply(test!)]
async fn a_refusal_on_three_nodes_changes_nothing_and_says_why(servers: &Servers) -> Result<()> {
    let cluster = OwnCluster::of(3, 0).await?;
    let mut sold_out_of = [0, 0];
    for (prefix, cure) in [("", "redis.prefix"), (BRACES, "redis.url")] {
        let site = servers.site().await;
        site.put_stock(1000).await;
        let (mut resets, mut left) = (0, 1000);
        for (n, node) in cluster.nodes.iter().enumerate() {
            let has = async |key: &str| anyhow::Ok(cluster.owner(key).await? == n);
            let ctx = instance(node, servers, prefix);
            match stock_admin::reset(&ctx, site.id, 500, None).await {
                Ok(_) => (resets, left) = (resets + 1, 500),
                refused => ensure_refused(refused, cure)?,
            }
            let seen = site.stock(Store::MySql).await;
            ensure!(seen == left, "{prefix}: not {left} but {seen}");
            let on = |name: &str| ctx.redis_key(&Job::new(site.id, TEST_WAIT_LIMIT, TEST_WAIT_LIMIT).redis_name(name));
            let stock_is_there = has(&on("stock")).await?;
            if stock_is_there {
                ctx.redis.connection().set::<_, _, ()>(on("stock"), 500).await?;
            }
            for strategy in stock::ALL.iter() {
                let redlock = strategy.slug == "redis-redlock";
                if strategy.is_own_lock() || redlock || !strategy.spec.needs.contains(&Server::Redis) {
                    continue;
                }
                let mut sells = strategy.spec.store == Store::MySql || stock_is_there;
                for name in strategy.spec.names {
                    if let Name::Redis(name) | Name::RedisFor(name, _) | Name::RedisCount(name) = name {
                        sells &= has(&on(name)).await?;
                    }
                }
                let job = Job::new(site.id, Duration::ZERO, TEST_WAIT_LIMIT);
                let sold = (strategy.spec.deduct)(&ctx, &job).await;
                if sells {
                    sold.with_context(|| format!("{} at {}", strategy.slug, node.url))?;
                    left -= i64::from(strategy.spec.store == Store::MySql);
                } else {
                    ensure_refused(sold, "redis.prefix").with_context(|| strategy.slug)?;
                }
                sold_out_of[usize::from(sells)] += 1;
            }
            if prefix == BRACES && stock_is_there {
                visited_and_reset(&ctx, site.id).await?;
            }
            ctx.close(TEST_WAIT_LIMIT).await;
        }
        let all = usize::from(prefix == BRACES);
        ensure!(resets == all, "{prefix}: {resets} nodes could reset");
    }
    ensure!(sold_out_of.iter().all(|some| *some > 0), "{sold_out_of:?}");
    Ok(())
}

/// Lessons without waits have all keys in the one slot, and so has the reset.
async fn visited_and_reset(ctx: &Ctx, id: i64) -> Result<()> {
    let in_redis = classroom::windows().filter(|window| window.wait.is_none() && !window.path.starts_with("/test/zk"));
    for window in in_redis {
        let visit = (window.visit)(ctx, &Job::new(id, Duration::ZERO, TEST_WAIT_LIMIT)).await;
        visit.with_context(|| window.path)?;
    }
    let mut redis = ctx.redis.connection();
    let written: Vec<String> = redis.keys(format!("*:{id}*")).await?;
    ensure!(written.len() > 1, "the lessons have written nothing to clear");
    let kept: i64 = redis.ttl(ctx.redis_key(&format!("latch:{id}"))).await?;
    ensure!(kept > 0, "nothing ends the latch of a class that has gone");
    stock_admin::reset(ctx, id, 500, None).await?;
    let left: Vec<String> = redis.keys(format!("*:{id}*")).await?;
    let stock = ctx.redis_key(&format!("stock:{id}"));
    ensure!(left == [stock], "a reset leaves {left:?} of {written:?}");
    Ok(())
}

/// One node with all slots. Without braces a reset works slot by slot; the claim of the seckill, which must be one
/// script, is refused before it claims anything. With braces it claims, and its order is written.
#[apply(test!)]
async fn one_node_of_all_slots_resets_by_slot_and_claims_in_one(servers: &Servers) -> Result<()> {
    let cluster = OwnCluster::of(1, 0).await?;
    let node = &cluster.nodes[0];
    for prefix in ["", BRACES] {
        let (ctx, id) = (instance(node, servers, prefix), servers.site().await.id);
        let mut redis = ctx.redis.connection();
        for lock in [
            ctx.redis_key(&format!("lock:{id}")),
            ctx.redis_key(&format!("fairLock:{id}")),
            format!(
                "redisson_lock_queue:{}",
                match prefix {
                    "" => format!("{{fairLock:{id}}}"),
                    prefix => format!("{prefix}fairLock:{id}"),
                }
            ),
        ] {
            redis.set::<_, _, ()>(lock, "somebody's").await?;
        }
        stock_admin::reset(&ctx, id, 9, None).await?;
        let left: Vec<String> = redis.keys("*").await?;
        let stock = ctx.redis_key(&format!("stock:{id}"));
        ensure!(left == [stock], "{prefix}: a reset leaves {left:?}");
        let count = stock_admin::count(&ctx, Store::Redis, id).await?;
        ensure!(count == 9, "{prefix}: {count}");

        let voucher = on_sale(&ctx, 10).await?;
        let step = seckill::find("script-stream").context("no step")?;
        let ordered = (step.spec.place)(&ctx, &Order::new(voucher, 7, Duration::ZERO, TEST_WAIT_LIMIT)).await;
        if prefix == BRACES {
            let order = ordered?.order_id;
            ctx.tasks.spawn(Consumer::new(Ctx::clone(&ctx)).run());
            wait_until("the order is written", async || {
                Ok(stream::read_order_state(&ctx, order).await? == stream::OrderState::Stored)
            })
            .await?;
        } else {
            ensure_refused(ordered, "redis.prefix")?;
            let mut claimed: Vec<String> = redis.keys("*").await?;
            claimed.retain(|key| !key.starts_with("icr:"));
            ensure!(claimed == left, "the refused claim leaves {claimed:?}");
        }
        voucher::remove(&ctx, voucher).await?;

        // A full Redis accepts no transaction, not even to delete: that is found before MySQL is changed.
        let mut limit = redis::cmd("CONFIG").arg("SET").to_owned();
        limit.arg("maxmemory");
        limit.clone().arg(1).exec_async(&mut redis).await?;
        ensure_refused(stock_admin::reset(&ctx, id, 8, None).await, "full")?;
        ensure_refused(stock_admin::remove(&ctx, id, None).await, "full")?;
        let count = stock_admin::count(&ctx, Store::MySql, id).await?;
        ensure!(count == 9, "{prefix}: a refused reset leaves {count}");
        limit.arg(0).exec_async(&mut redis).await?;
        ctx.close(TEST_WAIT_LIMIT).await;
        redis::cmd("FLUSHALL").exec_async(&mut redis_at(&node.url).await?).await?;
    }
    Ok(())
}
