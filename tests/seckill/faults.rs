//! Orders on three instances while an instance, MySQL and Redis are killed; and what Redis loses, by how it writes its
//! file.
//!
//! Each test has its own servers, since it breaks them.

use super::stream::VoucherSale;
use crate::support::{
    buyers::{PIECES, load_during},
    http::{answer, ask, client},
    *,
};
use oversell::{
    ctx::Ctx,
    load::{Plan, THREE_BEHIND_NGINX, run::run, voucher::LoadVoucher},
    seckill::{
        check::{OrdersReport, OrdersVerdict},
        stream::{self, Backlog},
    },
};
use oversell_lab::lab::{Lab, Options, Part};
use redis::{AsyncCommands, streams::StreamPendingCountReply};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    path::PathBuf,
    sync::Arc,
};

/// Each dies in the middle and returns, the instance once the others have written its orders. They are answered without MySQL; afterwards
/// they go on, and an instance shows that all are written.
#[apply(test!)]
async fn orders_survive_the_end_of_a_consumer_of_mysql_and_of_redis() -> Result<()> {
    // Three times, besides those before and after: ten thousand orders, or one thousand.
    let some = if soak() { 3_500 } else { 300 };
    let mut lab = labs::full_lab().await?;
    let at = lab.addresses().clone();
    let dead = at.instances[0].name.clone();
    let ctx = Ctx::new(config(&at))?;
    append_fsync(&ctx, "always").await?;
    let mut plan = Plan::new(&at.http, THREE_BEHIND_NGINX, "script-stream");
    (plan.threads, plan.count) = (48, PIECES);
    // Each user orders once.
    let plan = plan.for_orders(u64::MAX, 1);
    let row = load_during(
        async |progress, over| run(&plan, progress, over).await,
        async |buyers| {
            lab.kill(&dead).await?;
            buyers.buy(some).await?;
            lab.kill("mysql").await?;
            buyers.buy(some).await?;
            lab.restart("mysql").await?;
            ctx.forget_idle();
            buyers.buy(some).await?;
            lab.kill("redis").await?;
            lab.restart("redis").await?;
            append_fsync(&ctx, "always").await?;
            // While it loads its file Redis answers nothing but settings.
            wait_until("the others have written what the dead one had", || async {
                let (mut redis, stream) = (ctx.redis.connection(), ctx.redis_key("stream.orders"));
                let had = redis.xpending_consumer_count(stream, "g1", "-", "+", 1, &dead).await;
                Ok(had.is_ok_and(|had: StreamPendingCountReply| had.ids.is_empty()))
            })
            .await?;
            Ok(lab.restart(&dead).await?)
        },
    )
    .await?;
    let orders = row.orders.context("no orders")?;
    ensure!(orders.faults.is_empty() && orders.orders.cast_unsigned() >= row.counts.sold, "{:?} and {orders:?}", row.counts);

    let one = &at.instances[1].url;
    let voucher = LoadVoucher::add(one, 1, None).await?;
    let order = client().post(format!("{one}/voucher-order/seckill/{}?strategy=script-stream", voucher.id));
    let (_, ordered) = answer(order.header("x-user-id", 7).header("accept", "application/json")).await?;
    let ordered: Value = serde_json::from_str(&ordered)?;
    let id = ordered["order_id"].as_str().with_context(|| ordered.to_string())?;
    let state = async || Ok(ask(format!("{one}/voucher-order/{id}")).await?.1 == r#"{"state":"stored"}"#);
    wait_until("the order is shown as stored", state).await?;
    // Orders whose answers were lost may have come after their voucher was removed, and are dead letters.
    wait_until("all is written", || async {
        let Backlog { lag, pending, .. } = stream::count_backlog(&ctx).await?;
        Ok(lag + pending == 0)
    })
    .await?;
    let (_, metrics) = ask(format!("{one}/metrics")).await?;
    let gauges = ["lag", "pending"].map(|what| format!("oversell_order_stream_{what} 0"));
    ensure!(gauges.iter().all(|gauge| metrics.lines().any(|line| line == gauge)), "{metrics}");
    voucher.remove().await?;
    ctx.close(TEST_WAIT_LIMIT).await;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// The machine of Redis fails: what was not flushed to disk is lost.
#[apply(test!)]
async fn answered_writes_survive_only_with_appendfsync_always() -> Result<()> {
    let without = vec![Part::ZooKeeper, Part::Instances, Part::Nginx];
    let mut lab = Lab::start(Options { without, redis_ports: vec![0], ..program() }).await?;
    let ctx = Arc::new(Ctx::new(config(lab.addresses()))?);
    migrate(&ctx).await;
    for (fsync, verdict) in [("always", OrdersVerdict::Exact), ("everysec", OrdersVerdict::LostOrders)] {
        let report = orders_after_a_failure(&mut lab, &ctx, fsync).await?;
        ensure!(report.verdict == verdict, "appendfsync {fsync}: not {verdict:?} but {report:?}");
    }
    ctx.close(TEST_WAIT_LIMIT).await;
    lab.stop().await;
    Ok(())
}

async fn orders_after_a_failure(lab: &mut Lab, ctx: &Arc<Ctx>, fsync: &str) -> Result<OrdersReport> {
    append_fsync(ctx, "always").await?;
    let mut sale = VoucherSale::open(Arc::clone(ctx)).await?;
    sale.order(0..1).await?;
    let file = file(ctx).await?;
    let flushed = file.metadata()?.len();
    append_fsync(ctx, fsync).await?;
    sale.order(1..20).await?;
    lab.kill("redis").await?;
    // A killed process leaves its writes to the kernel. A failed machine keeps only flushed writes: with `always`
    // everything that was answered, with `everysec` in the worst case nothing of the last second.
    if fsync != "always" {
        file.set_len(flushed)?;
    }
    lab.restart("redis").await?;
    wait_until("Redis is there", || async { Ok(stream::count_backlog(ctx).await.is_ok()) }).await?;
    sale.settled().await
}

async fn append_fsync(ctx: &Ctx, when: &str) -> Result<()> {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("appendfsync").arg(when);
    let set = || async { Ok(set.exec_async(&mut ctx.redis.connection()).await.is_ok()) };
    wait_until("Redis is there", set).await
}

/// The append-only file.
async fn file(ctx: &Ctx) -> Result<File> {
    let mut redis = ctx.redis.connection();
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg("dir").arg("appenddirname");
    let settings: HashMap<String, String> = get.query_async(&mut redis).await?;
    let folder = PathBuf::from(&settings["dir"]).join(&settings["appenddirname"]);
    let mut files = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let file = files.find(|path| path.to_string_lossy().ends_with(".incr.aof")).context("Redis has no file")?;
    Ok(OpenOptions::new().write(true).open(file)?)
}
