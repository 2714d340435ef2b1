//! Helpers of several experiments: commands of Redis, requests, nodes of ZooKeeper, and a sale in words.

use crate::trials::{Cluster, NoVerdict, cluster::target_name};
use http::{Method, header::ACCEPT};
use oversell::{
    claims::{Target, Words, words},
    load::Row,
};
use oversell_lab::{clients::http_client::Ask, terminal::bilingual::Bilingual};
use redis::{FromRedisValue, aio::MultiplexedConnection};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, Error as Zk};

/// A new key that no other experiment uses.
pub(super) fn own_key(name: &str) -> String {
    format!("course:{:08x}:{name}", fastrand::u32(..))
}

/// Sends one command, as `redis-cli` would.
pub(super) async fn send_command<T: FromRedisValue>(
    redis: &mut MultiplexedConnection,
    line: &[&str],
) -> Result<T, NoVerdict> {
    let mut command = redis::Cmd::new();
    Ok(command.arg(line).query_async(redis).await?)
}

/// Sends a GET that must succeed; returns its JSON.
pub(super) async fn get_json(on: &Cluster, url: &str) -> Result<Value, NoVerdict> {
    let request = on.request(Method::GET, url).header(ACCEPT, "application/json");
    Ok(request.answer().await?.success()?.json()?)
}

/// The number of children of a node; 0 if there is no such node.
async fn count_children(zookeeper: &Client, path: &str) -> Result<usize, NoVerdict> {
    match zookeeper.list_children(path).await {
        Err(Zk::NoNode) => Ok(0),
        nodes => Ok(nodes?.len()),
    }
}

/// Waits, 30 s at most, until the node has exactly `wanted` children; a missing node has 0.
pub(super) async fn wait_for_children(zookeeper: &Client, path: &str, wanted: usize) -> Result<(), NoVerdict> {
    let there = async {
        while count_children(zookeeper, path).await? != wanted {
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    let late = || NoVerdict::failed(format!("there are never {wanted} nodes below {path}"));
    timeout(Duration::from_secs(30), there).await.unwrap_or_else(|_| Err(late()))
}

/// Describes a load: `mutex，三个实例：卖出 5000 件，库存减少 4321 件，超卖 679 件。`
pub(super) fn describe_sale(row: &Row) -> Words {
    let (sold, gone, over) = (row.counts.sold, row.pieces_gone(), row.oversold);
    let Bilingual { zh, en } =
        if row.target == target_name(Target::OneInstance) { Target::OneInstance } else { Target::ThreeBehindNginx }
            .words();
    let errors = row.counts.failed();
    let (mut more_zh, mut more_en) = (format!("超卖 {over} 件"), format!("{over} oversold"));
    if errors > 0 {
        more_zh += &format!("，{errors} 个请求出错");
        more_en += &format!(", {errors} requests failed");
    }
    words!(
        "{}，{zh}：卖出 {sold} 件，库存减少 {gone} 件，{more_zh}。",
        "{} on {en}: {sold} sold, {gone} gone, {more_en}.",
        row.strategy
    )
}

pub(super) fn describe_sales(rows: &[Row]) -> Words {
    let each: Vec<_> = rows.iter().map(describe_sale).collect();
    Words::join(&each, ["", " "])
}
