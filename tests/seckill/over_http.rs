//! The seckill over HTTP on three instances: answers to users, and verdicts of the command.

use crate::support::{
    http::{answer, ask_json, client},
    *,
};
use clap::Parser;
use oversell::load::seckill;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: seckill::Args,
}

#[apply(test!)]
async fn a_seckill_over_http_goes_as_each_step_promises() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let add = async |stock: i64, begin: &str, end: &str| {
        let voucher = json!({"title": "100元代金券", "stock": stock, "begin": begin, "end": end});
        answer(client().post(format!("{http}/voucher")).json(&voucher)).await
    };
    let order = async |id: &str, user: i64, strategy: &str| {
        let url = format!("{http}/voucher-order/seckill/{id}?strategy={strategy}");
        answer(client().post(url).header("x-user-id", user)).await
    };
    let get = async |path: String| ask_json(format!("{http}{path}")).await;
    let mut ids = Vec::new();
    for (stock, begin, end) in [
        (1, "2020-01-01T00:00:00+08:00", "2100-01-01T00:00:00Z"),
        (1, "2090-01-01T00:00:00Z", "2100-01-01T00:00:00Z"),
        (1, "2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z"),
    ] {
        let (status, text) = add(stock, begin, end).await?;
        ensure!(status == 201, "{text}");
        ids.push(serde_json::from_str::<Value>(&text)?["id"].to_string());
    }
    let [sale, early, late] = &ids[..] else {
        bail!("three vouchers");
    };
    let (status, placed) = order(sale, 1, "redis-rlock").await?;
    let placed: Value = serde_json::from_str(&placed).context(placed)?;
    ensure!(status == 200 && placed["order_id"].as_str().is_some_and(|id| id.len() > 16), "{placed}");
    for (id, user, strategy, status, words) in [
        (sale, 2, "redis-rlock", 409, "库存不足！"),
        (early, 1, "unique-key", 409, "秒杀尚未开始!"),
        (late, 1, "check-then-deduct", 409, "秒杀已经结束!"),
        (&"999999".into(), 1, "redis-rlock", 404, "没有这张优惠券"),
        (sale, 1, "nope", 404, "没有这个下单策略"),
    ] {
        let (seen, text) = order(id, user, strategy).await?;
        ensure!(seen == status && text.starts_with(words), "{strategy}: {seen} {text}");
    }
    let voucher = get(format!("/voucher/{sale}")).await?;
    let begins = (&voucher["stock"], &voucher["begin"]) == (&json!(0), &json!("2019-12-31T16:00:00Z"));
    ensure!(begins, "{voucher}");
    let orders = get(format!("/voucher/{sale}/orders")).await?;
    ensure!(orders["orders"][0] == json!({"order_id": placed["order_id"], "user_id": 1}), "{orders}");
    let report = get(format!("/voucher/{sale}/check")).await?;
    ensure!(report["verdict"] == "exact" && report["orders"] == 1, "{report}");
    for id in &ids {
        let (status, text) = answer(client().delete(format!("{http}/voucher/{id}"))).await?;
        ensure!(status == 204, "{text}");
    }

    let run = async |steps: &str, more: &str| {
        let line = format!("seckill --users 100 --pieces 50 --threads 60 --strategies {steps}{more}");
        let args = Cli::parse_from(line.split(' ')).args;
        let at = Some(lab.addresses().clone());
        seckill::run(args, at, CancellationToken::new()).await
    };
    let steps = "check-then-deduct,conditional-update,user-mutex,user-mutex-in-tx,redis-rlock,unique-key";
    run(steps, "").await?;
    // The twin: one instance under three names is not accepted as three.
    let one = &lab.addresses().instances[0].url;
    let called_three = run("redis-rlock", &format!(" --http {one} --targets three")).await;
    caught(called_three.map_err(Into::into), "is 3 instance(s)")?;
    labs::keep_for_next_test(lab);
    Ok(())
}
