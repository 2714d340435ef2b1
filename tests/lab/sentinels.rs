//! Instances that ask Sentinels follow a fail-over by themselves.

use crate::support::{
    buyers::under_load,
    http::{ask, body_with_status, check_url, check_url_of, put_stock_of, status},
    labs::short_leases,
    *,
};
use oversell_lab::{
    addresses::InstanceAddress,
    clients::redis_at::redis_at,
    lab::{Lab, Options},
};
use redis::Value;
use reqwest::StatusCode;

const REFUSED: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];
const OTHER_PRODUCT: usize = 2;

async fn group(env: &[(&str, &str)]) -> Result<Lab> {
    let mut options = Options { instance_ports: vec![0; 2], redis_ports: vec![0], sentinels: 3, ..short_leases() };
    let more = env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    options.env.extend(more);
    Ok(Lab::start(options).await?)
}

async fn ready(instance: &InstanceAddress) -> Result<bool> {
    Ok(status(format!("{}/health/ready", instance.url)).await? == StatusCode::OK)
}

/// The main Redis is killed, returns as a replica, and is promoted again by plan. Each time every sale is answered or
/// unknown, and every instance recovers, its WATCH connections too.
#[apply(soak_test!)]
async fn instances_follow_a_fail_over_and_lose_no_sale_silently() -> Result<()> {
    let mut lab = group(&[("OVERSELL__REDIS__WAIT_REPLICAS", "1")]).await?;
    let instances = lab.addresses().instances.clone();
    for instance in &instances {
        body_with_status(check_url(&instance.url, "redis-watch", 0, 100), StatusCode::OK).await?;
    }
    put_stock_of(&lab.addresses().http, OTHER_PRODUCT, 10).await?;
    under_load(&mut lab, "redis-lock", REFUSED, async |lab, buyers| {
        lab.kill("redis").await?;
        buyers.wait_until_refused().await?;
        wait_until("another one leads", async || Ok(lab.main_redis().await.is_some_and(|name| name != "redis")))
            .await?;
        buyers.buy(100).await?;
        for instance in &instances {
            wait_until("it is ready again", || ready(instance)).await?;
            // A product that the buyers do not buy.
            body_with_status(check_url_of(&instance.url, "redis-lock", OTHER_PRODUCT, 0, 5_000), StatusCode::OK)
                .await?;
            body_with_status(check_url(&instance.url, "redis-watch", 0, 100), StatusCode::OK).await?;
        }
        lab.restart("redis").await?;
        lab.fail_over("redis").await?;
        buyers.buy(100).await
    })
    .await?;
    for instance in &instances {
        wait_until("it is ready at the end", || ready(instance)).await?;
        body_with_status(check_url(&instance.url, "redis-watch", 0, 100), StatusCode::OK).await?;
    }
    lab.stop().await;
    Ok(())
}

/// Replicas and Sentinels lose the primary and promote another; clients still reach it. Mended, it follows the new one.
#[apply(soak_test!)]
async fn an_isolated_primary_runs_beside_the_next_until_mended() -> Result<()> {
    let mut lab = group(&[]).await?;
    let first = lab.addresses().first_redis().to_owned();
    let is = async |role: &str| {
        let mut first = redis_at(&first).await?;
        let told: Vec<Value> = redis::cmd("ROLE").query_async(&mut first).await?;
        anyhow::Ok(told.first() == Some(&Value::BulkString(role.into())))
    };
    lab.isolate("redis").await?;
    wait_until("another one leads", async || Ok(lab.main_redis().await.is_some_and(|name| name != "redis"))).await?;
    ensure!(is("master").await?, "it has heard of the next one");
    ensure!(lab.rejoin("redis").await?, "it was cut off");
    ensure!(!lab.rejoin("redis").await?, "it is mended twice");
    // Its connections are closed once it follows.
    wait_until("it follows", async || Ok(is("slave").await.unwrap_or(false))).await?;
    lab.stop().await;
    Ok(())
}

/// The instance knows one address, whose Redis becomes a replica: it is not ready and says why, until that Redis leads
/// again.
#[apply(soak_test!)]
async fn an_instance_at_a_replica_is_not_ready() -> Result<()> {
    let alone = [("OVERSELL__REDIS__SENTINELS", ""), ("OVERSELL__REDIS__MASTER", "")];
    let lab = group(&alone).await?;
    let instance = &lab.addresses().instances[0];
    lab.fail_over("replica").await?;
    wait_until("it is not ready at a replica", || async {
        let (status, words) = ask(format!("{}/health/ready", instance.url)).await?;
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && words.contains("it is a replica"))
    })
    .await?;
    lab.fail_over("redis").await?;
    wait_until("it is ready again", || ready(instance)).await?;
    lab.stop().await;
    Ok(())
}
