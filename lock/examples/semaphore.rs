//! Three permits, ten visitors, and a latch that opens when all have left. The permits of a visitor that dies come back.
//!
//! `cargo run -p oversell-lock --example semaphore -- redis://127.0.0.1:6379`

use oversell_lock::redis::{RedisClient, RedisOptions};
use std::{env, error::Error, io, num::NonZeroU32, time::Duration};

const WAIT: Duration = Duration::from_secs(10);
const VISITORS: NonZeroU32 = NonZeroU32::new(10).unwrap();

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let redis = RedisClient::new(RedisOptions::new(url).prefix("example:"))?;
    redis.semaphore("room").try_set_permits(3).await?;
    redis.latch("all-out").try_set_count(VISITORS).await?;

    for visitor in 1..=VISITORS.get() {
        let (room, door) = (redis.semaphore("room"), redis.latch("all-out"));
        tokio::spawn(async move {
            room.with(1, WAIT, || stay(visitor)).await?;
            door.count_down().await?;
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        });
    }
    redis.latch("all-out").wait(WAIT).await?;
    println!("all are out");

    redis.close().await;
    Ok(())
}

async fn stay(visitor: u32) -> io::Result<()> {
    println!("{visitor} is inside");
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}
