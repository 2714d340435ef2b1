//! A Redis Cluster: it refuses commands whose keys are in different slots, so all keys of an instance are in one, by its prefix.

use crate::support::{
    http::{answered, check, put_stock, stock},
    labs::short_leases,
    *,
};
use oversell::{
    lab::{Lab, Options, Part, Port},
    redis_at::redis_at,
    server::Server,
    stock::{self, Store},
};
use reqwest::StatusCode;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// A cluster of one node, which has all slots: where it is, and what it needs for as long as it runs.
async fn cluster() -> Result<(String, (Child, TempDir, [Port; 2]))> {
    let ports = [Port::free()?, Port::free()?];
    let [port, bus] = [0, 1].map(|n: usize| ports[n].number().to_string());
    let folder = labs::folder()?;
    let server = Command::new("redis-server")
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--cluster-enabled",
            "yes",
        ])
        .args(["--port", &port, "--cluster-port", &bus, "--dir"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let url = format!("redis://127.0.0.1:{port}");
    until("it answers", async || Ok(redis_at(&url).await.is_ok())).await?;
    let mut node = redis_at(&url).await?;
    let slots = ["ADDSLOTSRANGE", "0", "16383"];
    redis::cmd("CLUSTER")
        .arg(&slots)
        .exec_async(&mut node)
        .await?;
    until("it is whole", async || {
        let info = redis::cmd("CLUSTER").arg("INFO").to_owned();
        let info: String = info.query_async(&mut redis_at(&url).await?).await?;
        Ok(info.contains("cluster_state:ok"))
    })
    .await?;
    Ok((url, (server, folder, ports)))
}

/// Every strategy that needs Redis sells with a prefix in braces; without one the stock cannot even be set.
#[apply(soak_test!)]
async fn with_a_prefix_in_braces_an_instance_sells_on_a_cluster() -> Result<()> {
    let (url, _running) = cluster().await?;
    let start = async |prefix: &str| {
        let mut options = Options {
            instance_ports: vec![0],
            without: vec![Part::Redis, Part::Nginx],
            redis_ports: vec![0],
            ..short_leases()
        };
        options.env.extend([
            ("OVERSELL__REDIS__URL".to_owned(), url.clone()),
            ("OVERSELL__REDIS__PREFIX".to_owned(), prefix.to_owned()),
        ]);
        anyhow::Ok(Lab::start(options).await?)
    };
    let lab = start("").await?;
    let base = &lab.addresses().instances[0].url;
    ensure!(
        put_stock(base, 5000).await.is_err(),
        "the twin: keys in several slots"
    );
    lab.stop().await;

    let lab = start("{oversell}:").await?;
    let base = &lab.addresses().instances[0].url;
    put_stock(base, 5000).await?;
    let mut sold = [0, 0];
    for strategy in stock::ALL.iter() {
        let redlock = strategy.slug == "redis-redlock";
        if strategy.is_ones_own() || redlock || !strategy.needs.contains(&Server::Redis) {
            continue;
        }
        answered(check(base, strategy.slug, 0, 10_000), StatusCode::OK).await?;
        sold[usize::from(strategy.store == Store::Redis)] += 1;
    }
    for (store, sold) in [Store::MySql, Store::Redis].into_iter().zip(sold) {
        ensure!(
            sold > 0 && stock(base, store).await? == 5000 - sold,
            "{store:?}: {sold}"
        );
    }
    lab.stop().await;
    Ok(())
}
