//! Three MariaDB nodes as one Galera cluster, and an instance on each.

use crate::support::{
    http::{ask, body_with_status, check_url, put_stock, status},
    *,
};
use futures::future::join_all;
use oversell::{
    ctx::Ctx,
    error::Error,
    section::Job,
    stock::{self, Store},
    stock_admin,
};
use oversell_lab::{
    addresses::Addresses,
    lab::{Lab, Options, Part, Writers},
};
use reqwest::StatusCode;
use sqlx::{Connection, Executor, MySqlConnection};
use std::sync::Arc;

const CLUSTER_SIZE: &str = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS \
                    WHERE VARIABLE_NAME = 'wsrep_cluster_size'";
const APPLIED_MIGRATIONS: &str = "SELECT COUNT(*) FROM _sqlx_migrations WHERE success";
const COUNT: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = 1";

async fn number(url: &str, query: &'static str) -> Result<i64> {
    let mut connection = MySqlConnection::connect(url).await?;
    Ok(sqlx::query_scalar(query).fetch_one(&mut connection).await?)
}

/// A write on one node reaches the others a moment later.
async fn wait_until_number_is(url: &str, query: &'static str, value: i64) -> Result<()> {
    wait_until(query, || async { Ok(number(url, query).await? == value) }).await
}

/// The instances start together on an empty database, each on its own node. With a lock that each node holds for
/// itself, two of them create the tables at once, one fails halfway, and neither becomes ready.
#[apply(soak_test!)]
async fn instances_on_three_nodes_create_the_tables_once() -> Result<()> {
    let mut lab = Lab::start(Options {
        galera: 3,
        writers: Writers::Each,
        redis_ports: vec![0],
        without: vec![Part::Nginx],
        ..program()
    })
    .await?;
    let at = lab.addresses().clone();
    let nodes: Vec<_> = at.mysql_nodes().map(|node| node.url.as_str()).collect();
    let [one, two, _] = &at.instances[..] else { bail!("three instances") };
    let (one, two) = (one.url.as_str(), two.url.as_str());
    let files = oversell_lab::migrations::migrator().iter().count() as i64;
    for node in &nodes {
        wait_until_number_is(node, CLUSTER_SIZE, 3).await?;
        wait_until_number_is(node, APPLIED_MIGRATIONS, files).await?;
    }
    read_after_all_that_was_written(&at, one, two).await?;

    // The first node bootstrapped the cluster once; now it joins and receives what it missed.
    lab.kill("mysql").await?;
    wait_until_number_is(nodes[1], CLUSTER_SIZE, 2).await?;
    put_stock(two, 77).await?;
    lab.restart("mysql").await?;
    wait_until_number_is(nodes[0], COUNT, 77).await?;
    wait_until("the first instance is ready again", || async {
        Ok(status(format!("{one}/health/ready")).await? == StatusCode::OK)
    })
    .await?;

    // A node without a majority answers only for its version.
    lab.kill("mysql-2").await?;
    lab.kill("mysql-3").await?;
    wait_until("an instance whose node is alone is not ready", || async {
        let (status, words) = ask(format!("{one}/health/ready")).await?;
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && words.contains("not part of its cluster"))
    })
    .await?;
    for slug in ["none", "single-update", "select-for-update", "version-cas", "table-lock"] {
        body_with_status(check_url(one, slug, 0, 100), StatusCode::SERVICE_UNAVAILABLE).await?;
    }
    body_with_status(format!("{one}/health/live"), StatusCode::OK).await?;
    lab.stop().await;
    Ok(())
}

/// A node that applies nothing while the stock is set on another: a plain read returns the old value. `GET /stock` and
/// an instance with causal reads wait for the new one.
async fn read_after_all_that_was_written(at: &Addresses, one: &str, two: &str) -> Result<()> {
    const WAIT: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                        WHERE INFO LIKE '%FROM db_stock WHERE id = %' AND ID <> CONNECTION_ID()";
    let nodes: Vec<_> = at.mysql_nodes().map(|node| node.url.as_str()).collect();
    let mut on_two = config(at);
    on_two.mysql.url = nodes[1].into();
    let plain = Ctx::new(on_two.clone())?;
    on_two.mysql.causal_reads = true;
    let causal = Ctx::new(on_two)?;
    put_stock(one, 10).await?;
    wait_until_number_is(nodes[1], COUNT, 10).await?;
    let mut node = MySqlConnection::connect(nodes[1]).await?;
    node.execute("FLUSH TABLES WITH READ LOCK").await?;
    put_stock(one, 7).await?;
    let before = count(plain).await?;
    ensure!(before == 10, "the node has {before}: it applies what it is to hold back");
    let stock = tokio::spawn(body_with_status(format!("{two}/stock"), StatusCode::OK));
    let causal = tokio::spawn(count(causal));
    wait_until_number_is(nodes[1], WAIT, 2).await?;
    node.execute("UNLOCK TABLES").await?;
    let (stock, causal) = (stock.await??, causal.await??);
    ensure!(stock.contains("\"count\":7,"), "{stock}");
    ensure!(causal == 7, "the causal read: {causal}");
    Ok(())
}

async fn count(ctx: Ctx) -> Result<i64> {
    let mut conn = ctx.mysql(TEST_WAIT_LIMIT).await?;
    let count = sqlx::query_scalar(COUNT).fetch_one(&mut *conn).await?;
    conn.done();
    Ok(count)
}

/// Strategies whose statements another node's commit rolls back, and those that repeat them.
const RETRYING_STRATEGIES: [(&str, &str); 4] = [
    ("single-update", "single-update-retried"),
    ("single-update", "single-update-node-buckets"),
    ("select-for-update", "select-for-update-retried"),
    ("version-cas", "version-cas-retried"),
];

/// Buyers on three nodes: a strategy of the course refuses some of them long before their wait is over, because another
/// node committed first. A strategy that repeats the rolled-back transaction refuses nobody and sells every piece once.
#[apply(soak_test!)]
async fn a_rollback_by_another_node_is_retried_and_refuses_nobody() -> Result<()> {
    const PIECES: i64 = 300;
    let lab = Lab::start(Options {
        galera: 3,
        redis_ports: vec![0],
        without: vec![Part::ZooKeeper, Part::Instances, Part::Nginx],
        ..program()
    })
    .await?;
    let nodes: Vec<_> = lab.addresses().mysql_nodes().collect();
    let mut ctxs = Vec::new();
    for node in &nodes {
        let mut on_node = config(lab.addresses());
        on_node.mysql.url = node.url.clone().into();
        ctxs.push(Arc::new(Ctx::new(on_node)?));
    }
    migrate(&ctxs[0]).await;
    let files = oversell_lab::migrations::migrator().iter().count() as i64;
    for node in &nodes {
        wait_until_number_is(&node.url, APPLIED_MIGRATIONS, files).await?;
    }
    let site = Site { ctxs, id: 1 };
    for (literal, retried) in RETRYING_STRATEGIES {
        let told = sell_out(&site, literal, PIECES).await?;
        ensure!(
            told.refused > 0 && told.sold == told.gone,
            "{literal}: {told:?}: nobody was in another's way, or not each piece was sold once"
        );
        let told = sell_out(&site, retried, PIECES).await?;
        ensure!((told.refused, told.sold, told.gone) == (0, PIECES, PIECES), "{retried}: of {PIECES} pieces {told:?}");
    }
    lab.stop().await;
    Ok(())
}

/// Answers to buyers, and the pieces that left the stock.
#[derive(Debug, Default)]
struct OutcomeCounts {
    sold: i64,
    refused: i64,
    retries: u32,
    gone: i64,
}

/// Four buyers on each node buy until nothing is left, or until a refusing strategy was asked often enough.
async fn sell_out(site: &Site, slug: &'static str, pieces: i64) -> Result<OutcomeCounts> {
    const BUYERS: usize = 12;
    let deduct = stock::find(slug).context("no such strategy")?.spec.deduct;
    site.put_stock(pieces).await;
    for ctx in &site.ctxs {
        // Wait until this node has the stock that was set on another.
        let put = stock_admin::count(ctx, Store::MySql, site.id).await?;
        ensure!(put == pieces, "{put} of {pieces} pieces are on the shelf");
    }
    let buyers = (0..BUYERS).map(|n| {
        let (ctx, id) = (Arc::clone(&site.ctxs[n % site.ctxs.len()]), site.id);
        tokio::spawn(async move {
            let mut told = OutcomeCounts::default();
            for _ in 0..pieces {
                match deduct(&ctx, &Job::new(id, Duration::ZERO, TEST_WAIT_LIMIT)).await {
                    Ok(sold) => {
                        told.sold += 1;
                        told.retries += sold.retries;
                    }
                    Err(Error::Timeout { waited, .. }) if waited < TEST_WAIT_LIMIT / 2 => told.refused += 1,
                    Err(Error::SoldOut) => break,
                    Err(other) => return Err(other.into()),
                }
            }
            anyhow::Ok(told)
        })
    });
    let mut all = OutcomeCounts::default();
    for told in join_all(buyers).await {
        let told = told??;
        all.sold += told.sold;
        all.refused += told.refused;
        all.retries += told.retries;
    }
    all.gone = pieces - stock_admin::count(&site.ctxs[0], Store::MySql, site.id).await?;
    println!("{slug}: {all:?}");
    Ok(all)
}
