//! A lock in etcd, whose holder shows its fencing token and is told of a loss.
//!
//!     cargo run --example etcd --features etcd -- http://127.0.0.1:2379

use oversell_lock::etcd::{EtcdClient, EtcdOptions};
use std::{error::Error, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let endpoints = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:2379".into());
    let etcd = EtcdClient::new(EtcdOptions::new(endpoints).lease(Duration::from_secs(5)))?;
    println!("etcd {}", etcd.check().await?);
    let lock = etcd.lock("/example/door");

    let first = lock.acquire(Duration::from_secs(5)).await?;
    println!("held under {:?}", first.fence());
    if let Err(error) = lock.try_acquire().await {
        println!("another try: {error}");
    }
    println!("by {:?}", lock.holder().await?);
    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire(Duration::from_secs(5)).await }
    });
    first.release().await?;

    let second = waiting.await??;
    println!("the next one has a larger token: {:?}", second.fence());
    lock.force_unlock().await?;
    second.lost().await;
    if let Err(error) = second.release().await {
        println!("{error}");
    }
    etcd.close().await;
    Ok(())
}
