//! Orders on three instances while an instance, MySQL and Redis are killed; and what Redis loses, by how it writes its
//! file.
//!
//! Each test has its own servers, since it breaks them.

use super::{on_sale, stream::VoucherSale};
use crate::support::{buyers::PIECES, http::new_client, *};
use oversell::{
    ctx::Ctx,
    seckill::{
        check::{OrderAnswers, OrdersReport, OrdersVerdict, VoucherOrder, check_orders},
        stream::{self, Backlog},
        voucher,
    },
};
use oversell_lab::lab::{Lab, Options, Part};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

const BUYERS: usize = 48;

/// Users who order once each, at any instance.
struct Crowd {
    client: Client,
    instances: Vec<String>,
    voucher: i64,
    /// At least this many order; others go on until the last fault is over.
    users: i64,
    next: AtomicI64,
    over: AtomicBool,
    answered: AtomicI64,
    answers: Mutex<OrderAnswers>,
}

impl Crowd {
    /// Orders for one user after the other until stopped, and at least for the minimum.
    async fn order(self: Arc<Self>) -> Result<()> {
        loop {
            let user = self.next.fetch_add(1, Ordering::Relaxed);
            if user > self.users && self.over.load(Ordering::Relaxed) {
                return Ok(());
            }
            while !self.order_until_answered(user).await? {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Orders for this user. A refusal because of a missing server may be repeated.
    async fn order_until_answered(&self, user: i64) -> Result<bool> {
        let at = &self.instances[fastrand::usize(..self.instances.len())];
        let url = format!("{at}/voucher-order/seckill/{}?strategy=script-stream", self.voucher);
        let request = self.client.post(url).header("x-user-id", user);
        let request = request.header("accept", "application/json");
        let answer = async {
            let answer = request.send().await?;
            Ok::<_, reqwest::Error>((answer.status(), answer.json::<Value>().await?))
        };
        let (status, body) = match answer.await {
            Ok(answer) => answer,
            Err(error) if error.is_connect() => return Ok(false),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, serde_json::json!({"outcome": "unknown"})),
        };
        let mut answers = self.answers.lock().expect("nobody panics");
        match (status, body["outcome"].as_str()) {
            (StatusCode::OK, _) => {
                let order_id = body["order_id"].as_str().and_then(|id| id.parse().ok());
                let order_id = order_id.with_context(|| format!("no number in {body}"))?;
                answers.orders.push(VoucherOrder { order_id, user_id: user });
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            (StatusCode::SERVICE_UNAVAILABLE, Some("unknown")) => answers.unknown += 1,
            (StatusCode::SERVICE_UNAVAILABLE, _) => return Ok(false),
            _ => bail!("{status}: {body}"),
        }
        Ok(true)
    }
}

/// Each dies in the middle and, except for the instance, returns. Orders are answered without MySQL.
#[apply(test!)]
async fn orders_survive_the_end_of_a_consumer_of_mysql_and_of_redis() -> Result<()> {
    let users = if soak() { 10_000 } else { 1_000 };
    let mut lab = labs::full_lab().await?;
    let at = lab.addresses().clone();
    let ctx = Ctx::new(config(&at))?;
    append_fsync(&ctx, "always").await?;
    let voucher = on_sale(&ctx, PIECES).await?;
    let crowd = Arc::new(Crowd {
        client: new_client(),
        instances: at.instances.iter().map(|one| one.url.clone()).collect(),
        voucher,
        users,
        next: AtomicI64::new(1),
        over: AtomicBool::default(),
        answered: AtomicI64::default(),
        answers: Mutex::default(),
    });
    let buyers: Vec<_> = (0..BUYERS).map(|_| tokio::spawn(Arc::clone(&crowd).order())).collect();
    let some = || wait_for_more(&crowd.answered, users / 10);

    some().await?;
    lab.kill(&at.instances[0].name).await?;
    some().await?;
    lab.kill("mysql").await?;
    some().await?;
    lab.restart("mysql").await?;
    ctx.forget_idle();
    some().await?;
    lab.kill("redis").await?;
    lab.restart("redis").await?;
    append_fsync(&ctx, "always").await?;
    some().await?;
    crowd.over.store(true, Ordering::Relaxed);
    for buyer in buyers {
        buyer.await??;
    }
    let settled = Backlog { lag: 0, pending: 0, dead: 0 };
    wait_until("all is written", || async { Ok(stream::count_backlog(&ctx).await? == settled) }).await?;
    let answers = crowd.answers.lock().expect("nobody panics").clone();
    let report = check_orders(&voucher::read_records(&ctx, voucher).await?, Some(&answers));
    wait_until_shown_as_settled(&crowd, answers.orders[0].order_id).await?;
    ctx.close(TEST_WAIT_LIMIT).await;
    lab.stop().await;
    ensure!(
        report.verdict == OrdersVerdict::Exact && report.orders >= users - answers.unknown.cast_signed(),
        "{} without an answer, and {report:?}",
        answers.unknown
    );
    Ok(())
}

/// An order and the stream, by a surviving instance.
async fn wait_until_shown_as_settled(crowd: &Crowd, order_id: i64) -> Result<()> {
    let read = async |path: String| {
        let url = format!("{}{path}", crowd.instances[1]);
        http::body_with_status(url, StatusCode::OK).await
    };
    let state = read(format!("/voucher-order/{order_id}")).await?;
    let metrics = read("/metrics".into()).await?;
    let gauges = ["lag", "pending", "dead"].map(|what| format!("oversell_order_stream_{what} 0"));
    let shown = gauges.iter().all(|gauge| metrics.lines().any(|line| line == gauge));
    ensure!(shown && state == r#"{"state":"stored"}"#, "{state}, and {metrics}");
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
