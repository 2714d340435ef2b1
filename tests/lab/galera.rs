//! Three MariaDB nodes as one Galera cluster, and an instance on each: how they start, and what a node without the others does. What
//! strategies sell there is in `oversell faults`, and in the lessons `beyond.*`.

use crate::support::{
    http::{ask, body_with_status, check_url, put_stock, status},
    *,
};
use oversell_lab::lab::{Lab, Options, Part, Writers};
use reqwest::StatusCode;
use sqlx::{Connection, MySqlConnection};

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
    let mut lab =
        Lab::start(Options { galera: 3, writers: Writers::Each, redis_ports: vec![0], without: vec![Part::Nginx], ..program() })
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
