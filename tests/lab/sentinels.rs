//! An instance that knows one address, and not the Sentinels. Those that ask Sentinels are in `oversell faults` and in the lesson
//! beyond.fail-over.

use crate::support::{
    http::{ask, status},
    labs::short_leases,
    *,
};
use oversell_lab::lab::{Lab, Options};
use reqwest::StatusCode;

/// Its Redis becomes a replica: the instance is not ready and says why, until that Redis leads again.
#[apply(soak_test!)]
async fn an_instance_at_a_replica_is_not_ready() -> Result<()> {
    let mut options = Options { instance_ports: vec![0], redis_ports: vec![0], sentinels: 3, ..short_leases() };
    let alone = ["OVERSELL__REDIS__SENTINELS", "OVERSELL__REDIS__MASTER"];
    options.env.extend(alone.map(|variable| (variable.to_owned(), String::new())));
    let lab = Lab::start(options).await?;
    let ready = || format!("{}/health/ready", lab.addresses().instances[0].url);
    lab.fail_over("replica").await?;
    wait_until("it is not ready at a replica", || async {
        let (status, words) = ask(ready()).await?;
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && words.contains("it is a replica"))
    })
    .await?;
    lab.fail_over("redis").await?;
    wait_until("it is ready again", || async { Ok(status(ready()).await? == StatusCode::OK) }).await?;
    lab.stop().await;
    Ok(())
}
