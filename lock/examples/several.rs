//! Two locks of different kinds as one: all or none, each with a token for its resource.
//!
//! `cargo run -p oversell-lock --example several --features mysql,zookeeper -- 127.0.0.1:2181 mysql://root@127.0.0.1:3306/test`

use oversell_lock::{Lock, MultiLock, mysql::TablePool, zk::ZkClient};
use std::{env, error::Error, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut given = env::args().skip(1);
    let zk = ZkClient::connect(given.next().unwrap_or_else(|| "127.0.0.1:2181".into())).await?;
    let url = given.next().unwrap_or_else(|| "mysql://root@127.0.0.1:3306/test".into());
    let pool = TablePool::connect(url).await?;
    pool.create_table().await?;

    let both = MultiLock::new(vec![zk.lock("/warehouse").boxed(), pool.table_lease_lock("warehouse").boxed()]);
    let guard = both.acquire(Duration::from_secs(5)).await?;
    println!("both are held: {}", guard.name());
    for (lock, fence) in guard.fences() {
        println!("show {fence:?} of {lock} with every write");
    }
    guard.release().await?;

    pool.close().await;
    zk.close().await;
    Ok(())
}
