//! A lock that two tasks contend for, and a holder that is told when it has lost it.
//!
//! `cargo run -p oversell-lock --example lock -- redis://127.0.0.1:6379`

use oversell_lock::{
    LockError,
    redis::{RedisClient, RedisOptions},
};
use std::{env, error::Error, io, time::Duration};

const WAIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let redis = RedisClient::new(RedisOptions::new(url).prefix("example:"))?;

    // The usual form. Long work is dropped when the lock is lost: another may be inside by then.
    redis.lock("door").with(WAIT, |_| work()).await?;

    // The same in three calls, for a holder that asks its guard.
    let guard = redis.lock("door").acquire(WAIT).await?;
    println!("one is inside, surely for {:?}", guard.sure_for());

    // A call that does not wait learns at once that another holds it.
    match redis.lock("door").try_acquire().await {
        Err(taken @ LockError::Taken { .. }) => println!("another: {taken}"),
        other => return Err(format!("two are inside: {other:?}").into()),
    }

    guard.run(work()).await??;
    guard.release().await?;

    // A handle that is given an owner is re-entrant for that owner.
    let own = redis.lock("door").owner(redis.owner());
    let (outer, inner) = (own.acquire(WAIT).await?, own.acquire(WAIT).await?);
    println!("one owner holds it twice");
    outer.release().await?;
    inner.release().await?;

    redis.close().await;
    Ok(())
}

async fn work() -> io::Result<()> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    println!("the work is done");
    Ok(())
}
