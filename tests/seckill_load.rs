//! The seckill over HTTP, on three instances: what a user is answered, and what the command says of the steps.

use crate::instances::cluster;
use clap::Parser;
use oversell::{lab::Part, load::seckill};
use reqwest::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), String>;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: seckill::Args,
}

/// A status and what the answer says.
async fn answer(sent: reqwest::Result<reqwest::Response>) -> Result<(u16, String), String> {
    let answer = sent.map_err(|e| e.to_string())?;
    Ok((
        answer.status().as_u16(),
        answer.text().await.map_err(|e| e.to_string())?,
    ))
}

fn ensure(holds: bool, otherwise: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

pub(crate) async fn a_seckill_over_http_goes_as_each_step_promises() -> Outcome {
    let lab = cluster(vec![Part::ZooKeeper]).await?;
    let (client, http) = (Client::new(), lab.addresses().http.clone());
    let add = async |stock: i64, begin: &str, end: &str| {
        let voucher = json!({"title": "100元代金券", "stock": stock, "begin": begin, "end": end});
        answer(
            client
                .post(format!("{http}/voucher"))
                .json(&voucher)
                .send()
                .await,
        )
        .await
    };
    let order = async |id: &str, user: i64, strategy: &str| {
        let url = format!("{http}/voucher-order/seckill/{id}?strategy={strategy}");
        answer(client.post(url).header("x-user-id", user).send().await).await
    };
    let get = async |path: String| -> Result<Value, String> {
        let (_, text) = answer(client.get(format!("{http}{path}")).send().await).await?;
        serde_json::from_str(&text).map_err(|e| format!("{path}: {e}: {text}"))
    };
    // An instance without ZooKeeper is never ready; it has its tables once a voucher can be added.
    for instance in &lab.addresses().instances {
        while answer(
            client
                .get(format!("{}/voucher/7", instance.url))
                .send()
                .await,
        )
        .await?
        .0 != 404
        {
            tokio::task::yield_now().await;
        }
    }

    let mut ids = Vec::new();
    for (stock, begin, end) in [
        (1, "2020-01-01T00:00:00+08:00", "2100-01-01T00:00:00Z"),
        (1, "2090-01-01T00:00:00Z", "2100-01-01T00:00:00Z"),
        (1, "2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z"),
    ] {
        let (status, text) = add(stock, begin, end).await?;
        let added: Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        ensure(status == 201, text)?;
        ids.push(added["id"].to_string());
    }
    let [sale, early, late] = &ids[..] else {
        return Err("three vouchers".into());
    };
    let (status, placed) = order(sale, 1, "redis-rlock").await?;
    let placed: Value = serde_json::from_str(&placed).map_err(|e| format!("{e}: {placed}"))?;
    ensure(
        status == 200 && placed["order_id"].as_str().is_some_and(|id| id.len() > 16),
        placed.to_string(),
    )?;
    for (id, user, strategy, status, words) in [
        (sale, 2, "redis-rlock", 409, "库存不足！"),
        (early, 1, "unique-key", 409, "秒杀尚未开始!"),
        (late, 1, "check-then-deduct", 409, "秒杀已经结束!"),
        (&"999999".into(), 1, "redis-rlock", 404, "没有这张优惠券"),
        (sale, 1, "nope", 404, "没有这个下单策略"),
    ] {
        let (seen, text) = order(id, user, strategy).await?;
        ensure(
            seen == status && text.starts_with(words),
            format!("{strategy}: {seen} {text}"),
        )?;
    }
    let voucher = get(format!("/voucher/{sale}")).await?;
    let begins =
        (&voucher["stock"], &voucher["begin"]) == (&json!(0), &json!("2019-12-31T16:00:00Z"));
    ensure(begins, voucher.to_string())?;
    let orders = get(format!("/voucher/{sale}/orders")).await?;
    ensure(
        orders["orders"][0] == json!({"order_id": placed["order_id"], "user_id": 1}),
        orders.to_string(),
    )?;
    let report = get(format!("/voucher/{sale}/check")).await?;
    ensure(
        report["verdict"] == "exact" && report["orders"] == 1,
        report.to_string(),
    )?;
    for id in &ids {
        let (status, text) =
            answer(client.delete(format!("{http}/voucher/{id}")).send().await).await?;
        ensure(status == 204, text)?;
    }

    let steps =
        "check-then-deduct,conditional-update,user-mutex,user-mutex-in-tx,redis-rlock,unique-key";
    let line = [
        "seckill",
        "--users",
        "100",
        "--pieces",
        "50",
        "--threads",
        "60",
        "--strategies",
        steps,
    ];
    let run = async |more: &[&str]| {
        let args = Cli::parse_from(line.iter().chain(more)).args;
        seckill::run(
            args,
            Some(lab.addresses().clone()),
            CancellationToken::new(),
        )
        .await
    };
    run(&[]).await.map_err(|e| e.to_string())?;
    // The twin: who calls one instance three is not believed.
    let one = lab.addresses().instances[0].url.clone();
    let called_three = run(&["--http", &one, "--targets", "three"]).await;
    ensure(
        called_three.is_err_and(|why| why.to_string().contains("is 3 instance(s)")),
        "one instance passes for three",
    )?;
    lab.stop().await;
    Ok(())
}
