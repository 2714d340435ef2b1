//! A lock in the existing database: a row with a lease and its holder.
//!
//! `cargo run -p oversell-lock --example table --features mysql -- mysql://root@127.0.0.1:3306/test`

use oversell_lock::{
    Lease, Process,
    mysql::{MySqlOptions, TablePool},
};
use std::{env, error::Error, time::Duration};

const WAIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "mysql://root@127.0.0.1:3306/test".into());
    let pool = TablePool::new(MySqlOptions::new(url).process(Process::labelled("example")?))?;
    pool.create_table().await?;

    let report = pool.table_lease_lock("nightly-report").lease(Lease::Watchdog(Duration::from_secs(10)));
    // The work is dropped if the lock is lost: another may have begun by then.
    let holder = report.with(WAIT, |_| report.holder()).await?;
    if let Some(holder) = holder {
        println!("{} had it for {:?}, renewed every third", holder.id, holder.remaining);
    }

    pool.close().await;
    Ok(())
}
