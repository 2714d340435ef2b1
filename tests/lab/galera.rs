//! Three MariaDB nodes as one Galera cluster, and an instance on each.

use crate::support::{
    http::{answered, ask, check, put_stock, status},
    *,
};
use oversell::{
    addresses::Addresses,
    ctx::Ctx,
    lab::{Lab, Options, Part, Writers},
};
use reqwest::StatusCode;
use sqlx::{Connection, Executor, MySqlConnection};

const SIZE: &str = "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.GLOBAL_STATUS \
                    WHERE VARIABLE_NAME = 'wsrep_cluster_size'";
const COUNT: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = 1";

async fn number(url: &str, query: &'static str) -> Result<i64> {
    let mut connection = MySqlConnection::connect(url).await?;
    Ok(sqlx::query_scalar(query).fetch_one(&mut connection).await?)
}

/// What is written on one node is on the others a moment later.
async fn comes_to(url: &str, query: &'static str, value: i64) -> Result<()> {
    until(query, || async { Ok(number(url, query).await? == value) }).await
}

/// The instances start together on an empty database, each on a node of its own: with a lock that each node has for itself, two
/// make the tables at once, one fails halfway, and neither is ever ready.
#[apply(soak_test!)]
async fn instances_on_three_nodes_make_the_tables_once_and_are_ready_where_their_node_writes()
-> Result<()> {
    const MADE: &str = "SELECT COUNT(*) FROM _sqlx_migrations WHERE success";
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
    let [one, two, _] = &at.instances[..] else {
        bail!("three instances")
    };
    let (one, two) = (one.url.as_str(), two.url.as_str());
    let files = oversell::migrations::migrator().iter().count() as i64;
    for node in &nodes {
        comes_to(node, SIZE, 3).await?;
        comes_to(node, MADE, files).await?;
    }
    read_after_all_that_was_written(&at, one, two).await?;

    // The first one began the cluster once, and joins it from now on: it gets what it has missed.
    lab.kill("mysql").await?;
    comes_to(nodes[1], SIZE, 2).await?;
    put_stock(two, 77).await?;
    lab.restart("mysql").await?;
    comes_to(nodes[0], COUNT, 77).await?;
    until("the first instance is ready again", || async {
        Ok(status(format!("{one}/health/ready")).await? == StatusCode::OK)
    })
    .await?;

    // Without a majority it tells its version, and nothing is to be had of it.
    lab.kill("mysql-2").await?;
    lab.kill("mysql-3").await?;
    until("an instance whose node is alone is not ready", || async {
        let (status, words) = ask(format!("{one}/health/ready")).await?;
        Ok(status == StatusCode::SERVICE_UNAVAILABLE && words.contains("not part of its cluster"))
    })
    .await?;
    for slug in [
        "none",
        "single-update",
        "select-for-update",
        "version-cas",
        "table-lock",
    ] {
        answered(check(one, slug, 0, 100), StatusCode::SERVICE_UNAVAILABLE).await?;
    }
    answered(format!("{one}/health/live"), StatusCode::OK).await?;
    lab.stop().await;
    Ok(())
}

/// A node that applies nothing, while the stock is set on another one: what is read there plainly is what was. `GET /stock`, and
/// an instance whose reads are causal, wait until it has what was written.
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
    comes_to(nodes[1], COUNT, 10).await?;
    let mut node = MySqlConnection::connect(nodes[1]).await?;
    node.execute("FLUSH TABLES WITH READ LOCK").await?;
    put_stock(one, 7).await?;
    let before = count(plain).await?;
    ensure!(
        before == 10,
        "the node has {before}: it applies what it is to hold back"
    );
    let stock = tokio::spawn(answered(format!("{two}/stock"), StatusCode::OK));
    let causal = tokio::spawn(count(causal));
    comes_to(nodes[1], WAIT, 2).await?;
    node.execute("UNLOCK TABLES").await?;
    let (stock, causal) = (stock.await??, causal.await??);
    ensure!(stock.contains("\"count\":7,"), "{stock}");
    ensure!(causal == 7, "the causal read: {causal}");
    Ok(())
}

/// What an instance reads.
async fn count(ctx: Ctx) -> Result<i64> {
    let mut conn = ctx.mysql(LONG).await?;
    let count = sqlx::query_scalar(COUNT).fetch_one(&mut *conn).await?;
    conn.done();
    Ok(count)
}
