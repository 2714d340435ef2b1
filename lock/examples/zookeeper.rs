//! Curator's recipes: a mutex that is first come, first served; readers together and a writer alone; a barrier.
//!
//! `cargo run -p oversell-lock --example zookeeper --features zookeeper -- 127.0.0.1:2181`

use oversell_lock::zk::{ZkClient, ZkOptions};
use std::{env, error::Error, time::Duration};

const WAIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let connect = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".into());
    let zk = ZkClient::new(ZkOptions::new(connect).chroot("/example").session(Duration::from_secs(10)))?;
    // `ZkClient::connect` does both, where no option is to be said.
    zk.wait_until_connected(WAIT).await?;

    // A resource that refuses a lower token than it has seen is safe from a holder that was paused.
    let work = async |token| {
        println!("inside, with token {token:?}");
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    };
    zk.lock("/door").with(WAIT, work).await?;

    let book = zk.rw_lock("/book");
    let readers = [book.read().acquire(WAIT).await?, book.read().acquire(WAIT).await?];
    println!("two read");
    for reader in readers {
        reader.release().await?;
    }
    book.write().acquire(WAIT).await?.release().await?;
    println!("one wrote");

    let gate = zk.barrier("/gate");
    gate.set().await?;
    let through = tokio::spawn(async move { gate.wait(WAIT).await });
    zk.barrier("/gate").remove().await?;
    through.await??;
    println!("through the gate");

    zk.close().await;
    Ok(())
}
