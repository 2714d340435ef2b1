//! A resource that refuses a holder that was paused for too long: the lock alone cannot.
//!
//! `cargo run -p oversell-lock --example fenced -- redis://127.0.0.1:6379`

use oversell_lock::{
    Fence,
    redis::{Lease, RedisClient, RedisOptions},
};
use std::{env, error::Error, time::Duration};

const WAIT: Duration = Duration::from_secs(5);

/// The protected resource, which remembers the highest token.
#[derive(Default)]
struct Document {
    seen: Option<Fence>,
    text: String,
}

impl Document {
    fn write(&mut self, fence: Option<Fence>, text: &str) -> Result<(), String> {
        if fence < self.seen {
            return Err(format!("{text:?} comes too late: {fence:?} after {:?}", self.seen));
        }
        self.seen = fence;
        self.text = text.into();
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let redis = RedisClient::new(RedisOptions::new(url).prefix("example:"))?;
    let mut document = Document::default();

    // This holder sleeps until its lease is over, as if its process had been stopped.
    let brief = redis.fenced_lock("document").lease(Lease::Fixed(Duration::from_millis(200)));
    let paused = brief.acquire(WAIT).await?;
    paused.lost().await;

    let next = redis.fenced_lock("document").acquire(WAIT).await?;
    document.write(next.fence(), "the next one's")?;
    println!("written with {:?}", next.fence());

    match document.write(paused.fence(), "the paused one's") {
        Err(refused) => println!("refused: {refused}"),
        Ok(()) => return Err("a holder that had lost its lock has written".into()),
    }
    println!("the document is {:?}", document.text);
    if let Err(lost) = paused.release().await {
        println!("its release says: {lost}");
    }
    next.release().await?;

    redis.close().await;
    Ok(())
}
