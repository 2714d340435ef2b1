//! Leftovers of clients and processes that are gone.

use super::*;
use oversell::{section::Name, stock};
use oversell_lab::lab::Lab;
use sqlx::{Connection, MySqlConnection};

/// Waits until there is no lock key, lock row, open transaction or lock node: some are released in the background.
pub(crate) async fn ensure_nothing_is_left(lab: &Lab) -> Result<()> {
    let every = Duration::from_millis(50);
    match wait_until_every(every, "nothing is left", || async { Ok(leftovers(lab).await?.is_empty()) }).await {
        Err(never) => Err(never.context(leftovers(lab).await?)),
        clean => clean,
    }
}

pub(crate) async fn leftovers(lab: &Lab) -> Result<String> {
    let mut mysql = MySqlConnection::connect(&lab.addresses().mysql.url).await?;
    let mut count = async |of: &str| -> Result<i64> {
        let count = format!("SELECT COUNT(*) FROM {of}");
        let counted = sqlx::query_scalar(&count).fetch_one(&mut mysql).await;
        Ok(counted?)
    };
    let rows = count("tb_lock").await?;
    let open = count("information_schema.innodb_trx").await?;
    let mut keys: Vec<String> = labs::command_redis(lab, &["KEYS", "*ock*"]).await?;
    // The counter of a fenced lock has no end; a visitor's own product ends within a day.
    let is_stock = |key: &str| key == "stock" || key.starts_with("stock:");
    keys.retain(|key| !is_stock(key) && !key.starts_with("redisson_lock_token:"));
    let zk = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await?;
    let named = stock::ALL.iter().flat_map(|strategy| strategy.spec.names);
    let mut paths: Vec<String> = named
        .filter_map(|name| match name {
            Name::ZooKeeper(path) => Some((*path).to_owned()),
            _ => None,
        })
        .collect();
    let mut nodes = Vec::new();
    while let Some(path) = paths.pop() {
        match zk.get_children(&path).await {
            Err(zookeeper_client::Error::NoNode) => {}
            Ok((_, stat)) if stat.ephemeral_owner != 0 => nodes.push(path),
            below => paths.extend(below?.0.iter().map(|child| format!("{path}/{child}"))),
        }
    }
    let in_etcd = match &lab.addresses().etcd[..] {
        [] => Vec::new(),
        [node, ..] => labs::etcd_keys(&[&node.url], "/").await?,
    };
    if (rows, open, keys.len(), nodes.len(), in_etcd.len()) == (0, 0, 0, 0, 0) {
        return Ok(String::new());
    }
    Ok(format!("left: {rows} lock rows, {open} transactions, keys {keys:?}, nodes {nodes:?}, in etcd {in_etcd:?}"))
}
